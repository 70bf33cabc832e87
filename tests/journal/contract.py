"""What every journal must do, whichever database stores it. Subclasses provide the fixture `results`."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any, cast

import pytest

from memorybench.core.errors import BadInput, JournalError, RunConflict
from memorybench.core.spending import Spending
from memorybench.core.trials import Case, Failure, Outcome, Score, Trial
from memorybench.journal.checksums import CHECKSUMS, check_rows
from memorybench.journal.migrations import MIGRATIONS
from memorybench.journal.places import journal_of
from memorybench.journal.rows import Fingerprint, Step
from memorybench.journal.run_changes import change_tags, delete_rows, rename_rows
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.journal.run_reader import RunReader
from memorybench.journal.run_writer import RunWriter
from memorybench.journal.writer import Writer
from tests.engine.sweep import crash_and_resume
from tests.engine.workload import FINGERPRINTS, MODEL, PROVIDER, RUN, Ledger, plan, report, run_once

OTHER = RUN.model_copy(update={"id": "other"})
TEXT = "naïve 🐟 日本 '; DROP TABLE runs; -- 100% ? :run"


def step(key: str = "k", name: str | None = "answer", **values: object) -> Step:
    spent = Spending(calls=1, input_tokens=7, output_tokens=2, cost=0.1)
    return Step(key, cast("str", name), "reader", '{"q":1}', '"yes"', "2026-01-01", 0.25, spent=spent)._replace(
        **values
    )


def outcome(case: str, value: float = 1.0) -> Outcome:
    trial = Trial(suite="bench", case_id=case, subject=PROVIDER, benchmark="mini")
    return Outcome(trial=trial, status="scored", scores=(Score(name="correct", value=value),), steps=("k",))


def execute(results: Path, sql: str, *values: object) -> None:
    """Change rows without memorybench."""
    with closing(journal_of(results).open_for_writing()) as db, db.transaction():
        db.execute(sql, values)


@contextmanager
def reading(results: Path) -> Iterator[RunReader]:
    with RunReader.open(results) as run_reader:
        yield run_reader


def join_run(results: Path, **values: Any) -> AbstractContextManager[RunWriter]:
    return reopen_run(results, RUN.id, fingerprints=FINGERPRINTS, is_joining=True, **values)


class JournalContract:
    def test_a_run_has_the_same_figures_as_in_a_results_file(self, results: Path, tmp_path: Path) -> None:
        run_once(results, plan(Ledger(tmp_path / "ledger")))
        run_once(tmp_path / "file", plan(Ledger(tmp_path / "file.ledger")))
        assert report(results) == report(tmp_path / "file")
        with reading(results) as here, reading(tmp_path / "file") as there:
            assert here.run(RUN.id).status == "complete"
            assert here.spent(RUN.id) == there.spent(RUN.id)
            assert here.costs(RUN.id)[1:] == there.costs(RUN.id)[1:]
            assert [trial.spent for trial in here.trials(RUN.id)] == [trial.spent for trial in there.trials(RUN.id)]
            assert here.case_ids(RUN.id) == there.case_ids(RUN.id)
            assert [(one.name, one.steps) for one in here.stages(RUN.id)] == [
                (one.name, one.steps) for one in there.stages(RUN.id)
            ]
        assert check_rows(journal_of(results)) == check_rows(journal_of(tmp_path / "file"))

    @pytest.mark.parametrize("kills", [(1,), (9, 17), (40, 3, 60)])
    def test_a_killed_run_repeats_no_recorded_call(self, results: Path, tmp_path: Path, kills: tuple[int, ...]) -> None:
        run_once(tmp_path / "file", plan(Ledger(tmp_path / "file.ledger")))
        assert crash_and_resume(results, kills, report(tmp_path / "file")), "no kill hit the run"

    def test_a_step_has_one_row_and_is_found_on_resume(self, results: Path) -> None:
        with open_run(results, RUN) as run_writer:
            assert run_writer.result("k") is None
            asyncio.run(run_writer.record_step(step(result='"one"')))
            assert run_writer.result("k") == '"one"'
            with suppress(JournalError):  # journals that several processes write ignore it
                asyncio.run(run_writer.record_step(step(result='"two"')))
            assert run_writer.result("k") == '"one"'
        with reopen_run(results, RUN.id, fingerprints=FINGERPRINTS) as run_writer:
            assert run_writer.result("k") == '"one"'
            assert run_writer.has_earlier_steps

    def test_one_invalid_entry_of_a_commit_fails_alone(self, results: Path) -> None:
        async def write(run_writer: RunWriter) -> list[BaseException | None]:
            steps = [run_writer.record_step(step(*one)) for one in (("a",), ("b",), ("d", None), ("c",))]
            return await asyncio.gather(*steps, return_exceptions=True)

        with open_run(results, RUN) as run_writer:
            ended = asyncio.run(write(run_writer))
            assert [type(one) for one in ended].count(JournalError) == 1
            assert {key for key in "abcd" if run_writer.result(key)} == set("abc")

    def test_steps_of_other_runs_are_reused(self, results: Path) -> None:
        with open_run(results, RUN) as run_writer:
            asyncio.run(run_writer.record_step(step("own")))
            asyncio.run(run_writer.record_step(step("shared", shared=True)))
        with open_run(results, OTHER, reuse=RUN.id) as run_writer:
            assert run_writer.has_shared_steps
            own, shared = run_writer.find_reusable("own", shared=False), run_writer.find_reusable("shared", shared=True)
            assert (own and own.reused_from, shared and shared.reused_from) == (RUN.id, RUN.id)
            assert run_writer.find_reusable("unknown", shared=False) is None

    def test_attempts_count_as_spending_and_open_ones_as_interrupted(self, results: Path) -> None:
        async def attempt(run_writer: RunWriter) -> None:
            failed = await run_writer.record_attempt("k", "answer", "reader")
            spent = Spending(calls=2, cost=0.5)
            await run_writer.record_failure(failed, f"{TEXT}\0", tries=2, uncertain=1, spent=spent)
            done = await run_writer.record_attempt("k", "answer", "reader")
            await run_writer.record_step(step(attempt=done))
            await run_writer.record_attempt("never ended", "answer", "reader")

        with open_run(results, RUN) as run_writer:
            asyncio.run(attempt(run_writer))
        with reopen_run(results, RUN.id, fingerprints=FINGERPRINTS):
            pass
        with reading(results) as run_reader:
            assert run_reader.costs(RUN.id) == (0.6, 0.5, 0)
            assert run_reader.possibly_charged_twice(RUN.id) == 2
            errors = [one.error for one in run_reader.steps_of(RUN.id, outcome("q"))]
            assert errors == [f"{TEXT}\\x00", ""]
        assert check_rows(journal_of(results)).unchecked == 0

    def test_an_attempt_takes_no_negative_time_if_the_clock_is_set_back(
        self, results: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        times = iter(("2026-01-01T12:00:00.000+00:00", "2026-01-01T11:00:00.000+00:00"))

        async def attempt(run_writer: RunWriter) -> None:
            monkeypatch.setattr("memorybench.journal.run_writer.now", lambda: next(times))
            failed = await run_writer.record_attempt("k", "answer", "reader")
            await run_writer.record_failure(failed, "denied", tries=1, uncertain=0, spent=Spending())
            monkeypatch.undo()

        with open_run(results, RUN) as run_writer:
            asyncio.run(attempt(run_writer))
        with reading(results) as run_reader:
            assert [one.seconds for one in run_reader.steps_of(RUN.id, outcome("q"))] == [0.0]

    def test_lost_attempts_cost_as_much_as_the_dearest_of_their_name_and_subject(self, results: Path) -> None:
        async def attempt(run_writer: RunWriter) -> None:
            for cost in (0.1, 0.3):
                done = await run_writer.record_attempt(f"{cost}", "answer", "reader")
                spent = Spending(calls=1, cost=cost)
                await run_writer.record_step(step(f"{cost}", attempt=done, spent=spent))
            dear = await run_writer.record_attempt("dear", "judge", "reader")
            await run_writer.record_step(step("dear", "judge", attempt=dear, spent=Spending(calls=1, cost=7.0)))
            for subject in ("reader", "reader", "new", "scripted/quote"):
                await run_writer.record_attempt("lost", "answer", subject)

        with open_run(results, RUN) as run_writer:
            asyncio.run(attempt(run_writer))
        for _ in range(2):
            with reading(results) as run_reader:
                assert run_reader.costs_of_lost_calls(RUN.id) == (pytest.approx(0.6), 1)
                assert run_reader.costs(RUN.id)[0] == pytest.approx(7.4)
            with join_run(results) as run_writer:
                assert not run_writer.is_shared or run_writer.spending() == (pytest.approx(8.0), 7.0, 1)

    def test_lost_attempts_cost_the_most_that_they_can_until_a_cost_is_known(self, results: Path) -> None:
        async def attempt(run_writer: RunWriter) -> None:
            for cost in (0.2, 0.5, None, 0.3):
                await run_writer.record_attempt("lost", "answer", "reader", cost)
            await run_writer.record_attempt("lost", "judge", "reader", 1.0)
            await run_writer.record_attempt("lost", "answer", "free", 0.0)

        async def complete(run_writer: RunWriter) -> None:
            done = await run_writer.record_attempt("done", "answer", "reader", 0.2)
            await run_writer.record_step(step("done", attempt=done, spent=Spending(calls=1, cost=0.1)))

        with open_run(results, RUN) as run_writer:
            asyncio.run(attempt(run_writer))
        for _ in range(2):
            with reading(results) as run_reader:
                assert run_reader.costs_of_lost_calls(RUN.id) == (pytest.approx(4 * 0.5 + 1.0), 0)
                assert run_reader.notes(RUN.id) == [], "reports do not show it"
            with join_run(results) as run_writer:
                assert not run_writer.is_shared or run_writer.spending() == (pytest.approx(3.0), 0.0, 0)
        with join_run(results) as run_writer:
            asyncio.run(complete(run_writer))
            costs, lost = run_writer.recount_spending()
            assert (costs, lost) == (pytest.approx(0.1), (pytest.approx(4 * 0.1 + 1.0), 0))
            assert not run_writer.is_shared or run_writer.spending()[0] == pytest.approx(3.1)
        assert check_rows(journal_of(results)).unchecked == 0

    def test_a_repeated_outcome_replaces_the_first_and_is_new_to_followers(self, results: Path) -> None:
        with open_run(results, RUN) as run_writer:
            for ordinal, case in enumerate(("b", "a")):
                asyncio.run(run_writer.record_outcome(outcome(case, 0.0), ordinal, Case(id=case)))
            with reading(results) as run_reader:
                newest = run_reader.newest_row(RUN.id)
            asyncio.run(run_writer.record_outcome(outcome("b", 1.0), 0, Case(id="b")))
            assert run_writer.scored() == {outcome(case).trial.key for case in "ab"}
        with reading(results) as run_reader:
            assert [one.trial.case_id for one in run_reader.outcomes(RUN.id)] == ["b", "a"]
            assert run_reader.counts(RUN.id)["scored"] == run_reader.status_counts(RUN.id)["scored"] == 2
            (later,) = run_reader.outcome_rows(RUN.id, newest + 1)
            with closing(sqlite3.connect("", uri=True)) as db:
                run_reader.attach_outcomes(db, "results", RUN.id, later)
                read = db.execute("SELECT case_id, subject FROM results.outcomes WHERE rowid = ?", (later,)).fetchall()
            assert read == [("b", PROVIDER.name)]
            assert run_reader.outcomes_of(RUN.id, [outcome("b").trial.key])[0].scores[0].value == 1.0
            assert [case for _, case, _ in run_reader.cases(RUN.id)] == ["a", "b"]

    def test_only_a_resumed_run_tries_failed_trials_again(self, results: Path) -> None:
        def ended(run_writer: RunWriter) -> set[str]:
            keys = {case: outcome(case).trial.key for case in ("failed", "scored")}
            found = {case for case, key in keys.items() if run_writer.has_ended(key)}
            assert run_writer.ended_trials() == {keys[case] for case in found}
            return found

        failure = Failure(kind="Unavailable", message="no reply")
        failed = Outcome(trial=outcome("failed").trial, status="failed", steps=("k",), failure=failure)
        with open_run(results, RUN) as run_writer:
            asyncio.run(run_writer.record_outcome(failed, 0))
            asyncio.run(run_writer.record_outcome(outcome("scored"), 1))
            assert ended(run_writer) == {"failed", "scored"}
        with join_run(results) as run_writer:
            assert ended(run_writer) == {"failed", "scored"}
            assert run_writer.newly_ended_trials() == {failed.trial.key, outcome("scored").trial.key}
        with reopen_run(results, RUN.id, fingerprints=FINGERPRINTS) as run_writer:
            assert ended(run_writer) == {"scored"}
            asyncio.run(run_writer.record_outcome(failed, 0))
            assert ended(run_writer) == {"failed", "scored"}
        with join_run(results) as run_writer:
            assert ended(run_writer) == {"failed", "scored"}, "a failure of the resumed run counts"
        with reopen_run(results, RUN.id, fingerprints=FINGERPRINTS):
            pass
        with join_run(results) as run_writer:
            assert ended(run_writer) == {"scored"}, "the resumed run ended before it tried again"
        with reading(results) as run_reader:
            assert run_reader.notes(RUN.id) == [], "reports do not show it"
        assert check_rows(journal_of(results)).unchecked == 0

    def test_a_process_that_joins_changes_neither_the_spec_nor_a_complete_run(self, results: Path) -> None:
        with open_run(results, RUN) as run_writer:
            run_writer.end("complete", "2026-01-01T00:00:00.000+00:00")
        with join_run(results, spec_changes={"budget": 2.5}) as run_writer:
            run_writer.end("complete")
        with reading(results) as run_reader:
            run = run_reader.run(RUN.id)
            assert (run.status, run.finished) == ("complete", "2026-01-01T00:00:00.000+00:00"), "as its report says"
            assert run_reader.run(RUN.id).spec == RUN.spec

    def test_notes_keep_their_order_and_any_text(self, results: Path) -> None:
        texts = ["second", "first", f"{TEXT} \0 \ud800", "second"]
        with open_run(results, RUN) as run_writer:
            for text in texts:
                asyncio.run(run_writer.note("kind", text))
        with reading(results) as run_reader:
            assert run_reader.notes(RUN.id) == [
                ("kind", "second"),
                ("kind", "first"),
                ("kind", f"{TEXT} \\x00 \\ud800"),
            ]

    def test_a_run_id_is_used_once_and_an_unknown_one_is_named(self, results: Path) -> None:
        with open_run(results, RUN):
            pass
        with pytest.raises(RunConflict), open_run(results, RUN):
            pass
        with reading(results) as run_reader, pytest.raises(BadInput) as error:
            run_reader.run("sweeep")
        assert '"sweep"' in error.value.remedy
        assert error.value.where == journal_of(results).name

    def test_a_resumed_run_saves_its_budget_and_refuses_changed_data(self, results: Path) -> None:
        with open_run(results, RUN):
            pass
        with reopen_run(results, RUN.id, fingerprints=FINGERPRINTS, spec_changes={"budget": 2.5}):
            pass
        with reading(results) as run_reader:
            assert run_reader.run(RUN.id).spec == {**RUN.spec, "budget": 2.5}
        changed = {**FINGERPRINTS, "dataset": Fingerprint.of("other")}
        with pytest.raises(RunConflict), reopen_run(results, RUN.id, fingerprints=changed):
            pass
        assert check_rows(journal_of(results)).runs == 1

    def test_a_run_that_is_written_is_locked(self, results: Path) -> None:
        with open_run(results, RUN):
            assert journal_of(results).is_locked(RUN.id)
            with pytest.raises(RunConflict):
                journal_of(results).lock(RUN.id)
            with open_run(results, OTHER):
                pass
        assert not journal_of(results).is_locked(RUN.id)
        with reopen_run(results, RUN.id, fingerprints=FINGERPRINTS):
            pass

    def test_a_refused_run_leaves_no_row_and_no_lock(self, results: Path) -> None:
        with open_run(results, RUN, begin=False):
            pass
        assert not journal_of(results).is_locked(RUN.id)
        assert not (results / RUN.id).exists()
        with open_run(results, RUN) as run_writer:
            assert run_writer.run.status == "running"

    def test_runs_are_tagged_renamed_and_deleted(self, results: Path) -> None:
        for run in (RUN, OTHER.model_copy(update={"spec": {"reuse": RUN.id, "baseline": {"run": RUN.id}}})):
            with open_run(results, run, reuse=None if run is RUN else RUN.id) as run_writer:
                found = run_writer.find_reusable("k", shared=False)
                asyncio.run(run_writer.record_step(found or step()))
                asyncio.run(run_writer.record_outcome(outcome("q"), 0, Case(id="q")))
                asyncio.run(run_writer.note("kind", "text"))
                run_writer.end("partial")
        change_tags(results, RUN.id, ["b", "B", "a", "a"], [])
        change_tags(results, RUN.id, [], ["a"])
        with reading(results) as run_reader:
            assert run_reader.tags() == {RUN.id: ("B", "b")}, "in the order of their characters' codes"
        rename_rows(results, RUN.id, "new")
        with reading(results) as run_reader:
            assert [run.id for run in run_reader.runs()] == ["new", "other"]
            assert run_reader.run("other").spec == {"reuse": "new", "baseline": {"run": "new"}}
            assert run_reader.steps_of("other", outcome("q"))[0].reused_from == "new"
            assert run_reader.notes("new") == [("kind", "text")]
        assert check_rows(journal_of(results)).unchecked == 0
        delete_rows(results, "new")
        journal_of(results).free_space()
        with reading(results) as run_reader:
            assert [run.id for run in run_reader.runs()] == ["other"]
            assert run_reader.tags() == {}

    @pytest.mark.parametrize("table", CHECKSUMS)
    def test_a_changed_row_is_detected(self, results: Path, table: str) -> None:
        run_once(results, plan(Ledger(results.with_suffix(".ledger"))))
        with reopen_run(results, RUN.id, fingerprints=FINGERPRINTS) as run_writer:
            asyncio.run(run_writer.note("kind", "text"))
            run_writer.end("complete")
        change_tags(results, RUN.id, ["tag"], [])
        columns = {"runs": "status", "cases": "body", "steps": "cost", "attempts": "tries", "outcomes": "body"}
        column = columns.get(table, {"notes": "text", "tags": "tag"}.get(table))
        changed = {"cost": 9.5, "tries": 7, "status": "partial"}.get(str(column), "{}")
        execute(results, f"UPDATE {table} SET {column} = ?", changed)
        with pytest.raises(BadInput) as error:
            check_rows(journal_of(results))
        assert error.value.where == journal_of(results).name

    def test_secrets_reach_no_row(self, results: Path) -> None:
        def redact(text: str) -> str:
            return text.replace("s3cret", "***")

        run = RUN.model_copy(update={"spec": {"url": "s3cret"}, "fingerprints": {"c": Fingerprint.of("key: s3cret")}})
        with open_run(results, run, redact=redact) as run_writer:
            run_writer.add_tags(["tag s3cret"])
            result = run_writer.redact_json('"s3cret"')
            asyncio.run(run_writer.record_step(step(inputs='{"q":"s3cret"}', result=result)))
            asyncio.run(run_writer.record_outcome(outcome("q"), 0, Case(id="q", labels={"note": "s3cret"})))
            asyncio.run(run_writer.note("kind", "s3cret"))
            attempt = asyncio.run(run_writer.record_attempt("a", "answer", MODEL.name))
            error = run_writer.record_failure(attempt, "denied s3cret", tries=1, uncertain=0, spent=Spending())
            asyncio.run(error)
        with closing(journal_of(results).open_for_reading()) as db:
            rows = [dict(row) for table in CHECKSUMS for row in db.rows(f"SELECT * FROM {table}", (), many=True)]
        assert "***" in str(rows)
        assert "s3cret" not in str(rows)

    def test_readers_see_committed_rows_while_a_run_is_written(self, results: Path) -> None:
        with open_run(results, RUN) as run_writer:
            for n in range(3):
                asyncio.run(run_writer.record_outcome(outcome(f"q{n}"), n))
            with reading(results) as run_reader:
                outcomes = run_reader.outcomes(RUN.id)
                assert next(outcomes).trial.case_id == "q0"
                asyncio.run(run_writer.record_outcome(outcome("q3"), 3))
                assert run_reader.status_counts(RUN.id)["scored"] >= 3, "another query, while the first goes on"
                assert [one.trial.case_id for one in outcomes] == ["q1", "q2"]
                assert run_reader.status_counts(RUN.id)["scored"] == 4

    def test_rows_are_visible_to_others_when_a_write_returns(self, results: Path) -> None:
        async def write(run_writer: RunWriter) -> None:
            for n in range(3):
                await run_writer.note("kind", f"{n}")
                with reading(results) as run_reader:
                    assert run_reader.notes(RUN.id)[-1] == ("kind", f"{n}")

        with open_run(results, RUN) as run_writer:
            asyncio.run(write(run_writer))

    def test_processes_that_create_the_journal_together_share_it(self, results: Path) -> None:
        errors: list[BaseException] = []

        def begin(name: str) -> None:
            try:
                with open_run(results, RUN.model_copy(update={"id": name})):
                    pass
            except BaseException as error:
                errors.append(error)

        threads = [Thread(target=begin, args=(f"run{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == [], errors
        with reading(results) as run_reader:
            assert len(run_reader.runs()) == 4

    def test_a_journal_that_is_missing_or_newer_is_refused(self, results: Path) -> None:
        assert not journal_of(results).exists()
        with pytest.raises(BadInput), RunReader.open(results):
            pass
        with closing(Writer(journal_of(results))):
            pass
        assert journal_of(results).exists()
        self.set_version(results, len(MIGRATIONS) + 1)
        for opened in (RunReader.open(results), open_run(results, RUN)):
            with pytest.raises(BadInput) as error, opened:
                pass
            assert error.value.where == journal_of(results).name

    def set_version(self, results: Path, version: int) -> None:
        raise NotImplementedError
