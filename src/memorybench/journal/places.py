"""Finds the journal of a results folder."""

from __future__ import annotations

from pathlib import Path

from .contract import Journal
from .sqlite import SqliteJournal


def journal_of(folder: Path) -> Journal:
    return SqliteJournal(folder)
