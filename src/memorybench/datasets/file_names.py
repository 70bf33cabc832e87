"""Whether the name of a data file is that of an archive or a glob."""

from __future__ import annotations


def is_archive(name: str) -> bool:
    return name.lower().endswith(".zip")


def is_glob(name: str) -> bool:
    return name.startswith("!") or any(mark in name for mark in "*?[")
