"""`memorybench leaderboard`: a static page from verified bundles only."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from memorybench.core.trials import Trial
from tests.bundles.editing import as_lines, read_files, rows_of, write_files
from tests.bundles.test_attacks import Forgery
from tests.cli.command import Command
from tests.doubles.stub import Stub, completion, status

MakeBundle = Callable[..., Path]


class Page(HTMLParser):
    """The rows of the tables, and the links."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "a":
            self.links.append(dict(attrs).get("href") or "")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += " ".join(data.split())


@pytest.fixture
def folder(command: Command, bundle: MakeBundle) -> Path:
    """Two bundles of the same questions, one of other ones, and one whose score was changed."""
    place = command.folder / "bundles"
    paths = {name: bundle(name) for name in ("judged", "hygiene")}
    place.mkdir()
    for path in paths.values():
        shutil.copy(path, place)
    files = read_files(paths["judged"])
    outcomes = rows_of(files, "outcomes.jsonl")
    outcomes[0]["body"]["scores"][0]["value"] = 1 - outcomes[0]["body"]["scores"][0]["value"]
    write_files(place / "tampered.mbz", {**files, "outcomes.jsonl": as_lines(outcomes)})
    (place / "broken.mbz").write_bytes(b"PK")
    return place


@pytest.mark.slow
def test_the_page_has_verified_bundles_and_names_the_refused_ones(command: Command, folder: Path) -> None:
    said = command("leaderboard", str(folder), "--output", "site", "--json")
    assert said.code == 0, said.err
    assert said.json["verified"] == 2
    assert {one["file"] for one in said.json["refused"]} == {"tampered.mbz", "broken.mbz"}
    page = Page(command.folder / "site" / "index.html")
    rows = {row[0].split("baseline")[0]: row for row in page.rows if len(row) > 5}
    assert {"bm25", "oracle", "none"} <= {*rows}
    assert "questions checked" in rows["bm25"][-3]
    assert rows["bm25"][-5] == "4/4", "scored, of those planned"
    assert "questions declared" in rows["reference"][-3]
    text = (command.folder / "site/index.html").read_text()
    assert "tampered.mbz" in text
    assert "script" not in page.tags
    bundles = {link for link in page.links if link.endswith(".mbz")}
    assert len(bundles) == 2
    for link in bundles:
        assert command("verify", str(command.folder / "site" / link)).code == 0
    assert sorted(path.name for path in (command.folder / "site/bundles").iterdir()) == sorted(
        link.removeprefix("bundles/") for link in bundles
    )


