"""Finds the captures that are credentials, such as the token of a login. They are redacted and never stored."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.requests import Call, Capture, Request

_SECRET = re.compile(r"token|secret|passw|api_?key|jwt|credential|bearer|cookie|session_?key", re.I)
_SECRET_HEADER = re.compile(r"auth|token|key|secret|cookie|session", re.I)
_VARIABLE = re.compile(r"\$\{(\w+)\}|^\$\.(\w+)$")


def secret_captures(config: ProviderConfig) -> frozenset[str]:
    """Return the captures that are marked as secret, are named like one, or are sent in a header for credentials."""
    captures = {name: path for request in config.setup for name, path in request.captures.items()}
    secret = {name for name, capture in captures.items() if _is_secret(name, capture)}
    for call in _calls(config):
        for header, text in call.headers.items():
            if _SECRET_HEADER.search(header):
                secret.update(name for names in _VARIABLE.findall(text) for name in names)
    return frozenset(secret & captures.keys())


def _is_secret(name: str, capture: str | Capture) -> bool:
    if isinstance(capture, Capture):
        return capture.secret
    return _SECRET.search(f"{name} {capture}") is not None


def _calls(config: ProviderConfig) -> Iterator[Call]:
    endpoints = [call for _, call in config.endpoints or () if call is not None]
    for call in (*config.setup, *endpoints, *config.teardown):
        yield call
        wait = getattr(call, "wait", None) if isinstance(call, Request) else None
        if isinstance(wait, Call):
            yield wait
