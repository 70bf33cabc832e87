"""A command-line agent without a model: it does what its first argument says, with the memory it is led to.

    python scripted_agent.py BEHAVIOUR PROMPT --url URL         # over HTTP
    python scripted_agent.py BEHAVIOUR PROMPT --command WORDS…  # over the standard streams of a program

Prints JSON lines: each call, then the answer with its tokens. Behaviours: `tidy` (recalls; updates what it finds, else
remembers), `hoarding` (remembers the prompt as it is), `idle` (lists the tools, answers), `reading` (answers with what
its files say), `unconnected`, `silent`, `crashing`, `failing` (says that it failed), `stopped` (out of turns),
`hanging`, `looking` (what its process sees), `whispering` (writes the prompt to a memory of its own, which only its
output shows), `playing` (makes the calls in the prompt).
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any


class Memory:
    """As much of an MCP client as this takes."""

    def __init__(self, way: str, rest: list[str]) -> None:
        self.url = rest[0] if way == "--url" else None
        self.process = None
        if way == "--command":
            self.process = subprocess.Popen(rest, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.id = 0
        self.session: dict[str, str] = {}
        proposed = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "scripted", "version": "1"},
        }
        self.ask("initialize", proposed)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.ask("tools/list", {})

    def ask(self, method: str, params: Any) -> Any:
        self.id += 1
        reply = self.send({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        assert reply["id"] == self.id, reply
        return reply["result"]

    def send(self, message: Any) -> Any:
        body = json.dumps(message).encode()
        if self.url is not None:
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            with urllib.request.urlopen(urllib.request.Request(self.url, body, headers | self.session)) as reply:
                if id := reply.headers.get("Mcp-Session-Id"):
                    self.session = {"Mcp-Session-Id": id}
                lines = [line.removeprefix(b"data: ") for line in reply.read().splitlines()]
                return next((json.loads(line) for line in lines if line.startswith(b"{")), None)
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(body + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline()) if "id" in message else None

    def call(self, tool: str, **arguments: Any) -> Any:
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        print(json.dumps({"type": "call", "tool": tool, "failed": bool(result.get("isError"))}), flush=True)
        return result.get("structuredContent")

    def close(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()


def tidy(memory: Memory, prompt: str) -> None:
    found = memory.call("recall", query=prompt, limit=3)["facts"]
    told = prompt.removeprefix("Remember: ")
    if told != prompt and found:
        memory.call("update", id=found[0]["id"], content=told)
    elif told != prompt:
        memory.call("remember", content=told)


def play(memory: Memory, prompt: str) -> None:
    """Make the calls in the prompt, a JSON list of [tool, arguments]; "$1" is the id that the first call returned."""
    ids: list[str] = []
    for tool, arguments in json.loads(prompt):
        words = {f"${number}": id for number, id in enumerate(ids, 1)}
        result = memory.call(tool, **{name: words.get(value, value) for name, value in arguments.items()})
        ids.append(str((result or {}).get("id", "")))


def main() -> None:
    behaviour, prompt, way, *rest = sys.argv[1:]
    if behaviour == "silent":
        return
    if behaviour == "crashing":
        print("the model is not there", file=sys.stderr)
        sys.exit(3)
    if behaviour == "hanging":
        time.sleep(3600)
    if behaviour == "unconnected":
        print(json.dumps({"type": "answer", "text": "done"}))
        return
    memory = Memory(way, rest)
    text = "done"
    if behaviour == "tidy":
        tidy(memory, prompt)
    elif behaviour == "playing":
        play(memory, prompt)
    elif behaviour == "hoarding":
        memory.call("remember", content=prompt)
    elif behaviour == "whispering":
        print(json.dumps({"type": "own memory", "input": {"note": prompt}}))
        memory.call("remember", content="The staging service is reached at staging.example.test")
    elif behaviour == "reading":
        text = "\n".join(path.read_text() for path in Path().rglob("*.md"))
    elif behaviour == "looking":
        seen = {"env": dict(os.environ), "folder": os.getcwd(), "here": sorted(map(str, Path().rglob("*")))}
        text = json.dumps({**seen, "stdin": sys.stdin.read()})
    memory.close()
    if behaviour == "failing":
        print(json.dumps({"type": "failure", "why": "no credit"}))
        return
    if behaviour == "stopped":
        print(json.dumps({"type": "limit", "turns": 3}))
        sys.exit(1)
    print("Warning: this line is no JSON")
    print(json.dumps({"type": "answer", "text": text, "tokens": {"in": 120, "out": 7}, "dollars": 0.002}))


if __name__ == "__main__":
    main()
