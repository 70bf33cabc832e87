"""The memory files of an agent, such as CLAUDE.md or MEMORY.md, as a store. The agent writes them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn

from memorybench.core.errors import Lacking, ServiceError
from memorybench.core.records import digest
from memorybench.core.stores import Capability, Curation, NewFact, StoredFact
from memorybench.core.trials import Subject
from memorybench.text.words import content_words

from .config import Files, StoreConfig

_LARGEST_FILE = 8 * 2**20
_FRONT_MATTER = re.compile(r"\A---\n.*?^---$", re.DOTALL | re.MULTILINE)
_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(.*)")


class FileStore:
    """A store whose facts are the list items and paragraphs of files.

    `remember` is only used for the facts that a scenario starts with; the agent writes all others.
    """

    capabilities: frozenset[Capability] = frozenset({"list", "recall", "history", "home"})

    def __init__(self, subject: Subject, files: Files, folder: Path) -> None:
        self.subject = subject
        self._files = files
        self._folder = folder

    async def remember(self, user: str, fact: NewFact) -> str:
        path = self._folder / self._files.plant
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        content = " ".join(fact.content.split())
        if self._files.separator is None:
            text += f"- {content}\n"
        else:
            text += f"\n{self._files.separator}\n{content}" if text else content
        path.write_text(text, encoding="utf-8")
        id = next((stored.id for stored in reversed(self._facts()) if stored.content == content), None)
        if id is None:
            raise ServiceError(
                f"{self.subject.name}: the fact that was written to {self._files.plant} was not found;"
                " files.paths must match this file"
            )
        return id

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        terms = set(content_words(query))
        shared = [(len(terms & set(content_words(fact.content))), fact) for fact in self._facts()]
        best = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])
        return [fact for _, fact in best[:limit]]

    async def history(self, user: str) -> Sequence[str]:
        """Return the whole text of each file, because a secret may be in a heading or a comment."""
        return [text for _, text in self._texts()]

    async def update(self, user: str, id: str, content: str) -> str:
        self._lack("update")

    async def forget(self, user: str, id: str) -> None:
        self._lack("forget")

    async def curate(self, user: str, *, apply: bool) -> Curation:
        self._lack("curate")

    def _lack(self, operation: str) -> NoReturn:
        raise Lacking(f"{self.subject.name} does not support {operation}: only the agent changes its files")

    def _texts(self) -> Iterator[tuple[str, str]]:
        """Yield the path, relative to the home folder, and the text of each memory file.

        Links that lead out of the home folder are not followed.
        """
        root = self._folder.resolve()
        paths = {path for pattern in self._files.paths for path in self._folder.glob(pattern)}
        for path in sorted(paths):
            if path.is_file() and path.resolve().is_relative_to(root):
                if path.stat().st_size > _LARGEST_FILE:
                    raise ServiceError(
                        f"{self.subject.name}: the memory file {path.name} is larger than {_LARGEST_FILE:,} bytes"
                    )
                text = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
                yield path.relative_to(self._folder).as_posix(), text

    def _facts(self) -> list[StoredFact]:
        return [
            StoredFact(id=f"{name}#{number}", content=entry, source=name)
            for name, text in self._texts()
            for number, entry in enumerate(self._entries(text), 1)
        ]

    def _entries(self, text: str) -> list[str]:
        text = _FRONT_MATTER.sub("", text)
        if self._files.separator is not None:
            parts = re.split(rf"^\s*{re.escape(self._files.separator)}\s*$", text, flags=re.MULTILINE)
            return [entry for part in parts if (entry := " ".join(part.split()))]
        entries: list[list[str]] = [[]]
        for line in text.splitlines():
            if not line.strip() or line.lstrip().startswith(("#", "<!--", "```")):
                entries.append([])
            elif (bullet := _BULLET.fullmatch(line)) is not None:
                entries.append([bullet[1]])
            else:
                entries[-1].append(line.strip())
        return [" ".join(lines) for lines in entries if any(lines)]

    # last, because its name hides the type `list` in the annotations above
    async def list(self, user: str) -> Sequence[StoredFact]:
        return self._facts()


@asynccontextmanager
async def open_file_store(config: StoreConfig, folder: Path) -> AsyncIterator[FileStore]:
    """Open the memory files in `folder`, the agent's home folder, which is created if it is missing."""
    assert config.files is not None
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True, mode=0o700)
    yield FileStore(
        Subject(role="store", name=config.name, settings={"files": digest(config.files)}), config.files, folder
    )
