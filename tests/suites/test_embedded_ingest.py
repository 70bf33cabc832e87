"""Memories that live in the process of a run: one recorded add per history, and a resumed run fills them again."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from memorybench.core.contracts import Receipt, Scope
from memorybench.core.conversation import Haystack, Memory, Session, Turn
from memorybench.core.questions import Question
from memorybench.core.records import digest
from memorybench.engine.run import perform
from memorybench.journal.rows import Run
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.journal.run_reader import RunReader
from memorybench.providers.bm25 import Bm25
from memorybench.suites.bench.baselines import Candidate
from memorybench.suites.bench.plan import Bench, BenchPlan
from memorybench.suites.ingest import DEFAULT_INGEST_OPTIONS, IngestOptions
from tests.engine.workload import Ledger, in_child, killer, report

PEOPLE = ("ann", "bob", "cyd")
RUN = Run(id="r", suite="bench", spec={"questions": {"pets": 6}, "providers": ["bm25"]}, planned=6)


class Pets:
    """Three people with four sessions each."""

    name = "pets"
    fingerprint = "pets"
    evidence = "session"
    questions = tuple(
        Question(id=f"{who}-{pet}", haystack=who, question=f"Which {pet}?", answers=(who,), gold_sessions=(f"s{n}",))
        for who in PEOPLE
        for n, pet in enumerate(("dog", "cat"))
    )

    def __init__(self, has_fingerprints: bool = True) -> None:
        self._has_fingerprints = has_fingerprints

    def haystack(self, id: str) -> Haystack:
        texts = (f"{id} owns a dog.", f"{id} likes her cat.", "The weather is fine.", "And tomorrow?")
        turns = (Turn(role="user", content=text) for text in texts)
        sessions = tuple(Session(id=f"s{n}", turns=(turn,)) for n, turn in enumerate(turns))
        return Haystack(id, sessions, digest(["pets", id]) if self._has_fingerprints else None)


class WrittenBm25(Bm25):
    """Writes each call to a ledger, which tests read after the process was killed."""

    ledger: Ledger

    async def add_batch(self, scope: Scope, sessions: Sequence[Session]) -> Receipt:
        self.ledger.write(f"add {scope.haystack} {len(sessions)}")
        return await super().add_batch(scope, sessions)

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        self.ledger.write(f"search {scope.haystack} {query}")
        return await super().search(scope, query, limit)


def run(
    folder: Path,
    *,
    options: IngestOptions = DEFAULT_INGEST_OPTIONS,
    has_fingerprints: bool = True,
    fault: Callable[[], None] | None = None,
    concurrency: int = 2,
    clears_after_each_question: bool = False,
) -> list[str]:
    """Start the run, or resume it; return the calls of this process."""
    ledger = Ledger(folder.with_suffix(".ledger"))
    before = len(ledger.read())
    dataset = Pets(has_fingerprints)

    async def work() -> None:
        async with WrittenBm25.open_file(None) as provider:
            provider.ledger = ledger
            bench = Bench(dataset, dataset.questions, ingest_options=options)
            candidate = Candidate(provider.subject, provider)
            scored = run_writer.scored()
            if clears_after_each_question:
                scored = {job.trial.key for job in BenchPlan("r", [bench], [candidate]).plan().jobs}
            plan = BenchPlan("r", [bench], [candidate], scored=scored).plan()
            ending = await perform(plan, run_writer, concurrency=concurrency)
            run_writer.end(ending.status)

    is_new = not (folder / "results.db").exists()
    if not is_new:
        with RunReader.open(folder) as run_reader:
            is_new = not run_reader.has("r")
    opened = open_run(folder, RUN, fault=fault) if is_new else reopen_run(folder, "r", fingerprints={}, fault=fault)
    with opened as run_writer:
        asyncio.run(work())
    return ledger.read()[before:]


def recorded(folder: Path, name: str) -> list[dict[str, object]]:
    if not (folder / "results.db").exists():
        return []
    with RunReader.open(folder) as run_reader:
        rows = run_reader.connection.execute("SELECT inputs FROM steps WHERE name = ?", (name,)).fetchall()
    return [json.loads(inputs) for (inputs,) in rows]


def test_a_history_is_added_by_one_step_that_names_its_fingerprint(tmp_path: Path) -> None:
    calls = run(tmp_path / "results")
    assert sorted(call for call in calls if call.startswith("add")) == [f"add {who} 4" for who in PEOPLE]
    names = {digest(["pets", who]) for who in PEOPLE}
    assert {inputs["haystack"] for inputs in recorded(tmp_path / "results", "add")} == names
    assert {inputs["haystack"] for inputs in recorded(tmp_path / "results", "search")} == names
    assert not recorded(tmp_path / "results", "clear"), "memory needs no record of its end"


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        (IngestOptions(batch_size=3), {"3", "1"}),
        (IngestOptions(by_turn=True), {"4"}),
        (IngestOptions(by_turn=True, batch_size=2), {"2"}),
    ],
)
def test_ingest_options_change_the_calls_and_no_score(tmp_path: Path, options: IngestOptions, sizes: set[str]) -> None:
    run(tmp_path / "plain")
    calls = run(tmp_path / "changed", options=options)
    assert {call.split()[-1] for call in calls if call.startswith("add")} == sizes
    outcomes = [json.loads(report(tmp_path / name, "r"))["outcomes"] for name in ("plain", "changed")]
    plain, changed = ([one["scores"] for one in outcome] for outcome in outcomes)
    assert changed == plain


def test_a_memory_that_was_cleared_is_filled_again_in_the_same_process(tmp_path: Path) -> None:
    run(tmp_path / "plain")
    calls = run(tmp_path / "cleared", concurrency=1, clears_after_each_question=True)
    assert len([call for call in calls if call.startswith("add")]) == 6
    assert report(tmp_path / "cleared", "r") == report(tmp_path / "plain", "r")


@pytest.mark.slow
def test_a_run_killed_at_any_commit_fills_again_and_repeats_no_search(tmp_path: Path) -> None:
    run(tmp_path / "whole")
    expected = report(tmp_path / "whole", "r")
    for place in range(1, 100):
        folder = tmp_path / str(place)
        ended = in_child(lambda at=place, folder=folder: run(folder, fault=killer(at)))
        if ended == 0:
            break
        assert ended is None, f"the child failed instead of being killed at {place}"
        searched = [str(inputs["query"]) + str(inputs["haystack"]) for inputs in recorded(folder, "search")]
        resumed = run(folder)
        assert report(folder, "r") == expected
        again = [call.split(" ", 2) for call in resumed if call.startswith("search")]
        assert not {query + digest(["pets", who]) for _, who, query in again} & set(searched)
        added = {call.split()[1] for call in resumed if call.startswith("add")}
        assert added == {who for _, who, _ in again}, "only histories with a search to do are filled again"
    assert place > 20


def test_searches_that_name_the_content_of_a_history_are_not_repeated(tmp_path: Path) -> None:
    """Runs of earlier versions have no fingerprints in their steps."""
    folder = tmp_path / "results"
    assert in_child(lambda: run(folder, has_fingerprints=False, fault=killer(24), concurrency=1)) is None
    searched = len(recorded(folder, "search"))
    assert 0 < searched < 6
    resumed = run(folder)
    assert len([call for call in resumed if call.startswith("search")]) == 6 - searched
    assert json.loads(report(folder, "r"))["counts"]["scored"] == 6
