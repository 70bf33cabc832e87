"""The trace judge as an evaluator for LangSmith's `evaluate`. It does not import LangSmith."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from memorybench.core.errors import MemorybenchError
from memorybench.core.extraction import Trace
from memorybench.suites.unrecorded_steps import UnrecordedSteps

from .online import SHARES, TraceJudge

OpenJudge = Callable[[], AbstractAsyncContextManager[TraceJudge]]
ReadTrace = Callable[[Mapping[str, Any], str], Trace]
"""A function that makes a trace of a LangSmith run.

It takes the run as a mapping, and a name for error messages. Raises BadInput if the run is invalid.
"""


class MemoryExtractionEvaluator:
    """An evaluator for LangSmith: `evaluate(target, data=…, evaluators=[MemoryExtractionEvaluator(…)])`.

    It returns precision, recall and F1 of one run. An undefined or unknown score is None, never 0, and its comment says
    why.
    """

    def __init__(self, open_judge: OpenJudge, read_trace: ReadTrace) -> None:
        self._open_judge = open_judge
        self._read_trace = read_trace

    def __call__(self, run: Any, example: Any = None) -> dict[str, Any]:
        return self.evaluate_run(run, example)

    def evaluate_run(self, run: Any, example: Any = None, evaluator_run_id: Any = None) -> dict[str, Any]:
        """Score a LangSmith run. Must be called in a thread without an event loop. `example` is ignored."""
        return asyncio.run(self.aevaluate_run(run, example, evaluator_run_id))

    async def aevaluate_run(self, run: Any, example: Any = None, evaluator_run_id: Any = None) -> dict[str, Any]:
        fields = ("id", "inputs", "outputs", "error")
        values = run if isinstance(run, Mapping) else {name: getattr(run, name, None) for name in fields}
        id = str(values.get("id"))
        try:
            trace = self._read_trace({**values, "id": id, "start_time": None}, f"run {id}")
            async with self._open_judge() as judge:
                judged = await judge.judge(UnrecordedSteps(), trace)
        except MemorybenchError as error:
            scores, comment = {}, str(error)
        else:
            scores, comment = {score.name: score.value for score in judged.scores}, judged.comment
        return {"results": [{"key": name, "score": scores.get(name), "comment": comment} for name in SHARES]}
