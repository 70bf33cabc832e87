"""Haystacks of 10 sessions, ingested side by side by a memory that takes 20 ms: by a bare loop, and by the bench suite.

Every way sends the same requests: the sessions of a haystack in order, a search, a clear. The ways take turns in one
process and the best round of each counts, because other programs only make a round longer.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

import aiohttp

from memorybench.core.conversation import Haystack, Session, Turn
from memorybench.core.questions import EvidenceLevel, Question
from memorybench.engine.run import perform
from memorybench.files.yaml_file import parse_yaml
from memorybench.journal.rows import Run
from memorybench.journal.run_opening import open_run
from memorybench.providers.config.reading import read_provider
from memorybench.providers.http.provider import open_http_provider
from memorybench.secrets.redaction import Redactor
from memorybench.suites.bench.baselines import Candidate
from memorybench.suites.bench.plan import Bench, BenchPlan
from memorybench.suites.search_limits import SearchLimits
from perf.measuring import Line, Setup, Usage, at_most, usage_measured
from perf.stub import MEMORY_SECONDS, stub_server, take_counts

SESSIONS = 10
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


def measure(setup: Setup) -> Iterator[Line]:
    ways: dict[Callable[[Path, int, str], Usage], int] = {
        bare: SESSIONS + 2,
        durable: SESSIONS + 2,
        ours: SESSIONS + 2,
        batched: 3,
    }
    rounds: dict[str, list[Usage]] = {way.__name__: [] for way in ways}
    (setup.folder / "ingest").mkdir()
    with stub_server() as address:
        for n in range(2 * setup.rounds):
            for way, requests in ways.items():
                usage = way(setup.folder / "ingest" / f"{way.__name__}{n}", setup.haystacks, address)
                served = take_counts(address)["served"]
                assert served == requests * setup.haystacks, f"{way.__name__} made {served} requests"
                if n:  # the first round warms up
                    rounds[way.__name__].append(usage)
    wall = {way: min(usage.wall for usage in usages) for way, usages in rounds.items()}
    cpu = {
        way: min(usage.cpu for usage in usages) / setup.haystacks / (SESSIONS + 2) * 1e6
        for way, usages in rounds.items()
    }
    memory_seconds = (SESSIONS + 2) * MEMORY_SECONDS
    yield at_most("ingest / bare loop with durable commits: wall", wall["ours"] / wall["durable"], 1.25)
    yield Line("  / time of the memory alone", wall["ours"] / memory_seconds)
    yield Line("  of the bare loop with durable commits / time of the memory alone", wall["durable"] / memory_seconds)
    yield Line("  of a bare loop without a journal / time of the memory alone", wall["bare"] / memory_seconds)
    yield Line("  CPU per call", cpu["ours"], "µs")
    yield Line("  CPU per call of the bare loop with durable commits", cpu["durable"], "µs")
    yield Line("  CPU per call of the bare loop without a journal", cpu["bare"], "µs")
    batches = wall["batched"] / wall["ours"]
    yield Line("  in batches / one by one: wall", batches, "×", "< 1 ×", batches < 1)


@dataclass(frozen=True)
class Diaries:
    """One question per haystack."""

    size: int
    name: str = "diaries"
    fingerprint: str = "diaries"
    evidence: EvidenceLevel = "session"

    @cached_property
    def questions(self) -> Sequence[Question]:
        return [
            Question(id=f"q{n}", haystack=f"h{n}", question="What is the cat called?", gold_sessions=(f"h{n}s1",))
            for n in range(self.size)
        ]

    @cached_property
    def _haystacks(self) -> dict[str, Haystack]:
        return {question.haystack: _haystack(question.haystack) for question in self.questions}

    def haystack(self, id: str) -> Haystack:
        return self._haystacks[id]


def _haystack(id: str) -> Haystack:
    sessions = (
        Session(
            id=f"{id}s{day}",
            turns=(
                Turn(role="user", content=f"On day {day} of {id} the cat slept on the piano until noon."),
                Turn(role="assistant", content="Then the lid had better stay closed."),
            ),
            at=datetime(2024, 5, 1, tzinfo=UTC) + timedelta(days=day),
        )
        for day in range(SESSIONS)
    )
    return Haystack(id=id, sessions=tuple(sessions))


def bare(folder: Path, haystacks: int, address: str) -> Usage:
    """A loop without resume, retries, limits, accounting or redaction, and without a journal."""
    return asyncio.run(_bare(haystacks, address, lambda statement, values: None))


def durable(folder: Path, haystacks: int, address: str) -> Usage:
    """The same loop as durable as the engine: on disk before each request and after each reply."""
    folder.mkdir()
    db = sqlite3.connect(folder / "bare.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE attempts (key TEXT)")
    db.execute("CREATE TABLE steps (key TEXT PRIMARY KEY, result TEXT)")
    try:
        return asyncio.run(_bare(haystacks, address, db.execute))
    finally:
        db.close()


async def _bare(haystacks: int, address: str, commit: Callable[[str, tuple[str, ...]], object]) -> Usage:
    diaries = Diaries(haystacks)

    async def call(session: aiohttp.ClientSession, method: str, path: str, body: object, key: str) -> None:
        commit("INSERT INTO attempts VALUES (?)", (key,))
        async with session.request(method, f"{address}{path}", json=body) as response:
            reply = await response.json()
        commit("INSERT INTO steps VALUES (?, ?)", (key, json.dumps(reply)))

    async def fill(session: aiohttp.ClientSession, question: Question) -> None:
        user = question.haystack
        for one in diaries.haystack(user).sessions:
            content = "\n".join(f"{turn.role}: {turn.content}" for turn in one.turns)
            document = {"id": one.id, "user": user, "content": content, "date": str(one.at)}
            await call(session, "POST", "/add", document, one.id)
        query = {"query": question.question, "user": user, "limit": 10}
        await call(session, "POST", "/search", query, f"search {user}")
        await call(session, "DELETE", f"/users/{user}", None, f"clear {user}")

    headers = {"Authorization": f"Bearer {KEY}"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=headers) as session:
        with usage_measured() as usage:
            await asyncio.gather(*(fill(session, question) for question in diaries.questions))
    return usage


def ours(folder: Path, haystacks: int, address: str) -> Usage:
    return asyncio.run(_run_suite(folder, haystacks, address, CONFIG))


def batched(folder: Path, haystacks: int, address: str) -> Usage:
    return asyncio.run(_run_suite(folder, haystacks, address, BATCHED))


async def _run_suite(folder: Path, haystacks: int, address: str, text: str) -> Usage:
    config = read_provider(parse_yaml(text.replace("URL", address), "stub.yaml"), {})
    redactor = Redactor([KEY])
    run = Run(id="perf", suite="bench", spec={}, planned=haystacks)
    diaries = Diaries(haystacks)
    bench = Bench(diaries, diaries.questions, limits=SearchLimits(depth=10))
    with open_run(folder, run, redact=redactor.clean) as run_writer:
        async with open_http_provider(config, key=KEY, redactor=redactor) as provider:
            candidate = Candidate(
                provider.subject, provider, spends=True, remote=True, unordered=config.capabilities.unordered
            )
            plan = BenchPlan(run.id, [bench], [candidate]).plan()
            with usage_measured() as usage:
                ending = await perform(plan, run_writer, concurrency=haystacks)
        assert ending.status == "complete"
    return usage
