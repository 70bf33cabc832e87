"""Large runs: their pages read what the run has saved, and never the whole run."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sqlite3
import sys
from contextlib import closing
from html import unescape
from itertools import product
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from memorybench.cli.main import main
from memorybench.core.trials import STATUSES, Exhibit, Outcome, Score, Subject, Trial
from memorybench.journal.lock import RunLock
from memorybench.journal.rows import Run
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.journal.run_reader import RunReader
from memorybench.reporting.progress import FILE_NAME as PROGRESS
from memorybench.reporting.progress import Block, Snapshot
from memorybench.suites import saved_report
from memorybench.suites.failures import failure_reason, outcome_mark, question_type
from memorybench.suites.report_parts import VERDICTS
from memorybench.view import results as view_results
from memorybench.view.index import Filter
from memorybench.view.jobs import Jobs
from memorybench.view.results import Results
from tests.view.conftest import get, opened
from tests.view.hostile import MARKER, Markup

RUNS = [("results", "first"), ("results", "second"), ("results", "h"), ("results", "e"), ("audit-results", "a")]
SCORES = {
    **dict.fromkeys(VERDICTS, (None, 0.0, 1.0)),
    **dict.fromkeys(("miss_stale", "miss_invented", "miss_not_used", "miss_not_retrieved", "answer_f1"), (None, 1.0)),
}
"""Values of each score."""


@pytest.fixture
def large(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the recorded runs whose reports are saved as those of large runs."""
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(saved_report, "LARGE", 1)
    for folder, run in RUNS:
        assert main(["report", str(tmp_path / folder / run), "--format", "json"]) == 0
    return tmp_path


def forbid_computing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the report was computed")

    monkeypatch.setattr(view_results, "report_of", fail)


def write_outcomes(folder: Path, outcomes: list[Outcome]) -> None:
    async def write() -> None:
        for ordinal, outcome in enumerate(outcomes):
            await run_writer.record_outcome(outcome, ordinal)

    with open_run(folder, Run(id="many", suite="bench", spec={}, planned=len(outcomes))) as run_writer:
        asyncio.run(write())
        run_writer.end("complete")


@pytest.mark.slow
def test_each_mark_in_the_index_is_that_of_its_outcome(tmp_path: Path) -> None:
    subject = Subject(role="provider", name="m")
    outcomes: list[Outcome] = []
    for values in product(*SCORES.values()):
        scores = [
            Score(name=name, value=value) for name, value in zip(SCORES, values, strict=True) if value is not None
        ]
        trial = Trial(suite="bench", case_id=f"q{len(outcomes)}", subject=subject, labels={"category": "c"})
        outcomes.append(Outcome(trial=trial, status="scored", scores=tuple(scores), shown=Exhibit(got='"\\ud800é')))
    for name, value in (("tp", 1.0), ("correct", 1.0), ("correct", 0.0)):
        trial = Trial(suite="extraction", case_id=f"{name} {value}", subject=subject, labels={"category": "c"})
        outcomes.append(Outcome(trial=trial, status="scored", scores=(Score(name=name, value=value),)))
    for status in STATUSES:
        trial = Trial(suite="bench", case_id=status, subject=subject, variant="v", repeat=2, cluster="h")
        twice = (Score(name="correct", value=0.0), Score(name="correct", value=1.0))
        outcomes.append(Outcome(trial=trial, status=status, scores=twice))
    write_outcomes(tmp_path, outcomes)
    results = Results([tmp_path])
    try:
        with results.open(0, "many") as stored:
            number = results.questions(0, stored)
        found = results.index.page(number, Filter(), 0, len(outcomes))
    finally:
        results.close()
    assert len(found) == len(outcomes)
    for question, outcome in zip(found, outcomes, strict=True):
        (mark,), trial = question.marks, outcome.trial
        assert (question.case_id, question.type, question.cluster) == (
            trial.case_id,
            question_type(trial),
            trial.cluster,
        )
        assert (mark.mark, mark.reason) == (outcome_mark(outcome), failure_reason(outcome) or ""), outcome.scores
        assert (mark.variant, mark.repeat, mark.trial) == (trial.variant, trial.repeat, trial.key)


