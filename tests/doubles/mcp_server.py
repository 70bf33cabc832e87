"""A small MCP memory server that misbehaves on demand, over stdio and over HTTP.

    python tests/doubles/mcp_server.py FILE                       # a server on the standard streams
    with McpHttpServer(file) as server: ...                       # one that is asked at server.url

Tools: `remember {scope, id, text, sources}`, `remember_all {scope, memories}`, `recall {scope, query, limit}` (by
shared words), `grep {scope, word}` (by substring, unranked), `everything {scope}`, `forget {scope}`; what is remembered
is kept in FILE. The other tools misbehave: `die`, `hang`, `garble` (lines that are no JSON, then the answer), `flood`
(more bytes than a message may have), `mistake` (answers under another id), `fail` (isError), `refuse` (a JSON-RPC
error), `environment` (what the process sees), `ping_back` (answers when the client has answered a ping),
`unstructured` (text alone), `cancelled` (ids of the calls that were cancelled).
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

Message = dict[str, Any]

TOOLS = [
    "remember",
    "remember_all",
    "recall",
    "grep",
    "everything",
    "forget",
    "die",
    "hang",
    "garble",
    "flood",
    "mistake",
]
MORE_TOOLS = ["fail", "refuse", "environment", "ping_back", "unstructured", "cancelled"]
FLOOD = 2**20


class Kept:
    """Memories, and a file with a line for each change to them."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._held: dict[str, dict[str, Message]] = {}
        if file.exists():
            for line in file.read_text().splitlines():
                self._apply(json.loads(line))

    def change(self, changes: list[Message]) -> None:
        """Each `{scope, memory}`, or `{scope}` to forget it."""
        with self._lock, self._file.open("a") as file:
            for change in changes:
                self._apply(change)
                file.write(json.dumps(change) + "\n")

    def recall(self, scope: str, query: str, limit: int) -> list[Message]:
        asked = _words(query)
        scored = [{**one, "score": len(asked & _words(one["text"]))} for one in self.everything(scope)]
        ranked = sorted(scored, key=lambda one: (-one["score"], one["text"]))
        return [one for one in ranked if one["score"]][:limit]

    def grep(self, scope: str, word: str) -> list[Message]:
        return [one for one in self.everything(scope) if word.lower() in one["text"].lower()]

    def everything(self, scope: str) -> list[Message]:
        with self._lock:
            return list(self._held.get(scope, {}).values())

    def _apply(self, change: Message) -> None:
        if "memory" in change:
            self._held.setdefault(change["scope"], {})[change["memory"]["id"]] = change["memory"]
        else:
            self._held.pop(change["scope"], None)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


class Server:
    """Answers messages. `say` sends one to the client, outside of any answer."""

    def __init__(self, file: Path, say: Callable[[bytes], None], version: str | None = None) -> None:
        self.kept = Kept(file)
        self._say = say
        self._version = version
        self._cancelled: list[int] = []
        self._pong = threading.Event()

    def answer(self, message: Message) -> Message | None:
        """None: there is nothing to say."""
        if "method" not in message:
            self._pong.set()
            return None
        if message["method"] == "notifications/cancelled":
            self._cancelled.append(message["params"]["requestId"])
        if "id" not in message:
            return None
        made = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "tools/call":
            return self._called(made, message["params"]["name"], message["params"]["arguments"])
        return {**made, "result": self._result(message["method"], message.get("params") or {})}

    def _result(self, method: str, params: Mapping[str, Any]) -> Message:
        match method:
            case "initialize":
                return {
                    "protocolVersion": self._version or params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "double", "version": "1"},
                }
            case "tools/list" if "cursor" in params:
                return {"tools": _described(MORE_TOOLS)}
            case "tools/list":
                return {"tools": _described(TOOLS), "nextCursor": "more"}
        return {}

    def _called(self, made: Message, tool: str, arguments: Mapping[str, Any]) -> Message | None:
        match tool:
            case "die":
                print(f"something broke: {arguments.get('saying', '')}", file=sys.stderr, flush=True)
                os._exit(7)
            case "hang":
                return None
            case "garble":
                self._say(b"INFO: starting up\n{not json\n\xff\xfe\n[1, 2]\n\n")
                return {**made, "result": _content({"ok": True})}
            case "flood":
                return {**made, "result": _content({"flood": "x" * FLOOD})}
            case "mistake":
                return {**made, "id": 999_999, "result": _content({})}
            case "refuse":
                return {**made, "error": {"code": -32602, "message": f"no: {arguments.get('saying', '')}"}}
            case "fail":
                text = [{"type": "text", "text": f"it failed: {arguments.get('saying', '')}"}]
                return {**made, "result": {"content": text, "isError": True}}
            case "unstructured":
                return {**made, "result": {"content": [{"type": "text", "text": '{"plain": true}'}]}}
        return {**made, "result": _content(self._done(tool, arguments))}

    def _done(self, tool: str, arguments: Mapping[str, Any]) -> Message:
        match tool:
            case "remember":
                memory = {name: arguments[name] for name in ("id", "text", "sources")}
                self.kept.change([{"scope": arguments["scope"], "memory": memory}])
            case "remember_all":
                scope = arguments["scope"]
                self.kept.change([{"scope": scope, "memory": memory} for memory in arguments["memories"]])
            case "recall":
                return {"found": self.kept.recall(arguments["scope"], arguments["query"], arguments["limit"])}
            case "grep":
                return {"found": self.kept.grep(arguments["scope"], arguments["word"])}
            case "everything":
                return {"found": self.kept.everything(arguments["scope"])}
            case "forget":
                self.kept.change([{"scope": arguments["scope"]}])
            case "environment":
                return {"environment": dict(os.environ), "cwd": os.getcwd(), "pid": os.getpid()}
            case "cancelled":
                return {"ids": self._cancelled}
            case "ping_back":
                self._say(json.dumps({"jsonrpc": "2.0", "id": "p1", "method": "ping"}).encode() + b"\n")
                return {"answered": self._pong.wait(20)}
        return {"done": tool}


