"""Resolves the evidence ids of a question to turns and sessions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memorybench.core.questions import EvidenceLevel

from .context import Told

_DIALOG_ID = re.compile(r"D:?(\d+):(\d+)")


def _exact(cited: str) -> list[str]:
    return [cited]


def dialog_ids(cited: str) -> list[str]:
    """Returns the LoCoMo ids in a string such as `D8:6; D9:17`, also misspelled ones (`D:11:26`, `D30:05`)."""
    return [f"D{int(session)}:{int(turn)}" for session, turn in _DIALOG_ID.findall(cited)]


FORMATS: Mapping[str, Callable[[str], list[str]]] = {"exact": _exact, "dialog-ids": dialog_ids}
"""The values of `schema.evidenceFormat`."""


@dataclass(frozen=True, slots=True)
class Evidence:
    sessions: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    """Ids that are spelled differently in the context and were found."""
    dropped: tuple[str, ...] = ()
    """Ids that were not found."""


def resolve(cited: Iterable[Any], told: Told, level: EvidenceLevel, format: str) -> Evidence:
    """Resolves ids. At turn level sessions follow from turns; at session level turns are those marked in the data."""
    found: dict[str, None] = {}
    mended, dropped = [], []
    known: Mapping[str, Sequence[str]] = told.turns_named if level == "turn" else told.sessions_named
    for citation in map(str, cited):
        ids = FORMATS[format](citation)
        resolved = [own for id in ids for own in known.get(id, ())]
        found.update(dict.fromkeys(resolved))
        if not ids or any(id not in known for id in ids):
            dropped.append(citation)
        elif ids != [citation]:
            mended.append(citation)
    if level == "turn":
        sessions = dict.fromkeys(told.session_of[turn] for turn in found)
        return Evidence(tuple(sessions), tuple(found), tuple(mended), tuple(dropped))
    turns = tuple(turn for turn in told.marked if told.session_of[turn] in found)
    return Evidence(tuple(found), turns, tuple(mended), tuple(dropped))
