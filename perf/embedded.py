"""Histories indexed and searched in this process, without a network: by bare scripts, and by the bench suite.

The bare scripts keep nothing: no journal, no evidence, no figures. Each history is indexed turn by turn and searched
once. Histories come from memory, or from a JSON file, whose loading then counts.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memorybench.core.conversation import Haystack, Session, Turn
from memorybench.core.questions import EvidenceLevel, Question
from memorybench.datasets.dates import read_date
from memorybench.engine.run import perform
from memorybench.journal.rows import Run
from memorybench.journal.run_opening import open_run
from memorybench.suites.bench.baselines import Candidate
from memorybench.suites.bench.plan import Bench, BenchPlan
from memorybench.suites.search_limits import SearchLimits
from memorybench.wiring.live import LiveWiring
from perf.histories import history
from perf.large_file import evaluate_file, generated_file
from perf.measuring import Line, Setup, Usage, at_most, memory_peak, usage_measured

LIMIT = 50
_WORD = re.compile(r"\w+")


def measure(setup: Setup) -> Iterator[Line]:
    """Embedding takes 20 times as long as indexing words, so hybrid gets a tenth of the histories."""
    file = str(generated_file(setup))
    counts = {"bm25": setup.histories, "hybrid": -(-setup.histories // 10)}
    for provider, count in counts.items():
        script = "FTS5" if provider == "bm25" else "FTS5 and wordllama"
        bare, ours = _best(setup, bare_in_memory, ours_in_memory, count, provider)
        yield at_most(f"{count:,} histories, {provider} / bare {script}: wall", ours.wall / bare.wall, 2.0)
        yield Line("  CPU", ours.cpu / bare.cpu)
        yield Line("  wall per history", 1000 * ours.wall / count, "ms")
        yield Line("  wall per history of the bare script", 1000 * bare.wall / count, "ms")
        yield at_most("  memory beside the histories", ours.megabytes, 350, "MB")
        bare, ours = _best(setup, bare_of_file, eval_of_file, file, count, provider)
        yield at_most(f"  `eval` of a JSON file / json.load and {script}: wall", ours.wall / bare.wall, 2.0)
        yield Line("    CPU", ours.cpu / bare.cpu)
        yield at_most("    memory", ours.megabytes, 350, "MB")


def _best(
    setup: Setup, bare: Callable[..., Usage], ours: Callable[..., Usage], *arguments: int | str
) -> tuple[Usage, Usage]:
    """Run both in turn and return the usage of the shortest round of each: other programs only make them longer."""
    rounds = [
        [setup.run(way, f"{way.__name__}-{arguments[-1]}{n}", *arguments) for way in (bare, ours)]
        for n in range(setup.rounds)
    ]
    best_bare, best_ours = (min(usages, key=lambda usage: usage.wall) for usages in zip(*rounds, strict=True))
    return best_bare, best_ours


def bare_in_memory(folder: Path, histories: int, provider: str) -> Usage:
    items = [history(n) for n in range(histories)]
    with usage_measured() as usage:
        _SCRIPTS[provider](items)
    return usage


def bare_of_file(folder: Path, file: str, histories: int, provider: str) -> Usage:
    with usage_measured() as usage:
        with open(file, encoding="utf-8") as text:
            items = json.load(text)
        _SCRIPTS[provider](items[:histories])
    return usage


def eval_of_file(folder: Path, file: str, histories: int, provider: str) -> Usage:
    return evaluate_file(folder, file, provider, f"cache-{provider}", "--limit", str(histories))


def search_words(items: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """FTS5 alone: the ids of the sessions of the best turns."""
    found = []
    for item in items:
        with closing(_table(item)) as db:
            found.append(list(dict.fromkeys(session for session, _ in _best_turns(db, item["question"]))))
    return found


def search_words_and_vectors(items: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """FTS5 and the most similar turn of each session, merged by reciprocal rank."""
    import numpy as np
    import wordllama

    package = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
    model.tokenizer.no_padding()  # with padding, each text takes as long as the longest of its batch

    def embed(texts: list[str]) -> Any:
        tokens = model.tokenizer.encode_batch(texts, add_special_tokens=False)
        vectors = np.array([model.embedding[text.ids].mean(axis=0) for text in tokens])
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    found = []
    for item in items:
        sessions = item["haystack_sessions"]
        similar = embed([turn["content"] for turns in sessions for turn in turns]) @ embed([item["question"]])[0]
        starts = np.cumsum([0, *map(len, sessions[:-1])])
        by_vectors = np.argsort(-np.maximum.reduceat(similar, starts), kind="stable")
        with closing(_table(item)) as db:
            by_words = list(dict.fromkeys(position for _, position in _best_turns(db, item["question"])))
        scores: dict[int, float] = {}
        for ranking in (by_words, by_vectors.tolist()):
            for rank, position in enumerate(ranking, 1):
                scores[position] = scores.get(position, 0.0) + 1 / (60 + rank)
        best = sorted(scores, key=lambda position: -scores[position])
        found.append([item["haystack_session_ids"][position] for position in best])
    return found


_SCRIPTS = {"bm25": search_words, "hybrid": search_words_and_vectors}


def _table(item: Mapping[str, Any]) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE VIRTUAL TABLE turns USING fts5(content, session UNINDEXED, position UNINDEXED, tokenize=porter)")
    ids = item["haystack_session_ids"]
    db.execute("BEGIN")
    db.executemany(
        "INSERT INTO turns VALUES (?, ?, ?)",
        (
            (turn["content"], ids[position], position)
            for position, turns in enumerate(item["haystack_sessions"])
            for turn in turns
        ),
    )
    db.execute("COMMIT")
    return db


def _best_turns(db: sqlite3.Connection, question: str) -> list[tuple[str, int]]:
    words = " OR ".join(f'"{word}"' for word in _WORD.findall(question))
    select = "SELECT session, position FROM turns WHERE turns MATCH ? ORDER BY rank LIMIT ?"
    return db.execute(select, (words, LIMIT)).fetchall()


@dataclass(frozen=True)
class GeneratedDataset:
    haystacks: Mapping[str, Haystack]
    questions: Sequence[Question]
    name: str = "generated"
    fingerprint: str = "generated"
    evidence: EvidenceLevel = "session"

    def haystack(self, id: str) -> Haystack:
        return self.haystacks[id]


def dataset(histories: int) -> GeneratedDataset:
    haystacks, questions = {}, []
    for n in range(histories):
        item = history(n)
        haystacks[f"h{n}"] = _haystack(f"h{n}", item)
        (answering,) = item["answer_session_ids"]
        gold = f"s{1 + item['haystack_session_ids'].index(answering)}"
        questions.append(
            Question(
                id=item["question_id"],
                labels={"question_type": item["question_type"]},
                haystack=f"h{n}",
                question=item["question"],
                answers=(item["answer"],),
                gold_sessions=(gold,),
            )
        )
    return GeneratedDataset(haystacks, questions)


def _haystack(id: str, item: Mapping[str, Any]) -> Haystack:
    sessions = []
    for number, (turns, date) in enumerate(zip(item["haystack_sessions"], item["haystack_dates"], strict=True), 1):
        spoken = tuple(Turn(turn["role"], turn["content"], id=f"s{number}:{n}") for n, turn in enumerate(turns, 1))
        sessions.append(Session(f"s{number}", spoken, read_date(date, lambda: id)))
    return Haystack(id, tuple(sessions), fingerprint=id)


def ours_in_memory(folder: Path, histories: int, provider: str) -> Usage:
    data = dataset(histories)
    held = memory_peak()
    with usage_measured() as usage:
        asyncio.run(_run_suite(folder, data, provider))
    usage.megabytes -= held
    return usage


async def _run_suite(folder: Path, data: GeneratedDataset, provider: str) -> None:
    run = Run(id="perf", suite="bench", spec={}, planned=len(data.questions))
    bench = Bench(data, data.questions, limits=SearchLimits(depth=LIMIT))
    async with AsyncExitStack() as stack:
        run_writer = stack.enter_context(open_run(folder, run))
        opened = await LiveWiring().open_providers(stack, folder / "stores", run_id=run.id).open(provider)
        subject = opened.provider.subject
        plan = BenchPlan(run.id, [bench], [Candidate(subject, opened.provider)], limits={subject.key: opened.limits})
        ending = await perform(plan.plan(), run_writer)
        assert ending.status == "complete"
        run_writer.end("complete")
