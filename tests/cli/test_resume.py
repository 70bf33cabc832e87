"""What a resumed run keeps, and what may have changed since it began."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorybench import __version__, evaluate
from memorybench.catalog.catalog import Catalog
from memorybench.engine.steps import JobSteps
from memorybench.journal.checksums import crc
from memorybench.journal.rows import Fingerprint
from memorybench.providers.bm25 import Bm25
from tests.cli.command import Command, Said
from tests.cli.test_online_searches import turn
from tests.cli.test_samples import item, write_benchmark
from tests.doubles.refusals import refused
from tests.doubles.stub import Stub, completion, in_flight, until_gone
from tests.traces.test_otlp import batch

EVAL = ("eval", "--providers", "bm25", "--end", "8", "--run-id", "r")


def edit_fingerprints(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the recorded fingerprints of the only run in the folder `results`."""
    with sqlite3.connect(folder / "results" / "results.db") as db:
        columns = list(
            db.execute("SELECT id, suite, spec, fingerprints, program, planned, created FROM runs").fetchone()
        )
        fingerprints = json.loads(columns[3])
        change(fingerprints)
        columns[3] = json.dumps(fingerprints)
        db.execute("UPDATE runs SET fingerprints = ?, crc = ?", (columns[3], crc(*columns)))


def write_fingerprint_of_previous_release(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Replace the fingerprint of bm25 by that of an earlier version: every field, null or not, and the description."""
    config = Catalog(folder).provider("bm25").plain()
    del config["connection"]["tls"]
    config["description"] = "Another description"
    change(config)
    text = f"{json.dumps(config, indent=1, sort_keys=True, ensure_ascii=False)}\nmemorybench {__version__}"
    edit_fingerprints(folder, lambda marks: marks.update({"provider bm25": Fingerprint.of(text).plain()}))


def test_a_run_of_the_previous_release_is_resumed(command: Command) -> None:
    assert command.killed(*EVAL, "--concurrency", "1", at=20)
    write_fingerprint_of_previous_release(command.folder, lambda config: None)
    said = command("eval", "--resume", "r", "--json")
    assert said.code == 0, said.err
    assert said.json["counts"]["scored"] == 8


def test_a_run_of_the_previous_release_with_another_setting_is_refused(command: Command) -> None:
    assert command.killed(*EVAL, "--concurrency", "1", at=20)

    def raise_retries(config: dict[str, Any]) -> None:
        config["rate_limit"]["max_retries"] = 9

    write_fingerprint_of_previous_release(command.folder, raise_retries)
    said = command("eval", "--resume", "r")
    assert said.code == 2
    assert "max_retries" in said.err
    assert "description" not in said.err


JUDGED = ("--judge-model", "scripted/judge", "--canaries", "off", "--run-id", "r", "--output", "results")
SAMPLE = str(Path(__file__).parents[2] / "data/sample-dataset.json")
AUDIT = ("audit", SAMPLE, "--model", "scripted/quote", "--limit", "4", *JUDGED)


def test_an_unfinished_run_is_refused_if_a_setting_of_a_provider_changed(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A default may change, or the package of a local embedder: recorded trials would stay beside new ones."""
    assert command.killed("eval", "--providers", "bm25", "--end", "20", "--run-id", "r", "--concurrency", "1", at=12)
    refused = with_another_setting(command, monkeypatch, "eval", "--resume", "r")
    assert refused.code == 2
    assert "bm25 changed: new_rule" in refused.err
    assert command("eval", "--resume", "r", "--json").json["counts"]["scored"] == 20
    finished = with_another_setting(command, monkeypatch, "eval", "--resume", "r", "--json")
    assert (finished.code, finished.json["counts"]["scored"]) == (0, 20)


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", SAMPLE, "--providers", "bm25", "--model", "scripted/quote"),
        ("extraction", "run", "--extractor", "bm25"),
    ],
    ids=["audit", "extraction"],
)
def test_other_runs_are_refused_if_a_setting_changed(
    command: Command, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    assert command.killed(*arguments, "--limit", "8", *JUDGED, "--concurrency", "1", at=90)
    resume = (*arguments[: 1 + (arguments[0] == "extraction")], "--resume", "r", "--output", "results")
    refused = with_another_setting(command, monkeypatch, *resume)
    assert refused.code == 2
    assert "bm25 changed: " in refused.err


def test_a_hygiene_run_is_refused_if_a_setting_of_its_store_changed(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command.killed("hygiene", "run", "memory-cross-user-leak", "--run-id", "r", "--concurrency", "1", at=6)
    monkeypatch.setattr("memorybench.stores.reference._TOKENIZER", "unicode61")
    refused = command("hygiene", "run", "--resume", "r")
    assert refused.code == 2
    assert "reference changed: tokenizer" in refused.err


def with_another_setting(command: Command, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Said:
    """Run a command as a version in which bm25 has a setting more."""
    with monkeypatch.context() as changed:
        changed.setattr(Bm25, "constants", {**Bm25.constants, "new_rule": True})
        return command(*arguments)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("extraction", "run", "--extractor", "hoarder", "--limit", "2", *JUDGED), "judge prompts"),
        (("extraction", "online", "--source", "jsonl", "traces.jsonl", *JUDGED), "judge prompts"),
        (("online", "spans.json", *JUDGED), "judge prompts"),
        (AUDIT, "judge prompts"),
        ((*AUDIT, "--probe-model", "scripted/judge"), "probe prompts"),
    ],
    ids=["extraction", "extraction online", "online", "audit", "audit with a probe model"],
)
def test_a_run_with_another_prompt_of_its_judge_is_refused(
    command: Command, arguments: tuple[str, ...], name: str
) -> None:
    trace = {"id": "t", "conversation": [{"role": "user", "content": "I like tea."}], "output": {"drinks": ["tea"]}}
    (command.folder / "traces.jsonl").write_text(f"{json.dumps(trace)}\n")
    (command.folder / "spans.json").write_text(json.dumps(batch(*turn(0, "You like tea.", "tea"))))
    assert command.killed(*arguments, at=3)
    resume = (*arguments[: 1 + (arguments[0] == "extraction")], "--resume", "r", "--output", "results")

    def change_text(marks: dict[str, Any]) -> None:
        marks[name] = Fingerprint.of(f"{marks[name]['text']} Be lenient.").plain()

    edit_fingerprints(command.folder, change_text)
    refused = command(*resume)
    assert refused.code == 2
    assert f"{name} changed" in refused.err

    edit_fingerprints(command.folder, lambda marks: marks.pop(name))  # as in a run of an earlier version
    resumed = command(*resume)
    assert resumed.code in (0, 1, 3), resumed.err
    assert command("results", "r", "--results", "results").code in (0, 1, 3)


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(completion("Paris", tokens=(1000, 100)))  # gpt-4o: $0.0035 per call
    return stub


