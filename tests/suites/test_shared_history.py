"""A benchmark of PersonaMem's shape: questions in a CSV file about beginnings of two long histories in another."""

from __future__ import annotations

import asyncio
import csv
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

import memorybench
from memorybench.core.contracts import Receipt, Scope
from memorybench.core.conversation import Memory, Session
from memorybench.core.trials import Subject
from memorybench.datasets.config_reading import read_benchmark
from memorybench.datasets.locating import source_of
from memorybench.datasets.mapped import MappedDataset, open_mapped
from memorybench.engine.run import Ending, perform
from memorybench.files.yaml_file import load_yaml
from memorybench.journal.rows import Run
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.suites.bench.baselines import Candidate
from memorybench.suites.bench.plan import Bench, BenchPlan
from tests.cli.command import Command
from tests.engine.workload import in_child

QUESTIONS, MESSAGES = 270, 60
CONFIG = """name: persona
data:
  type: local
  path: ./data
  files: [questions.csv]
  join:
    history: {files: [contexts.jsonl], items: "$.*", key: "@key", by: shared_context_id}
schema:
  itemId: question_id
  question: user_question_or_message
  answer: correct_answer
  choices: all_options
  parse: {all_options: python}
  cluster: persona_id
  metadata: {questionType: question_type, topic: topic}
  context:
    field: history
    prefix: end_index_in_shared_context
    itemSchema: {role: role, content: content}
evaluation: {method: exact-match}
"""


COLUMNS = (
    "persona_id",
    "question_id",
    "question_type",
    "topic",
    "user_question_or_message",
    "correct_answer",
    "all_options",
    "shared_context_id",
    "end_index_in_shared_context",
)


def ends(n: int) -> int:
    return 4 + (n * 7) % (MESSAGES - 3)


