"""Verifies probes with a model. Each reply is a recorded step; a check passes if three of up to four replies agree.

recall, as of, duration   the model answers from the evidence, and gives the same value from the whole conversation:
                          otherwise it is outdated, or one of several; it does not answer without the conversation
conflict                  it answers each outdated value from that value's turns alone, and the current value from its
                          own turns and also from the whole conversation: otherwise both may be true
order                     it finds a date for both events, neither is a plan, the dates have the expected order;
                          it does not answer without the conversation; a question that a person wrote is also
                          answered from the evidence
absent                    it finds no answer in the whole conversation, and no reply quotes one

In all cases, the question must not contain the answer; code checks that. If a reply is worded differently from the
value, three of up to four further replies must agree that they say the same, or that they differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from msgspec import Struct

from memorybench.core.contracts import Completion, Model
from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, Lacking, Unreadable
from memorybench.core.plans import Steps
from memorybench.core.records import Record
from memorybench.files.json_text import decode, find_json
from memorybench.judging.asking import ask_once
from memorybench.judging.prompts import render_prompt
from memorybench.judging.verdicts import read_verdict
from memorybench.text.sanitize import preview

from .answers import is_abstention, is_same, leaks, normalise, occurs, overlaps
from .changes import FLAG_REQUEST
from .events import asked_order
from .probes import Check, Probe

T = TypeVar("T")
STEP = "probe check"
CHECKS = "6"
"""The version of the checks. A run that verified probes by earlier checks is not resumed, but its replies are used."""
_DATE = re.compile(r"\b\d{4}-\d\d(?:-\d\d)?\b|\b(?:PLAN|UNKNOWN)\b")
_NOT_DATED = "not two dated events"
_REPEATED = (
    "",
    "Look at it afresh, as somebody else would.\n\n",
    "Read it twice before you reply.\n\n",
    "Go through it line by line before you reply.\n\n",
)
"""Text that is put before the prompt of each attempt, so that the attempts get independent replies."""


class Reply(Record):
    """The model's answer from the given turns, with a quote. `answer` is None if the turns do not contain it."""

    answer: str | None
    quote: str | None = None


class UnreadReply(Record):
    """A reply that could not be parsed, as the model gave it. It is recorded, so that it is not paid for again."""

    unread: str


def shown_turns(turns: Sequence[Turn]) -> str:
    """Return turns as lines such as `t3 [date] speaker: text`."""
    return "\n".join(
        f"{turn.id} {f'[{turn.at:%Y-%m-%d}] ' if turn.at else ''}{turn.speaker or turn.role}: {turn.content}"
        for turn in turns
    )


