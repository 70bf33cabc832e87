"""The bench suite with memories that misbehave."""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from memorybench.core.contracts import Receipt, Scope
from memorybench.core.conversation import Haystack, Memory, Session, Turn
from memorybench.core.errors import Denied, ServiceError
from memorybench.core.questions import Question
from memorybench.core.trials import Subject
from memorybench.engine.run import Ending, perform
from memorybench.journal.rows import Run
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.journal.run_reader import RunReader
from memorybench.suites.bench.baselines import Candidate
from memorybench.suites.bench.measures import run_metrics
from memorybench.suites.bench.plan import Bench, BenchPlan
from memorybench.suites.summary import measure
from tests.engine.workload import in_child


class Tea:
    """Two people and their teas."""

    name = "tea"
    fingerprint = "tea"
    evidence = "session"
    questions = tuple(
        Question(id=f"{who}-{n}", haystack=who, question=f"{n}?", answers=("tea",), gold_sessions=(f"{who}-s",))
        for who in ("ann", "bob")
        for n in ("what", "when", "why")
    )

    def haystack(self, id: str) -> Haystack:
        return Haystack(id=id, sessions=(Session(id=f"{id}-s", turns=(Turn(role="user", content=f"{id} tea"),)),))


class Shelfful:
    """Keeps sessions in files, so that it outlives the process. Subclasses misbehave."""

    store_id = "on disk"

    def __init__(self, folder: Path) -> None:
        self.subject = Subject(role="provider", name="shelfful")
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    async def add(self, scope: Scope, session: Session) -> Receipt:
        (self.folder / f"{scope.name}.json").write_text(json.dumps([session.id]))
        return Receipt()

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        pass

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        file = self.folder / f"{scope.name}.json"
        ids = json.loads(file.read_text()) if file.exists() else []
        return [Memory(id=id, content="tea", sources=(id,)) for id in ids]

    async def clear(self, scope: Scope) -> None:
        (self.folder / f"{scope.name}.json").unlink(missing_ok=True)


RUN = Run(id="r", suite="bench", spec={"questions": {"tea": 6}, "providers": ["shelfful"]}, planned=6)


def run(folder: Path, provider: Shelfful) -> Ending:
    opened = reopen_run(folder, "r", fingerprints={}) if (folder / "results.db").exists() else open_run(folder, RUN)
    with opened as run_writer:
        candidate = Candidate(provider.subject, provider)
        plan = BenchPlan("r", [Bench(Tea(), Tea.questions)], [candidate], scored=run_writer.scored()).plan()
        ending = asyncio.run(perform(plan, run_writer, concurrency=1))
        run_writer.end(ending.status)
    return ending


def recall(folder: Path) -> float | None:
    with RunReader.open(folder) as run_reader:
        (result,) = measure(
            run_reader.outcomes("r"), run_metrics({"answered": False, "evidence": {"a": "session"}}), {}
        )
    found = result.measure("recall@5")
    assert found is not None
    return found.value


def counts(folder: Path) -> dict[str, int]:
    with RunReader.open(folder) as run_reader:
        return {status: n for status, n in run_reader.counts("r").items() if n}


def test_a_memory_emptied_just_before_a_kill_is_filled_again(tmp_path: Path) -> None:
    """A question that failed is asked again on resume: the store was cleared, whatever the journal had time to say."""

    class DiesAfterClearing(Shelfful):
        async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
            if query == "when?":
                raise ServiceError("not today")
            return await super().search(scope, query, limit)

        async def clear(self, scope: Scope) -> None:
            await super().clear(scope)
            os.kill(os.getpid(), 9)

    assert in_child(lambda: run(tmp_path / "results", DiesAfterClearing(tmp_path / "store"))) is None
    assert run(tmp_path / "results", Shelfful(tmp_path / "store")).status == "complete"
    assert counts(tmp_path / "results") == {"scored": 6}
    assert recall(tmp_path / "results") == 1.0


