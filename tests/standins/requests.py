"""Parses requests, so that those of a client can be compared with ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.doubles.stub import Call


def flat(call: Call) -> Iterator[tuple[str, str]]:
    yield from ((f"header {name.lower()}", value) for name, value in call.headers.items())
    yield from ((f"query.{name}", value) for name, value in call.query.items())
    if call.body:
        yield from leaves(call.json, "body")


def leaves(value: Any, where: str) -> Iterator[tuple[str, str]]:
    match value:
        case dict() if value:
            for name, inner in value.items():
                yield from leaves(inner, f"{where}.{name}")
        case list() if value:
            for n, inner in enumerate(value):
                yield from leaves(inner, f"{where}[{n}]")
        case _:
            yield where, repr(value)
