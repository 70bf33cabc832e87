"""The same four calls an item, 100 in flight: a bare aiohttp loop with a WAL commit a step, and the engine."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp

from memorybench.core.contracts import Completion
from memorybench.core.conversation import Turn
from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.trials import Case, Score, Subject, Trial
from memorybench.engine.run import perform
from memorybench.http.client import Http, open_http
from memorybench.journal.rows import Run
from memorybench.journal.run_writer import open_run
from memorybench.models.openai import OpenAIModel
from memorybench.models.options import Options
from memorybench.models.presets import resolve
from memorybench.secrets.redaction import Redactor
from perf.gauges import Gauges, measured
from perf.stub import counted

IN_FLIGHT = 100
MEMORY = Subject(role="provider", name="memory")


def bare(folder: Path, items: int, address: str, synchronous: str = "FULL") -> Gauges:
    """What one would write by hand, without resume, retries, limits, accounting or redaction.

    As durable as the engine: every step is on disk before the next one begins.
    """
    folder.mkdir()
    with measured() as gauges:
        asyncio.run(_bare(folder, items, address, synchronous))
    gauges.most_in_flight = counted(address)["most"]
    return gauges


def careless(folder: Path, items: int, address: str) -> Gauges:
    """The same without waiting for the disk: a power cut takes the last steps, paid or not."""
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


def ours(folder: Path, items: int, address: str) -> Gauges:
    run = Run(id="perf", suite="bench", spec={}, planned=items)
    with measured() as gauges, open_run(folder, run) as run_writer:

        async def everything() -> None:
            async with open_http(Redactor([])) as http:
                model = OpenAIModel(resolve("vllm/stub", {"VLLM_BASE_URL": f"{address}/v1"}), Options(), http, None)
                plan = Plan(jobs=_jobs(items, model, http, address), size=items)
                await perform(plan, run_writer, concurrency=IN_FLIGHT)

        asyncio.run(everything())
        run_writer.end("complete")
    gauges.most_in_flight = counted(address)["most"]
    return gauges


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


if __name__ == "__main__":
    what, folder, items, address = sys.argv[1:]
    print({"bare": bare, "careless": careless, "ours": ours}[what](Path(folder), int(items), address).as_json())
