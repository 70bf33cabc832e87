"""Fixtures with a real Chroma server, started on a free port in a temporary folder.

Tests declare `pytest_plugins = ("tests.real.local_chroma",)` and use the fixture `chroma`, an empty database. They skip
where chromadb is not installed.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from memorybench.catalog.catalog import Catalog
from memorybench.core.contracts import Embedder
from memorybench.core.records import digest
from memorybench.providers.http.provider import HttpProvider, open_http_provider
from memorybench.secrets.redaction import Redactor


@pytest.fixture(scope="session")
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
