"""Records what an agent does with a memory store, as a scenario draft."""

from __future__ import annotations

import json
from collections.abc import Sequence
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

    calls = await wiring.record_calls(command, serve_store(store.open), folder)
    async with store.open(folder) as opened:
        return calls, await opened.list(USER)
