"""50 haystacks of 10 sessions into a memory of 20 ms, all side by side: by hand, and by the bench suite.

Every way sends the same requests: the sessions of a haystack one after the other, a search, a clear. They take turns in
one process, and the best of each counts: what another program takes from the machine is nobody's merit or fault.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

import aiohttp

from memorybench.core.conversation import Haystack, Session, Turn
from memorybench.core.questions import EvidenceLevel, Question
from memorybench.engine.run import perform
from memorybench.files.yaml_file import parse_yaml
from memorybench.journal.rows import Run
from memorybench.journal.run_writer import open_run
from memorybench.providers.config_reading import read_provider
from memorybench.providers.http_provider import open_http_provider
from memorybench.secrets.redaction import Redactor
from memorybench.suites.bench.baselines import Arm
from memorybench.suites.bench.plan import Bench, BenchPlan
from perf.gauges import Gauges, measured
from perf.stub import MEMORY_SECONDS, counted, stub_server

HAYSTACKS, SESSIONS = 50, 10
ROUNDS = 7
IDEAL = (SESSIONS + 2) * MEMORY_SECONDS
"""With the search and the clear that follow, if nothing but the memory took any time."""
KEY = "sk-perf-0123456789"
CONFIG = """\
name: stub
type: hosted
connection: {baseUrl: "URL"}
auth: {type: bearer, envVar: STUB_KEY}
endpoints:
  add:
    method: POST
    path: /add
    body: {id: "$.documentId", user: "$.scope", content: "$.content", date: "$.date"}
  search:
    method: POST
    path: /search
    body: {query: "$.query", user: "$.scope", limit: "$.limit"}
    response: {results: $.results, idField: $.id, contentField: $.memory, scoreField: $.score}
  clear: {method: DELETE, path: "/users/${scope}"}
"""
BATCHED = f"""{CONFIG}\
  batchAdd:
    method: POST
    path: /batch
    body: {{user: "$.scope", documents: "$.documents"}}
    document: {{id: "$.documentId", content: "$.content", date: "$.date"}}
