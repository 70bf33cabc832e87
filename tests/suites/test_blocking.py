"""Work that is run to its end where an event loop runs already, as in a notebook."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from memorybench.engine.stopping import Stop
from memorybench.suites.blocking import blocking


class InterruptedFuture:
    """The user presses Ctrl-C when the work has just ended."""

    def __init__(self, future: Future[Any]) -> None:
        self._future = future
        self._is_interrupted = False

    def result(self) -> Any:
        result = self._future.result()
        if not self._is_interrupted:
            self._is_interrupted = True
            raise KeyboardInterrupt
        return result


def test_ctrl_c_after_the_event_loop_was_closed_loses_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    submit, stopping = ThreadPoolExecutor.submit, Stop()
    monkeypatch.setattr(ThreadPoolExecutor, "submit", lambda *arguments: InterruptedFuture(submit(*arguments)))

    async def work() -> str:
        stopping.loop = asyncio.get_running_loop()
        return "done"

    async def notebook() -> str:
        return blocking(work(), stopping)

    assert asyncio.run(notebook()) == "done"
