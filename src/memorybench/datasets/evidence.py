"""Resolves the evidence ids of a question to turns and sessions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.core.questions import EvidenceLevel
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document, Place
from memorybench.text.sanitize import preview
from memorybench.text.spelling import suggestion

from .item_context import ItemContext, words_of
from .paths import flatten, place_of

_NUMBERS = re.compile(r"([0-9]{1,9})(?:\s*[-–]\s*([0-9]{1,9}))?")
_DIALOG_ID = re.compile(r"D:?(\d+):(\d+)")
_SEPARATORS = re.compile(r"[\s,;]+")


def dialog_ids(cited: str) -> list[str]:
    """Return the LoCoMo ids in a string such as `D8:6; D9:17`, also misspelled ones (`D:11:26`, `D30:05`).

    A part that is not an id, such as `D1-2`, is returned as it is; it then counts as an unknown id.
    """
    parts = filter(None, _SEPARATORS.split(cited))
    matches = ((part, _DIALOG_ID.fullmatch(part)) for part in parts)
    return [f"D{int(match[1])}:{int(match[2])}" if match else part for part, match in matches]


def turns_with_text(cited: str, context: ItemContext) -> tuple[str, ...]:
    """Return the ids of the turns with this text; if none, with the same words; if none, that contain these words.

    The caller must treat the text as ambiguous if there are several.
    """
    text, words = cited.strip(), words_of(cited)
    if not words:
        return ()
    return (
        tuple(id for id, other in context.turn_texts.items() if other == text)
        or tuple(id for id, other in context.turn_words.items() if other == words)
        or tuple(id for id, other in context.turn_words.items() if f" {words} " in f" {other} ")
    )


def numbered(cited: str, first: int, ids: Mapping[int, str], count: int) -> tuple[str, ...]:
    """Return the ids for a number or range such as `3` or `3-7`. Empty if `cited` is neither, or is out of range.

    There are `count` numbers, from `first` on; the keys of `ids` are these numbers minus `first`. A number without an
    id is left out.
    """
    match = _NUMBERS.fullmatch(cited.strip())
    if match is None:
        return ()
    start, end = int(match[1]) - first, int(match[2] or match[1]) - first
    if not 0 <= start <= end < count:
        return ()
    return tuple(ids[number] for number in range(start, end + 1) if number in ids)


class CitationReader:
    """Reads the evidence that a path leads to in questions."""

    def __init__(self, path: Path, format: str, key: str) -> None:
        """`key` is the config key that contains the path; errors name it."""
        self._path, self._format, self._key = path, format, key
        self._pair: tuple[str, str] | None = None
        """The place and the text of the first list of two numbers; None if there was none yet."""
        self._list = ""
        """The text of the first list that is not two numbers; empty if there was none yet."""

    def read(self, part: Document) -> list[str]:
        """Return the evidence of a question as texts; nested lists are flattened.

        Pairs of numbers become texts such as `3-7` if the format has ranges.
        """
        matches = self._path.located(part.value)
        if self._format.startswith("ranges"):
            matches = [(at, text) for at, match in matches for text in self._ranges(match, part, at)]
        leaves = [leaf for at, match in matches for leaf in flatten(match, at)]
        # a path such as $.from..* matches objects and what is in them
        covered = {at for at, leaf in leaves if not isinstance(leaf, dict)}
        kept = [leaf for at, leaf in leaves if not (isinstance(leaf, dict) and covered.issuperset(_leaves(leaf, at)))]
        return list(dict.fromkeys(str(leaf) for leaf in kept if leaf is not None))

    def _ranges(self, match: Any, part: Document, at: Place) -> list[Any]:
        """Return the members of a match, with ranges as texts such as `3-7`.

        A list of two numbers is a range if the evidence of every question is such a list. Otherwise raise BadInput: if
        another question has [4], then [0, 3] may be two turns.
        """
        if not isinstance(match, list):
            return [match]
        if not self._path.singular:
            return list(_inner_ranges([match]))
        is_pair = len(match) == 2 and all(map(_is_number, match))
        if is_pair:
            self._pair = self._pair or (part.where(*at), preview(match))
        elif match:
            self._list = self._list or preview(match)
        if self._pair and self._list:
            where, pair = self._pair
            numbers = self._format.replace("ranges", "numbers")
            raise BadInput(
                where,
                f"{pair} may be a range or two numbers, because another question has {self._list}",
                expected='ranges as "3-7" or [[3, 7]], or a pair in every question',
                remedy=f"set schema.evidenceFormat: {numbers} if these are single numbers; else correct {self._key}",
            )
        return list(_inner_ranges([match] if is_pair else match))


def _inner_ranges(members: list[Any]) -> Iterator[Any]:
    """Yield the members of a list; inner lists are yielded as texts such as `3-7`."""
    for member in members:
        if not isinstance(member, list):
            yield member
        elif any(isinstance(inner, list) for inner in member):
            yield from _inner_ranges(member)
        elif member:
            yield "-".join(map(str, member))


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and re.fullmatch("[0-9]{1,9}", str(value).strip()) is not None


def _leaves(value: Any, place: Place) -> Iterator[Place]:
    """Yield the place of each value within nested objects and lists that is neither an object nor a list."""
    if not isinstance(value, dict | list):
        yield place
        return
    for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _leaves(inner, (*place, step))


FORMATS: Mapping[str, Callable[[str], list[str]]] = {"exact": lambda cited: [cited], "dialog-ids": dialog_ids}
"""The values of `schema.evidenceFormat` for evidence that is ids, each with a function that splits a text into ids."""


class Evidence(Struct, frozen=True):
    """The evidence of a question, resolved to turns and sessions."""

    sessions: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    """Ids that were resolved although their spelling differs from the context's."""
    dropped: tuple[str, ...] = ()
    """Ids that the context does not contain."""
    ambiguous: tuple[str, ...] = ()
    """Evidence texts that are not resolved, because several turns have them."""


