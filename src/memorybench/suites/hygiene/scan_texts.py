"""Reads the texts of an existing memory: files, folders and SQLite databases. Never writes."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.files.json_text import unique_object
from memorybench.journal.sqlite import APPLICATION_ID, FILE_NAME
from memorybench.secrets.credentials import find_credentials

from .scan_injection import find_injections
from .scan_personal import find_personal_data, hide_in_pointer

LARGEST_FILE = 20 * 2**20
"""In bytes. Larger text files are skipped and counted."""
LARGEST_DATABASE = 500 * 2**20
MOST_ROWS = 100_000
"""The most rows of a table that are read."""
MOST_FILES = 50_000
_TEXT_SUFFIXES = frozenset(
    (".md", ".mdc", ".mdx", ".markdown", ".txt", ".text", ".rst", ".org", ".adoc", ".json", ".jsonl", ".ndjson",
    ".yaml", ".yml",
     ".toml", ".ini", ".cfg", ".conf", ".env", ".csv", ".tsv", ".xml", ".html", ".log", ".rules", ".cursorrules",
     ".windsurfrules",
     ".clinerules", "")
)  # fmt: skip
_FOLDERS = frozenset((".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv"))
_JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"(?P<colon>[ \t\r\n]*:)?|[-\w.+]+')
"""A string, number or constant of JSON; `colon` follows a key."""
_COMMENT = re.compile(r"^[ \t]*#[^\n]*(?:\n[ \t]*#[^\n]*)*|(?<=[ \t])#[^\n]*", re.M)
"""A YAML comment. Comments that fill consecutive lines are one match."""
_YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
"""A control character that texts do not have."""
_DEEPEST_YAML = 500
"""The most levels of nested lists and mappings in YAML. The C code that composes them has no limit of its own."""
_SQLITE = b"SQLite format 3\0"
_UNREADABLE = "unreadable"


class Text(Struct, frozen=True):
    """One text of a memory and its place."""

    file: str
    text: str
    key: str = ""
    """The name of the value: a JSON key or a column."""
    line: int = 1
    column: int = 1
    """The line and column in the file at which the text begins, from 1; both are 1 in a database or store."""
    pointer: str = ""
    """The place in a structured file: a JSON pointer, `table/rowid/column`, or `#` for a comment; "" in other files."""
    group: str = ""
    """Names the file, or the key or table column in it, that the text belongs to. Texts of one group are compared more
    closely."""

    is_statement: bool = True
    """False for keys, comments and numbers: they are read only for secrets, personal data and injections."""

    @property
    def shown_pointer(self) -> str:
        """The pointer with secrets and personal data hidden, for output and prompts."""
        return hide_in_pointer(self.pointer)


class LineStarts:
    """The offsets at which the lines of a text start."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of an offset, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


@dataclass
class Reading:
    """The texts that were read, and the number of files and other parts that were skipped, by reason."""

    texts: list[Text] = field(default_factory=list)
    files: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


def read_paths(paths: list[str]) -> Reading:
    """Read the texts of files and folders, each file once.

    Raise BadInput if a path does not exist, or names a file that cannot be read. Unreadable files in a folder are only
    counted.
    """
    reading = Reading()
    seen: set[str] = set()
    for name in paths:
        path = Path(name)
        try:
            path.stat()
        except OSError as error:  # also without permission for its folder
            raise BadInput(name, error.strerror or "not found", expected="a file or folder") from None
        if not path.is_dir() and not path.is_file():  # reading from a pipe or a device may never end
            raise BadInput(name, "is a pipe or a device", expected="a file or folder")
        unreadable = reading.skipped[_UNREADABLE]
        for file in _files(path, reading) if path.is_dir() else [path]:
            if reading.files >= MOST_FILES:
                reading.skipped["too many files"] += 1
                continue
            real = os.path.realpath(file)
            if real in seen:  # such as CLAUDE.md, a link to AGENTS.md: its statements would be duplicates
                reading.skipped["read already"] += 1
                continue
            texts = _read_file(file, reading, is_named=file is path)
            if texts is not None:
                seen.add(real)
                reading.files += 1
                reading.texts += texts
        if path.is_file() and reading.skipped[_UNREADABLE] > unreadable:
            raise BadInput(
                name, "cannot be read", expected="a text file or a SQLite database", remedy="check its permissions"
            )
    return reading


