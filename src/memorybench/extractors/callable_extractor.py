"""A Python function as an extractor. It was loaded by compose, which asked for leave to run code."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, MemorybenchError, ServiceError
from memorybench.core.extraction import MemoryState
from memorybench.core.records import digest
from memorybench.core.trials import Subject
from memorybench.text.sanitize import sanitize

from .states import as_memory, messages, own_copy

Function = Callable[..., Any]
"""Of existing memory and messages (`{"role", "content"}`), plain or async, giving the new memory as JSON data."""

_LONGEST = 300


class CallableExtractor:
    """Opened by `open_callable`."""

    def __init__(self, subject: Subject, function: Function) -> None:
        self.subject = subject
        self._function = function

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
        try:
            given = await self._called(own_copy(existing), messages(conversation))
        except MemorybenchError:
            raise  # it knows our errors, and says itself whether it is worth another try
        except Exception as error:
            said = " ".join(sanitize(str(error)).split())[:_LONGEST]
            raise ServiceError(f"{self.subject.name}: raised {type(error).__name__}: {said}") from error
        return as_memory(given, self.subject.name)

    async def _called(self, existing: MemoryState, conversation: list[dict[str, str]]) -> Any:
        if inspect.iscoroutinefunction(self._function):
            return await self._function(existing, conversation)
        # a plain function may block: on its own thread it holds up nobody
        given = await asyncio.to_thread(self._function, existing, conversation)
        return await given if inspect.isawaitable(given) else given


@asynccontextmanager
async def open_callable(function: Function, name: str) -> AsyncIterator[CallableExtractor]:
    """`name` is what messages and reports call it, such as `module:function`."""
    _check_parameters(function, name)
    settings = {"type": "callable", "source": _source(function)}
    yield CallableExtractor(Subject(role="extractor", name=name, settings=settings), function)


def _check_parameters(function: Function, name: str) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some functions in C do not tell
    try:
        signature.bind({}, [])
    except TypeError:
        raise BadInput(
            name, f"takes {signature}", expected="two parameters: existing memory, and a list of messages"
        ) from None


def _source(function: Function) -> str:
    """The digest of the file that the function stands in, so that an edited one is not taken for the old; "": none."""
    try:
        file = inspect.getsourcefile(function)
        return digest(Path(file).read_text(encoding="utf-8"))[:16] if file else ""
    except (TypeError, OSError, UnicodeDecodeError):
        return ""
