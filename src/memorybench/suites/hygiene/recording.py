"""Records what an agent does with a memory store, as a scenario draft."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from memorybench.core.agents import ToolCall
from memorybench.core.errors import BadInput
from memorybench.core.stores import StoredFact
from memorybench.mcp import check_sdk
from memorybench.processes.programs import temporary_folder
from memorybench.secrets.credentials import credential_in
from memorybench.suites.blocking import blocking
from memorybench.suites.wiring import ResolvedStore, Wiring

from .drafts import Phase, draft, write_draft
from .evidence import OpenStore
from .plays import Store, check_unused, new_scope, open_live
from .script import USER


def record(
    name: str, command: Sequence[str], store: str, file: Path, *, phase: Phase, wiring: Wiring
) -> tuple[int, str | None]:
    """Runs a command in front of a store and writes its calls as a scenario draft.

    Returns the number of calls, and what looks like a credential in the draft.
    """
    if file.exists():
        raise BadInput(str(file), "already exists", remedy="name another file with --to")
    check_sdk("hygiene record")
    resolved = wiring.store(store)
    with temporary_folder("memorybench-record-") as folder:
        calls, facts = blocking(_record(resolved, command, folder, wiring))
    text = wiring.redact(json.dumps(draft(name, calls, facts, shows=phase), ensure_ascii=False))
    file.parent.mkdir(parents=True, exist_ok=True)
    write_draft(file, json.loads(text))
    return len(calls), credential_in(text)


async def _record(
    store: ResolvedStore, command: Sequence[str], folder: Path, wiring: Wiring
) -> tuple[Sequence[ToolCall], Sequence[StoredFact]]:
    from memorybench.mcp.store_server import serve_store

    async with _open_store(store, folder) as open_store:
        calls = await wiring.record_calls(command, serve_store(open_store), folder)
        async with open_store(folder) as opened:
            return calls, await opened.list(USER)


@asynccontextmanager
async def _open_store(resolved: ResolvedStore, folder: Path) -> AsyncIterator[OpenStore]:
    """Yield the function that opens the store; on a live store, for a user of its own that is deleted at the end."""
    if resolved.isolation == "folder":
        yield resolved.open
        return
    async with resolved.open(folder) as opened:
        await check_unused(opened, resolved.isolation)
        store = Store(opened.subject, resolved.open, resolved.isolation)
    scope = new_scope() if resolved.isolation == "user" else ""
    if scope:
        print(
            f'store "{resolved.name}" is live: recording as {scope}-{USER}, which is deleted at the end',
            file=sys.stderr,
        )

    async def report_leak(text: str) -> None:
        print(f"leaked scope: {text}", file=sys.stderr)

    async with open_live(store, scope, report_leak) as open_store:
        yield open_store
