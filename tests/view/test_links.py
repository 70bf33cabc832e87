"""A number that is a link is the length of the list that it opens, and every link leads to a page."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

from tests.cli.command import Command
from tests.view.conftest import get, opened
from tests.view.test_history import CONFIG, GREEN, item


def question_links(page: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'href="([^"]*/question\?[^"]+)"', page)]


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
    assert "2 of 2 questions" in page
    assert "shows all" not in page