def test_an_operation_that_failed_is_wrong_even_if_what_it_wrote_is_right(tmp_path: Path) -> None:
    trial = Trial(suite="online", case_id="q", subject=Subject(role="source", name="m"))
    scores = (Score(name="correct", value=1.0), Score(name="succeeded", value=0.0))
    write_outcomes(tmp_path, [Outcome(trial=trial, status="scored", scores=scores)])
    results = Results([tmp_path])
    try:
        with results.open(0, "many") as stored:
            (question,) = results.index.page(results.questions(0, stored), Filter(), 0, 1)
    finally:
        results.close()
    assert [(mark.mark, mark.reason) for mark in question.marks] == [("wrong", "wrong")]


def test_a_repeated_trial_replaces_its_mark(tmp_path: Path) -> None:
    subject = Subject(role="provider", name="m")
    trials = [Trial(suite="bench", case_id=name, subject=subject) for name in ("q", "p")]
    write_outcomes(tmp_path, [Outcome(trial=trial, status="failed") for trial in trials])
    results = Results([tmp_path])
    try:
        with RunReader.open(tmp_path) as reader:
            results.index.update(reader, reader.run("many"))
        with reopen_run(tmp_path, "many", fingerprints={}) as run_writer:
            right = Outcome(trial=trials[0], status="scored", scores=(Score(name="correct", value=1.0),))
            asyncio.run(run_writer.record_outcome(right, 0))
            run_writer.end("complete")
        with RunReader.open(tmp_path) as reader:
            number = results.index.update(reader, reader.run("many"))
        assert [one.marks[0].mark for one in results.index.page(number, Filter(), 0)] == ["right", "failed"]
        assert results.index.count(number, Filter(outcome="failed")) == 1
    finally:
        results.close()


@pytest.mark.slow
@pytest.mark.parametrize(("place", "folder", "run"), [(int(folder != "results"), folder, run) for folder, run in RUNS])
def test_a_page_from_the_saved_report_is_that_of_the_computed_one(
    recorded: Path, large: Path, monkeypatch: pytest.MonkeyPatch, place: int, folder: str, run: str
) -> None:
    def page(root: Path) -> list[str]:
        with opened(root / "results", root / "audit-results") as client:
            text = get(client, f"/run/{place}/{run}").replace(str(root), "")
            charts = get(client, f"/run/{place}/{run}/charts")
            while "hx-get" in charts:
                charts = get(client, f"/run/{place}/{run}/charts")
        return [
            re.sub(r'<div class="charts".*', "", text.partition('<div class="charts"')[0]),
            Markup(text).text,
            charts,
        ]

    computed = page(recorded)
    assert not (recorded / folder / run / saved_report.FILE_NAME).exists()
    forbid_computing(monkeypatch)
    assert page(large) == computed


@pytest.mark.slow
def test_the_report_of_a_large_run_is_saved_when_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(saved_report, "LARGE", 4)
    for limit, is_saved in (("3", False), ("4", True)):
        assert main(["eval", "--providers", "bm25", "--limit", limit, "--run-id", f"of-{limit}"]) == 0
        assert (tmp_path / "results" / f"of-{limit}" / saved_report.FILE_NAME).exists() is is_saved
    assert main(["runs", "rename", "of-4", "renamed"]) == 0
    forbid_computing(monkeypatch)
    with opened(tmp_path / "results") as client:
        assert "memorybench eval: renamed" in get(client, "/run/0/renamed")


@pytest.mark.slow
@pytest.mark.parametrize("change", ["other run", "no JSON", "no file"])
def test_a_saved_report_of_another_state_is_not_shown(large: Path, change: str) -> None:
    file = large / "results" / "first" / saved_report.FILE_NAME
    if change == "no file":
        file.unlink()
    elif change == "no JSON":
        file.write_text("{")
    else:
        saved = json.loads(file.read_text())
        saved["summary"]["finished"], saved["report"]["title"] = "2001-01-01T00:00:00.000+00:00", "TITLE OF ANOTHER"
        file.write_text(json.dumps(saved))
    with opened(large / "results") as client:
        page = get(client, "/run/0/first")
    assert "TITLE OF ANOTHER" not in page
    assert "recall@5" in page


