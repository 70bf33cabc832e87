"""Traces and a judge with 50 calls at once: by a bare loop, by the engine alone, and by the extraction suite.

The loop and the engine make two calls per trace, which list facts; the suite also asks about pairs of these facts. So
each is compared with the time that the judge takes for its own number of calls. The loop stores nothing. The engine
alone stores the judge's replies; the suite also parses and matches them.
"""

from __future__ import annotations

import asyncio
import json
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
from memorybench.journal.run_opening import open_run
from memorybench.judging.enumeration import STATED, WRITTEN, prompt
from memorybench.judging.judge import Judge
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.models.openai import OpenAIModel
from memorybench.models.presets import Options, resolve
from memorybench.secrets.redaction import Redactor
from memorybench.suites.extraction.online import OnlinePlan, TraceJudge
from memorybench.traces.jsonl import JsonlTraces
from memorybench.traces.paths import OF_FILES, TracePaths
from memorybench.traces.spool import spool
from perf.measuring import Line, Setup, Usage, at_most, usage_measured
from perf.stub import MODEL_SECONDS, stub_server, take_counts

IN_FLIGHT = 50
_TRACES = Subject(role="traces", name="perf")
_EXISTING = {"pricing": [], "constraint": ["none yet"]}


def measure(setup: Setup) -> Iterator[Line]:
    """The best of some rounds each, and the memory of the last one."""
    count = setup.traces
    with stub_server() as address:
        small = setup.run(ours, "few", count // 5, address)
        usages = {
            way.__name__: [setup.run(way, f"{way.__name__}{n}", count, address) for n in range(setup.rounds)]
            for way in (ours, engine, bare)
        }
    wall = {way: min(run.wall / judge_seconds(run) for run in runs) for way, runs in usages.items()}
    cpu = {way: min(run.cpu / run.calls for run in runs) * 1e6 for way, runs in usages.items()}
    calls = max(run.calls for run in usages["ours"])
    yield at_most(f"{count:,} traces / time of the judge alone: wall", wall["ours"], 1.2)
    yield Line("  of the engine alone", wall["engine"])
    yield Line("  of a bare loop without a journal", wall["bare"])
    yield Line("  calls per trace", calls / count, "")
    yield Line("  CPU per call", cpu["ours"], "µs")
    yield Line("  CPU per call of the engine alone", cpu["engine"], "µs")
    yield Line("  CPU per call of the bare loop", cpu["bare"], "µs")
    yield Line(f"  memory at {count // 5:,} traces", small.megabytes, "MB")
    memory = usages["ours"][-1].megabytes
    yield at_most(f"  memory at {count:,} traces", memory, round(small.megabytes * 1.1), "MB")


def judge_seconds(usage: Usage) -> float:
    """The time that the judge takes for the calls of a run, if IN_FLIGHT of them are under way at any time."""
    assert usage.most_in_flight <= IN_FLIGHT
    return usage.calls * MODEL_SECONDS / IN_FLIGHT


def _count_calls(usage: Usage, address: str) -> Usage:
    counts = take_counts(address)
    usage.calls, usage.most_in_flight = counts["served"], counts["most"]
    return usage


def bare(folder: Path, items: int, address: str) -> Usage:
    with usage_measured() as usage:
        asyncio.run(_bare(items, address))
    return _count_calls(usage, address)


async def _bare(items: int, address: str) -> None:
    left = iter(range(items))

    async def work(session: aiohttp.ClientSession) -> None:
        for n in left:
            for text in _prompts(n).values():
                body = {"model": "stub", "messages": [{"role": "user", "content": text}]}
                async with session.post(f"{address}/v1/chat/completions", json=body) as response:
                    await response.json()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(work(session) for _ in range(IN_FLIGHT)))


def engine(folder: Path, items: int, address: str) -> Usage:
    return _performed(folder, items, address, lambda model: Plan(jobs=_jobs(items, model), size=items))


def ours(folder: Path, items: int, address: str) -> Usage:
    """Includes reading the file of traces."""
    folder.mkdir()
    source = folder / "traces.jsonl"
    with source.open("w") as file:
        file.writelines(json.dumps(_trace(n)) + "\n" for n in range(items))

    def plan(model: OpenAIModel) -> Plan:
        return OnlinePlan(_TRACES, traces, TraceJudge(model, EntailmentJudge(Judge(model)))).plan()

    with usage_measured() as reading:
        traces = asyncio.run(spool(JsonlTraces(source, TracePaths.of(OF_FILES)), folder / "spool.jsonl"))
    usage = _performed(folder, items, address, plan)
    usage.wall += reading.wall
    usage.cpu += reading.cpu
    return usage


def _performed(folder: Path, items: int, address: str, plan: Callable[[OpenAIModel], Plan]) -> Usage:
    run = Run(id="perf", suite="extraction", spec={}, planned=items)
    with usage_measured() as usage, open_run(folder, run) as run_writer:

        async def everything() -> None:
            async with open_http(Redactor([])) as http:
                model = OpenAIModel(resolve("vllm/stub", {"VLLM_BASE_URL": f"{address}/v1"}), Options(), http, None)
                ending = await perform(plan(model), run_writer, concurrency=IN_FLIGHT)
                assert ending.performed == items == len(run_writer.scored())

        asyncio.run(everything())
        run_writer.end("complete")
    return _count_calls(usage, address)


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
    """The prompt of each step."""
    trace = _trace(n)
    conversation = "\n".join(f"{turn['role'].capitalize()}: {turn['content']}" for turn in trace["conversation"])
    existing, output = (json.dumps(trace[name]) for name in ("existing_memory", "output"))
    return {
        STATED: prompt(STATED, {"conversation": conversation, "existing-memory": existing}),
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
