"""What a resumed run keeps, and what may have changed since it began."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memorybench import __version__
from memorybench.catalog.catalog import Catalog
from memorybench.journal.rows import Fingerprint, crc
from tests.cli.command import Command

EVAL = ("eval", "--providers", "bm25", "--limit", "8", "--run-id", "r")


def write_fingerprint_of_previous_release(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Replace the fingerprint of bm25 by the text of version 0.1: every field, null or not, and the description."""
    config = Catalog(folder).provider("bm25").plain()
    del config["connection"]["tls"]
    config["description"] = "Another description"
    change(config)
    text = f"{json.dumps(config, indent=1, sort_keys=True, ensure_ascii=False)}\nmemorybench {__version__}"
    with sqlite3.connect(folder / "results" / "results.db") as db:
        columns = list(
            db.execute("SELECT id, suite, spec, fingerprints, program, planned, created FROM runs").fetchone()
        )
        columns[3] = json.dumps({**json.loads(columns[3]), "provider bm25": Fingerprint.of(text).plain()})
        db.execute("UPDATE runs SET fingerprints = ?, crc = ?", (columns[3], crc(*columns)))


def test_a_run_of_the_previous_release_is_resumed(command: Command) -> None:
    assert command.killed(*EVAL, "--concurrency", "1", at=40)
    write_fingerprint_of_previous_release(command.folder, lambda config: None)
    said = command("eval", "--resume", "r", "--json")
    assert said.code == 0, said.err
    assert said.json["counts"]["scored"] == 8


def test_a_run_of_the_previous_release_with_another_setting_is_refused(command: Command) -> None:
    assert command.killed(*EVAL, "--concurrency", "1", at=40)

    def raise_retries(config: dict[str, Any]) -> None:
        config["rate_limit"]["max_retries"] = 9

    write_fingerprint_of_previous_release(command.folder, raise_retries)
    said = command("eval", "--resume", "r")
    assert said.code == 2
    assert "max_retries" in said.err
    assert "description" not in said.err