def test_the_list_computes_no_headline_of_a_large_run(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(recorded / "results", tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(view_results, "_MOST_COMPUTED", 20)
    (tmp_path / "first" / "report.json").unlink()
    with opened(tmp_path) as client:
        rows = get(client, "/?sort=run").split("<tr>")
        (first,) = [row for row in rows if "/run/0/first" in row]
        (second,) = [row for row in rows if "/run/0/second" in row]
    assert "36/36" in first
    assert "recall@5" not in first
    assert "accuracy" in second


def test_the_list_reads_no_outcome_of_a_run_with_a_report(
    recorded: Path, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> dict[str, int]:
        raise AssertionError("outcomes were counted")

    monkeypatch.setattr(RunReader, "status_counts", fail)
    assert "36/36" in get(client, "/?q=first")


@pytest.mark.slow
def test_only_the_compared_providers_are_read(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = RunReader.dated_outcomes

    def dated_outcomes(self: RunReader, *arguments: object):  # type: ignore[no-untyped-def]
        for at, outcome in original(self, *arguments):  # type: ignore[arg-type]
            read.append(outcome.trial.subject.name)
            yield at, outcome

    monkeypatch.setattr(RunReader, "dated_outcomes", dated_outcomes)
    get(client, "/compare?side=0/first:oracle&side=0/first:none")
    assert set(read) == {"oracle", "none"}


@pytest.mark.slow
def test_a_comparison_of_too_many_trials_is_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_results, "MOST_COMPARED", 24)
    reply = client.get("/compare?side=0/first")
    assert reply.status_code == 422
    assert "memorybench compare" in reply.text
    get(client, "/compare?side=0/first:oracle&side=0/first:none")


def test_few_comparisons_are_kept() -> None:
    jobs, made = Jobs(), []
    for key in [*range(5), 4, 0]:
        jobs.get(("compare", key), lambda key=key: made.append(key))  # type: ignore[misc]
    for key in [*range(5), 0]:
        jobs.get(("chart", key), lambda key=key: made.append(key))  # type: ignore[misc]
    jobs.close()
    assert made == [*range(5), 0, *range(5)]


def test_the_viewer_of_one_run_starts_without_a_check_of_all_rows(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memorybench.cli.view import _start

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("all outcomes were read")

    monkeypatch.setattr(RunReader, "counts", fail)
    assert _start(["first"], [recorded / "results"])[1] == "/run/0/first"


@pytest.mark.parametrize("status", ["complete", "running"])
def test_the_report_of_a_large_run_is_not_computed_for_its_page(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    shutil.copytree(recorded / "results", tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(view_results, "_MOST_REPORTED", 30)
    forbid_computing(monkeypatch)
    lock = RunLock(tmp_path / "first", "first") if status == "running" else None
    with closing(sqlite3.connect(tmp_path / "results.db")) as db:
        db.execute("UPDATE runs SET status = ?, state_crc = NULL WHERE id = 'first'", (status,))
        db.commit()
    with opened(tmp_path) as client:
        page = get(client, "/run/0/first")
        assert f"memorybench {'report' if lock is None else 'results'} first" in page
        assert "Failures by reason" in page
        assert len(re.findall(r"case=([^&\"]+)", get(client, "/run/0/first/questions"))) == 12
    if lock is not None:
        lock.release()


def test_the_list_counts_no_outcome_of_a_run_that_shows_its_progress(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(recorded / "results", tmp_path, dirs_exist_ok=True)
    with closing(sqlite3.connect(tmp_path / "results.db")) as db:
        db.execute("UPDATE runs SET status = 'running', state_crc = NULL WHERE id = 'first'")
        db.commit()
    lock = RunLock(tmp_path / "first", "first")
    block = Block(
        benchmark="starter", subject="bm25", state="working", done=9_000, total=36, problems={"failed": 2, "blocked": 1}
    )
    (tmp_path / "first" / PROGRESS).write_text(Snapshot(blocks=(block,), done=9_000, total=36).model_dump_json())
    original = RunReader.status_counts

    def status_counts(self: RunReader, run: str) -> dict[str, int]:
        assert run != "first", "outcomes were counted"
        return original(self, run)

    monkeypatch.setattr(RunReader, "status_counts", status_counts)
    with opened(tmp_path) as client:
        assert "8,997/36" in get(client, "/?q=first")
    lock.release()


@pytest.mark.slow
def test_charts_are_drawn_by_a_process_of_their_own(client: TestClient) -> None:
    pytest.importorskip("vl_convert")
    before = sys.modules.pop("vl_convert", None)
    drawn = get(client, "/run/0/second/charts")
    while "hx-get" in drawn:
        drawn = get(client, "/run/0/second/charts")
    assert drawn.count('<svg role="img"') >= 4
    assert "vl_convert" not in sys.modules
    if before is not None:
        sys.modules["vl_convert"] = before


@pytest.mark.parametrize("change", ["UPDATE outcomes SET body = '{'", "DROP TABLE outcomes"])
def test_questions_that_cannot_be_read_give_a_clear_page(recorded: Path, tmp_path: Path, change: str) -> None:
    shutil.copytree(recorded / "results", tmp_path, dirs_exist_ok=True)
    with closing(sqlite3.connect(tmp_path / "results.db")) as db:
        db.execute(change)
        db.commit()
    with opened(tmp_path) as client:
        for page in ("questions", "history", "question?benchmark=starter&case=q"):
            reply = client.get(f"/run/0/first/{page}")
            assert reply.status_code == 422
            assert "results.db" in reply.text
        assert client.get("/").status_code == 200


@pytest.mark.slow
def test_hostile_texts_in_a_saved_report_stay_text(large: Path) -> None:
    file = large / "results" / "second" / saved_report.FILE_NAME
    saved = json.loads(file.read_text())
    text = f"<script>{MARKER}</script><img src=x onerror=alert(1)>"
    saved["report"] |= {"title": text, "warnings": [text]}
    tables = [part for part in saved["report"]["sections"] if "rows" in part]
    for table in tables:
        table["title"] = text
        table["rows"] = [[text, *row[1:]] for row in table["rows"]]
    for result in saved["summary"]["results"]:
        result["subject"] = text
    file.write_text(json.dumps(saved))
    with opened(large / "results") as client:
        page = get(client, "/run/0/second")
        charts = get(client, "/run/0/second/charts")
        while "hx-get" in charts:
            charts = get(client, "/run/0/second/charts")
    assert page.count(MARKER) > len(tables)
    assert not any(MARKER in script for one in (page, charts) for script in Markup(one).scripts)
    assert "<img" not in page + charts


@pytest.mark.slow
def test_a_run_that_is_too_large_to_compare_says_who_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(saved_report, "LARGE", 1)
    monkeypatch.setattr(view_results, "MOST_COMPARED", 1)
    providers = ("bm25", "bm25(b=0,k1=0)", "oracle", "none")
    assert main(["eval", "--providers", *providers, "--end", "60", "--run-id", "r"]) == 0
    document = json.loads((tmp_path / "results" / "r" / "report.json").read_text())
    values = {
        one["subject"]: measure["value"]
        for one in document["results"]
        for measure in one["measures"]
        if not one["group"] and one["subject"].startswith("bm25") and measure["name"] == "recall@5"
    }
    assert len(values) == 2
    with opened(tmp_path / "results") as client:
        page = unescape(get(client, "/run/0/r"))
    heading = page.partition("<h1>")[2].partition("</h1>")[0]
    lead = " ".join(re.findall(r'<p class="lead">(.*?)</p>', page))
    assert max(values, key=values.__getitem__) in heading
    assert "highest recall@5" in heading
    assert all(name in lead for name in values)
    assert "memorybench compare" in lead
    assert "oracle" not in heading
