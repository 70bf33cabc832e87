"""The journal in a real Postgres database: the contract, every verb on it, and what can go wrong with it."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from socket import gethostname

import pytest

from memorybench import api
from memorybench.core.errors import JournalError, RunConflict
from memorybench.core.plans import Limits
from memorybench.core.spending import Spending
from memorybench.engine.budget import Budget
from memorybench.journal.checksums import CHECKSUMS, check_rows, update_statements
from memorybench.journal.places import journal_of, results_folder
from memorybench.journal.rows import Run
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.journal.run_reader import RunReader
from memorybench.journal.run_writer import RunWriter
from memorybench.journal.writer import Writer
from tests.cli.command import Command, measured
from tests.cli.test_extraction import KNOWN
from tests.engine.sweep import CONCURRENCY
from tests.engine.workload import FINGERPRINTS, PRICE, RUN, Ledger, committed, killer, plan, report, run_once
from tests.journal.contract import JournalContract, execute, outcome, step

pytest_plugins = ("tests.real.local_postgres",)
pytestmark = pytest.mark.real

EVAL = ("eval", "--providers", "bm25", "--end", "24", "--run-id", "first")


class TestPostgres(JournalContract):
    def set_version(self, results: Path, version: int) -> None:
        execute(results, "UPDATE schema_version SET version = ?", version)


def test_every_verb_reads_what_eval_wrote(command: Command, database: str) -> None:
    at = ("--journal", database)
    written = command(*EVAL, *at, "--json")
    assert written.code == 0, written.err
    assert not (command.folder / "results/results.db").exists()
    assert command(*EVAL[:-1], "second", *at, "--reuse", "first").code == 0
    in_file = command(*EVAL, "--output", "file", "--json")
    assert measured(written.json) == measured(in_file.json), "the figures are those of a results file"
    assert command("results", "first", *at, "--json").json == written.json
    failures = command("results", "first", "--failures", *at, "--json").json
    shown = command("show", "first", failures[0]["trial"]["case_id"], "--provider", "bm25", *at, "--json")
    assert shown.code == 0, shown.err
    assert command("compare", "first", "second", *at, "--json").code == 0
    assert command("export", "first", *at, "--format", "csv", "--output", "rows.csv").code == 0
    assert command("report", "first", *at, "--output", "reports").code == 0
    assert json.loads((command.folder / "reports/report.json").read_bytes())["run_id"] == "first"
    assert command("eval", "--resume", "first", *at).code == 0
    gated = command(*EVAL[:-1], "gated", *at, "--baseline", "first", "--json")
    assert (gated.code, gated.json["baseline"]["passed"]) == (0, True)
    assert command("validate", *at).code == 0
    execute(results_folder(Path(), database), "UPDATE outcomes SET body = '{}'")
    assert command("validate", *at).code == 2


@pytest.mark.parametrize("largest", [16 * 2**20, 1000], ids=["one message", "many messages"])
def test_shards_are_merged_into_the_database_and_the_rest_is_resumed(
    command: Command, database: str, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    monkeypatch.setattr("memorybench.journal.postgres._LARGEST_MESSAGE", largest)
    at = ("--journal", database)
    words = ("eval", "--providers", "bm25", "--limit", "24", "--answering-model", "scripted/quote")
    whole = command(*words, "--run-id", "whole", "--output", "file", "--json").json
    assert command(*words, "--shard", "1/3", "--run-id", "s1", *at).code == 0
    assert command(*words, "--shard", "2/3", "--run-id", "s2", "--output", "file").code == 0
    said = command("merge", "s1", "file/s2", "--run-id", "all", "--allow-partial", *at, "--json")
    assert (said.code, said.json["status"]) == (0, "partial"), said.err
    assert command("validate", *at).code == 0
    resumed = command("eval", "--resume", "all", *at, "--json")
    assert resumed.code == 0, resumed.err
    assert measured(resumed.json) == measured(whole)


@pytest.mark.parametrize("largest", [16 * 2**20, 1], ids=["one message", "many messages"])
def test_an_invalid_statement_takes_back_those_before_it(
    results: Path, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    monkeypatch.setattr("memorybench.journal.postgres._LARGEST_MESSAGE", largest)
    note = "INSERT INTO notes (run, kind, text, crc) VALUES (?,?,?,?)"
    with open_run(results, RUN), closing(Writer(journal_of(results))) as writer:
        with pytest.raises(JournalError):
            writer.write_now([(note, (RUN.id, "a", "100 % 'first' \\ ;", 1)), (note, (RUN.id, None, "", 1))])
        writer.write_now([(note, (RUN.id, "b", "100 % 'second' \\ ;", 1))])
        with closing(journal_of(results).open_for_reading()) as db:
            rows = [row["text"] for row in db.rows("SELECT text FROM notes", (), many=True)]
    assert rows == ["100 % 'second' \\ ;"]


def test_runs_are_listed_tagged_renamed_and_deleted(command: Command, database: str) -> None:
    at = ("--journal", database)
    assert command(*EVAL, *at).code == command(*EVAL[:-1], "second", *at).code == 0
    assert command("runs", "tag", "first", "good", *at).code == 0
    assert command("runs", "rename", "second", "third", *at).code == 0
    listed = command("runs", *at, "--json").json
    assert {row["id"]: row["tags"] for row in listed} == {"first": ["good"], "third": []}
    assert json.loads((command.folder / "results/third/report.json").read_bytes())["run_id"] == "third"
    assert command("runs", "delete", "third", *at, "--yes").code == 0
    assert [row["id"] for row in command("runs", *at, "--json").json] == ["first"]
    with closing(journal_of(results_folder(Path(), database)).open_for_reading()) as db:
        tables = db.execute(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = ? AND column_name = ?",
            ("memorybench", "run"),
        ).fetchall()
        runs = {row[0] for (table,) in tables for row in db.execute(f"SELECT run FROM {table}")}
    assert runs == {"first"}, "no table has a row of a deleted run"


def test_a_killed_run_resumes_to_the_same_figures(command: Command, database: str) -> None:
    at = ("--journal", database)
    assert command.killed(*EVAL, *at, at=9)
    assert command.killed("eval", "--resume", "first", *at, at=3)
    ended = command("eval", "--resume", "first", *at, "--json")
    whole = command(*EVAL, "--output", "file", "--json")
    assert measured(ended.json) == measured(whole.json)


def test_a_run_that_another_machine_writes_cannot_be_deleted(command: Command, results: Path, database: str) -> None:
    with open_run(results, RUN):
        elsewhere = results_folder(command.folder / "elsewhere", database)
        with pytest.raises(RunConflict, match=rf"memorybench {gethostname()} {os.getpid()}\b"):
            journal_of(elsewhere).lock(RUN.id)
        at = ("--journal", database, "--results", str(elsewhere))
        assert command("runs", "delete", RUN.id, "--yes", *at).code == 2
        assert command("runs", *at, "--json").json[0]["status"] == "running"
    assert command("runs", *at, "--json").json[0]["status"] == "partial"


def test_a_lost_connection_stops_the_run_and_it_resumes(results: Path, postgres: str, tmp_path: Path) -> None:
    import psycopg

    ledger, calls = Ledger(tmp_path / "ledger"), 0

    async def disconnect(call: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 30:
            with psycopg.connect(f"{postgres}postgres", autocommit=True) as db:
                db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'journal'")

    with pytest.raises(JournalError, match="resume the run"):
        run_once(results, plan(ledger, hook=disconnect))
    recorded = committed(results)
    assert recorded
    seen = len(ledger.read())
    assert run_once(results, plan(ledger)).status == "complete"
    assert not recorded & set(ledger.read()[seen:]), "I2"
    run_once(tmp_path / "file", plan(Ledger(tmp_path / "file.ledger")))
    assert report(results) == report(tmp_path / "file"), "I3"


def test_a_database_that_cannot_be_used_is_refused_in_one_line(command: Command, database: str, postgres: str) -> None:
    import psycopg

    with psycopg.connect(database, autocommit=True) as db:
        db.execute("DROP ROLE IF EXISTS reader")
        db.execute("CREATE ROLE reader LOGIN")
    read_only = database.replace("tester@", "reader@")
    missing = f"{postgres}missing"
    unreachable = "postgresql://tester@127.0.0.1:1/journal"
    for address in (read_only, missing, unreachable, "postgresql://tester@[::1/journal"):
        refused = command(*EVAL, "--journal", address)
        assert (refused.code, refused.err.count("\n")) == (2, 1), refused.err
    for address in (database, missing, unreachable):
        assert command("results", "first", "--journal", address).code == 2, "there are no results to read"
    assert list(command.folder.iterdir()) == []
    assert command(*EVAL, "--journal", database).code == 0
    with psycopg.connect(database, autocommit=True) as db:
        db.execute("GRANT USAGE ON SCHEMA memorybench TO reader")
        db.execute("GRANT SELECT ON ALL TABLES IN SCHEMA memorybench TO reader")
    assert command("results", "first", "--journal", read_only).code == 0
    (command.folder / "answers.jsonl").write_text('{"question": "Where?", "answer": "Lisbon", "response": "Lisbon"}\n')
    for words in ((*EVAL[:-1], "second"), ("score", "answers.jsonl", "--run-id", "second")):
        for address in (read_only, f"{database}?options=-cdefault_transaction_read_only%3Don"):
            before = sorted(command.folder.rglob("*"))
            refused = command(*words, "--journal", address)
            assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1), refused
            assert sorted(command.folder.rglob("*")) == before
    execute(results_folder(Path(), database), "UPDATE schema_version SET version = 99")
    assert command("results", "first", "--journal", database).code == 2


def test_of_two_processes_that_begin_a_run_one_is_refused(tmp_path: Path, database: str) -> None:
    errors = []

    def begin() -> None:
        try:
            with open_run(results_folder(tmp_path / "other", database), RUN):
                pass
        except RunConflict as error:
            errors.append(str(error))

    with open_run(results_folder(tmp_path / "results", database), RUN, begin=False) as run_writer:
        second = threading.Thread(target=begin)
        second.start()
        with closing(journal_of(results_folder(tmp_path, database)).open_for_writing()) as db:
            waiting = "SELECT count(*) > 2 FROM pg_stat_activity WHERE application_name LIKE 'memorybench %'"
            while not db.execute(waiting).fetchone()[0]:
                pass
        run_writer.begin()
        second.join()
    assert len(errors) == 1
    assert "already exists" in errors[0]
    assert not (tmp_path / "other").exists()


def test_commands_in_hints_name_the_database_and_changes_leave_no_folder(command: Command, database: str) -> None:
    at = ("--journal", database)
    assert command(*EVAL, *at, "--output", "out").code == 0
    assert f"memorybench results --journal {database}" in command("compare", "first", "nosuch", *at).err
    renamed = command("runs", "rename", "first", "second", *at)
    assert (renamed.code, renamed.err.count("\n")) == (0, 1), "it says that the files are elsewhere"
    assert not (command.folder / "results").exists()
    assert f"memorybench plot second --journal {database}" in command("plot", "second", "--spec", *at).err
    assert command("runs", "delete", "second", "--yes", *at).code == 0
    assert not (command.folder / "results").exists()


@pytest.mark.parametrize("password", ["hunter2", "hunter#2", "hunter?2", "hunter%202"])
def test_a_password_is_neither_shown_nor_stored(command: Command, database: str, password: str) -> None:
    secret = database.replace("tester@", f"tester:{password}@")
    printed = [
        command(*EVAL, "--journal", secret),
        command("results", "first", "--failures", "--limit", "1", "--journal", secret),
        command("results", "missing", "--journal", secret),
        command("eval", "--resume", "missing", f"--journal={secret}"),
    ]
    assert [one.code for one in printed] == [0, 0, 2, 2]
    assert "***" in "".join(one.out + one.err for one in printed)
    files = "".join(path.read_text() for path in command.folder.rglob("*") if path.is_file())
    with closing(journal_of(results_folder(Path(), database)).open_for_reading()) as db:
        rows = [dict(row) for table in CHECKSUMS for row in db.rows(f"SELECT * FROM {table}", (), many=True)]
    assert "hunter" not in f"{printed}{files}{rows}"


def test_a_merged_run_has_no_password(command: Command, database: str) -> None:
    secret = database.replace("tester@", "tester:pw1@")  # too short for the redactor
    words = ("eval", "--providers", "bm25", "--limit", "24", "--journal", secret)
    for shard in "12":
        assert command(*words, "--shard", f"{shard}/2", "--run-id", shard).code == 0
    assert command("merge", "1", "2", "--run-id", "all", "--journal", secret).code == 0
    files = "".join(path.read_text() for path in command.folder.rglob("*") if path.is_file())
    specs = [row["spec"] for row in command("runs", "--journal", database, "--json").json]
    assert "pw1" not in f"{files}{specs}"


def test_python_reads_and_compares_runs_of_a_database(command: Command, database: str) -> None:
    result = api.evaluate(providers="bm25", end=24, run_id="first", journal=database)
    loaded = api.load_run("first", journal=database)
    assert loaded.measure("bm25", "recall@5") == result.measure("bm25", "recall@5")
    api.evaluate(providers="bm25", end=24, run_id="second", journal=database)
    assert api.compare("first", "second", journal=database).comparisons


def test_every_suite_writes_and_the_viewer_shows_it(command: Command, database: str) -> None:
    pytest.importorskip("jinja2")
    from tests.view.conftest import SAMPLE, get, opened

    at = ("--journal", database)
    scripted = ("--model", "scripted/quote", "--judge-model", "scripted/judge")
    assert command("audit", str(SAMPLE), "--limit", "4", *scripted, "--run-id", "a", *at).code in (0, 3)
    assert command("hygiene", "run", "memory-skip-local", "--run-id", "h", *at).code in (0, 3)
    extractor = ("--extractor", f"{KNOWN}:perfect", "--allow-code")
    assert command("extraction", "run", *extractor, "--limit", "4", "--run-id", "e", *at).code in (0, 3)
    with opened(results_folder(Path("results"), database)) as client:
        page = get(client, "/")
        for run in ("a", "h", "e"):
            assert f"/run/0/{run}" in page
            assert run in get(client, f"/run/0/{run}")


def test_the_viewer_shows_a_question_that_was_committed_late(results: Path) -> None:
    """Of two processes that write a run, the one that began its commit first may end it last."""
    pytest.importorskip("jinja2")
    from memorybench.view.index import Filter
    from memorybench.view.results import Results

    view = Results([results])
    with open_run(results, RUN) as run_writer:
        asyncio.run(run_writer.record_outcome(outcome("second"), 1))
        execute(results, "UPDATE outcomes SET rowid = rowid + 1")
        with RunReader.open(results) as run_reader:
            assert view.index.count(view.index.update(run_reader, run_reader.run(RUN.id)), Filter()) == 1
        execute(results, "ALTER TABLE outcomes ALTER COLUMN rowid RESTART")
        asyncio.run(run_writer.record_outcome(outcome("first"), 0))
        run_writer.end("complete")
    with RunReader.open(results) as run_reader:
        assert view.index.count(view.index.update(run_reader, run_reader.run(RUN.id)), Filter()) == 2
    view.close()


class Workers:
    """Four processes that perform one run, each in a folder of its own; a killed one is started again."""

    def __init__(self, folder: Path, database: str, *, run: Run = RUN, limits: Limits | None = None) -> None:
        self.begun = results_folder(folder / "begun", database)
        self.ledger = Ledger(folder / "ledger")
        self.crashes = 0
        self._folder = folder
        self._database = database
        self._run = run
        self._limits = limits
        with open_run(self.begun, run):
            pass

    def work(self, kills: Sequence[int] = ()) -> list[int]:
        """Kill processes at these commits, one after the other; return the number of trials that each performed."""
        left = list(kills)
        children = {self._start(place, left): place for place in range(4)}
        while children:
            child, status = os.wait()
            if child not in children:
                continue  # started by an earlier test
            place, code = children.pop(child), os.waitstatus_to_exitcode(status)
            assert code in (0, -9)
            if code:
                self.crashes += 1
                children[self._start(place, left)] = place
        return [int((self._folder / f"worker{place}/performed").read_text()) for place in range(4)]

    def _start(self, place: int, left: list[int]) -> int:
        at = left.pop() if left else 10**9
        child = os.fork()
        if child:
            return child
        code = 99
        try:
            folder = results_folder(self._folder / f"worker{place}", self._database)
            work = plan(self.ledger, hook=self._call, limits=self._limits)
            budget = Budget(self._run.spec.get("budget"))
            ending = run_once(
                folder,
                work,
                fault=killer(at),
                concurrency=CONCURRENCY,
                budget=budget,
                run=self._run,
                is_joining=True,
            )
            (folder / "performed").write_text(f"{ending.performed}")
            code = 0
        finally:
            os._exit(code)

    async def _call(self, call: str) -> None:
        await asyncio.sleep(0.005)
        self.ledger.write(f"end {call}")


@pytest.mark.parametrize("kills", [(), (7, 20, 33, 15, 9, 40)], ids=["none", "six kills"])
def test_workers_share_a_run(database: str, tmp_path: Path, kills: tuple[int, ...]) -> None:
    """I1 to I4 hold for the run as a whole, however many processes work on it and die."""
    workers = Workers(tmp_path, database)
    performed = workers.work(kills)
    assert workers.crashes == len(kills)
    assert max(performed) < 40, "the work is shared"
    assert sum(performed) == 40 or kills
    run_once(tmp_path / "file", plan(Ledger(tmp_path / "file.ledger")))
    assert report(workers.begun) == report(tmp_path / "file"), "I3 and I4"
    calls = Counter(workers.ledger.read())
    repeats = sum(n - 1 for call, n in calls.items() if call.startswith(("answer", "judge")))
    assert repeats <= CONCURRENCY * workers.crashes, "I2"
    with RunReader.open(workers.begun) as run_reader:
        assert run_reader.run(RUN.id).status == "complete"
        assert repeats <= run_reader.possibly_charged_twice(RUN.id) <= CONCURRENCY * workers.crashes
    assert check_rows(journal_of(workers.begun)).unchecked == 0


def test_a_reserved_cost_does_not_raise_the_highest_cost_of_a_step(results: Path) -> None:
    async def attempt(run_writer: RunWriter) -> None:
        done = await run_writer.record_attempt("done", "answer", "reader", 5.0)
        await run_writer.record_step(step("done", attempt=done))
        lost = await run_writer.record_attempt("lost", "answer", "reader", 5.0)
        await run_writer.record_failure(lost, "lost", tries=1, uncertain=1, spent=Spending(calls=1, cost=None))

    with open_run(results, RUN) as run_writer:
        asyncio.run(attempt(run_writer))
        assert run_writer.spending() == (pytest.approx(5.1), 0.1, 0)


@pytest.mark.parametrize("kills", [(), (12, 25)], ids=["none", "two kills"])
def test_workers_share_a_budget(database: str, tmp_path: Path, kills: tuple[int, ...]) -> None:
    budget = 0.30
    workers = Workers(tmp_path, database, run=RUN.model_copy(update={"spec": {**RUN.spec, "budget": budget}}))
    workers.work(kills)
    paid = sum(call.startswith(("end answer", "end judge")) for call in workers.ledger.read())
    in_flight = CONCURRENCY * 4
    assert round(paid * PRICE, 6) <= round(budget + in_flight * PRICE, 6)
    with RunReader.open(workers.begun) as run_reader:
        counts = run_reader.counts(RUN.id)
        assert run_reader.run(RUN.id).status != "complete"
        spent, (lost, unknown) = run_reader.costs(RUN.id)[0], run_reader.costs_of_lost_calls(RUN.id)
    assert unknown == 0
    assert lost <= CONCURRENCY * workers.crashes * PRICE
    assert round(spent + lost, 6) >= budget, "the run stopped because the budget was used up"
    assert sum(counts.values()) == 40, "I4"
    assert counts["blocked"] > 0


def test_workers_share_the_concurrency_of_a_subject(database: str, tmp_path: Path) -> None:
    workers = Workers(tmp_path, database, limits=Limits(concurrency=2, first_delay=0.0))
    workers.work()
    in_flight: Counter[str] = Counter()
    for line in workers.ledger.read():
        end, call = line.startswith("end "), line.removeprefix("end ")
        subject = "memory" if call.startswith(("add", "wait", "search")) else "reader"
        in_flight[subject] += -1 if end else 1
        assert in_flight[subject] <= 2


def test_workers_share_the_rate_of_a_subject(database: str, tmp_path: Path) -> None:
    workers = Workers(tmp_path, database)
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                reopen_run(results_folder(tmp_path / f"{n}", database), RUN.id, fingerprints=FINGERPRINTS)
            )
            for n in range(3)
        ]
        waits = [writer.next_turn("memory", 10.0) for writer in writers]
        assert [round(wait, -1) for wait in waits] == [0, 10, 20]
        assert writers[0].next_turn("reader", 10.0) <= 0
    assert workers.crashes == 0


def test_workers_share_a_run_in_a_database_with_another_isolation(database: str, tmp_path: Path) -> None:
    set_default(database, "default_transaction_isolation = 'serializable'")
    workers = Workers(tmp_path, database)
    assert sum(workers.work()) == 40


def test_settings_of_the_database_and_the_machine_change_no_row(
    results: Path, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_default(database, "extra_float_digits = 0")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with open_run(results, RUN) as run_writer:
        asyncio.run(run_writer.record_step(step(seconds=0.1 + 0.2)))
        asyncio.run(run_writer.note("kind", "日本"))
    assert check_rows(journal_of(results)).rows == 3
    with RunReader.open(results) as run_reader:
        assert run_reader.notes(RUN.id) == [("kind", "日本")]
        assert run_reader.stages(RUN.id)[0].seconds == (0.1 + 0.2,)


def set_default(database: str, setting: str) -> None:
    """Change a setting of all later connections to the database."""
    execute(results_folder(Path(), database), f"ALTER DATABASE {database.rpartition('/')[2]} SET {setting}")


def test_workers_finish_a_run_whose_driver_was_killed(command: Command, database: str) -> None:
    at = ("--journal", database)
    assert command.killed(*EVAL, *at, at=9)
    work = ("worker", *at, "--concurrency", "2", "--json")
    joined = command(*work[:-1], "--run", "first", "--json")
    assert (joined.code, joined.json["status"]) == (0, "complete"), joined.err
    assert command(*work).code == 2, "there is no unfinished run"
    assert list(command.folder.glob("*")) == [command.folder / "results"], "a worker leaves no files"
    whole = command(*EVAL, "--output", "file", "--json")
    assert measured(command("results", "first", *at, "--json").json) == measured(whole.json)


def test_a_worker_of_another_version_or_with_other_data_is_refused(command: Command, database: str) -> None:
    at = ("--journal", database)
    assert command.killed(*EVAL, *at, at=9)
    folder = results_folder(Path(), database)
    with closing(journal_of(folder).open_for_writing()) as db, db.transaction():
        for sql, values in update_statements(db, "runs", "id = ?", ("first",), {"program": "memorybench 0.0"}):
            db.execute(sql, values)
    refused = command("worker", *at)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert command("worker", *at, "--run", "missing").code == 2
