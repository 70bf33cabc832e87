"""What types and keys do not tell: whether the parts of a conversation agree with each other.

Everything here reads a document that may also have wrong types, and passes over what it can not use: that much was
complained of where the types were checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from memorybench.core.errors import BadInput
from memorybench.files.located import Document
from memorybench.text.sanitize import preview
from memorybench.text.spelling import as_written, suggestion

from .audit_dates import Moment, earlier, read_moment
from .audit_file import AuditFile, members, named, turn_id

_FACT_DATES = ("timestamp", "valid_from", "valid_to")
_FACT_TEXTS = ("id", "content", "supersedes", "subject", "attribute", "value", "question", *_FACT_DATES)


def dataset_faults(file: AuditFile) -> Iterator[BadInput]:
    if not file.conversations and not file.problems:
        yield BadInput(
            f"{file.path}:1", "holds no conversations", expected="at least one", remedy="write one, or check the file"
        )
    elif file.conversations and not any(members(conversation, "facts") for conversation in file.conversations):
        yield BadInput(
            f"{file.path}:1", "states no facts", expected="at least one to ask about", remedy="list what was said"
        )
    if file.dataset is not None:
        yield from _empty_texts([file.dataset], ("id",))
    yield from _repeated_ids(file.conversations, "conversation")


def conversation_faults(conversation: Document, every: Sequence[Document]) -> Iterator[BadInput]:
    """`every`: all conversations of the file, since a fact may name one of another by mistake."""
    turns, facts = members(conversation, "turns"), members(conversation, "facts")
    listed = conversation.value.get("turns")
    if listed == []:
        yield BadInput(
            conversation.where("turns"), "has no turns", expected="at least one", remedy="add them, or remove it"
        )
    yield from _empty_texts([conversation], ("id",))
    yield from _empty_texts(turns, ("content", "speaker", "timestamp"))
    yield from _empty_texts(facts, _FACT_TEXTS)
    yield from _repeated_ids(facts, "fact")
    yield from _date_faults(turns, facts)
    yield from _chain_faults(facts, conversation, every)
    for fact in facts:
        yield from _fact_faults(fact, len(listed) if isinstance(listed, list) else 0)


def _text(part: Document, key: str) -> str | None:
    written = as_written(part.value, key)
    found = part.value[written] if written else None
    return found if isinstance(found, str) and found.strip() else None


def _empty_texts(parts: Sequence[Document], keys: Sequence[str]) -> Iterator[BadInput]:
    for part in parts:
        for key in keys:
            found = part.value.get(as_written(part.value, key) or key)
            if isinstance(found, str) and not found.strip():
                yield BadInput(part.where(key), "is empty", expected="some text", remedy="write it, or remove the key")


def _repeated_ids(parts: Sequence[Document], kind: str) -> Iterator[BadInput]:
    seen: dict[str, Document] = {}
    for part in parts:
        id = _text(part, "id")
        if id is None:
            continue
        if id in seen:
            first = seen[id].line("id")
            yield BadInput(
                part.where("id"),
                f"the id {preview(id)} stands here again",
                expected=f"each {kind} to have its own (the first is on line {first})",
                remedy="rename one",
            )
        seen.setdefault(id, part)


def _moment(part: Document, key: str) -> Moment | None:
    text = _text(part, key)
    return None if text is None else read_moment(text)


def _date_faults(turns: Sequence[Document], facts: Sequence[Document]) -> Iterator[BadInput]:
    written = [(turn, "timestamp") for turn in turns] + [(fact, key) for fact in facts for key in _FACT_DATES]
    for part, key in written:
        text = _text(part, key)
        if text is not None and read_moment(text) is None:
            yield BadInput(
                part.where(key),
                f"{preview(text)} is no date",
                expected="ISO 8601, such as 2024-03-01 or 2024-03-01T09:30:00Z",
                remedy="correct it",
            )
    yield from _mixed_zones(written)
    yield from _unordered_turns(turns)
    for fact in facts:
        begins, ends = _moment(fact, "valid_from"), _moment(fact, "valid_to")
        if begins and ends and earlier(ends, begins):
            remedy = "exchange them, or correct one"
            yield BadInput(fact.where("valid_to"), "ends before validFrom", expected="a later date", remedy=remedy)


def _mixed_zones(written: Sequence[tuple[Document, str]]) -> Iterator[BadInput]:
    """Moments with and without a time zone can not be put in order; days without a time of day go with both."""
    first: tuple[Moment, Document, str] | None = None
    for part, key in written:
        moment = _moment(part, key)
        if moment is None or moment.whole_day:
            continue
        first = first or (moment, part, key)
        if moment.zoned != first[0].zoned:
            has = "has a time zone" if moment.zoned else "has no time zone"
            other = "has none" if moment.zoned else "has one"
            line = first[1].line(first[2])
            yield BadInput(
                part.where(key),
                f"{preview(_text(part, key))} {has} where line {line} {other}",
                expected="all dates of a conversation with a time zone, or all without",
                remedy="write them alike",
            )


def _unordered_turns(turns: Sequence[Document]) -> Iterator[BadInput]:
    latest: Moment | None = None
    for turn in turns:
        moment = _moment(turn, "timestamp")
        if moment is None:
            continue
        if latest is not None and earlier(moment, latest):
            yield BadInput(
                turn.where("timestamp"),
                "lies before that of a turn above",
                expected="turns in the order they were said",
                remedy="move the turn, or correct the date",
            )
        else:
            latest = moment


def _chain_faults(facts: Sequence[Document], home: Document, every: Sequence[Document]) -> Iterator[BadInput]:
    places: dict[str, int] = {}
    for index, fact in enumerate(facts):
        id = _text(fact, "id")
        if id is not None:
            places.setdefault(id, index)
    ringed = _rings(facts, places)
    taken: dict[str, Document] = {}
    for index, fact in enumerate(facts):
        old = _text(fact, "supersedes")
        if old is None:
            continue
        if old not in places:
            yield _leads_nowhere(fact, old, places, home, every)
        elif index in ringed:
            if ringed[index]:
                yield BadInput(fact.where("supersedes"), ringed[index], expected="an end to it", remedy="remove one")
        elif places[old] > index:
            yield BadInput(
                fact.where("supersedes"),
                f"{preview(old)} stands after this fact",
                expected="facts in the order they were stated",
                remedy="move this fact behind it, or exchange the two",
            )
        else:
            yield from _change_faults(fact, facts[places[old]])
        if old in taken:
            yield BadInput(
                fact.where("supersedes"),
                f"{preview(old)} is superseded by {named(taken[old])} already",
                expected="one successor for each fact",
                remedy=f"supersede {named(taken[old])} instead",
            )
        taken.setdefault(old, fact)


def _rings(facts: Sequence[Document], places: Mapping[str, int]) -> dict[int, str]:
    """What to say of facts that supersede themselves in the end; nothing, for all but the first of a ring."""
    after = {index: places.get(_text(fact, "supersedes") or "") for index, fact in enumerate(facts)}
    said: dict[int, str] = {}
    for start in after:
        if start in said:
            continue
        path = [start]
        while (step := after[path[-1]]) is not None and step not in path:
            path.append(step)
        if step == start:
            ring = " → ".join(named(facts[index]) for index in (*path, start))
            said |= dict.fromkeys(path, "")
            said[start] = "supersedes itself" if len(path) == 1 else f"supersedes itself in the end: {ring}"
    return said


def _leads_nowhere(
    fact: Document, old: str, places: Mapping[str, int], home: Document, every: Sequence[Document]
) -> BadInput:
    for other in every:
        if other is not home and any(_text(its, "id") == old for its in members(other, "facts")):
            problem = f"{preview(old)} is a fact of conversation {named(other)}"
            expected, remedy = f"a fact of {named(home)}", "state it here, too, or remove the key"
            return BadInput(fact.where("supersedes"), problem, expected=expected, remedy=remedy)
    return BadInput(
        fact.where("supersedes"),
        f"there is no fact {preview(old)}",
        expected="the id of a fact above",
        remedy=suggestion(old, places) or "correct it, or add that fact",
    )


def _change_faults(fact: Document, old: Document) -> Iterator[BadInput]:
    """`fact` supersedes `old`: is it later, and another value of the same thing?"""
    at, before = _moment(fact, "timestamp"), _moment(old, "timestamp")
    if at and before and earlier(at, before):
        yield BadInput(
            fact.where("timestamp"),
            f"lies before that of {named(old)}, which this fact supersedes",
            expected=f"a date from {preview(_text(old, 'timestamp'))} on",
            remedy="correct one of the dates",
        )
    attribute, other = _text(fact, "attribute"), _text(old, "attribute")
    if attribute and other and attribute.casefold() != other.casefold():
        yield BadInput(
            fact.where("attribute"),
            f"is {preview(attribute)} where the superseded {named(old)} has {preview(other)}",
            expected="the same attribute with a new value",
            remedy="write them alike, or remove supersedes",
        )
    value, stale = _text(fact, "value"), _text(old, "value")
    if value and stale and value.casefold() == stale.casefold():
        yield BadInput(
            fact.where("value"),
            f"is the value of the superseded {named(old)}, too",
            expected="a new value",
            remedy="correct it, or remove supersedes",
        )


def _fact_faults(fact: Document, turns: int) -> Iterator[BadInput]:
    for key in ("attribute", "question"):
        if _text(fact, key) and fact.value.get("value") is None:
            yield BadInput(fact.where(key), "stands without a value", expected="the answer", remedy='add "value"')
    stated = fact.value.get("turn")
    if isinstance(stated, bool) or not isinstance(stated, int | str):
        return
    if turn_id(stated) not in {turn_id(number) for number in range(1, turns + 1)}:
        yield BadInput(
            fact.where("turn"),
            f"there is no turn {preview(stated)}",
            expected=f"1 to {turns}, or t1 to t{turns}" if turns else "a conversation with turns",
            remedy="count turns from 1",
        )