def test_failed_trials_are_shown_beside_the_scores_that_leave_them_out(
    command: Command, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
    answers = iter((True, False, True, True))
    stub.always(lambda *call: (completion("no idea") if next(answers) else status(400))(*call))
    scripted = ("--answering-model", "scripted/quote", "--judge-model", "scripted/judge")
    models = ("--answering-model", "openai/gpt-4o", "--judge-model", "scripted/judge", "--canaries", "off")
    command("eval", "--providers", "bm25", "--end", "4", *models, "--concurrency", "1", "--run-id", "r")
    command("eval", "--providers", "bm25", "--end", "4", *scripted, "--run-id", "whole")
    (command.folder / "bundles").mkdir()
    for name in ("r", "whole"):
        assert command("bundle", name, "--output", f"bundles/{name}.mbz").code == 0
    assert command("leaderboard", "bundles", "--output", "site").code == 0
    cells = [row[-5] for row in Page(command.folder / "site" / "index.html").rows if row[0] == "bm25"]
    assert sorted(cells) == ["3/41 failed", "4/4"]


@pytest.mark.slow
def test_rows_are_sorted_by_the_main_measure(command: Command, folder: Path) -> None:
    assert command("leaderboard", str(folder), "--output", "site").code == 0
    page = Page(command.folder / "site" / "index.html")
    start = next(place for place, row in enumerate(page.rows) if row[1:2] == ["accuracy"])
    values = []
    for row in page.rows[start + 1 :]:
        found = re.match(r"([\d.]+)%", row[1])
        if not found:
            break
        values.append(float(found[1]))
    assert len(values) == 3
    assert values == sorted(values, reverse=True)


@pytest.mark.slow
def test_with_a_key_bundles_without_its_signature_are_refused(command: Command, folder: Path) -> None:
    assert command("keygen", "author").code == 0
    signed = command("bundle", "judged", "--output", str(folder / "signed.mbz"), "--sign", "author")
    assert signed.code == 0
    said = command("leaderboard", str(folder), "--output", "site", "--key", "author.pub", "--json")
    assert said.json["verified"] == 1
    assert {one["file"] for one in said.json["refused"]} == {
        *("judged.mbz", "hygiene.mbz", "tampered.mbz", "broken.mbz")
    }


@pytest.mark.slow
def test_names_and_texts_of_bundles_are_escaped(command: Command, folder: Path) -> None:
    name = '"><img src=x onerror=alert(1)>.mbz'
    shutil.copy(folder / "tampered.mbz", folder / name)
    assert command("leaderboard", str(folder), "--output", "site").code == 0
    assert "img" not in Page(command.folder / "site" / "index.html").tags


@pytest.mark.slow
def test_names_of_bundles_are_short_and_have_no_marks(command: Command, bundle: MakeBundle) -> None:
    """A name that differs in what is not shown is another name: its rows have a table of their own."""
    place = command.folder / "bundles"
    place.mkdir()
    shutil.copy(bundle("judged", "--public"), place)
    forgery = Forgery(place / "judged.mbz")
    forgery.run["spec"] |= {"answerer": "scripted/quote\u200b"}
    name = "\u202emb25" + "x" * 100_000
    forgery.run["spec"] |= {"providers": [name, "oracle", "none"], "subjects": [name, "oracle", "none"]}
    for row in forgery.rows["outcomes"]:
        if row["body"]["trial"]["subject"]["name"] == "bm25":
            row["body"]["trial"]["subject"]["name"] = name
            row["trial"] = Trial.model_validate(row["body"]["trial"]).key
    assert not forgery.verify(command)["contradicted"]
    said = command("leaderboard", str(place), "--output", "site", "--json")
    assert [len(table["entries"]) for table in said.json["tables"]] == [3, 3]
    assert "\u202e" not in said.out
    assert max(len(word) for word in said.out.split()) < 500
    assert (command.folder / "site/index.html").stat().st_size < 100_000


def test_data_that_is_missing_refuses_the_command_and_not_the_bundles(command: Command, folder: Path) -> None:
    said = command("leaderboard", str(folder), "--output", "site", "--data", "own=missing.json")
    assert (said.code, said.err.split(": ")[1]) == (2, "--data")
    assert not (command.folder / "site").exists()


def test_data_of_an_unknown_benchmark_refuses_the_command(command: Command, bundle: MakeBundle) -> None:
    place, data = command.folder / "bundles", command.folder / "own.json"
    path = bundle("plain")
    place.mkdir()
    shutil.copy(path, place)
    data.write_text("[]")
    said = command("leaderboard", str(place), "--output", "site", "--data", f"startr={data}")
    assert (said.code, said.err.split(": ")[1]) == (2, "--data")
    assert 'did you mean "starter"' in said.err
    assert not (command.folder / "site").exists()


def test_the_path_of_data_may_contain_an_equals_sign(command: Command, bundle: MakeBundle) -> None:
    place, data = command.folder / "bundles", command.folder / "year=2026" / "own.json"
    path = bundle("hygiene")
    place.mkdir()
    shutil.copy(path, place)
    data.parent.mkdir()
    data.write_text("[]")
    assert command("leaderboard", str(place), "--output", "site", "--data", f"locomo={data}").code == 0


def test_a_folder_without_bundles_is_refused(command: Command) -> None:
    assert command("leaderboard", str(command.folder), "--output", "site").code == 2
    assert not (command.folder / "site").exists()


def test_a_missing_folder_is_not_an_empty_one(command: Command) -> None:
    said = command("leaderboard", "nowhere", "--output", "site")
    assert (said.code, "nowhere: folder not found" in said.err) == (2, True)
