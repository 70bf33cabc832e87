"""OpenTelemetry: sends a run as spans if the option `--otel URL` is set. The extra `otel` is imported only then.

spans.py        creates spans for a run, its trials and steps
conventions.py  names and attributes of a span, by OpenTelemetry's conventions
sending.py      sends spans to the address of --otel
"""