def _files(folder: Path, reading: Reading) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders in order.

    Folders such as `.git` and `node_modules`, results of memorybench, and links that leave the folder are skipped.
    """
    root = Path(os.path.realpath(folder))

    def count_unreadable(_: OSError) -> None:
        reading.skipped[_UNREADABLE] += 1

    for current, folders, names in os.walk(folder, onerror=count_unreadable):
        results = {name for name in folders if _has_journal(Path(current, name))}
        if results:
            reading.skipped["folders with results of memorybench"] += len(results)
        folders[:] = sorted(name for name in folders if name not in _FOLDERS | results)
        links = [name for name in folders if Path(current, name).is_symlink()]  # os.walk does not follow them
        for name in sorted([*names, *links]):
            path = Path(current, name)
            # not Path.resolve, which fails for links in a circle
            if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
                reading.skipped["link out of the folder"] += 1
            elif path.is_file():
                yield path
            elif not path.is_dir():  # a pipe, a device, or a link to nothing
                reading.skipped[_UNREADABLE] += 1


def _has_journal(folder: Path) -> bool:
    """Return whether a folder has results of memorybench, such as the recorded replies of an earlier scan."""
    with suppress(OSError), (folder / FILE_NAME).open("rb") as file:
        return file.read(72)[68:] == APPLICATION_ID.to_bytes(4)  # its place in the header of a SQLite file
    return False


def _read_file(path: Path, reading: Reading, *, is_named: bool) -> list[Text] | None:
    """Return the texts of a file; None if it is skipped, which is counted in `reading.skipped` by reason.

    A text file that the user names is read whatever its type.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            if file.read(16) == _SQLITE:
                if size > LARGEST_DATABASE:
                    reading.skipped["too large"] += 1
                    return None
                return list(_read_database(path, reading))
            if size > LARGEST_FILE:
                reading.skipped["too large"] += 1
                return None
            file.seek(0)
            octets = file.read()
    except (OSError, sqlite3.Error):
        reading.skipped[_UNREADABLE] += 1
        return None
    text = _decode(octets)
    if text is None:
        reading.skipped["binary"] += 1
        return None
    if not is_named and path.suffix.lower() not in _TEXT_SUFFIXES:
        reading.skipped["other file type"] += 1
        return None
    return _read_structure(str(path), path.suffix.lower(), text, reading)


def _decode(octets: bytes) -> str | None:
    if octets.startswith((b"\xff\xfe", b"\xfe\xff")):
        return octets.decode("utf-16", "replace")
    if b"\0" in octets:
        return None
    try:
        return octets.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = octets.decode("cp1252", "replace")
        return text if sum(letter < " " and letter not in "\t\n\r\f" for letter in text) * 20 < len(text) else None


def _read_structure(file: str, suffix: str, text: str, reading: Reading) -> list[Text]:
    """Return the values of a JSON, JSONL or YAML file with their places; of other and invalid files, the whole text."""
    try:
        if suffix == ".json":
            return list(_values(_load(text), file, text))
        if suffix in (".jsonl", ".ndjson"):
            return [
                value
                for number, line in enumerate(text.split("\n"), start=1)
                if line.strip()
                for value in _values(_load(line), file, line, number)
            ]
        if suffix in (".yaml", ".yml"):
            _check_depth(text)
            nodes = list(yaml.compose_all(text, Loader=_YAML_LOADER))
            seen: set[int] = set()
            values = [value for node in nodes if node is not None for value in _yaml_values(node, file, "", "", seen)]
            return [*values, *_yaml_comments(text, file)]
    except (ValueError, RecursionError, yaml.YAMLError):
        reading.skipped["invalid JSON, JSONL or YAML (scanned as plain text)"] += 1
    return [Text(file, text, group=file)]


