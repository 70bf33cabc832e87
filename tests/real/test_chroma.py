"""The shipped Chroma config against the server that Chroma publishes on PyPI."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from memorybench.catalog.catalog import Catalog
from memorybench.core.contracts import Batching, Embedder, Provider, Receipt, Scope
from memorybench.core.conversation import Session, Turn
from memorybench.core.records import digest
from memorybench.embedding.local import open_local_embedder
from memorybench.embedding.scripted import open_scripted_embedder
from memorybench.providers.http.provider import HttpProvider, open_http_provider
from memorybench.secrets.redaction import Redactor
from memorybench.testing import ProviderContract

pytestmark = pytest.mark.real

HOME = Scope(run="run-1", benchmark="test", provider="chroma", haystack="home")


@pytest.fixture(scope="module")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a server of its own listens."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = shutil.which("chroma", path=places)
    if command is None:
        pytest.skip("no Chroma server: pip install chromadb")
    folder = tmp_path_factory.mktemp("chroma")
    port = _free_port()
    environment = {**os.environ, "ANONYMIZED_TELEMETRY": "False", "CHROMA_OTEL_COLLECTION_ENDPOINT": ""}
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [command, "run", "--host", "127.0.0.1", "--port", str(port), "--path", str(folder / "data")],
            stdout=log,
            stderr=log,
            env=environment,
            cwd=folder,
        )
        try:
            _await_heartbeat(f"http://127.0.0.1:{port}", server, folder / "server.log")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await_heartbeat(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if server.poll() is not None:
            pytest.fail(f"the Chroma server ended: {log.read_text(errors='replace')[-500:]}")
        try:
            with urlopen(f"{url}/api/v2/heartbeat") as reply:
                if reply.status == 200:
                    return
        except URLError:
            time.sleep(0.1)
    pytest.fail("the Chroma server does not answer")


class Chroma:
    """A database of its own for each test: the contract's tests share their scopes' names."""

    def __init__(self, url: str, name: str) -> None:
        self.environment = {"CHROMA_URL": url, "CHROMA_DATABASE": name}
        self.url = f"{url}/api/v2/tenants/default_tenant/databases"
        self._ask("", json.dumps({"name": name}).encode())
        self.url += f"/{name}"

    def collections(self) -> list[str]:
        return [collection["name"] for collection in self._ask("/collections")]

    def count(self, collection: str) -> int:
        [id] = [one["id"] for one in self._ask("/collections") if one["name"] == collection]
        counted: int = self._ask(f"/collections/{id}/count")
        return counted

    def open(self, embedder: Embedder) -> AbstractAsyncContextManager[HttpProvider]:
        config = Catalog(Path.cwd()).provider("chroma", self.environment)
        return open_http_provider(config, key=None, redactor=Redactor([]), embedder=embedder)

    def _ask(self, path: str, body: bytes | None = None) -> Any:
        with urlopen(Request(self.url + path, body, {"Content-Type": "application/json"})) as reply:
            return json.loads(reply.read() or b"null")


@pytest.fixture
def chroma(chroma_server: str, request: pytest.FixtureRequest) -> Chroma:
    return Chroma(chroma_server, f"db{digest(request.node.nodeid)[:12]}")


class TestChroma(ProviderContract):
    @pytest.fixture(autouse=True)
    def _use(self, chroma: Chroma) -> None:
        self.chroma = chroma

    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        async with open_scripted_embedder() as embedder, self.chroma.open(embedder) as provider:
            yield provider

    def test_the_order_of_adding_does_not_change_what_is_found(self, tmp_path: Path) -> None:
        """Not even by a rank, says the contract; Chroma ranks equal distances by age, so ranks are left out here."""

        async def found(provider: Provider, haystack: str, sessions: Sequence[Session]) -> set[tuple[str, ...] | None]:
            scope = HOME.model_copy(update={"haystack": haystack})
            await provider.wait_until_searchable(scope, [await provider.add(scope, session) for session in sessions])
            return {memory.sources for memory in await provider.search(scope, "a remark on gardens", 50)}

        async def both_ways() -> None:
            sessions = [talk(n) for n in range(6)]
            async with self.open_provider(tmp_path) as provider:
                forward = await found(provider, "forward", sessions)
                assert len(forward) == 30
                assert forward == await found(provider, "backward", sessions[::-1])

        asyncio.run(both_ways())


def talk(n: int) -> Session:
    return Session(id=f"s{n}", turns=tuple(Turn(role="user", content=f"Remark {n}.{m} on gardens.") for m in range(5)))


def test_sessions_go_in_by_the_batch_and_clear_leaves_no_collection(chroma: Chroma) -> None:
    async def live() -> None:
        async with open_scripted_embedder() as embedder, chroma.open(embedder) as provider:
            assert isinstance(provider, Batching)
            sessions = [talk(n) for n in range(50)]
            await provider.wait_until_searchable(HOME, [await provider.add_batch(HOME, sessions)])
            await provider.add(HOME, sessions[0])
            [name] = chroma.collections()
            assert chroma.count(name) == 250
            [best] = await provider.search(HOME, "Remark 7.3 on gardens", 1)
            assert best.sources is not None
            assert best.sources[0] == "s7"
            await provider.clear(HOME)
            assert chroma.collections() == []
            await provider.clear(HOME)

    asyncio.run(live())


def test_another_process_finds_the_memories_and_their_sources(chroma: Chroma) -> None:
    async def add() -> Receipt:
        async with open_scripted_embedder() as embedder, chroma.open(embedder) as provider:
            return await provider.add(HOME, talk(3))

    async def find(receipt: Receipt) -> None:
        async with open_scripted_embedder() as embedder, chroma.open(embedder) as provider:
            provider.restore(HOME, [receipt])
            [best] = await provider.search(HOME, "Remark 3.4", 1)
            assert best.sources == ("s3", "s3:5")

    asyncio.run(find(asyncio.run(add())))


def test_our_own_vectors_find_by_meaning(chroma: Chroma) -> None:
    pytest.importorskip("wordllama")

    async def live() -> None:
        async with open_local_embedder() as embedder, chroma.open(embedder) as provider:
            told = ["My cat is called Otto.", "We drove to Lisbon in May.", "I started a job at a bakery."]
            turns = tuple(Turn(role="user", content=text) for text in told)
            await provider.wait_until_searchable(HOME, [await provider.add(HOME, Session(id="told", turns=turns))])
            [best] = await provider.search(HOME, "What pet do I have?", 1)
            assert "Otto" in best.content

    asyncio.run(live())