@pytest.mark.parametrize("error", [RuntimeError("the shelf fell"), ServiceError("500"), Denied("403")])
def test_a_failed_clear_is_reported_and_loses_no_result(tmp_path: Path, error: Exception) -> None:
    class Sticky(Shelfful):
        async def clear(self, scope: Scope) -> None:
            raise error

    assert run(tmp_path / "results", Sticky(tmp_path / "store")).status == "complete"
    assert counts(tmp_path / "results") == {"scored": 6}
    with RunReader.open(tmp_path / "results") as run_reader:
        assert [kind for kind, _ in run_reader.notes("r")] == ["leaked scope", "leaked scope"]


def test_a_cancelled_call_inside_a_provider_fails_its_trial_and_no_other(tmp_path: Path) -> None:
    class Cancelling(Shelfful):
        async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
            if query == "why?":
                raise asyncio.CancelledError
            return await super().search(scope, query, limit)

    assert run(tmp_path / "results", Cancelling(tmp_path / "store")).status == "complete"
    assert counts(tmp_path / "results") == {"scored": 4, "failed": 2}


def test_a_memory_that_never_names_its_sources_has_no_recall(tmp_path: Path) -> None:
    """Not 0, also where it finds nothing at times."""

    class Mute(Shelfful):
        async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
            return [] if query == "why?" else [Memory(id="m", content="tea")]

    run(tmp_path / "results", Mute(tmp_path / "store"))
    assert recall(tmp_path / "results") is None


def test_an_empty_result_counts_as_zero_for_a_provider_that_names_sources(tmp_path: Path) -> None:
    class Forgetful(Shelfful):
        async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
            return [] if query == "why?" else await super().search(scope, query, limit)

    run(tmp_path / "results", Forgetful(tmp_path / "store"))
    assert recall(tmp_path / "results") == pytest.approx(2 / 3)


def test_a_memory_that_finds_nothing_has_a_recall_of_zero(tmp_path: Path) -> None:
    """Table, progress and comparison agree: nothing found is 0, not unknown."""

    class Empty(Shelfful):
        async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
            return []

    run(tmp_path / "results", Empty(tmp_path / "store"))
    assert recall(tmp_path / "results") == 0.0


def test_a_failed_trial_still_shows_its_question(tmp_path: Path) -> None:
    class Dead(Shelfful):
        async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
            raise ServiceError("gone")

    run(tmp_path / "results", Dead(tmp_path / "store"))
    with RunReader.open(tmp_path / "results") as run_reader:
        assert {outcome.shown.asked for outcome in run_reader.outcomes("r")} == {"what?", "when?", "why?"}


class Diary(Tea):
    """One history of three sessions."""

    questions = (Question(id="q", haystack="ann", question="what?", gold_sessions=("s0",)),)

    def haystack(self, id: str) -> Haystack:
        return Haystack(
            id=id, sessions=tuple(Session(id=f"s{n}", turns=(Turn(role="user", content=f"{n}"),)) for n in range(3))
        )


def test_nothing_is_on_its_way_to_a_memory_that_is_being_cleared(tmp_path: Path) -> None:
    """Sessions are added side by side, one fails at once: the others are seen to their end first."""
    happened: list[str] = []

    class Crowded(Shelfful):
        async def add(self, scope: Scope, session: Session) -> Receipt:
            if session.id == "s0":
                raise ServiceError("not this one")
            for _ in range(100):
                await asyncio.sleep(0)
            happened.append(f"added {session.id}")
            return Receipt()

        async def clear(self, scope: Scope) -> None:
            happened.append("cleared")

    provider = Crowded(tmp_path / "store")
    candidate = Candidate(provider.subject, provider, remote=True, unordered=True)
    with open_run(tmp_path / "results", RUN.model_copy(update={"planned": 1})) as run_writer:
        asyncio.run(perform(BenchPlan("r", [Bench(Diary(), Diary.questions)], [candidate]).plan(), run_writer))
    assert counts(tmp_path / "results") == {"failed": 1}
    assert happened == ["added s1", "added s2", "cleared"]