class ProbeModel(Struct, frozen=True):
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
        """Render a prompt of the catalog, ask the model, and return the parsed reply. All runs share the step.

        Raise Unreadable if the reply cannot be parsed. It is recorded nevertheless, and not asked for again.
        """

        def read_or_keep(completion: Completion) -> T | UnreadReply:
            try:
                return read(completion.text)
            except Unreadable:
                return UnreadReply(unread=completion.text)

        text = _REPEATED[attempt - 1] + render_prompt(prompt, values)
        recorded = cast("type[T | UnreadReply]", returns | UnreadReply)
        reply = await ask_once(steps, step, self.model, text, read_or_keep, recorded, attempt=attempt)
        return read(reply.unread) if isinstance(reply, UnreadReply) else reply

    async def verify(self, steps: Steps, probe: Probe, conversation: Sequence[Turn]) -> Probe:
        """Return the probe with the checks that it passed; raise Lacking with the reason if it fails one."""
        if probe.origin in ("model", "edited") and has_leak(probe):  # code has checked its own, apart from their day
            raise Lacking("leak: the question contains a word of its answer")
        passed = [Check(name="no leak", by="code")]
        for name, reason, check in self._checks(steps, probe, conversation):
            if not await check:
                raise Lacking(f"{reason}: {probe.question}")
            passed.append(Check(name=name, by=self.model.subject.name))
        return probe.model_copy(update={"checks": (*probe.checks, *passed)})

    def _checks(self, steps: Steps, probe: Probe, conversation: Sequence[Turn]) -> Iterator[_Check]:
        """Yield the checks of a probe, the cheapest first."""
        question, current = probe.question, _values(probe)[0]
        if probe.abstain:
            yield "told nowhere", "told", self._is_absent(steps, question, conversation)
            return
        asked = asked_order(probe) if probe.options else 0
        if probe.options:
            yield "dates", _NOT_DATED, self._is_ordered(steps, probe, asked)
        is_unknown = self._answers(steps, question, (), current, wanted=False)
        yield "needs the conversation", "answerable without the conversation", is_unknown
        if not asked:
            from_evidence = self._answers(steps, question, probe.gold_context, current)
            yield "answered from its evidence", "not answerable from its evidence", from_evidence
        if probe.options:
            return
        reason = "the conversation gives another answer"
        if probe.type == "conflict":
            outdated, reason = list(dict.fromkeys(probe.stale)), "both values may be true"
            old_turns = _all_hold(self._answers(steps, question, _own_turns(probe, old), old) for old in outdated)
            yield "old turns give the old values", "the facts do not answer one question", old_turns
            differ = _all_hold(self._differ(steps, question, current, old) for old in outdated)
            yield "values differ", "the values do not differ", differ
        # without the request to name both values
        from_all = self._answers(steps, question.removesuffix(FLAG_REQUEST), conversation, current)
        yield "answered from the conversation", reason, from_all

    async def _reply(self, steps: Steps, question: str, turns: Sequence[Turn], attempt: int) -> Reply:
        prompt, values = "probe-guess", {"question": question}
        if turns:
            prompt, values = "probe-answer", {**values, "source": shown_turns(turns)}
        return await self.ask(steps, STEP, prompt, values, _read_reply, Reply, attempt)

    async def _answers(
        self, steps: Steps, question: str, turns: Sequence[Turn], value: str, *, wanted: bool = True
    ) -> bool:
        """Return whether the model, given these turns, answers with the value, or another way if `wanted` is False."""

        async def is_as_wanted(attempt: int) -> bool:
            answer = (await self._reply(steps, question, turns, attempt)).answer
            if answer is None or is_same(answer, value):
                return wanted == (answer is not None)
            return await self._says(wanted, steps, question, answer, value)

        return await _agree(is_as_wanted)

    async def _says(self, same: bool, steps: Steps, question: str, answer: str, other: str) -> bool:
        """Return whether the model agrees that two answers mean the same (`same` is True) or differ (False).

        Several replies must agree. Otherwise one wrong comparison would be enough to accept a bad probe.
        """
        values = {"question": question, "answer": answer, "other": other}

        async def has_verdict(attempt: int) -> bool:
            return same == await self.ask(steps, STEP, "probe-same", values, read_verdict, bool, attempt)

        return await _agree(has_verdict)

    async def _differ(self, steps: Steps, question: str, current: str, value: str) -> bool:
        return not overlaps(current, value) and await self._says(False, steps, question, value, current)

    async def find_order(self, steps: Steps, probe: Probe) -> int:
        """Return -1 if the expected event happened before the other, 1 if after it, 0 if that is unknown."""
        orders: Counter[int] = Counter()
        for attempt in _ATTEMPTS:
            order = await self._compare_dates(steps, probe, attempt)
            orders[order] += 1
            if orders[order] == _AGREEING:
                return order
            if max(orders[-1], orders[1]) + len(_ATTEMPTS) - attempt < _AGREEING:
                break
        return 0

    async def _compare_dates(self, steps: Steps, probe: Probe, attempt: int) -> int:
        """Ask once for the date of each event; return -1 if the expected event is earlier, 1 if it is later, else 0.

        0 also means that the dates do not differ, that one is unknown or unreadable, or that an event is only a plan.
        """
        other = next(option for option in probe.options if option != probe.expected_answer)
        dates = []
        for event in (probe.expected_answer, other):
            values = {"question": event, "source": shown_turns(probe.gold_context)}
            try:
                dates.append(await self.ask(steps, STEP, "probe-date", values, _read_date, str, attempt))
            except Unreadable:
                return 0
        shared = min(map(len, dates))  # 2024-05 and 2024-05-12 have no order
        one, two = (date[:shared] for date in dates)
        return 0 if one == two or not all(date[0].isdigit() for date in dates) else -1 if one < two else 1

    async def _is_ordered(self, steps: Steps, probe: Probe, asked: int) -> bool:
        """Return whether the events have the order that the question asks for. `asked` 0 accepts any known order."""
        order = await self.find_order(steps, probe)
        return order != 0 and asked in (0, order)

    async def _is_absent(self, steps: Steps, question: str, conversation: Sequence[Turn]) -> bool:
        """Return whether three of four replies find no answer, and none quotes one from the conversation.

        So a fact that the conversation does state is asked about as absent only if the model misses it three times.
        """
        silent = 0
        for attempt in _ATTEMPTS:
            try:
                reply = await self._reply(steps, question, conversation, attempt)
            except Unreadable:
                continue
            if reply.quote and is_quoted(reply.quote, conversation):
                return False
            silent += not reply.quote and (reply.answer is None or is_abstention(reply.answer))
            if silent == _AGREEING:
                return True
        return False


