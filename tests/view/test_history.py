"""The page of a conversation: read again from the data of the run, only if that is here, allowed and unchanged."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from memorybench.datasets import index, mapped
from memorybench.datasets.starter import Starter
from memorybench.journal.checksums import CHECKSUMS, crc
from tests.cli.command import Command
from tests.view.conftest import get, opened
from tests.view.hostile import STRINGS, Markup, storable

CONFIG = """
name: mine
data: {type: local, path: mine.json}
schema:
  itemId: id
  question: question
  answer: answer
  evidence: gold
  context:
    field: sessions
    idField: names
    dateField: dates
    itemSchema: {content: text, role: role}
evaluation: {method: exact-match}
"""
GREEN, OTHER = "The fence is green, xq9.", "It rained all day, xq8."


def item(name: str, *texts: str) -> dict[str, Any]:
    return {
        "id": name,
        "question": "Which colour is the fence?",
        "answer": "green",
        "gold": ["later"],
        "names": ["early", "later"],
        "dates": ["2024-01-08", "2024-02-09"],
        "sessions": [
            [{"role": "user", "text": OTHER}, *({"role": "user", "text": text} for text in texts)],
            [{"role": "user", "text": GREEN}],
        ],
    }


@pytest.fixture
def run_mine(command: Command, tmp_path: Path) -> Callable[..., Path]:
    """Runs a benchmark of a data file; returns the results folder."""

    def run(*items: dict[str, Any], text: str = "") -> Path:
        (tmp_path / "mine.yaml").write_text(CONFIG)
        (tmp_path / "mine.json").write_text(text or json.dumps(list(items)))
        done = command("eval", "--benchmarks", "mine", "--config-dir", ".", "--providers", "bm25", "--run-id", "r")
        assert done.code == 0, done.err
        return tmp_path / "results"

    return run


def history(client: TestClient, **query: str) -> str:
    return unescape(get(client, f"/run/0/r/history?{urlencode(query)}"))


@pytest.mark.slow
def test_a_conversation_is_shown_with_its_evidence_and_who_retrieved_it(client: TestClient, command: Command) -> None:
    question = next(one for one in Starter().questions if one.gold_turns)
    page = get(client, f"/run/0/first/history?cluster={question.haystack}&case={question.id}")
    text = " ".join(Markup(page).text.split())
    for session in Starter().haystack(question.haystack).sessions:
        assert f"{session.at:%Y-%m-%d}" in text
        for turn in session.turns:
            assert " ".join(turn.content.split()) in text
    turns = page.split('<div class="turn')[1:]
    assert [turn.split("<span>")[1].split("<")[0] for turn in turns if turn.startswith('"')] == [*question.gold_turns]
    opened = get(client, f"/run/0/first/question?benchmark=starter&case={question.id}")
    assert (
        f"/run/0/first/history?benchmark=starter&amp;cluster={question.haystack}&amp;case={question.id}#eviden"
        in opened
    )


def test_the_marks_are_the_ranks_that_show_has(recorded: Path, client: TestClient, command: Command) -> None:
    question = next(one for one in Starter().questions if one.gold_turns)
    shown = command(
        "show", "first", question.id, "--provider", "bm25", "--results", str(recorded / "results"), "--json"
    )
    (trial,) = shown.json["trials"]
    page = get(client, f"/run/0/first/history?cluster={question.haystack}&case={question.id}")
    ranks = {
        turn.split("<span>")[1].split("<")[0]: turn.split("as memory ")[1].split('"')[0]
        for turn in page.split('<div class="turn')[1:]
        if "as memory" in turn
    }
    expected = {memory["sources"][-1]: str(memory["rank"]) for memory in trial["memories"] if memory["rank"] <= 10}
    assert expected
    assert expected.items() <= ranks.items()


def test_an_audit_shows_its_conversations(client: TestClient) -> None:
    page = get(client, "/run/1/a/history")
    assert "cannot be read" not in page
    assert page.count('<div class="turn other"') > page.count('<div class="turn"') > 0


def test_a_run_without_conversations_says_so_and_has_no_link(client: TestClient) -> None:
    assert "Only turns with evidence" in get(client, "/run/0/h/history")
    assert "/history" not in get(client, "/run/0/h")
    assert "/history" in get(client, "/run/1/a")


@pytest.mark.slow
@pytest.mark.parametrize("change", ["deleted", "changed", "config"])
def test_data_that_is_gone_or_changed_is_not_shown(run_mine: Callable[..., Path], tmp_path: Path, change: str) -> None:
    results = run_mine(item("q1"), item("q2"))
    with opened(results) as client:
        assert OTHER in history(client, cluster="q1")
    if change == "deleted":
        (tmp_path / "mine.json").unlink()
    elif change == "changed":
        (tmp_path / "mine.json").write_text(json.dumps([item("q1", "Something new, xq7."), item("q2")]))
    else:
        (tmp_path / "mine.yaml").write_text(CONFIG.replace("content: text", "content: role"))
    with opened(results) as client:
        page = history(client, cluster="q1")
        assert OTHER not in page
        assert "xq7" not in page
        assert GREEN in page, "the run has recorded it"
        assert "cannot be read" in page


@pytest.mark.slow
def test_no_file_outside_is_read(
    run_mine: Callable[..., Path],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The spec of a run may name any file, and its author may know the fingerprint of it."""
    elsewhere, results = tmp_path_factory.mktemp("elsewhere"), run_mine(item("q1"))
    shutil.move(tmp_path / "mine.json", elsewhere / "mine.json")
    (tmp_path / "mine.json").symlink_to(elsewhere / "mine.json")
    with opened(results) as client:
        assert "outside the folders" in history(client)
    (tmp_path / "mine.json").unlink()
    change_spec(results, data_files={"mine": str(elsewhere / "mine.json")})
    with opened(results) as client:
        assert "outside the folders" in history(client)
        assert OTHER not in history(client)
    monkeypatch.chdir(elsewhere)  # a folder that the user chose
    with opened(results) as client:
        page = history(client)
        assert OTHER in page, page[page.index("<h1") :][:600]


