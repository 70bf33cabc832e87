"""A model that returns scripted replies, for tests: no network, no key, no randomness."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memorybench.core.contracts import Completion
from memorybench.core.conversation import Turn
from memorybench.core.errors import MemorybenchError, ServiceError
from memorybench.core.spending import Spending, charge
from memorybench.core.trials import Subject

Line = str | Completion | MemorybenchError
"""A reply, or the error to raise."""
Script = Callable[[Sequence[Turn]], Line] | Sequence[Line] | Mapping[str, Line]
"""A function of the turns; or replies in order; or the reply for the first key that the last turn contains."""


class ScriptedModel:
    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted",
        spent: Spending | None = None,
        ledger: Path | None = None,
        before: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`ledger` is a file that gets a JSON line per call, so that other processes can count calls.

        `before` is awaited in each call, after the ledger is written: for a delay or a crash.
        """
        self.subject = Subject(role="model", name=name)
        self._next = _player(script)
        self._spent = spent or Spending(calls=1)
        self._ledger = ledger
        self._before = before

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> Completion:
        if self._ledger:
            _append(self._ledger, {"model": self.subject.name, "turns": [[turn.role, turn.content] for turn in turns]})
        if self._before:
            await self._before()
        line = self._next(turns)
        if isinstance(line, MemorybenchError):
            raise line
        if isinstance(line, str):
            line = Completion(text=line, finish="stop", model=self.subject.name, spent=self._spent)
        charge(line.spent)
        return line

    def highest_cost(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> float | None:
        return self._spent.cost


def _player(script: Script) -> Callable[[Sequence[Turn]], Line]:
    if isinstance(script, Mapping):
        cues = dict(script)

        def by_cue(turns: Sequence[Turn]) -> Line:
            prompt = turns[-1].content
            return next((line for cue, line in cues.items() if cue in prompt), ServiceError(f"no line for {prompt!r}"))

        return by_cue
    if isinstance(script, Sequence):
        lines = iter(script)
        return lambda _: next(lines, ServiceError("the script has no more lines"))
    return script


def _append(ledger: Path, entry: Mapping[str, Any]) -> None:
    """Append a line in one write, so that lines of several processes do not mix."""
    file = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{json.dumps(entry)}\n".encode())
    finally:
        os.close(file)
