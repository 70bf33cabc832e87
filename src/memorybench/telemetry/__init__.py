"""OpenTelemetry: sends a run as spans, if the user asks for it with `--otel URL`. The extra `otel` is imported late."""