@pytest.mark.parametrize(
    "name", ["/proc/self/environ", "/dev/zero", "/etc/passwd", "pipe", ".", "a\0b", "loop", "empty"]
)
def test_what_a_spec_names_is_neither_waited_for_nor_shown(
    run_mine: Callable[..., Path], tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = run_mine(item("q1"))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").touch()
    change_spec(results, data_files={"mine": name}, config_dirs=[".", name])
    with opened(results) as client:
        page = history(client)
        assert "cannot be read" in page
        assert "root:" not in page
        monkeypatch.chdir("/")
        assert "cannot be read" in history(client)


def test_no_code_runs_for_a_page(
    run_mine: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = run_mine(item("q1"))
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine.yaml").write_text(
        CONFIG.replace("method: exact-match", "method: custom, customEvaluator: './evil.py:run'")
    )
    with opened(results) as client:
        page = history(client)
        assert "--allow-code" in page, page[page.index("<h1") :][:600]
    (tmp_path / "mine.yaml").write_text(
        "name: mine\ndata: {type: plugin, path: theirs}\nevaluation: {method: exact-match}\n"
    )
    with opened(results) as client:
        assert "code makes them" in history(client)
    assert not (tmp_path / "ran").exists()


def test_a_large_file_is_read_by_its_index_and_nothing_is_written(
    run_mine: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYBENCH_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(index, "SMALLEST", 0)
    results = run_mine(item("q1"), item("q2", "Only the second has it, xq6."))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")}

    def fail(*_: object) -> None:
        raise AssertionError("the file is parsed again")

    monkeypatch.setattr(mapped, "read_items", fail)
    with opened(results) as client:
        assert "xq6" in history(client, cluster="q2")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")} == before


def test_a_large_file_without_an_index_is_not_parsed(
    run_mine: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = run_mine(item("q1"))
    monkeypatch.setattr("memorybench.wiring.datasets._LARGEST_WITHOUT_INDEX", 100)
    with opened(results) as client:
        page = history(client)
    assert "larger than" in page
    assert OTHER not in page


def test_long_conversations_are_paged_from_the_evidence_on(run_mine: Callable[..., Path]) -> None:
    results = run_mine(item("q1", *(f"Line number {n}." for n in range(450))))
    with opened(results) as client:
        first, chosen = history(client), history(client, case="q1")
        assert ("Line number 1." in first, "Line number 440." in first, GREEN in first) == (True, False, False)
        assert ("Line number 1." in chosen, GREEN in chosen) == (False, True)
        assert 'rel="next"' in first
        assert "Line number 250." in history(client, offset="200")
        assert "Line number" not in history(client, offset="999999")


def test_hostile_conversations_stay_text(run_mine: Callable[..., Path]) -> None:
    texts = [text for text in map(storable, STRINGS) if "\0" not in text]
    results = run_mine(text=json.dumps([item("q1", *texts)]))
    with opened(results) as client:
        page = get(client, "/run/0/r/history")
    markup = Markup(page)
    assert page.count("xk7") > 40
    assert not "".join(markup.scripts).strip()
    assert not {"iframe", "img", "svg", "object", "base", "template"} & markup.tags
    assert not [name for name in markup.attributes if name.startswith("on")]


def change_spec(results: Path, **changes: Any) -> None:
    """Change the saved spec of the run, with a correct checksum."""
    with closing(sqlite3.connect(results / "results.db")) as db:
        db.row_factory = sqlite3.Row
        row = dict(db.execute("SELECT rowid, * FROM runs").fetchone())
        row["spec"] = json.dumps(json.loads(row["spec"]) | changes)
        checked = crc(*(row[column] for column in CHECKSUMS["runs"]["crc"]))
        db.execute("UPDATE runs SET spec = ?, crc = ? WHERE rowid = ?", (row["spec"], checked, row["rowid"]))
        db.commit()
