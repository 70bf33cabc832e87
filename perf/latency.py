"""Four calls per item, 100 in flight: a bare aiohttp loop that commits each step, and the engine.

Wall time is compared with calls of 100 and 250 ms, for which the loop waits. With calls of 20 and 50 ms, the processor
limits the loop itself, so that the ratio of wall times only repeats that of CPU times.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

import aiohttp

from memorybench.core.contracts import Completion
from memorybench.core.conversation import Turn
from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.trials import Case, Score, Subject, Trial
from memorybench.engine.run import perform
from memorybench.http.client import Http, open_http
from memorybench.journal.rows import Run
from memorybench.journal.run_opening import open_run
from memorybench.models.openai import OpenAIModel
from memorybench.models.presets import Options, resolve
from memorybench.secrets.redaction import Redactor
from perf.measuring import Line, Setup, Usage, at_most, usage_measured
from perf.stub import stub_server, take_counts

IN_FLIGHT = 100
SLOWNESS = 5
"""How many times longer calls take when wall times are compared. Replies of real models take longer still."""
MEMORY = Subject(role="provider", name="memory")


def measure(setup: Setup) -> Iterator[Line]:
    """The median ratio of some rounds, so that a busy moment of the machine does not decide."""
    with stub_server(slowness=SLOWNESS) as address:
        slow = _rounds(setup, (bare, ours), "slow", address)
    with stub_server() as address:
        fast = _rounds(setup, (bare, not_durable, ours), "fast", address)
    yield at_most(
        "engine / bare loop with a durable commit per step: wall", median(o.wall / b.wall for b, o in slow), 1.10
    )
    yield Line("  wall with calls that are five times as fast", median(o.wall / b.wall for b, _, o in fast))
    yield at_most("  CPU", median(o.cpu / b.cpu for b, _, o in fast), 1.5)
    yield Line("  wall, if the loop does not wait for the disk", median(o.wall / c.wall for _, c, o in fast))
    yield Line("  CPU, if the loop does not wait for the disk", median(o.cpu / c.cpu for _, c, o in fast))
    most = min(runs[-1].most_in_flight for runs in (*slow, *fast))
    wanted = min(IN_FLIGHT, setup.items)
    yield Line(f"  calls in flight of {wanted} requested", most, "", f"= {wanted}", most == wanted)
    yield at_most(f"  memory at {setup.items:,} items", max(runs[-1].megabytes for runs in fast), 100, "MB")


def _rounds(setup: Setup, ways: Sequence[Callable[..., Usage]], name: str, address: str) -> list[list[Usage]]:
    """In each round, every way is run once."""
    return [
        [setup.run(way, f"{way.__name__}-{name}{n}", setup.items, address) for way in ways] for n in range(setup.rounds)
    ]


def bare(folder: Path, items: int, address: str, synchronous: str = "FULL") -> Usage:
    """A loop without resume, retries, limits, accounting or redaction.

    It is as durable as the engine: every step is on disk before the next one begins.
    """
    folder.mkdir()
    with usage_measured() as usage:
        asyncio.run(_bare(folder, items, address, synchronous))
    usage.most_in_flight = take_counts(address)["most"]
    return usage


def not_durable(folder: Path, items: int, address: str) -> Usage:
    """The same loop without waiting for the disk: a power cut loses the last steps."""
    return bare(folder, items, address, synchronous="NORMAL")


async def _bare(folder: Path, items: int, address: str, synchronous: str) -> None:
    db = sqlite3.connect(folder / "bare.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute(f"PRAGMA synchronous={synchronous}")
    db.execute("CREATE TABLE steps (key TEXT PRIMARY KEY, result TEXT)")
    left = iter(range(items))

    async def work(session: aiohttp.ClientSession) -> None:
        async def call(path: str, body: dict[str, object], key: str) -> None:
            async with session.post(f"{address}{path}", json=body) as response:
                reply = await response.json()
            db.execute("INSERT INTO steps VALUES (?, ?)", (key, json.dumps(reply)))

        for n in left:
            await call("/memory/add", {"content": f"session {n}", "scope": f"s{n}"}, f"add {n}")
            await call("/memory/search", {"query": f"question {n}", "scope": f"s{n}"}, f"search {n}")
            for name in ("answer", "judge"):
                messages = [{"role": "user", "content": f"{name} question {n}"}]
                await call("/v1/chat/completions", {"model": "stub", "messages": messages}, f"{name} {n}")

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(work(session) for _ in range(IN_FLIGHT)))
    db.close()


def ours(folder: Path, items: int, address: str) -> Usage:
    run = Run(id="perf", suite="bench", spec={}, planned=items)
    with usage_measured() as usage, open_run(folder, run) as run_writer:

        async def everything() -> None:
            async with open_http(Redactor([])) as http:
                model = OpenAIModel(resolve("vllm/stub", {"VLLM_BASE_URL": f"{address}/v1"}), Options(), http, None)
                plan = Plan(jobs=_jobs(items, model, http, address), size=items)
                await perform(plan, run_writer, concurrency=IN_FLIGHT)

        asyncio.run(everything())
        run_writer.end("complete")
    usage.most_in_flight = take_counts(address)["most"]
    return usage


def _jobs(items: int, model: OpenAIModel, http: Http, address: str) -> Iterator[Job]:
    for n in range(items):
        yield _job(n, model, http, address)


def _job(n: int, model: OpenAIModel, http: Http, address: str) -> Job:
    async def remember(operation: str) -> str:
        body = {"content": f"session {n}", "scope": f"s{n}"}
        return (await http.request("POST", f"{address}/memory/{operation}", json=body)).body.decode()

    async def job(steps: Steps) -> Performed:
        async def ask(name: str) -> Completion:
            text = f"{name} question {n}"
            return await steps.once(
                name,
                {"model": model.subject, "prompt": text},
                lambda: model.complete([Turn(role="user", content=text)]),
                Completion,
                on=model.subject,
                paid=True,
            )

        await steps.once("add", {"scope": f"s{n}"}, lambda: remember("add"), str, on=MEMORY)
        await steps.once("search", {"query": f"question {n}"}, lambda: remember("search"), str, on=MEMORY)
        await ask("answer")
        verdict = await ask("judge")
        return Performed(scores=(Score(name="correct", value=float(verdict.text == "yes")),))

    trial = Trial(suite="bench", case_id=f"q{n}", subject=MEMORY, benchmark="perf")
    return Job(trial=trial, perform=job, ordinal=n, case=Case(id=f"q{n}"))
