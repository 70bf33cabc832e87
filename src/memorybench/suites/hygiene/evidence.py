"""The state of a memory after a script or an agent used it: the input of every assertion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from memorybench.core.records import Record
from memorybench.core.stores import Capability, MemoryStore, StoredFact
from memorybench.secrets.compressed import unpack
from memorybench.secrets.decoding import text_in

from .copies import LARGEST_DECODED

OpenStore = Callable[[Path], AbstractAsyncContextManager[MemoryStore]]
"""Opens the store under test on an empty folder, or again on a folder that it used before."""

Op = Literal["remember", "update", "forget", "recall", "list", "get", "curate", "restart"]

FactsByUser = Mapping[str, tuple[StoredFact, ...]]


class Snapshot(Struct, frozen=True):
    """The content of a memory at one moment, and the ids of facts by the names that the scenario gives them."""

    facts: FactsByUser
    names: Mapping[str, str]


class Call(Record):
    """One call that a script or an agent made. `restart` is a marker: the next call belongs to a new session."""

    op: Op
    user: str
    arguments: Mapping[str, Any] = {}
    ids: tuple[str, ...] = ()
    """Ids of the facts that the call wrote or returned (best first), or that a curation proposed to remove."""
    texts: tuple[str, ...] = ()
    """Contents of the facts that the call returned."""
    refused: str | None = None
    """The store's message if it refused the call; None if it did not."""
    error: str | None = None
    """The error message if this call failed because of the store or the connection; None if it did not."""
    undone: str | None = None
    """A message if the fact of the call does not exist: the call was not sent, or the store falsely claimed success."""

    @property
    def succeeded(self) -> bool:
        return self.refused is None and self.error is None and self.undone is None


Fate = Literal["stored", "refused", "failed", "not seen by the server"]
"""What happened to a write that an agent attempted."""


class AttemptedWrite(Record):
    """A change of the memory that an agent attempted, known from a recorded call or only from the agent's output."""

    where: str
    """Names the call for messages, such as `call 2 of session 1 (remember)`."""
    text: str = ""
    """What was to be stored: the arguments of the call."""
    fact_id: str = ""
    """The id of the fact to change or delete; "": the write adds a fact, or the id is unknown."""
    fate: Fate


class ForbiddenWrite(Record):
    """A write by an agent that contradicts a claim. Its text is left out, because it may be a secret."""

    where: str
    fate: Fate
    found: str
    """How the write contradicts the claim, such as `the planted api_key (base64)`."""

    def __str__(self) -> str:
        return f"{self.where} attempted {self.found}: {self.fate}"


class Activity(Struct):
    """The calls of a script or an agent, and the fact names and snapshots that result from them."""

    calls: list[Call]
    names: dict[str, str]
    """Fact ids by the names that the scenario gives."""
    snapshots: dict[str, Snapshot]
    answers: tuple[str, ...] = ()
    """The answers of a real agent, one per prompt."""
    writes: tuple[AttemptedWrite, ...] = ()
    """The writes that a real agent attempted. Empty for scripts: phases.py examines their refused calls."""

    @classmethod
    def on(
        cls,
        fixture: Snapshot,
        calls: Iterable[Call] = (),
        answers: Iterable[str] = (),
        writes: Iterable[AttemptedWrite] = (),
    ) -> Activity:
        return cls(list(calls), dict(fixture.names), {"fixture": fixture}, tuple(answers), tuple(writes))


class Evidence(Struct, frozen=True):
    """The state of the store and the agent's activity after a script or attempt, for assertions to check."""

    store: MemoryStore
    """The open store; on a copy of its folder, if the folder can be copied."""
    users: tuple[str, ...]
    facts: FactsByUser
    history: Sequence[str]
    files: Path | None
    """Another copy of the store's folder. It is not opened, so its files do not change. None if there are no files."""
    activity: Activity
    planted_values: Mapping[str, str]
    outside: Mapping[str, Path] = field(default_factory=dict)
    """Files outside the store's folder that were written while the script ran, by their name in reports."""
    unread_files: tuple[str, ...] = ()
    """New files in the system's temporary folder, and links to other folders, that were not read, with the reason."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self.store.capabilities

    def facts_of(self, user: str | None) -> list[tuple[str, StoredFact]]:
        """Return (user, fact) pairs of one user, or of all users if `user` is None."""
        return [(owner, fact) for owner in self.users if user in (None, owner) for fact in self.facts.get(owner, ())]

    def paths(self) -> dict[str, Path]:
        """Return the files and folders of the store, and files that were written elsewhere, by name."""
        own = sorted(self.files.rglob("*")) if self.files is not None else ()
        return {**{path.relative_to(self.files or path).as_posix(): path for path in own}, **self.outside}

    def large_files(self) -> list[str]:
        """Return the files that are too large for a search for encoded texts."""
        large = [
            name for name, path in self.paths().items() if path.is_file() and path.stat().st_size > LARGEST_DECODED
        ]
        return [f"{name} (larger than {LARGEST_DECODED // 2**20} MB, searched as plain text only)" for name in large]

    def file_texts(self) -> dict[str, str]:
        """Return the text in each file that is not large, also in binary and compressed ones, by place.

        And the names of all files.
        """
        texts, paths = {}, self.paths()
        for name, path in paths.items():
            octets = path.read_bytes() if path.is_file() else b""
            if len(octets) > LARGEST_DECODED:
                continue
            texts[f"file {name}"] = text_in(octets)
            for stream in unpack(octets).streams:
                texts[f"file {name}, {stream.encoding} at byte {stream.offset}"] = text_in(stream.content)
        return texts | {"names of files": "\n".join(paths)} if paths else {}


async def list_facts(store: MemoryStore, users: Sequence[str]) -> FactsByUser:
    """Return all facts by user; an empty mapping if the store cannot list facts."""
    if "list" not in store.capabilities:
        return {}
    return {user: tuple(await store.list(user)) for user in users}


def quote_facts(facts: Sequence[StoredFact]) -> str:
    """Quote the first three facts for a message."""
    return ": " + ", ".join(f'"{fact.content}"' for fact in facts[:3]) if facts else ""
