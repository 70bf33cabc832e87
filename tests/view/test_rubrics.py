"""The page of a question lists the items of its rubric with their scores."""

from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.cli.test_rubrics import QUESTIONS, RUBRIC, config, write
from tests.view.conftest import get, opened


@pytest.mark.slow
def test_a_question_page_lists_the_items_of_its_rubric(command: Command) -> None:
    write(command, QUESTIONS, config(RUBRIC))
    run = ("eval", "--benchmarks", "chats", "--providers", "oracle", "--run-id", "r")
    command(*run, "--answering-model", "scripted/quote", "--judge-model", "scripted/judge", "--canaries", "off")
    with opened(Path(command.folder) / "results") as client:
        page = get(client, "/run/0/r/question?benchmark=chats&case=chat-1%3Aq1")
    for item in QUESTIONS[1]["rubric"]:
        assert item in page
    assert "Rubric" in page
