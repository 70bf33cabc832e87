"""Opens HTTP providers from YAML, as a user writes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from memorybench.core.contracts import Scope
from memorybench.core.conversation import Session, Turn
from memorybench.files.yaml_file import parse_yaml
from memorybench.providers.config.reading import read_provider
from memorybench.providers.http.provider import HttpProvider, open_http_provider
from memorybench.secrets.redaction import Redactor
from tests.providers.http_memory import KEY

T = TypeVar("T")

HOME = Scope(run="run-1", benchmark="test", provider="spaces", haystack="home")


def open_from_yaml(
    text: str, url: str, *, environment: Mapping[str, str] | None = None, key: str | None = KEY, **options: Any
) -> AbstractAsyncContextManager[HttpProvider]:
    config = read_provider(parse_yaml(text.replace("URL", url), "sample.yaml"), environment or {})
    return open_http_provider(config, key=key, redactor=Redactor([KEY]), **options)


def run_with_provider(text: str, url: str, work: Callable[[HttpProvider], Awaitable[T]], **options: Any) -> T:
    async def within() -> T:
        async with open_from_yaml(text, url, **options) as provider:
            return await work(provider)

    return asyncio.run(within())


def session(name: str, *contents: str, **more: Any) -> Session:
    return Session(id=name, turns=tuple(Turn(role="user", content=text) for text in contents), **more)
