"""Proves the starter benchmark: `python scripts/check_starter.py`. Exit 1 and one line for each problem.

Every gold answer is supported by a quote that stands in its gold turn; what abstention questions ask for is absent;
computed dates and durations are computed again; questions share few words with their gold turn; no sentence stands
twice in any history; turns and sessions differ in length, as they do where people talk.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "src" / "memorybench" / "datasets" / "starter_histories"
LEAST_OF_TYPE = {
    "single-hop": 5,
    "multi-hop": 4,
    "temporal": 4,
    "knowledge-update": 4,
    "preference": 3,
    "abstention": 4,
}
LEAST_HISTORIES, LEAST_QUESTIONS = 10, 250
SESSIONS = range(15, 26)
LEAST_TURNS = 6
MOST_OVERLAP_MEAN, MOST_OVERLAP = 0.33, 0.75
FIELDS = {"id", "type", "question", "answer", "asked_at", "gold", "key", "stale", "absent", "near", "computed"}

_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a about after all also am an and any are as at be because been before being both but by can could did do does
        doing during each ever few for from get go going got had has have having he her here him his how i if in into
        is it its just long many me more most much my no not now of off on once one only or other our out over own same
        she should so some still such tell than that the their them then there these they this through to too under
        until up very was we went were what when where which while who whom whose why will with would you your""",
    )
)
_ENDINGS = ("ings", "ing", "edly", "ed", "ies", "es", "s", "ly")


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def content_words(text: str) -> set[str]:
    return {_stem(word) for word in words(text) if word not in _STOP_WORDS and len(word) > 1}


def _stem(word: str) -> str:
    word = word.split("'")[0]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def sentences(text: str) -> Iterator[str]:
    for sentence in re.split(r"[.!?\n]+", text):
        said = words(sentence)
        if len(said) >= 4:
            yield " ".join(said)