def _check_depth(text: str) -> None:
    """Raise RecursionError if YAML is nested so deeply that composing it could crash Python."""
    depth = 0
    for event in yaml.parse(text, Loader=_YAML_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST_YAML:
            raise RecursionError


def _load(text: str) -> Any:
    """Return a JSON value. Raise ValueError if a key occurs twice: only its last value would be scanned."""
    return json.loads(text, object_pairs_hook=unique_object)


def _values(value: Any, file: str, source: str, line: int = 0) -> Iterator[Text]:
    """Yield the strings and integers of a JSON value, and keys with a secret or personal data.

    `line` is the line number in a JSONL file; 0: find it in `source`.
    """
    keys: list[int] = []
    values: list[int] = []
    for token in _JSON_TOKEN.finditer(source):
        (keys if token["colon"] else values).append(token.start())
    key_starts, value_starts, lines = iter(keys), iter(values), LineStarts(source)

    def text(content: str, key: str, at: int, pointer: str, *, is_statement: bool = True) -> Text:
        number, column = lines.position(at)
        pointer = (f"{line}:" if line else "") + (pointer or "/")
        group = f"{file}#{key}" if is_statement else ""
        return Text(file, content, key, line or number, column, pointer, group, is_statement)

    # the stack yields values in the order of the source
    stack: list[tuple[Any, str, str, bool]] = [(value, "", "", False)]
    while stack:
        one, key, pointer, is_member = stack.pop()
        if is_member:
            at = next(key_starts)
            if _is_sensitive(key):
                yield text(key, "", at + 1, pointer.rpartition("/")[0], is_statement=False)
        if isinstance(one, dict):
            members = [(inner, str(name), f"{pointer}/{_escape(str(name))}", True) for name, inner in one.items()]
            stack += reversed(members)
        elif isinstance(one, list):
            stack += reversed([(inner, key, f"{pointer}/{at}", False) for at, inner in enumerate(one)])
        else:
            at = next(value_starts)
            if isinstance(one, str) or type(one) is int:
                yield text(str(one), key, at + (source[at] == '"'), pointer, is_statement=isinstance(one, str))


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _yaml_values(node: yaml.Node, file: str, key: str, pointer: str, seen: set[int]) -> Iterator[Text]:
    """Yield the values of a YAML node, and keys with a secret or personal data.

    Aliased nodes are read once, because nested aliases could expand without limit.
    """
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for name, inner in node.value:
            label = str(name.value)
            if _is_sensitive(label):
                mark = name.start_mark
                yield Text(file, label, "", mark.line + 1, mark.column + 1, pointer or "/", is_statement=False)
            yield from _yaml_values(inner, file, label, f"{pointer}/{_escape(label)}", seen)
    elif isinstance(node, yaml.SequenceNode):
        for at, inner in enumerate(node.value):
            yield from _yaml_values(inner, file, key, f"{pointer}/{at}", seen)
    elif isinstance(node, yaml.ScalarNode):
        mark = node.start_mark
        yield Text(file, node.value, key, mark.line + 1, mark.column + 1, pointer or "/", f"{file}#{key}")


def _yaml_comments(text: str, file: str) -> Iterator[Text]:
    """Yield the comments with a secret, personal data or an injection.

    Others are left out: a setting that is commented out contradicts nothing.
    """
    scalars = [token for token in yaml.scan(text, Loader=_YAML_LOADER) if isinstance(token, yaml.ScalarToken)]
    ends = [token.end_mark.index for token in scalars]
    lines = LineStarts(text)
    for match in _COMMENT.finditer(text):
        after = bisect_right(ends, match.start())
        is_value = after < len(ends) and scalars[after].start_mark.index <= match.start()
        comment = re.sub(r"(?m)^[ \t]*#+", "", match[0])
        if not is_value and (_is_sensitive(comment) or next(iter(find_injections(comment)), None)):
            line, column = lines.position(match.start())
            yield Text(file, comment, "", line, column, "#", is_statement=False)


@lru_cache(maxsize=10_000)
def _is_sensitive(text: str) -> bool:
    """Return whether a text, such as a key or a comment, has a secret or personal data."""
    return bool(find_credentials(text)) or next(iter(find_personal_data(text)), None) is not None


def _read_database(path: Path, reading: Reading) -> Iterator[Text]:
    """Yield every text of every table. The file is opened read-only; SQLite creates no lock and no journal."""
    log = path.with_name(f"{path.name}-wal")
    if log.is_file() and log.stat().st_size:
        reading.skipped["write-ahead log of a database (not read; close the program that writes to it)"] += 1
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        db.text_factory = lambda octets: octets.decode("utf-8", "replace")
        tables = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        indexes = tuple(name for name, sql in tables if re.match(r"\s*create\s+virtual\b", sql or "", re.I))
        parts = tuple(f"{name}_" for name in indexes)  # the tables in which an index keeps its data
        known: set[str] = set()
        # an index repeats the texts of other tables, and its parts repeat its texts
        for is_index, table in sorted((name in indexes or name.startswith(parts), name) for name, _ in tables):
            texts = []
            try:
                for text in _read_table(db, str(path), table, reading):
                    if not (is_index and text.text in known):
                        yield text
                    texts.append(text.text)
            except sqlite3.Error:
                reading.skipped["unreadable table"] += 1
            known.update(texts)


def _read_table(db: sqlite3.Connection, file: str, table: str, reading: Reading) -> Iterator[Text]:
    quoted = '"' + table.replace('"', '""') + '"'
    try:
        rows = db.execute(f"SELECT rowid, * FROM {quoted} LIMIT ?", (MOST_ROWS + 1,))  # noqa: S608 - quoted above
    except sqlite3.OperationalError:  # a table WITHOUT ROWID
        rows = db.execute(f"SELECT row_number() OVER (), * FROM {quoted} LIMIT ?", (MOST_ROWS + 1,))  # noqa: S608
    columns = [description[0] for description in rows.description][1:]
    for number, (row, *values) in enumerate(rows):
        if number >= MOST_ROWS:
            reading.skipped["rows beyond the limit of a table"] += 1
            return
        for column, value in zip(columns, values, strict=True):
            if isinstance(value, bytes) and value:
                text = _decode_value(value)
                if text is None:
                    reading.skipped["binary values of a database"] += 1
                value = text
            if isinstance(value, str) and value:
                pointer = f"{table}/{row}/{column}"
                yield Text(file, value, column, 1, 1, pointer, f"{file}#{table}/{column}")


def _decode_value(octets: bytes) -> str | None:
    """Return the text that a BLOB contains; None if it is blank or has control characters, such as many vectors."""
    try:
        text = octets.decode()
    except UnicodeDecodeError:
        return None
    return text if text.strip() and not _CONTROL.search(text) else None
