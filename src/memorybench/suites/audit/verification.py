"""Verifies probes with a model. Each reply is a recorded step; two of three replies decide each check but the last.

recall, as of, duration   answered from its evidence; not answered without the conversation
conflict                  each outdated value is answered from its own turns alone, the current one from its own
order                     both events have a date in their turns, no reply calls one a plan, the dates have this order
absent                    three of four replies find no answer in the whole conversation, and none quotes one

For all of them the answer must not stand in the question; code checks that.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from memorybench.core.contracts import Model
from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, Lacking, Unreadable
from memorybench.core.plans import Steps
from memorybench.core.records import Record
from memorybench.files.json_text import decode
from memorybench.files.prompts import load_prompt
from memorybench.files.templates import Template
from memorybench.judging.prompts import fenced, mark_for
from memorybench.judging.verdicts import read_verdict
from memorybench.text.sanitize import preview

from .answers import is_same, leaks, normalise, occurs, overlaps
from .probes import Check, Probe

T = TypeVar("T")
STEP = "probe check"
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)
_DATE = re.compile(r"\b\d{4}-\d\d(?:-\d\d)?\b|\b(?:PLAN|UNKNOWN)\b")
_NOT_DATED = "not two dated events"
_REPEATED = (
    "",
    "Look at it afresh, as somebody else would.\n\n",
    "Read it twice before you reply.\n\n",
    "Go through it line by line before you reply.\n\n",
)
"""What precedes the prompt of each reply, so that they are not one reply several times."""


class Reply(Record):
    """What the model answers from a source; None: the source does not tell."""

    answer: str | None
    quote: str | None = None


def shown_turns(turns: Sequence[Turn]) -> str:
    """Return turns in lines of `t3 [date] speaker: text`."""
    return "\n".join(
        f"{turn.id} {f'[{turn.at:%Y-%m-%d}] ' if turn.at else ''}{turn.speaker or turn.role}: {turn.content}"
        for turn in turns
    )


@dataclass(frozen=True, slots=True)
class ProbeModel:
    """The model that writes and verifies probes."""

    model: Model

    async def ask(
        self,
        steps: Steps,
        step: str,
        prompt: str,
        values: Mapping[str, str],
        read: Callable[[str], T],
        returns: type[T],
        attempt: int = 1,
    ) -> T:
        """Return the parsed reply to a prompt of the catalog as a step that all runs share."""
        mark = mark_for(prompt, {name: str(value) for name, value in values.items()})
        shown = {**values, "source": fenced("source", values["source"], mark)} if "source" in values else values
        text = _REPEATED[attempt - 1] + Template.parse(load_prompt(prompt), shown.keys(), prompt).render(shown)

        turns = [Turn(role="user", content=text)]

        async def complete() -> T:
            return read((await self.model.complete(turns)).text)

        return await steps.once(
            step,
            {"model": self.model.subject, "prompt": text, "attempt": attempt},
            complete,
            returns,
            on=self.model.subject,
            paid=True,
            highest_cost=lambda: self.model.highest_cost(turns),
            shared=True,
        )

    async def verify(self, steps: Steps, probe: Probe, conversation: Sequence[Turn]) -> Probe:
        """Return the probe with the checks that it passed; raise Lacking with the reason if it fails one."""
        if not probe.abstain and leaks(probe.question, _values(probe)) and not probe.options:
            raise Lacking("leak: the question contains a word of the answer")
        passed = [Check(name="no leak", by="code")]
        for name, reason, check in self._checks(steps, probe, conversation):
            if not await check():
                raise Lacking(f"{reason}: {probe.question}")
            passed.append(Check(name=name, by=self.model.subject.name))
        return probe.model_copy(update={"checks": (*probe.checks, *passed)})

    def _checks(self, steps: Steps, probe: Probe, conversation: Sequence[Turn]) -> list[_NamedCheck]:
        """Return the checks of a probe, each with its name and the reason of a rejection; the cheapest first."""
        current = _values(probe)[0]

        async def is_unknown(attempt: int) -> bool:
            return not await self._answers(steps, probe.question, (), [current], attempt)

        def answers(turns: Sequence[Turn], values: Sequence[str]) -> _Check:
            return partial(_agree, lambda attempt: self._answers(steps, probe.question, turns, values, attempt))

        if probe.abstain:
            return [("told nowhere", "told", partial(self._is_absent, steps, probe.question, conversation))]
        if probe.options:
            return [("dates", _NOT_DATED, partial(_agree, partial(self._is_ordered, steps, probe)))]
        found: list[_NamedCheck] = [
            ("needs the conversation", "answerable without the conversation", partial(_agree, is_unknown)),
            ("answered from its evidence", "not answerable from its evidence", answers(probe.gold_context, [current])),
        ]
        if probe.type == "conflict":
            outdated = [answers(_own_turns(probe, value), [value]) for value in dict.fromkeys(probe.stale)]
            all_outdated = partial(_all_hold, outdated)
            found.append(("old turns give the old values", "the facts do not answer one question", all_outdated))
            differ = partial(_agree, partial(self._differ, steps, probe))
            found.append(("values differ", "the values do not differ", differ))
        return found

    async def _reply(self, steps: Steps, question: str, turns: Sequence[Turn], attempt: int) -> Reply:
        source = shown_turns(turns) or "(nothing: answer from what is generally known)"
        values = {"question": question, "source": source}
        return await self.ask(steps, STEP, "probe-answer", values, _read_reply, Reply, attempt)

    async def _answers(
        self, steps: Steps, question: str, turns: Sequence[Turn], values: Sequence[str], attempt: int
    ) -> bool:
        """Return whether the model answers the question with one of the values."""
        reply = await self._reply(steps, question, turns, attempt)
        if reply.answer is None:
            return False
        for value in values:
            if await self._is_same(steps, question, reply.answer, value, attempt):
                return True
        return False

    async def _is_same(self, steps: Steps, question: str, answer: str, other: str, attempt: int) -> bool:
        if is_same(answer, other):
            return True
        values = {"question": question, "answer": answer, "other": other}
        return await self.ask(steps, STEP, "probe-same", values, read_verdict, bool, attempt)

    async def _differ(self, steps: Steps, probe: Probe, attempt: int) -> bool:
        current = probe.current or probe.expected_answer
        for value in probe.stale:
            if overlaps(current, value) or await self._is_same(steps, probe.question, value, current, attempt):
                return False
        return True

    async def compare_dates(self, steps: Steps, probe: Probe, attempt: int = 1) -> int:
        """Return -1 if the expected event of an order happened before the other, 1 if after, 0 if that is unknown.

        Raise Lacking if the reply calls one of them a plan.
        """
        later = next(option for option in probe.options if option != probe.expected_answer)
        dates = []
        for event in (probe.expected_answer, later):
            values = {"question": event, "source": shown_turns(probe.gold_context)}
            dates.append(await self.ask(steps, STEP, "probe-date", values, _read_date, str, attempt))
        if "PLAN" in dates:
            raise Lacking(f"{_NOT_DATED}: {probe.question}")
        shared = min(map(len, dates))  # 2024-05 and 2024-05-12 have no order
        one, other = (date[:shared] for date in dates)
        return 0 if one == other or not all(date[0].isdigit() for date in dates) else -1 if one < other else 1

    async def _is_ordered(self, steps: Steps, probe: Probe, attempt: int) -> bool:
        return await self.compare_dates(steps, probe, attempt) == -1

    async def _is_absent(self, steps: Steps, question: str, conversation: Sequence[Turn]) -> bool:
        """Return whether three of four replies find no answer, and none quotes one from the conversation.

        So a fact that the conversation does tell is asked as absent only if the model misses it three times.
        """
        silent = 0
        for attempt in _ABSENT_ATTEMPTS:
            try:
                reply = await self._reply(steps, question, conversation, attempt)
            except Unreadable:
                continue
            if reply.quote and is_quoted(reply.quote, conversation):
                return False
            silent += reply.answer is None and not reply.quote
            if silent == _SILENT_REPLIES:
                return True
        return False


async def _agree(check: Callable[[int], Awaitable[bool]]) -> bool:
    """Return what two of three attempts say. An attempt that cannot be read counts against the probe."""
    votes: list[bool] = []
    for attempt in _ATTEMPTS:
        try:
            votes.append(await check(attempt))
        except Unreadable:
            votes.append(False)
        if votes.count(votes[-1]) == 2:
            break
    return votes[-1]


async def _all_hold(checks: Sequence[_Check]) -> bool:
    for check in checks:
        if not await check():
            return False
    return True


_Check = Callable[[], Awaitable[bool]]
_NamedCheck = tuple[str, str, _Check]
_ATTEMPTS = (1, 2, 3)
_ABSENT_ATTEMPTS = (1, 2, 3, 4)
_SILENT_REPLIES = 3


def is_quoted(quote: str, turns: Sequence[Turn]) -> bool:
    """Return whether a turn contains the words of the quote."""
    return bool(quote.strip()) and any(normalise(quote) in normalise(turn.content) for turn in turns)


def _own_turns(probe: Probe, value: str) -> list[Turn]:
    """Return the old turns of a conflict without those that state only another outdated value."""
    others = [other for other in probe.stale if other != value]
    return [
        turn
        for turn in probe.stale_context
        if occurs(value, turn.content) or not any(occurs(other, turn.content) for other in others)
    ]


def _values(probe: Probe) -> tuple[str, ...]:
    """Return the value that is asked for, then the values of other times."""
    return (probe.current or probe.expected_answer, *probe.stale)


def read_object(text: str) -> dict[str, Any]:
    """Return the JSON object of a reply, which may stand between other text."""
    found = _OBJECT.search(text)
    try:
        value = decode(found[0], "the reply") if found else None
    except BadInput:
        value = None
    if not isinstance(value, dict):
        raise Unreadable(f"invalid reply {preview(text)}; expected a JSON object")
    return value


def _read_reply(text: str) -> Reply:
    fields = read_object(text)
    if "answer" not in fields or not all(
        isinstance(fields.get(key), str | int | float | None) for key in ("answer", "quote")
    ):
        raise Unreadable(f"invalid reply {preview(text)}; expected answer and quote")
    answer, quote = (None if fields.get(key) in (None, "") else str(fields[key]) for key in ("answer", "quote"))
    return Reply(answer=answer, quote=quote)


def _read_date(text: str) -> str:
    found = set(_DATE.findall(text))
    if len(found) != 1:
        raise Unreadable(f"invalid reply {preview(text)}; expected one date, PLAN or UNKNOWN")
    return str(found.pop())
