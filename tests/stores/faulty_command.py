"""A faulty store as a program, as the `command` binding drives it: python faulty_command.py FAULT FOLDER.

FAULT is a name in tests.stores.faulty, or `none` for the reference store.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from memorybench.core.errors import Lacking, MemorybenchError, Refused
from memorybench.core.stores import NewFact
from memorybench.stores.reference import ReferenceStore, open_reference
from tests.stores.faulty import open_faulty

CAPABILITIES = (
    "update", "forget", "recall", "list", "curate", "trust", "retrieval_count", "category", "users", "history", "files",
    "get",
)  # fmt: skip


def config(name: str, fault: str) -> str:
    """The YAML of a store with this fault."""
    root = Path(__file__).parents[2]
    words = [sys.executable, "-m", "tests.stores.faulty_command", fault, "${folder}/data"]
    env = {"PYTHONPATH": f"{root / 'src'}:{root}"}
    document = {
        "name": name,
        "type": "command",
        "capabilities": list(CAPABILITIES),
        "command": {"run": words, "env": env},
    }
    return json.dumps(document)  # JSON is YAML


def open_store(fault: str, folder: Path) -> AbstractAsyncContextManager[ReferenceStore]:
    return open_reference(folder) if fault == "none" else open_faulty(fault, folder)


async def perform(store: ReferenceStore, request: dict[str, Any]) -> Any:
    user = request["user"]
    match request["op"]:
        case "remember":
            return await store.remember(user, NewFact.model_validate(request["fact"]))
        case "update":
            return await store.update(user, request["id"], request["content"])
        case "forget":
            return await store.forget(user, request["id"])
        case "recall":
            return [fact.plain() for fact in await store.recall(user, request["query"], request["limit"])]
        case "list":
            return [fact.plain() for fact in await store.list(user)]
        case "get":
            fact = await store.get(user, request["id"])
            return None if fact is None else fact.plain()
        case "curate":
            return {"proposals": (await store.curate(user, apply=request["apply"])).plain()["proposals"]}
        case _:
            return list(await store.history(user))


async def serve(fault: str, folder: Path) -> None:
    async with open_store(fault, folder) as store:
        for line in sys.stdin:
            try:
                answer = {"ok": await perform(store, json.loads(line))}
            except Refused as error:
                answer = {"refused": str(error)}
            except Lacking as error:
                answer = {"lacking": str(error)}
            except MemorybenchError as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
