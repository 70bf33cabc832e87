"""Vectors from Google, by way of its endpoint that speaks like OpenAI's."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from memorybench.secrets.redaction import Redactor

from .openai import OpenAIEmbedder, open_openai_embedder

BASE_URL = "https://generativelanguage.googleapis.com/v1beta/openai"
MODEL = "gemini-embedding-001"
KEY_VARIABLES = ("GEMINI_API_KEY", "GOOGLE_API_KEY")


def open_google_embedder(
    *,
    key: str | None,
    redactor: Redactor,
    model: str | None = None,
    dimensions: int | None = None,
    base_url: str | None = None,
) -> AbstractAsyncContextManager[OpenAIEmbedder]:
    """As `open_openai_embedder`. Of gemini-embedding-001, vectors of other than 3,072 dimensions come with any length:
    whoever compares them must look at directions."""
    return open_openai_embedder(
        key=key,
        redactor=redactor,
        model=model or MODEL,
        dimensions=dimensions,
        base_url=base_url or BASE_URL,
        name="google",
    )
