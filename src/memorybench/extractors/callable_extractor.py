"""A Python function as an extractor."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, MemorybenchError, ServiceError
from memorybench.core.extraction import MemoryState
from memorybench.core.records import digest
from memorybench.core.trials import Subject
from memorybench.files.located import Document
from memorybench.text.sanitize import sanitize

from .config import ExtractorConfig
from .plugin import ExtractorType, OpenContext
from .states import as_memory, messages

Function = Callable[..., Any]
"""The user's function. It gets the existing memory and a list of messages (`{"role", "content"}`), and returns the new
memory as JSON data. It may be async."""

_MAX_ERROR_CHARACTERS = 300
_FUNCTION = re.compile(r"(?:[A-Za-z_][\w.]*|.+\.py):[A-Za-z_]\w*")


class CallableExtractor(ExtractorType):
    required_key = "function"
    keys = frozenset({"function"})
    runs_code = True

    @classmethod
    def check_config(cls, config: ExtractorConfig, document: Document) -> None:
        if config.function is not None and not _FUNCTION.fullmatch(config.function):
            raise BadInput(
                document.where("function"), "invalid function name", expected="module:function or ./file.py:function"
            )

    @classmethod
    def open(cls, context: OpenContext) -> AbstractAsyncContextManager[CallableExtractor]:
        return nullcontext(cls(context.load_function(), context.name))

    def __init__(self, function: Function, name: str) -> None:
        """Raise BadInput if the function cannot be called with two arguments.

        `name`, such as `module:function`, is shown in reports.
        """
        _check_parameters(function, name)
        settings = {"type": "callable", "source": _source(function)}
        self.subject = Subject(role="extractor", name=name, settings=settings)
        self._function = function

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
        try:
            memory = await self._call(deepcopy(existing), messages(conversation))
        except MemorybenchError:
            raise
        except Exception as error:
            text = " ".join(sanitize(str(error)).split())[:_MAX_ERROR_CHARACTERS]
            raise ServiceError(
                f"{self.subject.name}: the extractor function raised {type(error).__name__}: {text}"
            ) from error
        return as_memory(memory, self.subject.name)

    async def _call(self, existing: MemoryState, conversation: list[dict[str, str]]) -> Any:
        if inspect.iscoroutinefunction(self._function):
            return await self._function(existing, conversation)
        # a plain function may block, so it runs on another thread
        result = await asyncio.to_thread(self._function, existing, conversation)
        return await result if inspect.isawaitable(result) else result


def _check_parameters(function: Function, name: str) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some functions in C have no signature
    try:
        signature.bind({}, [])
    except TypeError:
        raise BadInput(
            name,
            f"the function has the parameters {signature}",
            expected="two parameters: existing memory, and a list of messages",
        ) from None


def _source(function: Function) -> str:
    """Return a digest of the file that defines the function; "" if there is no such file."""
    try:
        file = inspect.getsourcefile(function)
        return digest(Path(file).read_text(encoding="utf-8"))[:16] if file else ""
    except (TypeError, OSError, UnicodeDecodeError):
        return ""
