"""Models that answer and judge: OpenAI and all that speak like it, Anthropic, and a scripted one for tests."""
