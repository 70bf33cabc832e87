"""An audit whose model takes 50 ms per probe, 50 at a time: scored by code, or judged by that model (the default)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import aiohttp

from memorybench.core.conversation import Turn
from memorybench.datasets.audit import AuditConversation, AuditDataset, AuditFact
from memorybench.engine.run import perform
from memorybench.files.templates import Template
from memorybench.http.client import open_http
from memorybench.journal.rows import Run
from memorybench.journal.run_opening import open_run
from memorybench.judging.judge import Judge
from memorybench.models.openai import OpenAIModel
from memorybench.models.presets import Options, resolve
from memorybench.secrets.redaction import Redactor
from memorybench.suites.answering import Answering, Scoring
from memorybench.suites.audit.generation import generate
from memorybench.suites.audit.judgement import judge_prompts
from memorybench.suites.audit.plan import AuditedSubject, AuditPlan, Transcripts
from memorybench.suites.audit.probes import PROBE_TYPES, Probe
from perf.large_file import load
from perf.measuring import Line, Setup, Usage, at_most, run_command, usage_measured
from perf.stub import MODEL_SECONDS, stub_server, take_counts

IN_FLIGHT, CONVERSATIONS = 50, 10
_PROMPT = Template.parse(
    "Question: ${question}\n\n${retrievedContext}", frozenset({"question", "retrievedContext"}), "prompt"
)


def measure(setup: Setup) -> Iterator[Line]:
    """The best of some rounds each, taken in turn: other programs only make them longer."""
    with stub_server() as address:
        rounds = [
            [setup.run(way, f"{way.__name__}{n}", setup.probes, address) for way in (ours, judged, bare)]
            for n in range(setup.rounds)
        ]
    scored, with_judge, loop = (
        min(usage.wall * IN_FLIGHT / (usage.calls * MODEL_SECONDS) for usage in way)
        for way in zip(*rounds, strict=True)
    )
    yield at_most(f"audit of {setup.probes:,} probes / time of the model alone: wall", scored, 1.15)
    yield at_most("  with a judge (the default)", with_judge, 1.15)
    yield Line("  of a bare loop with durable commits", loop)
    few, many = (
        setup.run(generate_probes, f"generate{count}", count).cpu for count in (setup.dialogs, 4 * setup.dialogs)
    )
    sizes = f"{4 * setup.dialogs:,} / {setup.dialogs:,} conversations"
    yield at_most(f"generation of an audit's probes, {sizes}: CPU", many / few, 5)
    yield from _measure_dense_file(setup)


def _measure_dense_file(setup: Setup) -> Iterator[Line]:
    """A file in which every turn states a fact: the memory that its probes take, and whether the time is linear."""
    whole, quarter = (write_dense(setup.folder / f"dense{part}.json", setup.dense_facts // part) for part in (1, 4))
    yield Line("size of an audit file with a fact in every turn", whole.stat().st_size / 1e6, "MB")
    for name, function in (("validate", validate), ("probes", list_probes), ("--limit 20 --dry-run", try_limit)):
        used, less = (setup.run(function, f"{name.split()[0]}{file.stem}", str(file)) for file in (whole, quarter))
        yield at_most(f"  `memaudit {name}` of it: peak memory", used.megabytes, 500, "MB")
        yield at_most("    CPU / that of a quarter of the file", used.cpu / less.cpu, 5)
        yield Line("    wall", used.wall, "s")
    yield Line("  json.load of it", setup.run(load, "load-dense", str(whole)).wall, "s")


def validate(folder: Path, file: str) -> Usage:
    folder.mkdir()
    return run_command(folder, ["validate", file], {}, "memaudit")


def list_probes(folder: Path, file: str) -> Usage:
    folder.mkdir()
    return run_command(folder, ["audit", "probes", file, "--output", str(folder / "probes.jsonl")], {})


def try_limit(folder: Path, file: str) -> Usage:
    folder.mkdir()
    models = ("--model", "vllm/stub", "--judge-model", "none")
    place = {"VLLM_BASE_URL": "http://127.0.0.1:9/v1"}
    return run_command(folder, ["audit", file, "--limit", "20", "--dry-run", *models], place)


def write_dense(path: Path, facts: int) -> Path:
    """Write conversations of 60 turns with one structured fact each."""
    names, topics = ("Larkfield", "Oakmill", "Redfern", "Taplow", "Kestrel", "Marlow"), ("tea", "book", "lamp", "coat")
    filler = "I was thinking about it the other day when we walked along the river and talked about the summer. "
    with path.open("w", encoding="utf-8") as file:
        file.write('{"id": "dense", "conversations": [')
        for number in range(max(1, facts // 60)):
            turns, stated = [], []
            for turn in range(60):
                value = f"{names[(number + turn) % 6]} {names[(number * 7 + turn) % 5]}"
                topic = f"{topics[turn % 4]} number {turn}"
                turns.append({"role": "user", "content": f"My {topic} is {value}. {filler}", "timestamp": "2024-03-02"})
                fact = {"id": f"f{turn}", "content": f"User's {topic} is {value}", "timestamp": "2024-03-02"}
                given = {"subject": "user", "attribute": topic, "value": value, "turn": turn + 1}
                stated.append({**fact, "category": "personal", **given})
            row = json.dumps({"id": f"c{number}", "turns": turns, "facts": stated})
            file.write(f"{',' if number else ''}\n{row}")
        file.write("]}\n")
    return path


def bare(folder: Path, probes: int, address: str) -> Usage:
    """A loop that makes the same calls and commits each before the next."""
    folder.mkdir()
    conversations = tuple(_conversation(n) for n in range(CONVERSATIONS))
    transcripts = Transcripts(AuditDataset(id="perf", conversations=conversations))
    texts = [transcripts.transcript(conversation.id) for conversation in conversations]

    async def everything() -> None:
        db = sqlite3.connect(folder / "bare.db", isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("CREATE TABLE steps (key TEXT PRIMARY KEY, result TEXT)")
        left = iter(range(probes))

        async def work(session: aiohttp.ClientSession) -> None:
            for n in left:
                text = f"Question: What happened on day {n}?\n\n{texts[n % CONVERSATIONS]}"
                body = {"model": "stub", "messages": [{"role": "user", "content": text}]}
                async with session.post(f"{address}/v1/chat/completions", json=body) as response:
                    reply = await response.json()
                db.execute("INSERT INTO steps VALUES (?, ?)", (f"answer {n}", json.dumps(reply)))

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            await asyncio.gather(*(work(session) for _ in range(IN_FLIGHT)))
        db.close()

    with usage_measured() as usage:
        asyncio.run(everything())
    usage.calls = take_counts(address)["served"]
    return usage


def ours(folder: Path, probes: int, address: str, *, judging: bool = False) -> Usage:
    questions = [_probe(n) for n in range(probes)]
    dataset = AuditDataset(id="perf", conversations=tuple(_conversation(n) for n in range(CONVERSATIONS)))
    with (
        usage_measured() as usage,
        open_run(folder, Run(id="perf", suite="audit", spec={}, planned=probes)) as run_writer,
    ):

        async def everything() -> None:
            async with open_http(Redactor([])) as http:
                model = OpenAIModel(resolve("vllm/stub", {"VLLM_BASE_URL": f"{address}/v1"}), Options(), http, None)
                reading = Answering(model, {"": _PROMPT}, Scoring(method="audit"))
                judge = Judge(model, judge_prompts()) if judging else None
                plan = AuditPlan(Transcripts(dataset), questions, [AuditedSubject(model.subject, [reading])], judge)
                await perform(plan.plan(), run_writer, concurrency=IN_FLIGHT)

        asyncio.run(everything())
        run_writer.end("complete")
    usage.calls = take_counts(address)["served"]
    return usage


def generate_probes(folder: Path, conversations: int) -> Usage:
    dataset = AuditDataset(id="perf", conversations=tuple(_diary(n) for n in range(conversations)))
    with usage_measured() as usage:
        generate(dataset, PROBE_TYPES)
    return usage


def judged(folder: Path, probes: int, address: str) -> Usage:
    return ours(folder, probes, address, judging=True)


def _conversation(n: int) -> AuditConversation:
    turns = [
        Turn(role="user", content=f"On day {turn} I told you fact number {turn}.", id=f"t{turn}") for turn in range(30)
    ]
    return AuditConversation(id=f"c{n}", turns=tuple(turns), facts=())


def _diary(n: int) -> AuditConversation:
    """A conversation about topics that few others speak of."""
    texts = [
        f"User's favourite book is volume {n}",
        f"User works as a baker in district {n % 7}",
        f"User's sister lives on {n % 90 + 10} Harbor Street",
        f"User bought a bicycle for {n + 100} euros",
        "User moved to Lisbon in March",
        f"User flies to Oslo on April {n % 28 + 1}",
    ]
    turns = tuple(Turn(role="user", content=text, id=f"t{day}") for day, text in enumerate(texts))
    facts = tuple(AuditFact(id=f"f{day}", content=text) for day, text in enumerate(texts))
    return AuditConversation(id=f"c{n}", turns=turns, facts=facts)


def _probe(n: int) -> Probe:
    return Probe(
        id=f"p{n}",
        labels={"probe_type": "recall"},
        type="recall",
        kind="recall",
        conversation=f"c{n % CONVERSATIONS}",
        question=f"What happened on day {n}?",
        expected_answer="yes",
        origin="structured",
    )