class EvidenceCheck(Struct):
    """Finds out whether the evidence of at least one question can be resolved; if not, the config is probably wrong."""

    path: Path | None
    """The path to the ids in a question; None if the data marks turns instead."""
    level: EvidenceLevel
    key: str
    """The config key that contains the path to the ids or to the mark."""
    format: str = "exact"
    """The value of `schema.evidenceFormat`."""
    names_turns: bool = True
    """Whether the data can have ids for turns. A history that is a plain text has none; its turns get the ids s1:1,
    s1:2, …"""
    _is_found: bool = False
    _is_resolved: bool = False
    _fields: Sequence[str] = ()
    """The keys of the first question, for the error message."""
    _unknown: BadInput | None = None
    first_unknown: str = ""
    """The first unknown id and its place in the file. The folder is left out, because it differs between machines."""

    def add(self, part: Document, evidence: Evidence, context: ItemContext) -> None:
        """Add the evidence of one question to the check; `part` is the question in the data."""
        self._is_resolved = self._is_resolved or bool(evidence.sessions or evidence.turns)
        if self.path is None:
            return
        self._is_found = self._is_found or bool(self.path.all(part.value))
        self._fields = self._fields or list(part.value)
        if evidence.dropped and self._unknown is None:
            id, place = evidence.dropped[0], place_of(self.path, part.value)
            where = part.where(*(place or ()))
            self._unknown = BadInput(
                where,
                f"the evidence {preview(id)} was not found in the history, and neither was that of any other question",
                expected=f"ids of {self.level}s",
                remedy=self._remedy(id, context),
            )
            self.first_unknown = f"{preview(id)} at {where.removeprefix(part.path.rpartition('/')[0] + '/')}"

    def _remedy(self, id: str, context: ItemContext) -> str:
        if self.format == "text":
            return f"correct {self.key}: it leads to no text of a turn"
        if self.format not in FORMATS:
            size = f"{context.raw_turn_count:,} turns"
            if self.level == "session":
                count = context.numbered_session_count - (context.first_key or 0)
                size = f"{count:,} sessions; if turns are numbered, set evidenceLevel: turn"
            return f"correct {self.key} or schema.evidenceFormat: the history has {size}"
        if self.level == "session":
            if id in context.session_of:
                return "set schema.evidenceLevel: turn"
            if not context.sessions_named and _NUMBERS.fullmatch(id):
                return (
                    "sessions have no ids: set schema.evidenceFormat: numbers-from-0 or numbers-from-1, and "
                    "schema.evidenceLevel: session"
                )
            return "correct schema.context.idField"
        if id in context.sessions_named:
            return "set schema.evidenceLevel: session"
        if self.names_turns:
            remedy = "correct schema.context.itemSchema.dialogId"
        else:
            ids = list(context.session_of)
            remedy = f"correct the ids in the data: the turns of this text are {' to '.join(ids[:1] + ids[-1:])}"
        if _NUMBERS.fullmatch(id):
            remedy += ", or set schema.evidenceFormat: numbers-from-0, numbers-from-1, ranges-from-0 or ranges-from-1"
        return remedy

    def raise_if_useless(self, file: str) -> None:
        """Raise BadInput if no question has evidence that can be resolved, and the path to it is probably wrong.

        The path is probably wrong if it matched in no question, or if an id is unknown.
        """
        if self._is_resolved or (self._is_found and self._unknown is None):
            return
        if self._unknown is not None:
            raise self._unknown
        if self.path is None:
            raise BadInput(file, "the data marks no turn as evidence", remedy=f"correct {self.key}")
        close = suggestion(self.path.text, self._fields)
        raise BadInput(
            file,
            f"no question has evidence at {self.path.text}",
            expected="ids",
            remedy=f"{close} correct {self.key}".lstrip(),
        )


