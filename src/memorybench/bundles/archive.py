"""The file of a bundle: a zip with a fixed set of names. Writes reproducible bytes, and checks everything it reads.

A bundle may come from a stranger. Each file must have one of the names below, no name may occur twice, and no path from
the zip is ever used to write a file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from memorybench.core.errors import BadInput
from memorybench.core.records import Record, canonical
from memorybench.files.json_text import decode
from memorybench.files.writing import replacing_bytes
from memorybench.text.sanitize import preview

FORMAT: Literal["memorybench-bundle/1"] = "memorybench-bundle/1"
MANIFEST, SIGNATURE = "manifest.json", "signature.json"
RUN, REPORT = "run.json", "report.json"
CASES, STEPS, ATTEMPTS, OUTCOMES, NOTES = (
    f"{table}.jsonl" for table in ("cases", "steps", "attempts", "outcomes", "notes")
)
RO_CRATE, EVERY_EVAL_EVER, CROISSANT = "ro-crate-metadata.json", "every-eval-ever.json", "croissant.json"
CONTENT = (
    *(RUN, CASES, STEPS, ATTEMPTS, OUTCOMES, NOTES, REPORT),
    *(RO_CRATE, EVERY_EVAL_EVER, CROISSANT),
)
"""The files that the manifest lists. A bundle has all of them."""
_LARGEST = 4 * 1024**3
_MOST_VALUES = 2_000_000
"""The most values in one JSON text. In memory, a value takes up to a hundred times its size in the file."""
_LARGEST_SMALL = 256 * 1024**2
"""The most bytes of a file in the bundle that is read into memory as a whole."""
_LONGEST_LINE = 64 * 1024**2
_MOST_TIMES, _ALWAYS = 250, 64 * 1024**2
"""The unpacked content may have `_MOST_TIMES` the size of the bundle; up to `_ALWAYS` bytes are always accepted."""
_CHUNK = 1024 * 1024
_LOCAL, _END = struct.Struct("<26xHH"), struct.Struct("<4s16xH")
"""Formats to read two parts of a zip: the lengths of the name and the extra fields in an entry's header, and the
signature and the length of the comment in the record at the end."""
_DESCRIPTOR = 24
"""The most bytes of a data descriptor, which follows an entry whose size was unknown when its header was written."""
_TIME = (1980, 1, 1, 0, 0, 0)
_EXPECTED = "a file that `memorybench bundle` wrote"
_DIGEST = r"^[0-9a-f]{64}$"


class Entry(Record):
    sha256: str = Field(pattern=_DIGEST)
    size: int = Field(ge=0, le=_LARGEST)


def entry_of(path: Path) -> Entry:
    with path.open("rb") as file:
        return Entry(sha256=hashlib.file_digest(file, "sha256").hexdigest(), size=path.stat().st_size)


class Manifest(Record):
    """The list of files of a bundle. A signature covers `root`, which depends on the content of all files."""

    format: Literal["memorybench-bundle/1"]
    public: bool
    """Whether texts of questions, memories, prompts and replies are left out."""
    files: Mapping[str, Entry]
    root: str = Field(pattern=_DIGEST)
    """The root of a Merkle tree (RFC 6962) whose leaves are the format and the files, sorted by name."""


def merkle_root(files: Mapping[str, Entry], public: bool) -> str:
    """Return the root of the Merkle tree. It covers the whole manifest: the first leaf is the format and `public`."""
    texts = [canonical([FORMAT, public]), *(canonical([name, files[name].plain()]) for name in sorted(files))]
    level = [hashlib.sha256(b"\0" + text.encode()).digest() for text in texts]
    while len(level) > 1:
        pairs = [level[place : place + 2] for place in range(0, len(level), 2)]
        level = [hashlib.sha256(b"\1" + b"".join(pair)).digest() if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0].hex()


def has_too_many_values(content: bytes) -> bool:
    """Return whether a JSON text has so many values that parsing it would take too much memory."""
    return sum(map(content.count, (b"[", b"{", b","))) > _MOST_VALUES


def write_archive(
    path: Path, files: Mapping[str, Path], *, public: bool, sign: Callable[[Manifest], str] | None = None
) -> Manifest:
    """Write a bundle and return its manifest. The same files give the same bytes.

    `files` has the path of each file by its name in the bundle. `sign` returns the text of the bundle's signature.
    """
    entries = {name: entry_of(source) for name, source in files.items()}
    manifest = Manifest(format=FORMAT, public=public, files=entries, root=merkle_root(entries, public))
    texts = {MANIFEST: canonical(manifest.plain())}
    if sign is not None:
        texts[SIGNATURE] = sign(manifest)
    with replacing_bytes(path) as target, zipfile.ZipFile(target, "w") as archive:
        for name in sorted((*files, *texts)):
            with archive.open(_zip_info(name), "w", force_zip64=True) as entry:
                if name in texts:
                    entry.write(texts[name].encode())
                    continue
                with files[name].open("rb") as file:
                    shutil.copyfileobj(file, entry, _CHUNK)
    return manifest


def _zip_info(name: str) -> zipfile.ZipInfo:
    """Return zip metadata that does not depend on the time or the machine."""
    info = zipfile.ZipInfo(name, _TIME)
    info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
    info._compresslevel = 9  # type: ignore[attr-defined]  # public as `compress_level` from Python 3.13 on
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    return info


class Archive:
    """An open bundle. Use `open_archive`, which checks names and sizes, to create it."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path = path
        self._archive = archive
        self.manifest = _read_manifest(path, self.text(MANIFEST))

    @property
    def signature(self) -> str | None:
        return self.text(SIGNATURE) if SIGNATURE in self._archive.NameToInfo else None

    def text(self, name: str) -> str:
        """Return the text of a whole JSON file of the bundle. Raise BadInput if it is too large, damaged or invalid."""
        with self._errors(name), self._archive.open(name) as file:
            content = file.read(_LARGEST_SMALL + 1)
        if len(content) > _LARGEST_SMALL:
            raise self._invalid(f"{name} is larger than {_LARGEST_SMALL:,} bytes")
        return self._json_text(name, content)

    def _json_text(self, name: str, content: bytes, line: int = 1) -> str:
        """Return the content as text. Raise BadInput if it is not strict JSON, such as an object with a key twice."""
        if has_too_many_values(content):
            raise self._invalid(f"{name} has more than {_MOST_VALUES:,} values in one line or file")
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise self._invalid(f"{name} is not UTF-8") from error
        decode(text, f"{self.path}: {name}", line)
        return text

    def lines(self, name: str) -> Iterator[str]:
        """Yield the lines of a JSONL file, one at a time. Raise BadInput for a line that is not JSON."""
        with self._errors(name), self._archive.open(name) as file:
            number = 0
            while line := file.readline(_LONGEST_LINE + 1):
                number += 1
                if len(line) > _LONGEST_LINE:
                    raise self._invalid(f"{name} has a line of more than {_LONGEST_LINE:,} bytes")
                yield self._json_text(name, line, number)

    def changed_files(self) -> list[str]:
        """Return the files whose digest or size differs from the manifest, and `manifest.json` if its root is wrong."""
        changed = []
        for name, entry in self.manifest.files.items():
            digest, size = hashlib.sha256(), 0
            with self._errors(name), self._archive.open(name) as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
                    size += len(chunk)
            if (digest.hexdigest(), size) != (entry.sha256, entry.size):
                changed.append(name)
        if merkle_root(self.manifest.files, self.manifest.public) != self.manifest.root:
            changed.append(MANIFEST)
        return changed

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise self._invalid(f"{name} is damaged ({error})") from error

    def _invalid(self, problem: str) -> BadInput:
        return _invalid(self.path, problem)


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open a bundle. Raise BadInput if files are missing, unknown or too large."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_entries(path, archive.infolist())
            _check_layout(path, archive)
            yield Archive(path, archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise _invalid(path, f"is not a valid bundle ({error})") from error
    except OSError as error:
        raise BadInput(str(path), f"cannot be read ({error.strerror or error})", expected=_EXPECTED) from error


def _check_entries(path: Path, entries: Iterable[zipfile.ZipInfo]) -> None:
    seen: set[str] = set()
    total = 0
    for info in entries:
        name = info.filename
        if name not in (*CONTENT, MANIFEST, SIGNATURE) or info.orig_filename != name:
            raise _invalid(path, f"contains the unknown file {preview(info.orig_filename)}")
        if name in seen:
            raise _invalid(path, f"contains {name} twice")
        seen.add(name)
        kind = info.external_attr >> 16
        if info.flag_bits & 1 or (stat.S_IFMT(kind) not in (0, stat.S_IFREG)):
            raise _invalid(path, f"{name} is encrypted or not a plain file")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _invalid(path, f"{name} is compressed with an unknown method")
        total += info.file_size
    missing = [name for name in (*CONTENT, MANIFEST) if name not in seen]
    if missing:
        raise _invalid(path, f"does not contain {', '.join(missing)}")
    if total > min(_LARGEST, max(_ALWAYS, _MOST_TIMES * path.stat().st_size)):
        raise _invalid(path, f"would unpack to {total:,} bytes, which is too large")


def _check_layout(path: Path, archive: zipfile.ZipFile) -> None:
    """Raise BadInput if the zip has bytes outside of its entries: other programs may find more files there."""
    entries = sorted(archive.infolist(), key=lambda info: info.header_offset)
    starts = [*(info.header_offset for info in entries), archive.start_dir]
    with path.open("rb") as file:
        file.seek(-_END.size, os.SEEK_END)
        signature, comment = _END.unpack(file.read())
        is_filled = starts[0] == 0 and signature == b"PK\5\6" and not comment
        for info, following in zip(entries, starts[1:], strict=True):
            file.seek(info.header_offset)
            name, extra = _LOCAL.unpack(file.read(_LOCAL.size))
            end = info.header_offset + _LOCAL.size + name + extra + info.compress_size
            is_filled &= 0 <= following - end <= (_DESCRIPTOR if info.flag_bits & 8 else 0)
    if not is_filled:
        raise _invalid(path, "contains bytes that belong to none of its files")


def _read_manifest(path: Path, text: str) -> Manifest:
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        raise _invalid(path, f"{MANIFEST} is invalid") from error
    if sorted(manifest.files) != sorted(CONTENT):
        raise _invalid(path, f"{MANIFEST} does not list the files of a bundle")
    return manifest


def _invalid(path: Path, problem: str) -> BadInput:
    return BadInput(str(path), problem, expected=_EXPECTED, remedy="ask the author of the bundle for a new one")
