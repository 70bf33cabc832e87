"""Finds where in a SQLite file a byte is: in a row, on a free page, or in unused bytes of a page.

The format: https://www.sqlite.org/fileformat.html.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from memorybench.secrets.canaries import find_text
from memorybench.secrets.compressed import unpack
from memorybench.secrets.decoding import text_in

_HEADER = 100
"""The size in bytes of the file header, with which the first page begins."""
_LEAVES, _INTERIORS = (0x0A, 0x0D), (0x02, 0x05)
"""The values that the first byte of leaf pages and of interior pages of tables and indexes can have."""


def database_place(path: Path, octets: bytes, offset: int, text: str) -> str:
    """Return where a byte is: `row in table …`, `row on page …`, `free page …` or `unused bytes of page …`."""
    size = int.from_bytes(octets[16:18])
    size = 65536 if size <= 1 else size
    page = offset // size + 1
    if page in _free_pages(octets, size):
        return f"free page {page}"
    unused = _is_unused(octets[(page - 1) * size : page * size], offset % size, is_first=page == 1)
    table = None if unused else _table_with(path, text)
    if table is not None:
        return f"row in table {table}"
    return f"row on page {page}" if unused is False else f"unused bytes of page {page}"


def _free_pages(octets: bytes, size: int) -> set[int]:
    """Return the numbers of the pages on the free list (https://www.sqlite.org/fileformat.html#the_freelist)."""
    pages: set[int] = set()
    trunk = int.from_bytes(octets[32:36])
    while trunk and trunk not in pages:
        pages.add(trunk)
        page = octets[(trunk - 1) * size : trunk * size]
        count = min(int.from_bytes(page[4:8]), size // 4 - 2)
        pages |= {int.from_bytes(page[8 + 4 * n : 12 + 4 * n]) for n in range(count)}
        trunk = int.from_bytes(page[:4])
    return pages


def _is_unused(page: bytes, offset: int, *, is_first: bool) -> bool | None:
    """Return whether a byte of a page is in no cell, or in a freed one; None if it is no page of a table or index."""
    start = _HEADER if is_first else 0
    if page[start : start + 1] not in [bytes([kind]) for kind in (*_LEAVES, *_INTERIORS)]:
        return None
    cells = int.from_bytes(page[start + 3 : start + 5])
    content = int.from_bytes(page[start + 5 : start + 7]) or 65536
    pointers = start + (8 if page[start] in _LEAVES else 12) + 2 * cells
    if pointers <= offset < content:
        return True
    block, seen = int.from_bytes(page[start + 1 : start + 3]), set[int]()
    while block and block not in seen:
        seen.add(block)
        length = int.from_bytes(page[block + 2 : block + 4])
        if block <= offset < block + length:
            return True
        block = int.from_bytes(page[block : block + 2])
    return False


def _table_with(path: Path, text: str) -> str | None:
    """Return the name of the first table with the text in a row; None if there is none, or the file cannot be read."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            database.text_factory = bytes
            tables = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            for (name,) in tables:
                quoted = name.decode().replace('"', '""')
                for row in database.execute(f'SELECT * FROM "{quoted}"'):  # noqa: S608  the name is quoted
                    for cell in (cell for cell in row if isinstance(cell, bytes)):
                        parts = (cell, *(stream.content for stream in unpack(cell).streams))
                        if any(find_text(text, {"": text_in(part)}) for part in parts):
                            return str(name.decode())
    except sqlite3.Error:
        return None
    return None
