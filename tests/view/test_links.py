"""A number that is a link is the length of the list that it opens, and every link leads to a page."""

from __future__ import annotations

import json
import os
import re
import shutil
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

from tests.cli.command import Command
from tests.view.conftest import SCRIPTED, get, opened
from tests.view.test_history import CONFIG, GREEN, item


def question_links(page: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'href="([^"]*/question\?[^"]+)"', page)]


def listed(client: TestClient, address: str) -> int:
    """How many questions a list has."""
    found = re.search(r"of ([\d,]+) questions", get(client, unescape(address)))
    return int(found[1].replace(",", "")) if found else 0


@pytest.mark.slow
def test_ids_with_spaces_lead_to_their_questions(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(CONFIG)
    (tmp_path / "mine.json").write_text(json.dumps([item(f"question {n} of May", GREEN) for n in range(3)]))
    arguments = ("--benchmarks", "mine", "--config-dir", ".", "--providers", "oracle", "none", "--run-id", "r")
    assert command("eval", *arguments).code == 0
    with opened(tmp_path / "results") as client:
        page = get(client, "/compare?side=0/r:oracle&side=0/r:none&only=changed")
        assert len(set(question_links(page))) == 3
        for address in question_links(page):
            assert get(client, address)


def test_a_report_counts_scenarios_and_not_their_mutants(recorded: Path) -> None:
    page = (recorded / "results" / "h" / "report.html").read_text()
    assert "2 of 2 scenarios" in page
    assert "shows all" not in page


def check_counts(client: TestClient, address: str) -> set[str]:
    """Check that the numbers of a page are those of the lists that they open; return what the lists are filtered by."""
    counted = re.findall(r'<a href="([^"]*/questions\?[^"]+)">([\d,]+)(?: questions?)?</a>', get(client, address))
    for target, count in counted:
        assert listed(client, target) == int(count.replace(",", "")), target
    return {name for target, _ in counted for name in parse_qs(urlsplit(unescape(target)).query)}


@pytest.mark.slow
def test_with_repeats_counts_are_those_of_the_lists(command: Command, tmp_path: Path) -> None:
    arguments = ("--providers", "bm25", "dense", "--end", "20", "--repeats", "3", *SCRIPTED, "--run-id", "r")
    assert command("eval", *arguments).code == 0
    with opened(tmp_path / "results") as client:
        assert check_counts(client, "/run/0/r") == {"right", "wrong", "provider", "outcome"}


@pytest.mark.parametrize("run", ["0/first", "0/second", "0/h", "0/e", "1/a"])
def test_counts_are_those_of_the_lists(client: TestClient, run: str) -> None:
    check_counts(client, f"/run/{run}")


@pytest.mark.slow
def test_runs_of_one_name_are_told_apart_by_their_folders(recorded: Path, tmp_path: Path) -> None:
    folders = [tmp_path / name / "results" for name in ("one", "two")]
    for folder in folders:
        shutil.copytree(recorded / "results", folder)
    with opened(*folders) as client:
        runs, trends, compare = (unescape(get(client, path)) for path in ("/", "/trends", "/compare"))
        both = get(client, "/compare?side=0/first:bm25&side=1/first:bm25")
    for place, folder in enumerate(folders):
        name = os.path.join(os.path.relpath(folder), "first")
        assert f'<a href="/run/{place}/first">{name}</a>' in runs
        assert f'<a href="/run/{place}/first">{name}</a>' in trends
        assert f'<option value="{place}/first">{name}</option>' in compare
        assert name in both.partition("<h1>")[2].partition("</h1>")[0]


@pytest.mark.slow
def test_each_benchmark_has_its_verdict_and_its_questions(command: Command, tmp_path: Path) -> None:
    names = ("mine", "yours")
    for name in names:
        (tmp_path / f"{name}.yaml").write_text(CONFIG.replace("mine", name))
        (tmp_path / f"{name}.json").write_text(json.dumps([item(f"{name}{n}", GREEN) for n in range(8)]))
    arguments = ("--config-dir", ".", "--providers", "bm25", "dense", "bm25(k1=0.5)", "--run-id", "r")
    assert command("eval", "--benchmarks", *names, *arguments).code == 0
    with opened(tmp_path / "results") as client:
        for address in ("/run/0/r", "/compare?side=0/r", "/compare?side=0/r:bm25&side=0/r:dense"):
            page = unescape(get(client, address))
            verdict = re.findall(r'<p class="lead">(.*?)</p>', page)
            for name in names:
                assert any(line.startswith(f"{name}: ") for line in verdict)
            if "side=0/r:" not in address:
                assert any("Holm" in line and "intervals are not" in line for line in verdict)
        page = unescape(get(client, "/run/0/r"))
        targets = [parse_qs(urlsplit(one).query) for one in re.findall(r'<a href="([^"]*/questions\?[^"]+)"', page)]
    assert {one["benchmark"][0] for one in targets if "benchmark" in one} == set(names)
