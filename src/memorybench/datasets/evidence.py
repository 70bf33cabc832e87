"""Resolves the evidence ids of a question to turns and sessions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memorybench.core.questions import EvidenceLevel

from .context import ItemContext

_DIALOG_ID = re.compile(r"D:?(\d+):(\d+)")


def dialog_ids(cited: str) -> list[str]:
    """Return the LoCoMo ids in a string such as `D8:6; D9:17`, also misspelled ones (`D:11:26`, `D30:05`)."""
    return [f"D{int(session)}:{int(turn)}" for session, turn in _DIALOG_ID.findall(cited)]


FORMATS: Mapping[str, Callable[[str], list[str]]] = {"exact": lambda cited: [cited], "dialog-ids": dialog_ids}
"""The values of `schema.evidenceFormat`."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a question, resolved to turns and sessions."""

    sessions: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    """Ids that were resolved although the context spells them differently."""
    dropped: tuple[str, ...] = ()
    """Ids that the context does not contain."""


def resolve(cited: Iterable[Any], context: ItemContext, level: EvidenceLevel, format: str) -> Evidence:
    """Resolve ids to turns and sessions.

    At turn level, sessions are those of the turns; at session level, turns are those that the data marks.
    """
    gold: dict[str, None] = {}
    repaired, dropped = [], []
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