def resolve(cited: Iterable[Any], context: ItemContext, level: EvidenceLevel, format: str) -> Evidence:
    """Resolve the cited evidence of a question to turns and sessions.

    At turn level, the result also has the sessions that contain the turns. At session level, it also has those turns of
    the sessions that the data marks as evidence.
    """
    if format == "text":
        return _resolve_texts(cited, context)
    if format not in FORMATS:
        return _resolve_numbers(cited, context, level, int(format[-1]))
    known: Mapping[str, Sequence[str]] = context.sessions_named
    if level == "turn":
        known = {turn: (turn,) for turn in context.session_of}
    gold: dict[str, None] = {}
    repaired, dropped = [], []
    for citation in map(str, cited):
        ids = FORMATS[format](citation)
        resolved = [our_id for id in ids for our_id in known.get(id, ())]
        gold.update(dict.fromkeys(resolved))
        if not ids or any(id not in known for id in ids):
            dropped.append(citation)
        elif ids != [citation]:
            repaired.append(citation)
    return _evidence(gold, context, level, repaired=tuple(repaired), dropped=tuple(dropped))


def _resolve_texts(cited: Iterable[Any], context: ItemContext) -> Evidence:
    found = {text: turns_with_text(text, context) for text in map(str, cited)}
    return _evidence(
        dict.fromkeys(turns[0] for turns in found.values() if len(turns) == 1),
        context,
        "turn",
        dropped=tuple(text for text, turns in found.items() if not turns),
        ambiguous=tuple(text for text, turns in found.items() if len(turns) > 1),
    )


def _resolve_numbers(cited: Iterable[Any], context: ItemContext, level: EvidenceLevel, first: int) -> Evidence:
    ids, count = context.numbered_turns, context.raw_turn_count
    if level == "session":
        ids, count = context.numbered_sessions, context.numbered_session_count
        first = first if context.first_key is None else 0  # the number of a key counts
    found = {text: numbered(text, first, ids, count) for text in map(str, cited)}
    gold = dict.fromkeys(id for known in found.values() for id in known)
    return _evidence(gold, context, level, dropped=tuple(text for text, known in found.items() if not known))


def _evidence(
    gold: Mapping[str, None], context: ItemContext, level: EvidenceLevel, **others: tuple[str, ...]
) -> Evidence:
    if level == "turn":
        return Evidence(tuple(dict.fromkeys(context.session_of[turn] for turn in gold)), tuple(gold), **others)
    return Evidence(tuple(gold), tuple(id for id, turn in context.marked.items() if turn.session in gold), **others)