def _described(names: list[str]) -> list[Message]:
    return [{"name": name, "inputSchema": {"type": "object"}} for name in names]


def _content(value: Message) -> Message:
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


def serve_stdio(file: Path, *, version: str | None, stubborn: bool) -> None:
    out, lock = sys.stdout.buffer, threading.Lock()

    def say(line: bytes) -> None:
        with lock:
            out.write(line)
            out.flush()

    server = Server(file, say, version)

    def reply(message: Message) -> None:
        answered = server.answer(message)
        if answered is not None:
            say(json.dumps(answered).encode() + b"\n")

    for line in sys.stdin.buffer:
        threading.Thread(target=reply, args=(json.loads(line),), daemon=True).start()
    if stubborn:
        time.sleep(3600)
    os._exit(0)


class McpHttpServer:
    """Streamable HTTP: with `events`, replies come as a stream of events. `requests` holds what was asked of it."""

    def __init__(self, file: Path, *, events: bool = False) -> None:
        self.requests: list[tuple[str, Mapping[str, str], Message]] = []
        self.failures: list[tuple[int, Mapping[str, str]]] = []
        """Statuses and headers of the next replies, in the place of results of tool calls."""
        self.closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, Server(file, lambda _: None), events))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/mcp"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


SESSION = "session-1"


def _handler(owner: McpHttpServer, server: Server, events: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            owner.requests.append(("POST", dict(self.headers.items()), message))
            if message.get("method") != "initialize" and self.headers.get("Mcp-Session-Id") != SESSION:
                return self._send(400, b"no session", "text/plain")
            if owner.failures and message.get("method") == "tools/call":
                status, extra = owner.failures.pop(0)
                return self._send(status, b"", "text/plain", extra)
            answered = server.answer(message)
            if answered is None:
                if "id" in message:
                    owner.closing.wait()
                return self._send(202, b"", "text/plain")
            if not events:
                return self._send(200, json.dumps(answered).encode(), "application/json")
            noise = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}}
            lines = [": hello", f"data: {json.dumps(noise)}", "", "id: 7", "event: message"]
            lines += [f"data: {part}" for part in json.dumps(answered, indent=1).split("\n")]
            return self._send(200, "\r\n".join([*lines, "", ""]).encode(), "text/event-stream; charset=utf-8")

        def do_DELETE(self) -> None:
            owner.requests.append(("DELETE", dict(self.headers.items()), {}))
            self._send(405, b"", "text/plain")

        def _send(self, status: int, body: bytes, kind: str, extra: Mapping[str, str] | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Mcp-Session-Id", SESSION)
            for name, value in (extra or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Silence: the tests look at `requests`."""

    return Handler


if __name__ == "__main__":
    options = dict(part.removeprefix("--").partition("=")[::2] for part in sys.argv[2:])
    serve_stdio(Path(sys.argv[1]), version=options.get("version"), stubborn="stubborn" in options)
