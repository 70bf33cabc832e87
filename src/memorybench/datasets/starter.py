"""The starter benchmark, which ships with the package and needs no API key.

It contains conversations of twelve people with an assistant, written by hand. Licensed under CC BY 4.0.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from importlib.resources import files
from typing import Any

import msgspec

from memorybench.core.conversation import Haystack, Session, Turn
from memorybench.core.questions import EvidenceLevel, Question


class Starter:
    """A Dataset that is read once and stays in memory."""

    name = "starter"
    evidence: EvidenceLevel = "session"

    def __init__(self) -> None:
        folder = files("memorybench.datasets") / "starter_histories"
        histories = sorted(
            (file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name
        )
        contents = [file.read_bytes() for file in histories]
        self.fingerprint = hashlib.sha256(b"".join(contents)).hexdigest()
        """SHA-256 of all history files, in the order of their names."""
        questions: list[Question] = []
        self._sessions: dict[str, list[dict[str, Any]]] = {}
        self._haystacks: dict[str, Haystack] = {}
        for history in map(msgspec.json.decode, contents):
            self._sessions[history["id"]] = history["sessions"]
            questions += (_question(question, history["id"]) for question in history["questions"])
        self.questions = tuple(questions)

    def haystack(self, id: str) -> Haystack:
        if id not in self._haystacks:
            sessions = tuple(_session(session) for session in self._sessions[id])
            self._haystacks[id] = Haystack(id=id, sessions=sessions)
        return self._haystacks[id]


def _session(session: dict[str, Any]) -> Session:
    turns = tuple(
        Turn(role=turn["role"], content=turn["content"], id=f"{session['id']}:{n}")
        for n, turn in enumerate(session["turns"], 1)
    )
    return Session(id=session["id"], at=datetime.fromisoformat(session["at"]), turns=turns)


def _question(question: dict[str, Any], haystack: str) -> Question:
    turns = tuple(dict.fromkeys(gold["turn"] for gold in question["gold"]))
    return Question(
        id=question["id"],
        labels={"question_type": question["type"]},
        haystack=haystack,
        question=question["question"],
        answers=(question["answer"],),
        asked_at=datetime.fromisoformat(question["asked_at"]),
        gold_turns=turns,
        gold_sessions=tuple(dict.fromkeys(turn.rpartition(":")[0] for turn in turns)),
        abstain=question["type"] == "abstention",
    )
