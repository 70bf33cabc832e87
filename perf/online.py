"""Traces judged by two calls each, 50 at once: by hand, by the engine alone, and by the extraction suite.

By hand nothing is kept and nothing compared. The engine alone keeps what the judge said, as every suite does, but does
not look at it: what the suite costs beyond that is to ask for facts, and to read and match them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from memorybench.core.contracts import Completion
from memorybench.core.conversation import Turn
from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.trials import Score, Subject, Trial
from memorybench.engine.run import perform
from memorybench.http.client import open_http
from memorybench.journal.rows import Run
from memorybench.journal.run_writer import open_run
from memorybench.judging.enumeration import STATED, WRITTEN, Enumerator, prompt
from memorybench.models.openai import OpenAIModel
from memorybench.models.options import Options
from memorybench.models.presets import resolve
from memorybench.secrets.redaction import Redactor
from memorybench.suites.extraction.online import OnlinePlan, TraceJudge
from memorybench.traces.jsonl import JsonlTraces
from memorybench.traces.paths import OF_FILES, TracePaths
from memorybench.traces.spool import spool
from perf.gauges import Gauges, measured
from perf.stub import MODEL_SECONDS

IN_FLIGHT = 50
_TRACES = Subject(role="traces", name="perf")
_EXISTING = {"pricing": [], "constraint": ["none yet"]}


def ideal(items: int) -> float:
    """Seconds, if nothing but the judge took any time."""
    return items * 2 * MODEL_SECONDS / IN_FLIGHT


def bare(folder: Path, items: int, address: str) -> Gauges:
    with measured() as gauges:
        asyncio.run(_by_hand(items, address))
    return gauges


async def _by_hand(items: int, address: str) -> None:
    left = iter(range(items))

    async def work(session: aiohttp.ClientSession) -> None:
        for n in left:
            for text in _prompts(n).values():
                body = {"model": "stub", "messages": [{"role": "user", "content": text}]}
                async with session.post(f"{address}/v1/chat/completions", json=body) as response:
                    await response.json()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(work(session) for _ in range(IN_FLIGHT)))


def engine(folder: Path, items: int, address: str) -> Gauges:
    return _performed(folder, items, address, lambda model: Plan(jobs=_jobs(items, model), size=items))


def ours(folder: Path, items: int, address: str) -> Gauges:
    """With the reading of the file that the traces come from."""
    folder.mkdir()
    source = folder / "traces.jsonl"
    with source.open("w") as file:
        file.writelines(json.dumps(_trace(n)) + "\n" for n in range(items))

    def plan(model: OpenAIModel) -> Plan:
        return OnlinePlan(_TRACES, traces, len(traces), TraceJudge(Enumerator(model)), traces.problems).plan()

    with measured() as reading:
        traces = asyncio.run(spool(JsonlTraces(source, TracePaths.of(OF_FILES)), folder / "spool.jsonl"))
    gauges = _performed(folder, items, address, plan)
    gauges.wall += reading.wall
    gauges.cpu += reading.cpu
    return gauges


def _performed(folder: Path, items: int, address: str, plan: Callable[[OpenAIModel], Plan]) -> Gauges:
    run = Run(id="perf", suite="extraction", spec={}, planned=items)
    with measured() as gauges, open_run(folder, run) as run_writer:

        async def everything() -> None:
            async with open_http(Redactor([])) as http:
                model = OpenAIModel(resolve("vllm/stub", {"VLLM_BASE_URL": f"{address}/v1"}), Options(), http, None)
                ending = await perform(plan(model), run_writer, concurrency=IN_FLIGHT)
                assert ending.performed == items

        asyncio.run(everything())
        run_writer.end("complete")
    return gauges


def _jobs(items: int, model: OpenAIModel) -> Iterator[Job]:
    for n in range(items):
        trial = Trial(suite="extraction", case_id=f"r{n}", subject=_TRACES)
        yield Job(trial=trial, perform=_job(n, model), ordinal=n, spends=True)


def _job(n: int, model: OpenAIModel) -> Callable[[Steps], Awaitable[Performed]]:
    async def job(steps: Steps) -> Performed:
        for name, text in _prompts(n).items():
            await steps.once(
                name,
                {"model": model.subject, "prompt": text},
                partial(model.complete, [Turn(role="user", content=text)]),
                Completion,
                on=model.subject,
                paid=True,
            )
        return Performed(scores=(Score(name="correct", value=1.0),))

    return job


def _prompts(n: int) -> dict[str, str]:
    """By step."""
    told = _trace(n)
    said = "\n".join(f"{turn['role'].capitalize()}: {turn['content']}" for turn in told["conversation"])
    existing, output = (json.dumps(told[name]) for name in ("existing_memory", "output"))
    return {
        STATED: prompt(STATED, {"conversation": said, "existing-memory": existing}),
        WRITTEN: prompt(WRITTEN, {"existing-memory": existing, "new-memory": output}),
    }


def _trace(n: int) -> dict[str, Any]:
    return {
        "id": f"r{n}",
        "conversation": [
            {"role": "user", "content": f"This is trace {n}. " + "Some words of a talk. " * 40},
            {"role": "assistant", "content": "I see. " * 40},
        ],
        "existing_memory": _EXISTING,
        "output": {
            "pricing": [f"{n} dollars (trace {n})"],
            "constraint": ["no subscription model"],
            "tool": ["uses a spreadsheet"],
        },
    }


WAYS = {"bare": bare, "engine": engine, "ours": ours}

if __name__ == "__main__":
    what, folder, items, address = sys.argv[1:]
    print(WAYS[what](Path(folder), int(items), address).as_json())
