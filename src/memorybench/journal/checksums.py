"""Checksums of rows.

They detect an edited row or a flipped bit in a value, which the database itself does not detect.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from memorybench.core.errors import BadInput, JournalError

from .contract import Connection, Journal, Row, Values

_SPENT = ("calls", "input_tokens", "output_tokens", "cost")
CHECKSUMS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "runs": {
        "crc": ("id", "suite", "spec", "fingerprints", "program", "planned", "created"),
        "state_crc": ("id", "status", "finished"),
    },
    "cases": {"crc": ("run", "benchmark", "id", "body")},
    "steps": {
        "crc": (
            *("run", "key", "name", "subject", "inputs", "result", "started", "seconds", "tries", "uncertain"),
            *(*_SPENT, "reused_from", "attempt", "shared"),
        )
    },
    "attempts": {
        "crc": (
            *("id", "run", "key", "name", "subject", "started", "ended", "error", "tries", "uncertain"),
            *_SPENT,
        )
    },
    "outcomes": {
        "crc": ("run", "trial", "ordinal", "benchmark", "case_id", "subject", "status", "body", "finished"),
    },
    "notes": {"crc": ("run", "kind", "text")},
    "tags": {"crc": ("run", "tag")},
}
"""For each table, and each column of it that is a checksum: the columns that the checksum covers, in this order."""
_NAMES = {
    "runs": "id",
    "cases": "id",
    "steps": "key",
    "attempts": "id",
    "outcomes": "trial",
    "notes": "kind",
    "tags": "tag",
}
_MOST_NAMED = 3
_INSERTS = {
    table: f"INSERT INTO {table} ({', '.join(columns['crc'])}, crc) VALUES ({'?,' * len(columns['crc'])}?)"  # noqa: S608  ours
    for table, columns in CHECKSUMS.items()
}


def crc(*columns: object) -> int:
    return zlib.crc32("\x1f".join(map(str, columns)).encode("utf-8", "surrogatepass"))


def insert(table: str, values: Sequence[object], *, keep: bool = False) -> tuple[str, Values]:
    """Return the statement that inserts a row with its checksum. `values` are in the order of CHECKSUMS.

    With `keep`, a row that is there already stays as it is.
    """
    sql = f"{_INSERTS[table]} ON CONFLICT DO NOTHING" if keep else _INSERTS[table]
    return sql, (*values, crc(*values))


def is_unchanged(table: str, row: Row) -> bool | None:
    """Return whether a row matches its checksums; None if one is missing because an earlier version wrote the row."""
    known = row.keys()
    unchanged: bool | None = True
    for checksum, columns in CHECKSUMS[table].items():
        stored = row[checksum] if checksum in known else None
        if stored is None:
            unchanged = None
            continue
        values = [row[column] for column in columns if column in known]
        if stored != crc(*values) and not (table == "steps" and _is_old_step(stored, row)):
            return False
    return unchanged


def _is_old_step(stored: int, row: Row) -> bool:
    """Return whether a step matches the checksum of earlier versions, which did not cover the column `shared`."""
    return stored == crc(*(row[column] for column in CHECKSUMS["steps"]["crc"][:-1]))


def checked_rows(
    name: str, db: Connection, table: str, condition: str, values: Values, *, many: bool = True
) -> Iterator[Row]:
    """Yield the rows that satisfy an SQL condition; raise JournalError at a row that does not match its checksum.

    `name` is the journal's name for the error. With `many`, not all rows are in memory at once.
    """
    for row in db.rows(f"SELECT * FROM {table} WHERE {condition}", values, many=many):  # noqa: S608  both are ours
        if is_unchanged(table, row) is False:
            raise JournalError(
                f"{name}: {_name(table, row)} is damaged, because its checksum is wrong; restore a copy of the results"
            )
        yield row


def update_statements(
    db: Connection, table: str, condition: str, values: Values, changes: Mapping[str, Any]
) -> Iterator[tuple[str, list[Any]]]:
    """Yield statements that set the columns in `changes` of all rows that satisfy a condition, and their checksums.

    A row that has no checksum does not get one.
    """
    for row in db.rows(f"SELECT rowid AS row_number, * FROM {table} WHERE {condition}", values, many=True):  # noqa: S608  ours
        sealed = {
            checksum: crc(*(changes.get(column, row[column]) for column in columns))
            for checksum, columns in CHECKSUMS[table].items()
            if row[checksum] is not None and not changes.keys().isdisjoint(columns)
        }
        changed = {**changes, **sealed}
        assignments = ", ".join(f"{column} = ?" for column in changed)
        yield f"UPDATE {table} SET {assignments} WHERE rowid = ?", [*changed.values(), row["row_number"]]  # noqa: S608  ours


def _name(table: str, row: Row) -> str:
    return f"{table.removesuffix('s')} {row[_NAMES[table]]}"


class CheckedRows(NamedTuple):
    runs: int
    rows: int
    unchecked: int
    """How many rows could not be checked fully, because an earlier version wrote them without some of the checksums."""


def check_rows(journal: Journal) -> CheckedRows:
    """Check every row of a journal.

    Raise BadInput if one does not match its checksum, or if a complete run lacks outcomes.
    """
    with journal.errors(), closing(journal.open_for_reading()) as db:
        damaged: list[str] = []
        counts = dict.fromkeys(CHECKSUMS, 0)
        unchecked = 0
        for table in filter(db.has_table, CHECKSUMS):
            for row in db.rows(f"SELECT * FROM {table}", (), many=True):  # noqa: S608  ours
                unchanged = is_unchanged(table, row)
                counts[table] += 1
                unchecked += unchanged is None
                if unchanged is False:
                    damaged.append(f"{_name(table, row)} was changed")
        damaged += _missing_outcomes(db)
    if damaged:
        more = f" and {len(damaged) - _MOST_NAMED} more" if len(damaged) > _MOST_NAMED else ""
        raise BadInput(
            journal.name,
            f"rows are damaged or missing: {', '.join(damaged[:_MOST_NAMED])}{more}",
            expected="rows as memorybench wrote them",
            remedy="restore a copy of the results",
        )
    return CheckedRows(counts["runs"], sum(counts.values()), unchecked)


def _missing_outcomes(db: Connection) -> list[str]:
    """Return one text for each complete run whose number of outcomes is not its number of planned trials."""
    rows = db.execute(
        "SELECT id, planned, found FROM (SELECT id, planned, status,"
        " (SELECT count(*) FROM outcomes WHERE run = runs.id) AS found FROM runs) AS counted"
        " WHERE status = 'complete' AND planned != found"
    )
    return [f"run {run} is complete and has {found} of {planned} outcomes" for run, planned, found in rows]
