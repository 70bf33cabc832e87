"""Addresses, models and keys of the embedding services that a config names by `provider`."""

from __future__ import annotations

DEFAULTS = {
    "openai": ("https://api.openai.com/v1", "text-embedding-3-small"),
    "google": ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-embedding-001"),
}
"""Base URL and model, by provider. Vectors of Google have length 1 only with 3,072 dimensions, so users of vectors
must normalise them."""
KEY_VARIABLES = {"openai": ("OPENAI_API_KEY",), "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY")}
"""Environment variables for the key, by provider; the first that is set is used."""
