"""Models that answer and judge: servers with the API of OpenAI or Anthropic, and a scripted model for tests."""
