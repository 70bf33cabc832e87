"""Makes again the figures behind the constants of bm25, dense and hybrid: `python -m perf.tune_embedded DATA`.

DATA holds `locomo/locomo10.json`, `longmemeval/longmemeval_oracle.json.gz` and `longmemeval_s_subset.json.gz`. The
subset has too few questions to choose by, so "mixed" hides the evidence of all 500 oracle questions among 45 sessions
each that the subset's haystacks hold for other questions.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from memorybench.core.contracts import Embedder
from memorybench.core.conversation import Haystack, Session, Turn
from memorybench.embedding.local import open_local_embedder
from memorybench.providers.bm25 import LexicalIndex, LexicalSettings
from memorybench.providers.dense import DenseSettings, VectorIndex
from memorybench.providers.hybrid import HybridIndex, HybridSettings
from memorybench.providers.storage.indexed import Index, Query
from memorybench.providers.storage.turns import StoredTurn, stored_turns

RETRIEVED = 50
DISTRACTORS = 45
SEED = 7

BUILDS: Mapping[str, Callable[[Sequence[StoredTurn]], Index]] = {
    "bm25": partial(LexicalIndex, settings=LexicalSettings()),
    "bm25, no turns around": partial(LexicalIndex, settings=LexicalSettings(around_words=0)),
    "bm25, around weight 0.3": partial(LexicalIndex, settings=LexicalSettings(around_weight=0.3)),
    "bm25, 20 words around": partial(LexicalIndex, settings=LexicalSettings(around_words=20)),
    "bm25, 80 words around": partial(LexicalIndex, settings=LexicalSettings(around_words=80)),
    "dense": partial(VectorIndex, settings=DenseSettings()),
    "dense, no turn before": partial(VectorIndex, settings=DenseSettings(before_weight=0.0)),
    "hybrid": partial(HybridIndex, settings=HybridSettings()),
    "hybrid, dense weight 0.3": partial(HybridIndex, settings=HybridSettings(dense_weight=0.3)),
    "hybrid, dense weight 0.4": partial(HybridIndex, settings=HybridSettings(dense_weight=0.4)),
    "hybrid, dense weight 0.6": partial(HybridIndex, settings=HybridSettings(dense_weight=0.6)),
}


@dataclass(frozen=True)
class Question:
    text: str
    evidence: frozenset[str]
    """Ids of turns (LoCoMo) or of sessions (LongMemEval)."""


@dataclass(frozen=True)
class Task:
    haystack: Haystack
    questions: tuple[Question, ...]


def locomo(file: Path) -> Iterator[Task]:
    """The clean rule: ids repaired, unresolvable turns dropped, questions without evidence left out."""
    for sample in json.loads(file.read_text(encoding="utf-8")):
        spoken = sample["conversation"]
        sessions = tuple(
            Session(id=key, turns=tuple(_locomo_turn(turn) for turn in spoken[key]))
            for key in spoken
            if re.fullmatch(r"session_\d+", key)
        )
        known = {turn.id or "" for session in sessions for turn in session.turns}
        asked = [Question(qa["question"], frozenset(known & _evidence(qa["evidence"]))) for qa in sample["qa"]]
        yield Task(Haystack(id=sample["sample_id"], sessions=sessions), tuple(q for q in asked if q.evidence))


def _locomo_turn(turn: Mapping[str, Any]) -> Turn:
    caption = turn.get("blip_caption")
    content = f"{turn['text']} [shares a photo: {caption}]" if caption else turn["text"]
    return Turn(role="user", speaker=turn["speaker"], content=content, id=turn["dia_id"])


def _evidence(cited: Iterable[str]) -> set[str]:
    return {f"D{session}:{int(turn)}" for text in cited for session, turn in re.findall(r"D:?(\d+):(\d+)", text)}


def longmemeval(file: Path) -> Iterator[Task]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for item in json.load(lines):
            spoken = dict(zip(item["haystack_session_ids"], item["haystack_sessions"], strict=True))
            sessions = tuple(
                Session(id=key, turns=tuple(Turn(role=turn["role"], content=turn["content"]) for turn in turns))
                for key, turns in spoken.items()
            )
            question = Question(item["question"], frozenset(item["answer_session_ids"]))
            yield Task(Haystack(id=item["question_id"], sessions=sessions), (question,))


def mixed(oracle: Iterable[Task], subset: Iterable[Task]) -> Iterator[Task]:
    others = {
        session.id: session for task in subset for session in task.haystack.sessions if "answer" not in session.id
    }
    chance = random.Random(SEED)
    for task in oracle:
        hiding = [others[key] for key in chance.sample(sorted(others), DISTRACTORS)]
        sessions = (*task.haystack.sessions, *hiding)
        yield replace(task, haystack=Haystack(id=task.haystack.id, sessions=sessions))


@dataclass(frozen=True)
class Prepared:
    turns: list[StoredTurn]
    asked: list[tuple[Query, frozenset[str]]]


async def prepare(tasks: Iterable[Task], embedder: Embedder) -> list[Prepared]:
    held: dict[Session, list[StoredTurn]] = {}  # a session that hides many questions' evidence is embedded once

    async def embedded(session: Session) -> list[StoredTurn]:
        if session not in held:
            turns = stored_turns(session)
            vectors = await embedder.embed([kept.text for kept in turns])
            held[session] = [
                replace(kept, vector=np.asarray(vector, np.float32).tobytes())
                for kept, vector in zip(turns, vectors, strict=True)
            ]
        return held[session]

    async def prepared(task: Task) -> Prepared:
        ordered = sorted(task.haystack.sessions, key=lambda session: session.id)
        vectors = await embedder.embed([question.text for question in task.questions])
        return Prepared(
            turns=[kept for session in ordered for kept in await embedded(session)],
            asked=[
                (Query(question.text, vector), question.evidence)
                for question, vector in zip(task.questions, vectors, strict=True)
            ],
        )

    return [await prepared(task) for task in tasks]


def turn_recall(found: Sequence[StoredTurn], evidence: frozenset[str], k: int = 10) -> float:
    return len({kept.turn for kept in found[:k]} & evidence) / len(evidence)


def session_recall_any(found: Sequence[StoredTurn], evidence: frozenset[str], k: int = 5) -> float:
    sessions = list(dict.fromkeys(kept.session for kept in found))
    return float(bool(evidence & set(sessions[:k])))


def score(
    build: Callable[[Sequence[StoredTurn]], Index],
    tasks: Sequence[Prepared],
    measure: Callable[[Sequence[StoredTurn], frozenset[str]], float],
) -> float:
    values: list[float] = []
    for task in tasks:
        index = build(task.turns)
        for asked, evidence in task.asked:
            values.append(measure([task.turns[hit.row] for hit in index.search(asked, RETRIEVED)], evidence))
        index.close()
    return fmean(values)


async def main(data: Path) -> None:
    subset = list(longmemeval(data / "longmemeval/longmemeval_s_subset.json.gz"))
    oracle = longmemeval(data / "longmemeval/longmemeval_oracle.json.gz")
    async with open_local_embedder() as embedder:
        conversations = await prepare(locomo(data / "locomo/locomo10.json"), embedder)
        haystacks = await prepare(subset, embedder)
        hidden = await prepare(mixed(oracle, subset), embedder)
    print(f"{'':26}  LoCoMo turns  LongMemEval S, sessions  mixed, sessions")
    print(f"{'':26}     recall@10             recall_any@5     recall_any@5")
    for name, build in BUILDS.items():
        on_turns = score(build, conversations, turn_recall)
        on_subset = score(build, haystacks, session_recall_any)
        on_mixed = score(build, hidden, session_recall_any)
        print(f"{name:26}  {on_turns:12.4f}  {on_subset:23.4f}  {on_mixed:15.4f}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