class History:
    def __init__(self, path: Path) -> None:
        self.told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        self.name = self.told["id"]
        self.turns = {
            f"{session['id']}:{n}": turn["content"]
            for session in self.told["sessions"]
            for n, turn in enumerate(session["turns"], 1)
        }
        self.order = {turn: place for place, turn in enumerate(self.turns)}
        self.at = {session["id"]: datetime.fromisoformat(session["at"]) for session in self.told["sessions"]}
        self.text = "\n".join(self.turns.values()).lower()

    def problems(self) -> Iterator[str]:
        if set(self.told) != {"id", "licence", "about", "sessions", "questions"} or self.told["licence"] != "CC BY 4.0":
            yield "wants id, licence (CC BY 4.0), about, sessions, questions"
        yield from self._session_problems()
        overlaps = []
        for n, question in enumerate(self.told["questions"], 1):
            if question["id"] != f"{self.name}-q{n:02d}":
                yield f"question {n} has the id {question['id']}"
            for problem in self._question_problems(question):
                yield f"{question['id']}: {problem}"
            if question["gold"]:
                overlaps.append(self.overlap(question))
        if mean(overlaps) > MOST_OVERLAP_MEAN:
            yield f"questions share {mean(overlaps):.0%} of their words with the gold turn on average"
        counts = Counter(question["type"] for question in self.told["questions"])
        for kind, least in LEAST_OF_TYPE.items():
            if counts[kind] < least:
                yield f"{counts[kind]} questions of type {kind}, wanted {least}"
        if sum(len(question.get("stale", [])) >= 2 for question in self.told["questions"]) < 2:
            yield "fewer than two facts that change twice"

    def _session_problems(self) -> Iterator[str]:
        sessions = self.told["sessions"]
        if len(sessions) not in SESSIONS:
            yield f"{len(sessions)} sessions"
        times = list(self.at.values())
        if any(later <= earlier for earlier, later in pairwise(times)):
            yield "sessions are not in order of time"
        for n, session in enumerate(sessions, 1):
            if session["id"] != f"{self.name}-{n:02d}":
                yield f"session {n} has the id {session['id']}"
            if len(session["turns"]) < LEAST_TURNS:
                yield f"{session['id']} has {len(session['turns'])} turns"
            if any(
                turn["role"] not in ("user", "assistant") or not turn["content"].strip() for turn in session["turns"]
            ):
                yield f"{session['id']} has a turn without a role or a text"
        lengths = [len(words(turn)) for turn in self.turns.values()]
        if pstdev(lengths) / mean(lengths) < 0.45:
            yield "turns are all of one length"
        if len({len(session["turns"]) for session in sessions}) < 3:
            yield "sessions are all of one length"

    def overlap(self, question: dict[str, Any]) -> float:
        """The largest share of the question's content words that one gold turn repeats."""
        asked = content_words(question["question"]) - content_words(self.name)
        return max(
            len(asked & content_words(self.turns[gold["turn"]])) / max(1, len(asked)) for gold in question["gold"]
        )

    def _question_problems(self, question: dict[str, Any]) -> Iterator[str]:
        if set(question) - FIELDS:
            yield f"unknown fields {sorted(set(question) - FIELDS)}"
        if datetime.fromisoformat(question["asked_at"]) <= max(self.at.values()):
            yield "asked before the last session"
        if question["type"] == "abstention":
            yield from self._abstention_problems(question)
            return
        if not question["gold"] or not question.get("key"):
            yield "has no gold or no key"
            return
        for piece in [*question["gold"], *question.get("stale", [])]:
            if piece["quote"] not in self.turns.get(piece["turn"], ""):
                yield f"the quote {piece['quote']!r} does not stand in {piece['turn']}"
                return
        yield from self._support_problems(question)
        if self.overlap(question) > MOST_OVERLAP:
            yield "repeats the words of its gold turn"
        if question["type"] == "multi-hop" and len({gold["turn"].split(":")[0] for gold in question["gold"]}) < 2:
            yield "multi-hop takes gold from two sessions"
        if question["type"] == "knowledge-update":
            yield from self._update_problems(question)

    def _abstention_problems(self, question: dict[str, Any]) -> Iterator[str]:
        if question["gold"] or not question.get("absent") or question.get("near") not in self.turns:
            yield "abstention takes no gold, absent terms, and the turn that tempts"
        for term in question.get("absent", []):
            if re.search(rf"\b{re.escape(term.lower())}", self.text):
                yield f"{term!r} stands in the history"

    def _support_problems(self, question: dict[str, Any]) -> Iterator[str]:
        quoted = " ".join(gold["quote"] for gold in question["gold"]).lower()
        computed = question.get("computed")
        for key in question["key"]:
            if key.lower() not in question["answer"].lower():
                yield f"the key {key!r} is not in the answer"
            if key.lower() not in quoted and not computed:
                yield f"the key {key!r} is in no gold quote"
        if computed:
            yield from self._computed_problems(question, computed)

    def _computed_problems(self, question: dict[str, Any], computed: dict[str, Any]) -> Iterator[str]:
        if "date" in computed:
            day = self._point(question, computed["of"]) + timedelta(days=computed["offset_days"])
            stated = date.fromisoformat(computed["date"])
            if day.date() != stated or str(stated.day) not in question["answer"]:
                yield f"says {stated}, the sum gives {day.date()}"
        elif "order" in computed:
            times = [self._point(question, point) for point in computed["order"]]
            if times != sorted(times):
                yield "the order is not that of time"
        else:
            span = _span(
                self._point(question, computed["from"]), self._point(question, computed["to"]), computed["unit"]
            )
            if span != computed["value"] or str(span) not in question["answer"]:
                yield f"says {computed['value']} {computed['unit']}, the dates give {span}"

    def _update_problems(self, question: dict[str, Any]) -> Iterator[str]:
        if not question.get("stale"):
            yield "knowledge-update takes stale values"
        newest = max(self.order[gold["turn"]] for gold in question["gold"])
        for stale in question.get("stale", []):
            if self.order[stale["turn"]] >= newest:
                yield f"the stale {stale['turn']} is not before the gold"
            if stale["value"].lower() not in stale["quote"].lower():
                yield f"the stale value {stale['value']!r} is not in its quote"
            if stale["value"].lower() in (key.lower() for key in question["key"]):
                yield f"the stale value {stale['value']!r} is also the key"

    def _point(self, question: dict[str, Any], point: str) -> datetime:
        if point == "asked_at":
            return datetime.fromisoformat(question["asked_at"])
        return self.at.get(point) or datetime.fromisoformat(point)


def _span(start: datetime, end: datetime, unit: str) -> int:
    days = (end.date() - start.date()).days
    months = (end.year - start.year) * 12 + end.month - start.month - (end.day < start.day)
    return {"days": days, "weeks": round(days / 7), "months": months, "years": end.year - start.year}[unit]


def check(folder: Path = FOLDER) -> list[str]:
    histories = [History(path) for path in sorted(folder.glob("*.json"))]
    found = [f"{history.name}: {problem}" for history in histories for problem in history.problems()]
    if len(histories) < LEAST_HISTORIES:
        found.append(f"{len(histories)} histories, wanted {LEAST_HISTORIES}")
    questions = [question["question"] for history in histories for question in history.told["questions"]]
    if len(questions) < LEAST_QUESTIONS:
        found.append(f"{len(questions)} questions, wanted {LEAST_QUESTIONS}")
    found += [f"stands twice: {text!r}" for text, n in Counter(questions).items() if n > 1]
    said = Counter(sentence for history in histories for turn in history.turns.values() for sentence in sentences(turn))
    return found + [f"stands twice: {sentence!r}" for sentence, n in said.items() if n > 1]


if __name__ == "__main__":
    problems = check()
    print("\n".join(problems) or "no problems")
    sys.exit(bool(problems))
