"""`memorybench verify` does what many trials need once, so that its effort grows with the number of trials only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorybench.bundles import archive
from memorybench.bundles.archive import open_archive
from memorybench.bundles.contents import KeptRows
from memorybench.bundles.rows import OutcomeRow
from memorybench.suites import recorded_ingest
from memorybench.suites.bench import plan
from tests.bundles.editing import ROWS, read_files, rows_of
from tests.cli.command import Command

pytestmark = pytest.mark.slow

PROVIDERS = ("bm25", "full-context", "placebo", "none")


def count_calls(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, key: Callable[..., str]) -> Counter[str]:
    """Count the calls of a function by what `key` returns for their arguments."""
    function, calls = getattr(module, name), Counter[str]()

    def counted(*arguments: Any) -> Any:
        calls[key(*arguments)] += 1
        return function(*arguments)

    monkeypatch.setattr(module, name, counted)
    return calls


@pytest.fixture
def path(command: Command) -> Path:
    """The bundle of a run with several questions about each history."""
    words = ("eval", "--providers", *PROVIDERS, "--run-id", "many", "--output", "results")
    command.once(*words)
    assert command("bundle", "many").code == 0
    return command.folder / "many.mbz"


def test_histories_are_digested_once_per_subject(command: Command, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = read_files(path)
    searches = sum(step["name"] == "search" for step in rows_of(files, "steps.jsonl"))
    digests = count_calls(monkeypatch, recorded_ingest, "digest", lambda history: str(history.id))
    turns = count_calls(monkeypatch, plan, "all_turns", lambda history: str(history.id))
    places = count_calls(monkeypatch, plan, "Places", lambda history: str(history.id))
    pairs = count_calls(monkeypatch, plan, "partners", lambda questions: "all")
    assert command("verify", str(path), "--json").json["level"] == "recomputed with data"
    assert set(digests.values()) == {1}
    assert searches > len(digests)
    assert max(turns.values()) <= len(PROVIDERS) - 1
    assert max(places.values()) <= len(PROVIDERS)
    assert pairs["all"] == 1


def test_equal_scores_are_in_memory_once(path: Path) -> None:
    with open_archive(path) as opened:
        rows = KeptRows.in_archive(opened)
        scores = [score for row in rows.of("outcomes.jsonl", OutcomeRow) for score in row.body.scores]
    assert len({id(score) for score in scores}) == len(set(scores)) < len(scores)


def test_each_row_is_decoded_once(command: Command, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sum(len(read_files(path)[name].splitlines()) for name in ROWS)
    decoded = count_calls(monkeypatch, archive, "decode", lambda text, where, line=1: where.rpartition(" ")[2])
    assert command("verify", str(path), "--json").code == 0
    assert sum(count for name, count in decoded.items() if name in ROWS) == rows
