"""The starter benchmark, which ships with the package and needs no key.

Twelve people's conversations with an assistant, written by hand. Licensed under CC BY 4.0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from memorybench.core.conversation import Haystack, Session, Turn
from memorybench.core.questions import EvidenceLevel, Question

_FOLDER = "starter_histories"


class Starter:
    """A Dataset that is read once and kept in memory."""

    name = "starter"
    evidence: EvidenceLevel = "session"

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all history files, in the order of their names."""
        return hashlib.sha256(b"".join(file.read_bytes() for file in _files())).hexdigest()

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        return tuple(question for history in self._histories.values() for question in _questions(history))

    def haystack(self, id: str) -> Haystack:
        return self._haystacks[id]

    @cached_property
    def _histories(self) -> dict[str, dict[str, Any]]:
        found = (json.loads(file.read_text(encoding="utf-8")) for file in _files())
        return {history["id"]: history for history in found}

    @cached_property
    def _haystacks(self) -> dict[str, Haystack]:
        return {id: _haystack(history) for id, history in self._histories.items()}


def _files() -> list[Traversable]:
    folder = files("memorybench.datasets") / _FOLDER
    return sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)


def _haystack(history: dict[str, Any]) -> Haystack:
    return Haystack(id=history["id"], sessions=tuple(_session(session) for session in history["sessions"]))


def _session(session: dict[str, Any]) -> Session:
    turns = tuple(
        Turn(role=turn["role"], content=turn["content"], id=f"{session['id']}:{n}")
        for n, turn in enumerate(session["turns"], 1)
    )
    return Session(id=session["id"], at=datetime.fromisoformat(session["at"]), turns=turns)


def _questions(history: dict[str, Any]) -> Iterator[Question]:
    for question in history["questions"]:
        turns = tuple(dict.fromkeys(gold["turn"] for gold in question["gold"]))
        yield Question(
            id=question["id"],
            labels={"question_type": question["type"]},
            haystack=history["id"],
            question=question["question"],
            answers=(question["answer"],),
            asked_at=datetime.fromisoformat(question["asked_at"]),
            gold_turns=turns,
            gold_sessions=tuple(dict.fromkeys(turn.rpartition(":")[0] for turn in turns)),
            abstain=question["type"] == "abstention",
        )
