"""The judge of traces as an evaluator of LangSmith's own `evaluate`. It speaks their protocol and needs none of their
code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from memorybench.core.errors import MemorybenchError
from memorybench.core.extraction import Trace
from memorybench.core.trials import Subject

from .online import SHARES, TraceJudge

T = TypeVar("T")

Opening = Callable[[], AbstractAsyncContextManager[TraceJudge]]
Reading = Callable[[Mapping[str, Any], str], Trace]
"""A run as a mapping, and what messages call it → its trace; raises BadInput where it is misshapen."""


class MemoryExtractionEvaluator:
    """`evaluate(target, data=…, evaluators=[MemoryExtractionEvaluator(…)])`.

    Gives precision, recall and F1 of one run; a score that is undefined, or that could not be found out, is None and
    says why in its comment: it never counts as 0.
    """

    def __init__(self, opening: Opening, reading: Reading) -> None:
        self._opening = opening
        self._reading = reading

    def __call__(self, run: Any, example: Any = None) -> dict[str, Any]:
        return self.evaluate_run(run, example)

    def evaluate_run(self, run: Any, example: Any = None, evaluator_run_id: Any = None) -> dict[str, Any]:
        """In a thread without an event loop, as `evaluate` calls it. The example is not looked at: what should have
        been written down stands in the conversation."""
        return asyncio.run(self.aevaluate_run(run, example, evaluator_run_id))

    async def aevaluate_run(self, run: Any, example: Any = None, evaluator_run_id: Any = None) -> dict[str, Any]:
        try:
            trace = self._trace(run)
            async with self._opening() as judge:
                judged = await judge.judge(_Unrecorded(), trace)
        except MemorybenchError as error:
            return _results({}, str(error))
        return _results({score.name: score.value for score in judged.scores}, judged.comment)

    def _trace(self, run: Any) -> Trace:
        fields = ("id", "inputs", "outputs", "error")
        told = run if isinstance(run, Mapping) else {name: getattr(run, name, None) for name in fields}
        id = str(told.get("id"))
        return self._reading({**told, "id": id, "start_time": None}, f"run {id}")


def _results(scores: Mapping[str, float], comment: str) -> dict[str, Any]:
    return {"results": [{"key": name, "score": scores.get(name), "comment": comment} for name in SHARES]}


class _Unrecorded:
    """Steps without a journal: inside another program's evaluation that program keeps the results."""

    async def once(
        self,
        name: str,
        inputs: Mapping[str, Any],
        work: Callable[[], Awaitable[T]],
        returns: type[T],
        *,
        on: Subject | None = None,
        paid: bool = False,
        shared: bool = False,
        after: Callable[[], Awaitable[object]] | None = None,
    ) -> T:
        if after is not None:
            await after()
        return await work()

    def is_recorded(self, name: str, inputs: Mapping[str, Any]) -> bool:
        return False

    def is_inherited(self, name: str, inputs: Mapping[str, Any], *, shared: bool = False) -> bool:
        return False

    async def note(self, kind: str, text: str) -> None:
        return None
