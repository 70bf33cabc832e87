"""Consistency checks of an audit file: whether the parts of a conversation agree with each other.

The checks read documents that may also contain invalid values. They skip those, because the records of `audit_file`
report them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set

from memorybench.core.errors import BadInput
from memorybench.files.located import Document
from memorybench.text.sanitize import preview
from memorybench.text.spelling import as_written, suggestion

from .audit_file import AuditFile, members, quoted_id, turn_id
from .dates import Moment, is_earlier, read_moment

_WORD = re.compile(r"[^\W_]+")
_FACT_DATES = ("timestamp", "valid_from", "valid_to")


def dataset_faults(file: AuditFile) -> Iterator[BadInput]:
    if not file.conversations and not file.problems:
        yield BadInput(
            f"{file.path}:1", "the file has no conversations", expected="at least one", remedy="check the file"
        )
    elif file.conversations and not any(members(conversation, "facts") for conversation in file.conversations):
        yield BadInput(f"{file.path}:1", "no conversation has facts", expected="at least one fact", remedy="add facts")
    yield from _repeated_ids(file.conversations, "conversation")


def conversation_faults(conversation: Document) -> Iterator[BadInput]:
    turns, facts = members(conversation, "turns"), members(conversation, "facts")
    yield from _repeated_ids(facts, "fact")
    yield from _date_faults(turns, facts)
    yield from _chain_faults(facts)
    all_turns = conversation.value.get("turns")
    turn_ids = {turn_id(number) for number in range(1, 1 + len(all_turns if isinstance(all_turns, list) else ()))}
    for fact in facts:
        yield from _fact_faults(fact, turn_ids)
    yield from _absent_faults(members(conversation, "absent"), facts)


def _text(part: Document, key: str) -> str | None:
    spelling = as_written(part.value, key)
    text = part.value[spelling] if spelling else None
    return text if isinstance(text, str) and text.strip() else None


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
                f"the id {preview(id)} is already used on line {first}",
                expected=f"a different id for each {kind}",
                remedy="change one of the two",
            )
        seen.setdefault(id, part)


def _moment(part: Document, key: str) -> Moment | None:
    text = _text(part, key)
    return None if text is None else read_moment(text)


def _date_faults(turns: Sequence[Document], facts: Sequence[Document]) -> Iterator[BadInput]:
    places = [(turn, "timestamp") for turn in turns] + [(fact, key) for fact in facts for key in _FACT_DATES]
    yield from _mixed_zones(places)
    yield from _unordered_turns(turns)
    for fact in facts:
        begins, ends = _moment(fact, "valid_from"), _moment(fact, "valid_to")
        if begins and ends and is_earlier(ends, begins):
            yield BadInput(
                fact.where("valid_to"),
                "validTo is before validFrom of the same fact",
                expected="a later date",
                remedy="exchange the two dates, or correct one",
            )


def _mixed_zones(places: Sequence[tuple[Document, str]]) -> Iterator[BadInput]:
    """Yield a problem if some times have a time zone and others have none: such times cannot be ordered.

    Dates without a time of day may be mixed with both.
    """
    first: tuple[Moment, Document, str] | None = None
    for part, key in places:
        moment = _moment(part, key)
        if moment is None or moment.whole_day:
            continue
        first = first or (moment, part, key)
        if moment.has_zone != first[0].has_zone:
            has, other = ("a", "none") if moment.has_zone else ("no", "one")
            yield BadInput(
                part.where(key),
                f"{preview(_text(part, key))} has {has} time zone, but line {first[1].line(first[2])} has {other}",
                expected="all dates of a conversation with a time zone, or all without",
                remedy="add or remove time zones",
            )


def _unordered_turns(turns: Sequence[Document]) -> Iterator[BadInput]:
    latest: Moment | None = None
    for turn in turns:
        moment = _moment(turn, "timestamp")
        if moment is None:
            continue
        if latest is not None and is_earlier(moment, latest):
            yield BadInput(
                turn.where("timestamp"),
                "the date is before that of an earlier turn",
                expected="turns in the order of their dates",
                remedy="move the turn, or correct the date",
            )
        else:
            latest = moment


def _chain_faults(facts: Sequence[Document]) -> Iterator[BadInput]:
    earlier: dict[str, Document] = {}
    successors: dict[str, Document] = {}
    ids = [id for fact in facts if (id := _text(fact, "id")) is not None]
    for fact in facts:
        old, where = _text(fact, "supersedes"), fact.where("supersedes")
        if old in earlier:
            yield from _change_faults(fact, earlier[old])
        elif old in ids:
            yield BadInput(
                where,
                f"the fact {preview(old)}, which this fact supersedes, does not come before it in the file",
                expected="facts in the order in which they were stated",
                remedy=f"move this fact after {preview(old)}, or let that fact supersede this one",
            )
        elif old is not None:
            yield BadInput(
                where,
                f"no fact of this conversation has the id {preview(old)}",
                expected="the id of an earlier fact",
                remedy=suggestion(old, ids) or "correct the id, or add the fact",
            )
        if old in successors:
            yield BadInput(
                where,
                f"{preview(old)} is already superseded by {quoted_id(successors[old])}",
                expected="each fact superseded at most once",
                remedy=f"write {quoted_id(successors[old])} here instead",
            )
        if old is not None:
            successors.setdefault(old, fact)
        id = _text(fact, "id")
        if id is not None:
            earlier.setdefault(id, fact)


def _change_faults(fact: Document, old: Document) -> Iterator[BadInput]:
    """Yield a problem unless `fact`, which supersedes `old`, is later and has another value of the same attribute."""
    at, before = _moment(fact, "timestamp"), _moment(old, "timestamp")
    if at and before and is_earlier(at, before):
        yield BadInput(
            fact.where("timestamp"),
            f"the date is before that of {quoted_id(old)}, which this fact supersedes",
            expected=f"{preview(_text(old, 'timestamp'))} or later",
            remedy="correct one of the dates",
        )
    attribute, other = _text(fact, "attribute"), _text(old, "attribute")
    if attribute and other and attribute.casefold() != other.casefold():
        yield BadInput(
            fact.where("attribute"),
            f"{preview(attribute)} differs from {preview(other)} of {quoted_id(old)}, which this fact supersedes",
            expected="the same attribute with a new value",
            remedy="write the same attribute in both facts, or remove supersedes",
        )
    value, old_value = _text(fact, "value"), _text(old, "value")
    if value and old_value and value.casefold() == old_value.casefold():
        yield BadInput(
            fact.where("value"),
            f"the value is the same as that of {quoted_id(old)}, which this fact supersedes",
            expected="a new value",
            remedy="correct the value, or remove supersedes",
        )


def _absent_faults(absent: Sequence[Document], facts: Sequence[Document]) -> Iterator[BadInput]:
    """Yield the problems of the entries of `absent`.

    An id must not occur twice, an entry needs an attribute or a question, and no fact may state its attribute.
    """
    yield from _repeated_ids(absent, "absent entry")
    stated = {_topic(fact): fact for fact in facts if _text(fact, "attribute")}
    for entry in absent:
        if not _text(entry, "attribute") and not _text(entry, "question"):
            yield BadInput(
                entry.where("id"),
                "the entry of absent does not say what to ask for",
                expected="an attribute or a question",
                remedy='add "attribute" or "question"',
            )
        elif _text(entry, "attribute") and _topic(entry) in stated:
            yield BadInput(
                entry.where("attribute"),
                f"the fact {quoted_id(stated[_topic(entry)])} states this attribute, so it is not absent",
                expected="an attribute that no turn mentions",
                remedy="remove the entry from absent",
            )


def _topic(part: Document) -> tuple[str, str]:
    """Return subject and attribute in a standard spelling: ("user", "hometown") for "home-town" of "the User"."""
    subject = "".join(_WORD.findall((_text(part, "subject") or "user").casefold().removeprefix("the ")))
    return subject, "".join(_WORD.findall((_text(part, "attribute") or "").casefold()))


def _fact_faults(fact: Document, turn_ids: Set[str]) -> Iterator[BadInput]:
    for key in ("attribute", "question"):
        if _text(fact, key) and fact.value.get("value") is None:
            yield BadInput(
                fact.where(key),
                f'a fact with "{key}" has no "value"',
                expected='the answer in "value"',
                remedy='add "value"',
            )
    turn = fact.value.get("turn")
    if isinstance(turn, bool) or not isinstance(turn, int | str):
        return
    if turn_id(turn) not in turn_ids:
        turns = len(turn_ids)
        yield BadInput(
            fact.where("turn"),
            f"the conversation has no turn {preview(turn)}",
            expected=f"1 to {turns}, or t1 to t{turns}" if turns else "a conversation with turns",
            remedy="count turns from 1",
        )
