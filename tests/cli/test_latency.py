"""Latency is the target's own: without the queue of the harness, and with index building as time to searchable."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import Any

import pytest

from memorybench.journal.checksums import crc
from memorybench.providers.bm25 import Bm25
from memorybench.providers.dense import Dense
from memorybench.providers.hybrid import Hybrid
from tests.cli.command import Command

SLOW = """
import time


class Memory:
    def add(self, scope, session):
        time.sleep(0.02)

    def search(self, scope, query, limit):
        time.sleep(0.1)
        return []
"""


def stages(document: dict[str, Any], subject: str) -> dict[str, Any]:
    return {one["name"]: one for one in document["circumstances"]["stages"] if one["subject"] == subject}


@pytest.mark.slow
def test_a_python_adapter_is_timed_in_its_thread(command: Command) -> None:
    folder = command.folder / "providers" / "configs"
    folder.mkdir(parents=True)
    (folder / "slow.yaml").write_text("name: slow\ntype: local\nadapter: ./memory.py:Memory\n")
    (folder / "memory.py").write_text(SLOW)
    search = {}
    for concurrency in (1, 10):
        said = command(
            "eval", "--providers", "slow", "--end", "12", "--allow-code", "--concurrency", str(concurrency), "--json"
        )
        assert said.code == 0, said.err
        search[concurrency] = stages(said.json, "slow")["search"]["seconds_p50"]
        assert search[concurrency] >= 0.1
    # the adapter has one thread, so the median question waits for several others
    assert search[10] < 3 * search[1]


DELAY = 0.5


def _slow(build: Any) -> Any:
    def build_slowly(self: Any, *arguments: Any) -> Any:
        time.sleep(DELAY)
        return build(self, *arguments)

    return build_slowly


@pytest.mark.slow
@pytest.mark.parametrize("provider", [Bm25, Dense, Hybrid])
def test_the_index_of_an_embedded_provider_is_built_before_the_first_search(
    command: Command, monkeypatch: pytest.MonkeyPatch, provider: type
) -> None:
    name = provider.__name__.lower()
    monkeypatch.setattr(provider, "build_index", _slow(provider.build_index))
    said = command("eval", "--providers", name, "--end", "6", "--json")
    assert said.code == 0, said.err
    found = stages(said.json, name)
    assert found["wait_until_searchable"]["seconds_p50"] >= DELAY
    assert found["search"]["seconds_p95"] < found["wait_until_searchable"]["seconds_p50"]


def test_a_run_of_an_earlier_version_says_how_it_was_timed(command: Command) -> None:
    command("eval", "--providers", "bm25", "--end", "2", "--run-id", "r")
    now = command("results", "r", "--json").json
    assert now["circumstances"]["timing"] == "target"
    with sqlite3.connect(command.folder / "results" / "results.db") as db:
        columns = list(
            db.execute("SELECT id, suite, spec, fingerprints, program, planned, created FROM runs").fetchone()
        )
        spec = json.loads(columns[2])
        del spec["timing"]
        columns[2] = json.dumps(spec)
        db.execute("UPDATE runs SET spec = ?, crc = ?", (columns[2], crc(*columns)))
    before = command("results", "r", "--json").json
    assert before["circumstances"]["timing"] == "with queue"
