"""`memorybench online receive` as a process of its own, as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MAIN = "import sys; from memorybench.cli.main import main; sys.exit(main(sys.argv[1:]))"
WITHOUT_EXTRA = f"import sys; sys.modules['opentelemetry'] = None; {MAIN}"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class ReceiverProcess:
    process: subprocess.Popen[str]
    url: str

    def post(self, body: bytes | Any, path: str = "/v1/traces", **headers: str) -> Reply:
        """POST bytes, or a value as JSON. `content_type=…` becomes the header Content-Type."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {
            name.replace("_", "-"): value for name, value in {"content_type": "application/json", **headers}.items()
        }
        connection = HTTPConnection(urlsplit(self.url).netloc)
        try:
            connection.request("POST", path, data, named)
            reply = connection.getresponse()
            return Reply(reply.status, dict(reply.headers), reply.read())
        finally:
            connection.close()

    def stop(self) -> str:
        """Stop it as Ctrl-C does; return what it wrote on standard error."""
        self.process.terminate()
        error = self.process.communicate()[1]
        assert self.process.returncode == 0, error
        return error

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def receiving(folder: Path, *flags: str, code: str = MAIN, **environment: str) -> Iterator[ReceiverProcess]:
    words = ["online", "receive", "--output", str(folder), "--port", "0", "--json", *flags]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            yield ReceiverProcess(process, json.loads(line)["url"])
        finally:
            process.kill()
