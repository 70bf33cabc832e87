"""Python functions as extractors."""

from __future__ import annotations

import asyncio
import threading
from contextlib import nullcontext
from typing import Any

import pytest

from memorybench.core.errors import Malformed, ServiceError, Transient
from memorybench.core.extraction import Extractor
from memorybench.extractors.callable_extractor import CallableExtractor
from tests.doubles.refusals import refused
from tests.extractors import known
from tests.extractors.conversation import EXISTING, LEARNED, MESSAGES, ask


def open_callable(function: Any, name: str) -> nullcontext[CallableExtractor]:
    return nullcontext(CallableExtractor(function, name))


def learn(existing_memory: Any, conversation: list[dict[str, str]]) -> Any:
    assert conversation == MESSAGES
    return {**existing_memory, "pets": ["Has a dog named Biscuit"]}


async def learn_async(existing_memory: Any, conversation: list[dict[str, str]]) -> Any:
    await asyncio.sleep(0)
    return learn(existing_memory, conversation)


@pytest.mark.parametrize("function", [learn, learn_async, lambda existing, turns: learn_async(existing, turns)])
def test_plain_and_async_functions_are_supported(function: Any) -> None:
    assert ask(open_callable(function, "mine:learn")) == LEARNED


def test_extractor_has_the_name_of_its_config() -> None:
    async def look() -> None:
        async with open_callable(learn, "mine:learn") as extractor:
            assert isinstance(extractor, Extractor)
            assert (extractor.subject.role, extractor.subject.name) == ("extractor", "mine:learn")

    asyncio.run(look())


def test_plain_function_does_not_block_others() -> None:
    meeting = threading.Barrier(2, timeout=60)

    def meet(existing_memory: Any, conversation: Any) -> Any:
        meeting.wait()  # returns only when both calls are in it
        return existing_memory

    async def both() -> list[Any]:
        async with open_callable(meet, "meet") as extractor:
            return await asyncio.gather(*(extractor.extract({}, ()) for _ in range(2)))

    assert asyncio.run(both()) == [{}, {}]


def test_function_cannot_change_the_case() -> None:
    def vandal(existing_memory: Any, conversation: Any) -> Any:
        existing_memory["home"].clear()
        return existing_memory

    assert ask(open_callable(vandal, "vandal")) == {"home": [], "pets": []}
    assert EXISTING == {"home": ["Lives in Bristol"], "pets": []}


def circular() -> Any:
    memory: dict[str, Any] = {}
    memory["memory"] = memory
    return memory


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (None, "invalid memory null"),
        (3, "invalid memory 3"),
        ({"pets": {"Biscuit"}}, "is not JSON: Object of type set"),
        ({"weight": float("nan")}, "is not JSON: Out of range float"),
        (circular(), "is not JSON: Circular reference"),
        ({"pets": ["\ud83d"]}, "lone surrogate"),
        ({1: "a", "1": "b"}, 'duplicate key "1"'),
    ],
)
def test_invalid_memory_is_shown_in_the_error(returned: Any, problem: str) -> None:
    with pytest.raises(Malformed, match="mine: ") as raised:
        ask(open_callable(lambda existing, turns: returned, "mine"))
    assert problem in str(raised.value)


def test_exception_of_a_function_is_a_one_line_error() -> None:
    def broken(existing_memory: Any, conversation: Any) -> Any:
        raise KeyError("pets\nand more")

    with pytest.raises(ServiceError, match=r"^mine: .* raised KeyError: 'pets\\nand more'$"):
        ask(open_callable(broken, "mine"))


def test_function_may_raise_transient() -> None:
    def busy(existing_memory: Any, conversation: Any) -> Any:
        raise Transient("busy", retry_after=2)

    with pytest.raises(Transient) as raised:
        ask(open_callable(busy, "mine"))
    assert raised.value.retry_after == 2


def test_function_with_one_parameter_is_an_error_at_opening() -> None:
    assert refused(lambda: ask(open_callable(lambda conversation: conversation, "mine"))).where == "mine"


def test_functions_of_different_files_are_different_subjects() -> None:
    async def keys() -> list[str]:
        async with open_callable(learn, "f") as ours, open_callable(known.amnesiac, "f") as other:
            return [ours.subject.key, other.subject.key]

    first, second = asyncio.run(keys())
    assert first != second