PAID = ("eval", "--providers", "oracle", "--end", "30", "--answering-model", "gpt-4o", "--concurrency", "1")


def test_a_resumed_run_keeps_its_budget(command: Command, stub: Stub) -> None:
    assert command(*PAID, "--budget", "0.0175", "--run-id", "r").code == 1
    calls = len(stub.calls)
    assert 5 <= calls <= 6
    said = command("eval", "--resume", "r", "--json")
    assert said.code == 1
    assert said.json["status"] == "partial"
    assert len(stub.calls) == calls, "what was spent before counts"


def test_a_run_that_is_resumed_in_another_folder_says_where_to_resume_it(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--config-dir cannot be given again, so "check the path" would not help."""
    (command.folder / "own").mkdir()
    (command.folder / "own" / "mine.yaml").write_text("name: mine\nextends: bm25\nsettings: {k1: 2.0}\n")
    assert command.killed(*EVAL, "--config-dir", "own", at=3)
    monkeypatch.chdir(command.folder / "own")
    error = refused(evaluate, resume="r", output=command.folder / "results")
    assert error.where == "--config-dir"
    assert "folder in which the run was started" in error.remedy


def test_a_used_up_budget_blocks_no_free_call(command: Command, stub: Stub) -> None:
    """An answer that was paid for is judged by a local model, and `--budget 0` runs what is free."""
    judged = (*PAID, "--judge-model", "scripted/judge", "--json")
    counts = command(*judged, "--budget", "0.0175").json["counts"]
    assert (counts["scored"], counts["scored"] + counts["blocked"]) == (len(stub.calls), 30)
    calls = len(stub.calls)
    free = command(*judged, "--answering-model", "scripted/quote", "--budget", "0")
    assert (free.code, free.json["counts"]["scored"], len(stub.calls)) == (0, 30, calls)


@pytest.mark.slow
def test_a_raised_budget_is_kept_by_the_next_resume(command: Command, stub: Stub) -> None:
    first = command(*PAID, "--budget", "0.0175", "--run-id", "r")
    raised = command("eval", "--resume", "r", "--budget", "0.035", "--json")
    calls, spent = len(stub.calls), raised.json["circumstances"]
    assert (first.code, raised.code, spent["calls_of_unknown_cost"]) == (1, 1, 0), f"{first.err}\n{raised.err}"
    assert 10 <= calls <= 11, f"{spent}\n{first.err}\n{raised.err}"
    assert command("eval", "--resume", "r").code == 1
    assert len(stub.calls) == calls
    said = command("eval", "--resume", "r", "--budget", "none", "--json")
    assert said.code == 0
    assert said.json["counts"]["scored"] == 30
    assert len(stub.calls) == 30


@pytest.mark.slow
def test_a_budget_given_to_a_run_without_one_is_kept(command: Command, stub: Stub) -> None:
    assert command.killed(*PAID, "--run-id", "r", at=40)
    command("eval", "--resume", "r", "--budget", "0.0175")
    calls = len(stub.calls)
    command("eval", "--resume", "r")
    assert len(stub.calls) == calls


PRICE = 0.0035
KILLED = (*PAID[:-1], "4", "--budget", f"{30 * PRICE}", "--run-id", "r")


@pytest.mark.slow
@pytest.mark.parametrize("replies", [0, 3], ids=["no cost is known", "a cost is known"])
def test_calls_of_killed_processes_count_in_the_budget(command: Command, stub: Stub, replies: int) -> None:
    stub.always(until_gone())
    assert command.killed_when(*KILLED, ready=in_flight(stub, 4))
    document = command("results", "r", "--json").json
    assert (document["circumstances"]["known_cost"], document["possibly_charged_twice"]) == (0, 4)
    stub.next(*[completion("Paris", tokens=(1000, 100))] * replies)
    calls = replies + 4  # a call begins after the result of another is recorded
    while command.killed_when("eval", "--resume", "r", ready=in_flight(stub, calls)):
        calls = 4
    assert len(stub.calls) <= 30 + 4, "at most the calls in flight more than the budget"
    assert len(stub.calls) >= 30 or not replies, "a lost call costs as much as a known one"
    said = command("eval", "--resume", "r", "--json")
    spent = said.json["circumstances"]
    assert (said.code, spent["known_cost"]) == (1, pytest.approx(replies * PRICE))
    assert spent["known_cost"] + spent["possibly_spent"] >= 30 * PRICE
    stub.always(completion("Paris", tokens=(1000, 100)))
    raised = command("eval", "--resume", "r", "--budget", "5", "--json")
    assert (raised.code, raised.json["counts"]["scored"]) == (0, 30)


@pytest.mark.slow
def test_lost_calls_are_counted_again_when_a_cost_is_known(command: Command, stub: Stub) -> None:
    stub.always(until_gone())
    assert command.killed_when(*KILLED, ready=in_flight(stub, 4))
    most = command("results", "r", "--json").json["circumstances"]["possibly_spent"]
    stub.always(completion("Paris", tokens=(1000, 100)))
    said = command("eval", "--resume", "r", "--json")
    spent = said.json["circumstances"]
    assert (said.code, spent["possibly_spent"]) == (1, pytest.approx(4 * PRICE))
    assert most > 4 * PRICE
    assert 30 <= len(stub.calls) <= 30 + 4


def test_calls_of_scripted_models_are_not_reported_as_charged(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("eval", "--providers", "bm25", "--end", "5", "--answering-model", "scripted/quote", "--run-id", "r")
    monkeypatch.setenv("COLUMNS", "40")
    assert "more columns in a wider terminal or report.md" in " ".join(command("results", "r").out.split())
    with sqlite3.connect(command.folder / "results/results.db") as db:  # as a kill in the middle of calls leaves it
        db.execute("DELETE FROM steps WHERE name = 'answer'")
    (command.folder / "results/r/report.md").unlink()
    assert command("results", "r", "--json").json["possibly_charged_twice"] == 0
    assert "report.md" not in command("results", "r").out


def write_searches_as_previous_release(patch: pytest.MonkeyPatch) -> None:
    """Earlier versions did not record whether a search was in sessions or in single turns."""
    once = JobSteps.once

    def earlier(steps: JobSteps, name: str, inputs: dict[str, Any], *rest: Any, **options: Any) -> Any:
        return once(steps, name, {key: inputs[key] for key in inputs if key != "by_turn"}, *rest, **options)

    patch.setattr(JobSteps, "once", earlier)


BY_TURN = ("eval", "--benchmarks", "mine", "--providers", "bm25", "--concurrency", "1", "--run-id", "r")


def searches(said: Said) -> dict[str, int]:
    (row,) = [stage for stage in said.json["circumstances"]["stages"] if stage["name"] == "search"]
    return {name: row[name] for name in ("steps", "reused")}


def test_searches_of_single_turns_by_the_previous_release_are_not_repeated(command: Command) -> None:
    write_benchmark(command, [item(n) for n in range(4)], ingestion={"mode": "incremental"})
    with pytest.MonkeyPatch.context() as patch:
        write_searches_as_previous_release(patch)
        assert command.killed(*BY_TURN, at=8)
    said = command("eval", "--resume", "r", "--json")
    assert said.code == 0, said.err
    assert searches(said)["steps"] == 4


def test_answers_about_single_turns_of_the_previous_release_are_judged(command: Command, stub: Stub) -> None:
    stub.always(completion("green"))
    write_benchmark(command, [item(n) for n in range(4)], ingestion={"mode": "incremental"})
    with pytest.MonkeyPatch.context() as patch:
        write_searches_as_previous_release(patch)
        assert command(*BY_TURN, "--answering-model", "gpt-4o").code == 0
    said = command("score", "r", "--judge-model", "scripted/judge", "--json")
    assert said.json["counts"]["scored"] == 4, said.err
    # another run cannot know that these were searches of single turns
    assert searches(command(*BY_TURN[:-1], "s", "--reuse", "r", "--json"))["reused"] == 0
