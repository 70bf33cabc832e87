"""Embeddings from Google, by its endpoint with OpenAI's API."""

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
    """Open an embedder as `open_openai_embedder` does.

    Vectors of gemini-embedding-001 with other than 3,072 dimensions are not normalised.
    """
    return open_openai_embedder(
        key=key,
        redactor=redactor,
        model=model or MODEL,
        dimensions=dimensions,
        base_url=base_url or BASE_URL,
        name="google",
    )
