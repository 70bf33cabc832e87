"""The double that stands in for paid services must itself be trusted."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from memorybench.core.errors import ServiceError
from memorybench.http.client import open_http
from memorybench.secrets.redaction import Redactor
from tests.doubles.stub import Stub, reply, status


def ask(url: str, *paths: str) -> list[object]:
    async def each() -> list[object]:
        said: list[object] = []
        async with open_http(Redactor([])) as http:
            for path in paths:
                try:
                    said.append((await http.request("POST", f"{url}{path}", json={"asked": path})).json())
                except ServiceError as failed:
                    said.append(type(failed).__name__)
        return said

    return asyncio.run(each())


def test_queued_replies_come_before_the_default_reply() -> None:
    with Stub() as stub:
        stub.always(reply("everywhere"))
        stub.always(reply("here"), path="/here")
        stub.next(status(500), reply("second"))
        stub.next(reply("first here"), path="/here")
        said = ask(stub.url, "/here", "/here", "/there", "/here", "/there")
    assert said == ["first here", "Transient", "second", "here", "everywhere"]


def test_the_ledger_can_be_read_from_outside(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    with Stub(ledger) as stub:
        ask(stub.url, "/a", "/b")
    entries = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert [(entry["method"], entry["path"], json.loads(entry["body"])) for entry in entries] == [
        ("POST", "/a", {"asked": "/a"}),
        ("POST", "/b", {"asked": "/b"}),
    ]
