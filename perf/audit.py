"""A thousand probes of a replayed conversation, put to a model that takes 50 ms, fifty at a time: read by code, or
judged by that model, as an audit is by default."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import aiohttp

from memorybench.core.conversation import Turn
from memorybench.datasets.audit import AuditConversation, AuditDataset
from memorybench.engine.run import perform
from memorybench.files.templates import Template
from memorybench.http.client import open_http
from memorybench.journal.rows import Run
from memorybench.journal.run_writer import open_run
from memorybench.judging.judge import Judge
from memorybench.models.openai import OpenAIModel
from memorybench.models.options import Options
from memorybench.models.presets import resolve
from memorybench.secrets.redaction import Redactor
from memorybench.suites.answering import Reading, Scoring, context_of
from memorybench.suites.audit.judgement import judge_prompts
from memorybench.suites.audit.plan import Audited, AuditPlan, Transcripts, lines_of
from memorybench.suites.audit.probes import Probe
from perf.gauges import Gauges, measured
from perf.stub import MODEL_SECONDS, counted

PROBES, IN_FLIGHT, CONVERSATIONS = 1_000, 50, 10
_PROMPT = Template.parse(
    "Question: ${question}\n\n${retrievedContext}", frozenset({"question", "retrievedContext"}), "prompt"
)


def ideal(calls: int) -> float:
    """Seconds, if nothing but the model took any time."""
    return calls * MODEL_SECONDS / IN_FLIGHT


def bare(folder: Path, address: str) -> Gauges:
    """The same calls by hand, each on disk before the next begins."""
    folder.mkdir()
    texts = [context_of(lines_of(_conversation(n).turns)) for n in range(CONVERSATIONS)]

    async def everything() -> None:
        db = sqlite3.connect(folder / "bare.db", isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("CREATE TABLE steps (key TEXT PRIMARY KEY, result TEXT)")
        left = iter(range(PROBES))

        async def work(session: aiohttp.ClientSession) -> None:
            for n in left:
                text = f"Question: What was told on day {n}?\n\n{texts[n % CONVERSATIONS]}"
                body = {"model": "stub", "messages": [{"role": "user", "content": text}]}
                async with session.post(f"{address}/v1/chat/completions", json=body) as response:
                    reply = await response.json()
                db.execute("INSERT INTO steps VALUES (?, ?)", (f"answer {n}", json.dumps(reply)))

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            await asyncio.gather(*(work(session) for _ in range(IN_FLIGHT)))
        db.close()

    with measured() as gauges:
        asyncio.run(everything())
    gauges.calls = counted(address)["served"]
    return gauges


def ours(folder: Path, address: str, *, judging: bool = False) -> Gauges:
    dataset = AuditDataset(id="perf", conversations=tuple(_conversation(n) for n in range(CONVERSATIONS)))
    probes = [_probe(n) for n in range(PROBES)]
    with measured() as gauges, open_run(folder, Run(id="perf", suite="audit", spec={}, planned=PROBES)) as run_writer:

        async def everything() -> None:
            async with open_http(Redactor([])) as http:
                model = OpenAIModel(resolve("vllm/stub", {"VLLM_BASE_URL": f"{address}/v1"}), Options(), http, None)
                reading = Reading(model, {"": _PROMPT}, Scoring(method="audit"))
                judge = Judge(model, judge_prompts()) if judging else None
                plan = AuditPlan(Transcripts(dataset), probes, [Audited(model.subject)], reading, judge)
                await perform(plan.plan(), run_writer, concurrency=IN_FLIGHT)

        asyncio.run(everything())
        run_writer.end("complete")
    gauges.calls = counted(address)["served"]
    return gauges


def judged(folder: Path, address: str) -> Gauges:
    return ours(folder, address, judging=True)


def _conversation(n: int) -> AuditConversation:
    turns = [
        Turn(role="user", content=f"On day {turn} I told you fact number {turn}.", id=f"t{turn}") for turn in range(30)
    ]
    return AuditConversation(id=f"c{n}", turns=tuple(turns), facts=())


def _probe(n: int) -> Probe:
    return Probe(
        id=f"p{n}",
        labels={"probe_type": "recall"},
        type="recall",
        kind="recall",
        conversation=f"c{n % CONVERSATIONS}",
        question=f"What was told on day {n}?",
        expected_answer="yes",
        origin="structured",
    )


WAYS: Mapping[str, Callable[[Path, str], Gauges]] = {"bare": bare, "ours": ours, "judged": judged}

if __name__ == "__main__":
    what, folder, address = sys.argv[1:]
    print(WAYS[what](Path(folder), address).as_json())