async def _agree(check: Callable[[int], Awaitable[bool]]) -> bool:
    """Return whether three of up to four calls of `check` pass. Raising Unreadable is not a pass."""
    passed = failed = 0
    for attempt in _ATTEMPTS:
        try:
            has_passed = await check(attempt)
        except Unreadable:
            has_passed = False
        passed, failed = passed + has_passed, failed + (not has_passed)
        if passed == _AGREEING or failed > len(_ATTEMPTS) - _AGREEING:
            break
    return passed == _AGREEING


async def _all_hold(checks: Iterable[Awaitable[bool]]) -> bool:
    for check in checks:
        if not await check:
            return False
    return True


_Check = tuple[str, str, Awaitable[bool]]
"""A name, the reason for a rejection, and whether the probe passes."""
_ATTEMPTS = (1, 2, 3, 4)
_AGREEING = 3


def has_leak(probe: Probe) -> bool:
    """Return whether the question reveals its answer, or a value of another time. Options contain the answer."""
    return not probe.abstain and not probe.options and leaks(probe.question, _values(probe))


def calls_to_verify(probe: Probe) -> int:
    """Return how many replies the checks of a probe need if all agree and have the expected wording."""
    if probe.options:  # the pair shares the dates of its two events
        return _AGREEING * ((1 if probe.reversed else 3) + (asked_order(probe) == 0))
    checks = {"hallucination": 1, "recall": 3, "temporal": 3, "conflict": 3 + 2 * max(1, len(set(probe.stale)))}
    return _AGREEING * checks[probe.type]


def calls_with_conversation(probe: Probe) -> int:
    """Return how many of these calls contain the whole conversation."""
    return 0 if probe.options else _AGREEING


def is_quoted(quote: str, turns: Sequence[Turn]) -> bool:
    """Return whether a turn contains the words of the quote."""
    return bool(quote.strip()) and any(normalise(quote) in normalise(turn.content) for turn in turns)


def _own_turns(probe: Probe, value: str) -> list[Turn]:
    """Return the outdated turns of a conflict, without those that state another outdated value and not this one."""
    others = [other for other in probe.stale if other != value]
    return [
        turn
        for turn in probe.stale_context
        if occurs(value, turn.content) or not any(occurs(other, turn.content) for other in others)
    ]


def _values(probe: Probe) -> tuple[str, ...]:
    """Return the value that the probe asks for, followed by the values of other times."""
    return (probe.current or probe.expected_answer, *probe.stale)


def read_object(text: str) -> dict[str, Any]:
    """Return the JSON object in a reply. Other text may surround it."""
    try:
        value = decode(find_json(text, "{"), "the reply")
    except BadInput:
        value = None
    if not isinstance(value, dict):
        raise Unreadable(f"invalid reply of the probe model: {preview(text)}; expected a JSON object")
    return value


def _read_reply(text: str) -> Reply:
    fields = read_object(text)
    if "answer" not in fields or not all(
        isinstance(fields.get(key), str | int | float | None) for key in ("answer", "quote")
    ):
        raise Unreadable(f"invalid reply of the probe model: {preview(text)}; expected the keys answer and quote")
    answer, quote = (None if fields.get(key) in (None, "") else str(fields[key]) for key in ("answer", "quote"))
    return Reply(answer=answer, quote=quote)


def _read_date(text: str) -> str:
    found = set(_DATE.findall(text))
    if len(found) != 1:
        raise Unreadable(f"invalid reply of the probe model: {preview(text)}; expected one date, PLAN or UNKNOWN")
    return str(found.pop())
