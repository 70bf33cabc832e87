"""Several workers on one run in a Postgres journal: steps per second, what a step costs, and CPU-bound ingest."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, closing
from importlib.util import find_spec
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median
from typing import Any

from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.trials import Case, Score, Subject, Trial
from memorybench.engine.run import perform
from memorybench.http.client import Http, open_http
from memorybench.journal.places import journal_of, results_folder
from memorybench.journal.rows import Run
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.secrets.redaction import Redactor
from memorybench.suites.bench.baselines import Candidate
from memorybench.suites.bench.plan import Bench, BenchPlan
from memorybench.suites.search_limits import SearchLimits
from memorybench.wiring.live import LiveWiring
from perf import instant
from perf.embedded import dataset
from perf.measuring import Line, Setup, Skipped, Usage, at_least
from perf.postgres_server import NOT_FOUND, PostgresServer, empty_database, program_folders, running_server
from perf.stub import stub_server

IN_FLIGHT = 4
"""Calls of each worker."""
MODEL = Subject(role="model", name="stub")
_RUN = Run(id="perf", suite="bench", spec={}, planned=1)
_LONGEST_START = 300.0
End = tuple[float, float]
"""When a worker ended, and the CPU seconds that it used since the start."""


def measure(setup: Setup) -> Iterator[Line]:
    folders = program_folders()
    if not folders or find_spec("psycopg") is None:
        raise Skipped(NOT_FOUND)
    with running_server(folders[0]) as server:
        yield from _measure_steps(setup, server)
        yield from _measure_journal(setup, server)
        yield from _measure_ingest(setup, server)


def _measure_steps(setup: Setup, server: PostgresServer) -> Iterator[Line]:
    """Paid calls of 50 ms. Each worker gets the same number of them, so that a perfect ratio is their number."""
    each = -(-setup.items // 8)
    rounds = []
    with stub_server() as address:
        for _ in range(setup.rounds):
            usages = {}
            for workers in setup.workers:
                database = empty_database(server.address)
                usages[workers] = _usage(setup.folder, ask, workers, database, each * workers, address)
            rounds.append(usages)
    fewest, most = min(usages), max(usages)
    wall, cpu = (
        {workers: median(getattr(usages[workers], kind) for usages in rounds) / (each * workers) for workers in usages}
        for kind in ("wall", "cpu")
    )
    yield Line(f"paid steps of 50 ms, {IN_FLIGHT} in flight, {fewest} worker", 1 / wall[fewest], "/s")
    for workers in usages:
        if workers != fewest:
            yield Line(f"  {workers} workers / {fewest} worker", wall[fewest] / wall[workers])
    yield Line(f"  CPU of the worker per step, {fewest} worker", 1000 * cpu[fewest], "ms")
    yield Line(f"  CPU of the workers per step, {most} workers", 1000 * cpu[most], "ms")
    yield Line("  database", _megabytes(database) * 1e6 / (each * most), "B/step")


def _measure_journal(setup: Setup, server: PostgresServer) -> Iterator[Line]:
    """Steps that take no time, 100 in flight."""
    rounds = []
    for n in range(setup.rounds):
        in_file = setup.run(instant.run, f"file{n}", setup.few)
        rounds.append((in_file, setup.run(in_postgres, f"{n}", setup.few, empty_database(server.address))))
    yield Line("step in Postgres / step in SQLite: wall", median(p.wall / s.wall for s, p in rounds))
    yield Line("  CPU of the process", median(p.cpu / s.cpu for s, p in rounds))
    yield Line("  steps per second in Postgres", median(setup.few / p.wall for _, p in rounds), "/s")


def in_postgres(folder: Path, items: int, database: str) -> Usage:
    return instant.run(results_folder(folder, database), items)


def _measure_ingest(setup: Setup, server: PostgresServer) -> Iterator[Line]:
    """Each worker has one core of its own."""
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        return
    histories = -(-setup.histories // 10)
    ratios = []
    for _ in range(setup.rounds):
        one, two = (
            _usage(setup.folder, ingest, workers, empty_database(server.address), histories).wall for workers in (1, 2)
        )
        ratios.append(one / two)
    yield at_least(f"{histories} histories, hybrid: 2 workers / 1 worker, one core each", median(ratios), 1.6)
    yield Line("  wall per history of 1 worker", 1000 * one / histories, "ms")


def _usage(folder: Path, work: Callable[..., None], workers: int, database: str, *arguments: Any) -> Usage:
    """Begin a run and let workers perform it; return what they used from the first call to the last end."""
    with open_run(results_folder(folder / "begun", database), _RUN):
        pass
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(workers + 1)
    ends: SimpleQueue[End] = context.SimpleQueue()
    processes = [
        context.Process(target=work, args=(place, start, ends, folder, database, *arguments))
        for place in range(workers)
    ]
    for process in processes:
        process.start()
    start.wait(_LONGEST_START)
    began = time.perf_counter()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    times, cpu = zip(*(ends.get() for _ in processes), strict=True)
    return Usage(wall=max(times) - began, cpu=sum(cpu))


def ask(
    place: int, start: Barrier, ends: SimpleQueue[End], folder: Path, database: str, items: int, address: str
) -> None:
    async def work(stack: AsyncExitStack) -> Plan:
        http = await stack.enter_async_context(open_http(Redactor([])))
        return Plan(jobs=_jobs(items, http, address), size=items)

    _perform(place, start, ends, folder, database, work)


def ingest(place: int, start: Barrier, ends: SimpleQueue[End], folder: Path, database: str, histories: int) -> None:
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[place]})
    data = dataset(histories)

    async def work(stack: AsyncExitStack) -> Plan:
        stores = folder / f"stores{place}"
        opened = await LiveWiring().open_providers(stack, stores, run_id=_RUN.id).open("hybrid")
        bench = Bench(data, data.questions, limits=SearchLimits(depth=50))
        subject = opened.provider.subject
        candidate = Candidate(subject, opened.provider)
        return BenchPlan(_RUN.id, [bench], [candidate], limits={subject.key: opened.limits}).plan()

    _perform(place, start, ends, folder, database, work)


def _perform(
    place: int, start: Barrier, ends: SimpleQueue[End], folder: Path, database: str, work: Callable[..., Any]
) -> None:
    """Join the run, wait for the other workers, perform the plan, and tell when it ended."""

    async def everything() -> None:
        async with AsyncExitStack() as stack:
            results = results_folder(folder / f"worker{place}", database)
            run_writer = stack.enter_context(reopen_run(results, _RUN.id, fingerprints={}))
            plan = await work(stack)
            start.wait(_LONGEST_START)
            cpu = time.process_time()
            ending = await perform(plan, run_writer, concurrency=IN_FLIGHT)
            assert ending.status == "complete"
            ends.put((time.perf_counter(), time.process_time() - cpu))

    asyncio.run(everything())


def _jobs(items: int, http: Http, address: str) -> Iterator[Job]:
    for n in range(items):
        yield _job(n, http, address)


def _job(n: int, http: Http, address: str) -> Job:
    prompt = {"model": "stub", "messages": [{"role": "user", "content": f"question {n}"}]}

    async def reply() -> str:
        return (await http.request("POST", f"{address}/v1/chat/completions", json=prompt)).body.decode()

    async def job(steps: Steps) -> Performed:
        await steps.once("answer", prompt, reply, str, on=MODEL, paid=True)
        return Performed(scores=(Score(name="correct", value=1.0),))

    trial = Trial(suite="bench", case_id=f"q{n}", subject=MODEL, benchmark="perf", cluster=f"h{n}")
    return Job(trial=trial, perform=job, ordinal=n, case=Case(id=f"q{n}"))


def _megabytes(database: str) -> float:
    """Return the size of the journal's tables and indexes."""
    sql = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = 'memorybench'::regnamespace"
    with closing(journal_of(results_folder(Path(), database)).open_for_reading()) as db:
        (size,) = db.execute(f"{sql} AND relkind = 'r'").fetchone()
    return float(size) / 1e6
