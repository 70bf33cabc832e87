"""OpenTelemetry: sends a run as spans, if the user asks for it with `--otel URL`. The extra `otel` is imported late.

spans.py        makes spans of a run, its trials and steps
conventions.py  names and attributes of a span, by OpenTelemetry's conventions
sending.py      sends spans to the address of --otel
"""