rateLimit: {{batchDelayMs: 0}}
capabilities: {{unordered: true}}
"""


@dataclass(frozen=True)
class Diaries:
    """A question for each haystack."""

    name: str = "diaries"
    fingerprint: str = "diaries"
    evidence: EvidenceLevel = "session"

    @cached_property
    def questions(self) -> Sequence[Question]:
        return [
            Question(id=f"q{n}", haystack=f"h{n}", question="What is the cat called?", gold_sessions=(f"h{n}s1",))
            for n in range(HAYSTACKS)
        ]

    @cached_property
    def _haystacks(self) -> dict[str, Haystack]:
        return {question.haystack: _haystack(question.haystack) for question in self.questions}

    def haystack(self, id: str) -> Haystack:
        return self._haystacks[id]


def _haystack(id: str) -> Haystack:
    begun = datetime(2024, 5, 1, tzinfo=UTC)
    sessions = (
        Session(
            id=f"{id}s{day}",
            turns=(
                Turn(role="user", content=f"On day {day} of {id} the cat slept on the piano until noon."),
                Turn(role="assistant", content="Then the lid had better stay closed."),
            ),
            at=begun + timedelta(days=day),
        )
        for day in range(SESSIONS)
    )
    return Haystack(id=id, sessions=tuple(sessions))


DIARIES = Diaries()


def raw(folder: Path, address: str) -> Gauges:
    """The same requests by sockets and nothing else, their bytes made before: no program in Python is faster here."""
    return asyncio.run(_by_sockets(address))


async def _by_sockets(address: str) -> Gauges:
    host, _, port = address.removeprefix("http://").partition(":")
    requests = [b"POST /add HTTP/1.1\r\nContent-Length: 150\r\n\r\n" + b" " * 150] * REQUESTS[raw]
    loop = asyncio.get_running_loop()

    async def fill() -> None:
        transport, exchange = await loop.create_connection(_Exchange, host, int(port))
        for request in requests:
            exchange.replied = loop.create_future()
            transport.write(request)
            await exchange.replied
        transport.close()

    with measured() as gauges:
        await asyncio.gather(*(fill() for _ in range(HAYSTACKS)))
    return gauges


class _Exchange(asyncio.Protocol):
    """Takes whatever comes for the whole reply, which it is here."""

    replied: asyncio.Future[None]

    def data_received(self, data: bytes) -> None:
        self.replied.set_result(None)


def bare(folder: Path, address: str) -> Gauges:
    """What one would write by hand, without resume, retries, limits, accounting or redaction."""
    return asyncio.run(_by_hand(address, lambda statement, values: None))


def durable(folder: Path, address: str) -> Gauges:
    """The same, as safe as the engine: announced on disk before it is sent, recorded on disk before the next."""
    folder.mkdir()
    db = sqlite3.connect(folder / "bare.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE attempts (key TEXT)")
    db.execute("CREATE TABLE steps (key TEXT PRIMARY KEY, result TEXT)")
    try:
        return asyncio.run(_by_hand(address, db.execute))
    finally:
        db.close()


async def _by_hand(address: str, commit: Callable[[str, tuple[str, ...]], object]) -> Gauges:
    async def call(session: aiohttp.ClientSession, method: str, path: str, body: object, key: str) -> None:
        commit("INSERT INTO attempts VALUES (?)", (key,))
        async with session.request(method, f"{address}{path}", json=body) as response:
            reply = await response.json()
        commit("INSERT INTO steps VALUES (?, ?)", (key, json.dumps(reply)))

    async def fill(session: aiohttp.ClientSession, question: Question) -> None:
        user = question.haystack
        for one in DIARIES.haystack(user).sessions:
            said = "\n".join(f"{turn.role}: {turn.content}" for turn in one.turns)
            document = {"id": one.id, "user": user, "content": said, "date": str(one.at)}
            await call(session, "POST", "/add", document, one.id)
        sought = {"query": question.question, "user": user, "limit": 10}
        await call(session, "POST", "/search", sought, f"search {user}")
        await call(session, "DELETE", f"/users/{user}", None, f"clear {user}")

    headers = {"Authorization": f"Bearer {KEY}"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=headers) as session:
        with measured() as gauges:
            await asyncio.gather(*(fill(session, question) for question in DIARIES.questions))
    return gauges


def ours(folder: Path, address: str) -> Gauges:
    return asyncio.run(_by_suite(folder, address, CONFIG))


def batched(folder: Path, address: str) -> Gauges:
    return asyncio.run(_by_suite(folder, address, BATCHED))


async def _by_suite(folder: Path, address: str, text: str) -> Gauges:
    config = read_provider(parse_yaml(text.replace("URL", address), "stub.yaml"), {})
    redactor = Redactor([KEY])
    run = Run(id="perf", suite="bench", spec={}, planned=HAYSTACKS)
    bench = Bench(DIARIES, DIARIES.questions, depth=10)
    with open_run(folder, run, redact=redactor.clean) as run_writer:
        async with open_http_provider(config, key=KEY, redactor=redactor) as provider:
            arm = Arm(provider.subject, provider, spends=True, remote=True, unordered=config.capabilities.unordered)
            plan = BenchPlan(run.id, [bench], [arm]).plan()
            with measured() as gauges:
                ending = await perform(plan, run_writer, concurrency=HAYSTACKS)
        assert ending.status == "complete"
    return gauges


REQUESTS: Mapping[Callable[[Path, str], Gauges], int] = {
    raw: SESSIONS + 2,
    bare: SESSIONS + 2,
    durable: SESSIONS + 2,
    ours: SESSIONS + 2,
    batched: 3,
}
"""By way: what a haystack takes."""


def best(folder: Path) -> dict[str, Gauges]:
    """The least wall time and the least CPU time of each way."""
    taken: dict[str, list[Gauges]] = {way.__name__: [] for way in REQUESTS}
    with stub_server() as address:
        for n in range(ROUNDS + 1):
            for way, requests in REQUESTS.items():
                gauges = way(folder / f"{way.__name__}{n}", address)
                served = counted(address)["served"]
                assert served == requests * HAYSTACKS, f"{way.__name__} took {served} requests"
                if n:  # the first round warms everybody up
                    taken[way.__name__].append(gauges)
    return {
        name: Gauges(wall=min(run.wall for run in runs), cpu=min(run.cpu for run in runs))
        for name, runs in taken.items()
    }


if __name__ == "__main__":
    print(json.dumps({name: asdict(gauges) for name, gauges in best(Path(sys.argv[1])).items()}))
