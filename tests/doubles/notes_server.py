"""A memory server on the official MCP SDK that already has facts of its user, in one JSON file.

    with NotesServer(file) as server: ...         # streamable HTTP at server.url

The file has no times and no counters: when everything that was added is deleted again, its bytes are as before.
"""

from __future__ import annotations

import json
import secrets
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import uvicorn
from mcp.server import MCPServer

OWNER = "ann"
FACTS = {"ann-1": {"user": OWNER, "text": "Ann lives in Porto"}, "ann-2": {"user": OWNER, "text": "Ann drinks tea"}}

Notes = dict[str, dict[str, str]]


def write_notes(file: Path, notes: Mapping[str, Mapping[str, str]]) -> bytes:
    file.write_text(json.dumps(notes, sort_keys=True))
    return file.read_bytes()


def make_server(file: Path, calls: list[str], *, separates_users: bool = True) -> MCPServer:
    server, lock = MCPServer("notes", log_level="ERROR"), threading.Lock()

    @contextmanager
    def opened(call: str) -> Iterator[Notes]:
        with lock:
            calls.append(call)
            notes: Notes = json.loads(file.read_text()) if file.exists() else {}
            yield notes
            write_notes(file, notes)

    def visible(notes: Notes, user: str) -> list[dict[str, Any]]:
        shown = [{"id": id, **note} for id, note in notes.items()]
        return [note for note in shown if note["user"] == user] if user and separates_users else shown

    @server.tool()
    def add_note(text: str, user: str = "") -> dict[str, Any]:
        with opened("add_note") as notes:
            id = secrets.token_hex(8)
            notes[id] = {"user": user, "text": text}
            return {"id": id}

    @server.tool()
    def change_note(id: str, text: str, user: str = "") -> dict[str, Any]:
        with opened("change_note") as notes:
            notes[id]["text"] = text
            return {"id": id}

    @server.tool()
    def delete_note(id: str, user: str = "") -> dict[str, Any]:
        with opened("delete_note") as notes:
            del notes[id]
            return {"id": id}

    @server.tool()
    def delete_user(user: str) -> dict[str, Any]:
        with opened("delete_user") as notes:
            for note in visible(notes, user):
                del notes[note["id"]]
            return {"user": user}

    @server.tool()
    def find_notes(query: str, user: str = "", limit: int = 10) -> dict[str, Any]:
        with opened("find_notes") as notes:
            words = set(query.lower().split())
            hits = {note["id"]: len(words & set(note["text"].lower().split())) for note in visible(notes, user)}
            found = [note for note in visible(notes, user) if hits[note["id"]]]
            return {"notes": sorted(found, key=lambda note: (-hits[note["id"]], note["text"]))[:limit]}

    @server.tool()
    def all_notes(user: str = "") -> dict[str, Any]:
        with opened("all_notes") as notes:
            return {"notes": visible(notes, user)}

    return server


class NotesServer:
    """Serves over HTTP in a thread. `calls` are the names of the tools that were called."""

    def __init__(self, file: Path, *, separates_users: bool = True) -> None:
        self.calls: list[str] = []
        app = make_server(file, self.calls, separates_users=separates_users).streamable_http_app()
        config = uvicorn.Config(app, http="h11", ws="none", log_config=None, timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/mcp"
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()


if __name__ == "__main__":
    make_server(Path(sys.argv[1]), []).run()
