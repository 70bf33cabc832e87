"""What a reader must know stands where it is needed: errors, warnings, ends of lists and of runs."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from starlette.testclient import TestClient

from tests.view.conftest import get, opened


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
