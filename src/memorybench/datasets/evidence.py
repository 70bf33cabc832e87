"""Resolves the evidence ids of a question to turns and sessions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.core.questions import EvidenceLevel
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.text.sanitize import preview
from memorybench.text.spelling import suggestion

from .context import ItemContext, words_of
from .paths import flatten, place_of

_NUMBERS = re.compile(r"([0-9]{1,9})(?:\s*[-–]\s*([0-9]{1,9}))?")
_DIALOG_ID = re.compile(r"D:?(\d+):(\d+)")


def dialog_ids(cited: str) -> list[str]:
    """Return the LoCoMo ids in a string such as `D8:6; D9:17`, also misspelled ones (`D:11:26`, `D30:05`)."""
    return [f"D{int(session)}:{int(turn)}" for session, turn in _DIALOG_ID.findall(cited)]


def turns_with_text(cited: str, context: ItemContext) -> tuple[str, ...]:
    """Return the turns with this text; if there is none, the only turn that contains it."""
    text = words_of(cited)
    if not text:
        return ()
    same = tuple(id for id, other in context.turn_words.items() if other == text)
    containing = tuple(id for id, other in context.turn_words.items() if f" {text} " in f" {other} ")
    return same or (containing if len(containing) == 1 else ())


def numbered_turns(cited: str, context: ItemContext, first: int) -> tuple[str, ...]:
    """Return the turns with these numbers, such as `3` or `3-7`; none if one of them is outside the history."""
    match = _NUMBERS.fullmatch(cited.strip())
    if match is None:
        return ()
    start, end = int(match[1]) - first, int(match[2] or match[1]) - first
    if not 0 <= start <= end < context.raw_turn_count:
        return ()
    ids = context.numbered_turns
    return tuple(ids[number] for number in range(start, end + 1) if number in ids)


def citations(path: Path, value: Any, format: str) -> list[str]:
    """Return the evidence that a path leads to in a question: the members of lists, however deep.

    Pairs of numbers become texts such as `3-7` if the format has ranges.
    """
    matches = path.all(value)
    if format.startswith("ranges"):
        if path.singular and matches and isinstance(matches[0], list):
            matches = matches[0]
        matches = ["-".join(map(str, match)) if isinstance(match, list) else match for match in matches]
    leaves = [leaf for match in matches for _, leaf in flatten(match, ()) if leaf is not None]
    if ".." in path.text:  # it matches objects and what is in them
        leaves = [leaf for leaf in leaves if not isinstance(leaf, dict)]
    return list(dict.fromkeys(map(str, leaves)))


FORMATS: Mapping[str, Callable[[str], list[str]]] = {"exact": lambda cited: [cited], "dialog-ids": dialog_ids}
"""The values of `schema.evidenceFormat` that are ids."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a question, resolved to turns and sessions."""

    sessions: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    """Ids that were resolved although the context spells them differently."""
    dropped: tuple[str, ...] = ()
    """Ids that the context does not contain."""


@dataclass(slots=True)
class EvidenceCheck:
    """Whether the evidence of any question can be resolved, and the first id that cannot."""

    path: Path | None
    """Where the ids are; None: turns are marked."""
    level: EvidenceLevel
    key: str
    """The key of the config that names the path or the mark."""
    format: str = "exact"
    """The value of `schema.evidenceFormat`."""
    _is_found: bool = False
    _is_resolved: bool = False
    _fields: Sequence[str] = ()
    """The keys of a question."""
    _unknown: BadInput | None = None
    first_unknown: str = ""
    """The first unknown id and its place, without the folder of the file, which is another on another machine."""

    def add(self, part: Document, evidence: Evidence, context: ItemContext) -> None:
        """Look at the evidence of one question, which is `part` of the data."""
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
                f"unknown evidence id {preview(id)}, and no other is known",
                expected=f"ids of {self.level}s",
                remedy=self._remedy(id, context),
            )
            self.first_unknown = f"{preview(id)} at {where.removeprefix(part.path.rpartition('/')[0] + '/')}"

    def _remedy(self, id: str, context: ItemContext) -> str:
        if self.format == "text":
            return f"correct {self.key}: it leads to no text of a turn"
        if self.format not in FORMATS:
            return f"correct {self.key} or schema.evidenceFormat: the history has {context.raw_turn_count:,} turns"
        if self.level == "session":
            return "set schema.evidenceLevel: turn" if id in context.session_of else "correct schema.context.idField"
        if id in context.sessions_named:
            return "set schema.evidenceLevel: session"
        remedy = "correct schema.context.itemSchema.dialogId"
        if _NUMBERS.fullmatch(id):
            remedy += ", or set schema.evidenceFormat: numbers-from-0, numbers-from-1, ranges-from-0 or ranges-from-1"
        return remedy

    def raise_if_useless(self, file: str) -> None:
        """Raise BadInput if no question of the data has evidence that is known."""
        if self._is_resolved or (self._is_found and self._unknown is None):
            return
        if self._unknown is not None:
            raise self._unknown
        if self.path is None:
            raise BadInput(file, "no turn is marked as evidence", remedy=f"correct {self.key}")
        close = suggestion(self.path.text, self._fields)
        problem = f"no question has evidence at {self.path.text}"
        raise BadInput(file, problem, expected="ids", remedy=f"{close} correct {self.key}".lstrip())


def resolve(cited: Iterable[Any], context: ItemContext, level: EvidenceLevel, format: str) -> Evidence:
    """Resolve ids to turns and sessions.

    At turn level, sessions are those of the turns; at session level, turns are those that the data marks.
    """
    gold: dict[str, None] = {}
    repaired, dropped = [], []
    if format not in FORMATS:
        turns_of = turns_with_text if format == "text" else partial(numbered_turns, first=int(format[-1]))
        found = {text: turns_of(text, context) for text in map(str, cited)}
        gold = dict.fromkeys(turn for turns in found.values() for turn in turns)
        return Evidence(
            tuple(dict.fromkeys(context.session_of[turn] for turn in gold)),
            tuple(gold),
            dropped=tuple(text for text, turns in found.items() if not turns),
        )
    known: Mapping[str, Sequence[str]] = context.sessions_named
    if level == "turn":
        known = {turn: (turn,) for turn in context.session_of}
    for citation in map(str, cited):
        ids = FORMATS[format](citation)
        resolved = [our_id for id in ids for our_id in known.get(id, ())]
        gold.update(dict.fromkeys(resolved))
        if not ids or any(id not in known for id in ids):
            dropped.append(citation)
        elif ids != [citation]:
            repaired.append(citation)
    if level == "turn":
        sessions = dict.fromkeys(context.session_of[turn] for turn in gold)
        return Evidence(tuple(sessions), tuple(gold), tuple(repaired), tuple(dropped))
    turns = tuple(id for id, turn in context.marked.items() if turn.session in gold)
    return Evidence(tuple(gold), turns, tuple(repaired), tuple(dropped))
