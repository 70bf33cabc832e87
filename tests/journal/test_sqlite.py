"""The journal in a SQLite file fulfils the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from .contract import JournalContract, execute


class TestSqlite(JournalContract):
    @pytest.fixture
    def results(self, tmp_path: Path) -> Path:
        return tmp_path / "results"

    def set_version(self, results: Path, version: int) -> None:
        execute(results, f"PRAGMA user_version={version}")