def write_persona(folder: Path) -> Path:
    """Write the config and the data; return the config."""
    (folder / "data").mkdir(parents=True)
    with (folder / "data/contexts.jsonl").open("w") as file:
        for name in ("one", "two"):
            messages = [{"role": "user", "content": f"{name} message {n} kiwi"} for n in range(MESSAGES)]
            file.write(json.dumps({name: messages}) + "\n")
    with (folder / "data/questions.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for n in range(QUESTIONS):
            options = str(["(a) kiwi's", '(b) say "plum"', "(c) fig", "(d) pear"])
            name = ("one", "two")[n % 2]
            rows.writerow([name, f"q{n}", "recall", "fruit", f"Which kiwi {n}?", "(b)", options, name, ends(n)])
    config = folder / "persona.yaml"
    config.write_text(CONFIG)
    return config


def opened(config: Path) -> MappedDataset:
    benchmark = read_benchmark(load_yaml(config))
    return open_mapped(benchmark, source_of(benchmark, beside=config.parent, cache=config.parent), lambda: "sum")


class OnDisk:
    """Keeps turns in a file per scope, and writes down each call."""

    store_id = "on disk"

    def __init__(self, folder: Path, dies_at: int | None = None) -> None:
        self.subject = Subject(role="provider", name="on-disk")
        self._folder, self._dies_at = folder, dies_at
        folder.mkdir(parents=True, exist_ok=True)

    def calls(self) -> list[list[str]]:
        file = self._folder / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def _note(self, *call: object) -> None:
        with (self._folder / "calls.jsonl").open("a") as file:
            file.write(json.dumps(call) + "\n")

    def _sessions(self, scope: Scope) -> dict[str, list[str]]:
        """The turns of each session by its id: a session whose add is repeated after a kill is stored once."""
        file = self._folder / f"{scope.name}.json"
        return json.loads(file.read_text()) if file.exists() else {}

    async def add(self, scope: Scope, session: Session) -> Receipt:
        sessions = {**self._sessions(scope), session.id: [turn.content for turn in session.turns]}
        (self._folder / f"{scope.name}.json").write_text(json.dumps(sessions))
        self._note("add", scope.haystack, len(session.turns))
        return Receipt()

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        pass

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        await asyncio.sleep(0)
        if self._dies_at is not None and len([call for call in self.calls() if call[0] == "search"]) >= self._dies_at:
            os.kill(os.getpid(), 9)
        self._note("search", query, sum(map(len, self._sessions(scope).values())))
        return [Memory(id="m", content="kiwi", sources=("s1",))]

    async def clear(self, scope: Scope) -> None:
        (self._folder / f"{scope.name}.json").unlink(missing_ok=True)
        self._note("clear", scope.haystack)


def run(results: Path, dataset: MappedDataset, provider: OnDisk) -> Ending:
    spec = Run(id="r", suite="bench", spec={"questions": {"persona": QUESTIONS}}, planned=QUESTIONS)
    again = (results / "results.db").exists()
    with reopen_run(results, "r", fingerprints={}) if again else open_run(results, spec) as writer:
        bench = Bench(dataset, dataset.questions)
        plan = BenchPlan("r", [bench], [Candidate(provider.subject, provider)], scored=writer.scored()).plan()
        ending = asyncio.run(perform(plan, writer, concurrency=8))
        writer.end(ending.status)
    return ending


def searched(provider: OnDisk) -> dict[str, int]:
    """The number of turns in the memory at the last search for each question."""
    return {call[1]: int(call[2]) for call in provider.calls() if call[0] == "search"}


EXPECTED = {f"Which kiwi {n}?": ends(n) for n in range(QUESTIONS)}


@pytest.mark.slow
def test_the_shape_is_read(tmp_path: Path) -> None:
    dataset = opened(write_persona(tmp_path))
    first = dataset.questions[0]
    assert (len(dataset.questions), {question.group for question in dataset.questions}) == (QUESTIONS, {"one", "two"})
    assert [choice.text for choice in first.choices] == ["kiwi's", 'say "plum"', "fig", "pear"]
    assert 'say "plum"' in first.answers
    for question in dataset.questions[:20]:
        turns = [turn.content for s in dataset.haystack(question.haystack).sessions for turn in s.turns]
        assert turns == [f"{question.shared_history} message {n} kiwi" for n in range(question.asked_after)]


@pytest.mark.slow
def test_each_history_is_ingested_once_and_each_question_asked_in_time(tmp_path: Path) -> None:
    dataset, provider = opened(write_persona(tmp_path)), OnDisk(tmp_path / "store")
    assert run(tmp_path / "results", dataset, provider).status == "complete"
    assert searched(provider) == EXPECTED
    added: Counter[str] = Counter()
    for call in provider.calls():
        if call[0] == "add":
            added[call[1]] += int(call[2])
    longest = {
        name: max(ends(n) for n in range(QUESTIONS) if n % 2 == place) for place, name in enumerate(("one", "two"))
    }
    assert added == longest
    assert sorted(call[1] for call in provider.calls() if call[0] == "clear") == ["one", "two"]


@pytest.mark.slow
@pytest.mark.parametrize("dies_at", [0, 5, 131, 269])
def test_a_resumed_run_shows_no_question_what_comes_after_it(tmp_path: Path, dies_at: int) -> None:
    dataset, store = opened(write_persona(tmp_path)), tmp_path / "store"
    assert in_child(lambda: run(tmp_path / "results", dataset, OnDisk(store, dies_at))) is None
    provider = OnDisk(store)
    assert run(tmp_path / "results", dataset, provider).status == "complete"
    assert searched(provider) == EXPECTED


@pytest.mark.slow
def test_eval_answers_from_one_ingest_per_history(command: Command) -> None:
    config = write_persona(command.folder)
    place = command.folder / "benchmarks/configs"
    place.mkdir(parents=True)
    config.rename(place / "persona.yaml")
    done = command("eval", "--benchmarks", "persona", "--providers", "bm25", "--run-id", "r")
    assert done.code == 0, done.err
    outcomes = list(memorybench.load_run("r").outcomes())
    assert {outcome.status for outcome in outcomes} == {"scored"}
    assert len(outcomes) == QUESTIONS
    assert {outcome.trial.cluster for outcome in outcomes} == {"one", "two"}


def test_questions_of_several_items_about_one_history_are_asked_in_time(tmp_path: Path) -> None:
    """The history was divided by the questions of its first item: turns that others need were not added."""
    words = ("ash", "birch", "cedar", "elm")
    (tmp_path / "past.json").write_text(json.dumps({"k": [{"text": f"{word} grows"} for word in words]}))
    ends_of = {"a": [2], "b": [1, 3, 4]}
    items = [
        {"id": id, "past": "k", "asked": [{"q": f"{id} {end}?", "a": words[end - 1], "end": end} for end in ends]}
        for id, ends in ends_of.items()
    ]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (tmp_path / "trees.yaml").write_text(
        """
name: trees
data:
  type: local
  path: .
  files: [items.jsonl]
  join: {turns: {files: [past.json], items: $.*, key: "@key", by: past}}
schema:
  itemId: id
  questions: {field: asked, questionField: q, answerField: a, prefixField: end}
  context: {field: turns, itemSchema: {text: text}}
evaluation: {method: exact-match}
"""
    )
    config = read_benchmark(load_yaml(tmp_path / "trees.yaml"))
    dataset = open_mapped(config, source_of(config, beside=tmp_path, cache=tmp_path), lambda: "sum")
    provider = OnDisk(tmp_path / "store")
    assert run(tmp_path / "results", dataset, provider).status == "complete"
    assert searched(provider) == {f"{id} {end}?": end for id, ends in ends_of.items() for end in ends}
