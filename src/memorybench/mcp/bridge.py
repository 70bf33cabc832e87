"""For agents that can only start programs: MCP on the standard streams, carried to one of our servers over HTTP.

    python -m memorybench.mcp.bridge http://127.0.0.1:PORT/TOKEN/mcp

It stands on the standard library alone: an agent waits for it to start.
"""

from __future__ import annotations

import json
import sys
from http.client import HTTPConnection, HTTPException
from typing import BinaryIO
from urllib.parse import urlsplit

_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_ACCEPTED = 202
_UNREACHABLE = -32000


def carry(url: str, source: BinaryIO, target: BinaryIO) -> None:
    """Every line that comes, and what is answered to it. One at a time: so does the server."""
    address = urlsplit(url)
    if address.scheme != "http" or address.hostname != "127.0.0.1":
        sys.exit("mcp.bridge leads to servers on this machine alone: http://127.0.0.1:PORT/…")
    connection = HTTPConnection(address.hostname, address.port)
    for line in source:
        if not line.strip():
            continue
        try:
            connection.request("POST", address.path, line, _HEADERS)
            response = connection.getresponse()
            answer = response.read()
            if response.headers.get_content_type() != "application/json":
                answer = b"" if response.status == _ACCEPTED else _complaint(line, f"HTTP {response.status}")
        except (OSError, HTTPException) as error:
            connection.close()
            answer = _complaint(line, error)
        if answer:
            target.write(answer.replace(b"\n", b" ") + b"\n")
            target.flush()


def _complaint(line: bytes, error: object) -> bytes:
    """What is said in the server's place; nothing to a notification."""
    try:
        id = json.loads(line).get("id")
    except (ValueError, AttributeError):
        id = None
    if id is None:
        return b""
    problem = {"code": _UNREACHABLE, "message": f"the memory server is gone: {error}"}
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": problem}).encode()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m memorybench.mcp.bridge URL")
    carry(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer)
