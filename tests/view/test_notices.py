"""What a reader must know stands where it is needed: errors, warnings, ends of lists and of runs."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.cli.command import Command
from tests.doubles.stub import Stub, completion
from tests.view.conftest import get, opened


@pytest.mark.slow
def test_compare_shows_its_form_below_an_error(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded / "results", tmp_path / "results")
    with closing(sqlite3.connect(tmp_path / "results" / "results.db")) as db:
        db.execute("UPDATE outcomes SET body = replace(body, 'recall', 'Recall') WHERE run IN ('first', 'second')")
        db.commit()
    with opened(tmp_path / "results") as client:
        for path, status in (
            ("/compare", 422),
            ("/compare?side=0/h", 422),
            ("/compare?side=0/absent&side=0/h", 404),
            ("/compare?side=x", 404),
        ):
            reply = client.get(path)
            while reply.status_code == 202:
                reply = client.get(path)
            assert reply.status_code == status
            assert '<form class="filters" method="get" action="/compare">' in reply.text
            assert 'class="card warning"' in reply.text


@pytest.mark.slow
def test_a_judge_that_fails_its_check_is_named_before_figures(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Stub() as stub:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        stub.always(completion(lambda call: "yes", model="", tokens=(200, 2)))
        answered = ("--answering-model", "scripted/quote", "--judge-model", "gpt-4o", "--canaries", "48")
        assert command("eval", "--providers", "bm25", "dense", "--end", "6", *answered, "--run-id", "r").code == 0
    report = (tmp_path / "results" / "r" / "report.html").read_text()
    with opened(tmp_path / "results") as client:
        runs = get(client, "/").partition('href="/run/0/r"')[2]
        run, compare = get(client, "/run/0/r"), get(client, "/compare?side=0/r:bm25&side=0/r:dense")
    assert "judge gpt-4o failed its check" in runs.partition('class="headline"')[0]
    for page in (report, run, compare):
        assert 0 < page.index("judge gpt-4o failed its check") < page.index('class="lead"')


@pytest.mark.slow
def test_two_of_several_providers_are_compared_with_a_hint(command: Command, tmp_path: Path) -> None:
    assert command("eval", "--providers", "bm25", "dense", "hybrid", "--end", "6", "--run-id", "r").code == 0
    with opened(tmp_path / "results") as client:
        whole = get(client, "/compare?side=0/r")
        two = get(client, "/compare?side=0/r:bm25&side=0/r:dense")
    (tests,) = set(re.findall(r"for (\d+) tests", unescape(whole).partition("Holm's method")[2][:20]))
    hint = re.search(r'<p class="hint">[^<]*3 providers[^<]*<a href="/run/0/r">[^<]*</a>[^<]*</p>', two)
    assert hint
    assert f"{tests} tests" in hint[0]
    assert "3 providers" not in whole


def test_many_warnings_of_a_comparison_are_folded(command: Command, tmp_path: Path) -> None:
    providers = [f"bm25(b=0.{place})" for place in range(1, 7)]
    assert command("eval", "--providers", *providers, "--end", "6", "--run-id", "r").code == 0
    with opened(tmp_path / "results") as client:
        page = get(client, "/compare?side=0/r")
    notes = page.partition('class="card warning"')[2].partition("</section>")[0]
    shown, _, folded = notes.partition("<details>")
    assert shown.count("<p>") == 10
    assert folded.count("<p>") > 0
    assert f"{folded.count('<p>')} more" in folded


def test_clear_is_in_the_part_that_a_filter_renews(client: TestClient) -> None:
    page = get(client, "/run/0/first/questions?provider=bm25")
    assert ">clear</a>" in page.partition('id="found"')[2]


def test_a_page_after_the_last_one_says_so(client: TestClient) -> None:
    page = get(client, "/run/0/first/questions?offset=100000")
    assert "No question matches" not in page
    assert "12–12" not in page
    assert 'rel="prev" href="/run/0/first/questions?offset=0"' in page
    assert "No question matches" in get(client, "/run/0/first/questions?text=zzzz")


def test_the_page_of_a_run_that_ended_is_loaded_again(client: TestClient) -> None:
    assert client.get("/run/0/first/progress", headers={"HX-Request": "true"}).headers["hx-refresh"] == "true"
