"""A run whose recorded data has another form, with right checksums: its own pages say so, other pages do not change."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from memorybench.journal.run_reader import RunReader
from tests.cli.command import Command
from tests.view.conftest import opened
from tests.view.test_pages import overwrite

RUNS = ("first", "second", "h", "e", "a")
NUMBER, TEXT, LIST = "7", '"x"', "[7]"


@pytest.fixture(autouse=True)
def _without_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are made from the data, but not drawn: that would take two seconds for each page of a run."""
    monkeypatch.setattr("memorybench.view.results.render_in_child", lambda specs: [(title, "") for title in specs])


@pytest.fixture
def results(recorded: Path, tmp_path: Path) -> Path:
    """Runs of all suites, of which report.json does not say more than the journal."""
    for folder in ("results", "audit-results"):
        shutil.copytree(recorded / folder, tmp_path / folder)
    for report in tmp_path.glob("*/*/report.json"):
        report.unlink()
    return tmp_path / "results"


def folder_of(results: Path, run: str) -> Path:
    return results.with_name("audit-results") if run == "a" else results


def pages_of(results: Path, run: str) -> Iterator[str]:
    """The address of every page about a run, with some of its questions."""
    place = int(run == "a")
    base = f"/run/{place}/{run}"
    yield from (base, f"{base}/progress", f"{base}/charts", f"{base}/questions", f"{base}/history")
    with RunReader.open(folder_of(results, run)) as reader:
        for benchmark, case in reader.case_ids(run)[:3]:
            yield f"{base}/question?{urlencode({'benchmark': benchmark, 'case': case})}"
    yield f"/compare?side={place}/{run}"
    yield f"/compare?side={place}/{run}&side=0/first"


def statuses(client: TestClient, run: str, paths: Iterator[str]) -> set[int]:
    found = set()
    for path in paths:
        reply = client.get(path)
        while reply.status_code == 202:
            reply = client.get(path)
        assert reply.status_code in (200, 404, 422), (path, reply.text)
        assert "Traceback" not in reply.text
        if reply.status_code == 422 and f"run {run}" in unescape(reply.text):
            found.add(422)
        elif "/compare" not in path:  # of one provider, or of two suites
            found.add(reply.status_code)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(
    ("table", "column", "text"),
    [
        ("runs", "spec", "{}"),
        ("runs", "spec", '{"benchmarks": 5, "subjects": 7, "questions": 3}'),
        ("runs", "spec", '{"evidence": {"starter": 7}, "started_with": [], "titles": 4, "selected": {"x": "y"}}'),
        ("runs", "fingerprints", '{"dataset sample": {"digest": "0"}}'),
        *(("outcomes", "body", text) for text in ("{}", NUMBER, LIST)),
        *(("cases", "body", text) for text in (NUMBER, LIST, '{"evidence": 7, "gold_turns": 7, "conversation": 7}')),
        *(("steps", "inputs", text) for text in (NUMBER, TEXT, LIST, "{}")),
        *(("steps", "result", text) for text in (NUMBER, TEXT, "{}", '{"memories": [7], "transcript": 7}')),
        ("attempts", "started", "yesterday"),
    ],
)
def test_a_run_of_another_form_is_named_on_its_own_pages_only(
    results: Path, run: str, table: str, column: str, text: str
) -> None:
    overwrite(folder_of(results, run), table, f"{'id' if table == 'runs' else 'run'} = '{run}'", {column: text})
    other = "second" if run == "first" else "first"
    with opened(results, results.with_name("audit-results")) as client:
        assert statuses(client, run, pages_of(results, run)) <= {200, 404, 422}
        assert statuses(client, other, iter([f"/run/0/{other}", "/", "/trends", "/compare"])) == {200}


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ({"benchmarks": 5}, "benchmarks"),
        ({"samples": {"starter": {"cases_available": [7]}}}, "samples"),
        ({"evidence": {"starter": 7}}, "evidence"),
        ({"timing": -1.5}, "timing"),
    ],
)
def test_the_page_says_which_part_of_the_spec_is_wrong(results: Path, spec: dict[str, object], part: str) -> None:
    with RunReader.open(results) as reader:
        saved = dict(reader.run("second").spec)
    overwrite(results, "runs", "id = 'second'", {"spec": json.dumps({**saved, **spec})})
    with opened(results) as client:
        reply = client.get("/run/0/second")
        assert reply.status_code == 422
        assert "run second" in reply.text
        assert part in reply.text


def test_the_page_of_a_question_says_which_question_is_wrong(results: Path) -> None:
    overwrite(results, "steps", "run = 'second' AND name = 'search'", {"inputs": "7"})
    with RunReader.open(results) as reader:
        benchmark, case = reader.case_ids("second")[0]
    with opened(results) as client:
        reply = client.get(f"/run/0/second/question?benchmark={benchmark}&case={case}")
        assert reply.status_code == 422
        assert f"run second, question {case}" in reply.text


def test_a_comparison_names_the_run_that_has_another_form(results: Path) -> None:
    overwrite(results, "runs", "id = 'second'", {"spec": "{}"})
    with opened(results) as client:
        for sides in ("side=0/second&side=0/first", "side=0/first&side=0/second"):
            reply = client.get(f"/compare?{sides}")
            assert reply.status_code == 422
            assert "run second:" in reply.text
            assert "run first:" not in reply.text


@pytest.mark.parametrize("verb", ["report", "results", "show", "export", "plot"])
def test_commands_name_the_run_that_has_another_form(results: Path, command: Command, verb: str) -> None:
    more = {
        "report": ["--format", "html", "--output", "report.html"],
        "show": ["amara-q01"],
        "export": ["--output", "rows.csv"],
        "plot": ["forest", "--output", "chart.svg"],
    }.get(verb, [])
    if verb == "show":
        overwrite(results, "steps", "run = 'second'", {"inputs": "7"})
    overwrite(results, "cases", "run = 'second'", {"body": "7"})
    overwrite(results, "runs", "id = 'second'", {"spec": '{"benchmarks": 5}'})
    done = command(verb, "second", *more, "--results", str(results))
    assert "unexpected" not in done.err
    assert done.code == 0 or "run second" in done.err
