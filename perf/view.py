"""The viewer on a run of 10 providers: time of its pages, memory, and the time until the first page.

The run is written by the journal's own writer, from the outcomes and steps of a real one.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import ConfigDict

from memorybench.core.trials import Case, Outcome, Subject, Trial
from memorybench.journal.rows import Run, Step
from memorybench.journal.run_opening import open_run
from memorybench.journal.run_reader import RunReader, StepRecord
from memorybench.journal.run_writer import RunWriter
from memorybench.journal.sqlite import FILE_NAME
from perf.measuring import Line, Setup, at_most, run_command

PROVIDERS = 10
RUN = "large"
_SAMPLE = ("eval", "--providers", "bm25", "--answering-model", "scripted/quote", "--judge-model", "scripted/judge")
_TOGETHER = 500
_STEPS, _MEMORIES = ("search", "answer"), 10
"""Of each trial: a file of 100,000 trials takes about 1 GB."""
_BETWEEN = 0.02
"""Seconds between two looks at the memory."""
_PAGES = {
    "runs": "/",
    "run": f"/run/0/{RUN}",
    "charts": f"/run/0/{RUN}/charts",
    "questions": f"/run/0/{RUN}/questions",
    "questions, page 100": f"/run/0/{RUN}/questions?offset=4950",
    "questions, one provider wrong": f"/run/0/{RUN}/questions?provider=memory-3&outcome=wrong",
    "questions, A right and B wrong": f"/run/0/{RUN}/questions?right=memory-0&wrong=memory-3",
    "questions, text": f"/run/0/{RUN}/questions?text=birthday",
    "question": f"/run/0/{RUN}/question?benchmark=BENCHMARK&case=q7&right=memory-0&wrong=memory-3",
    "history": f"/run/0/{RUN}/history?cluster=history-0",
    "compare": f"/compare?side=0/{RUN}:memory-0&side=0/{RUN}:memory-3&only=wins",
    "trends": "/trends",
}


Template = tuple[Outcome, Mapping[str, Any], Sequence[StepRecord]]


class StoredCase(Case):
    """The content of a case, as the journal has it."""

    model_config = ConfigDict(extra="allow")


def measure(setup: Setup) -> Iterator[Line]:
    folder, questions = setup.folder / "results", max(setup.many // PROVIDERS, 8)
    benchmark = write_run(setup.folder, folder, questions)
    yield Line("size of the results file", (folder / FILE_NAME).stat().st_size / 1e6, "MB")
    bare = _bare_query(folder, setup.rounds)
    times: dict[str, list[float]] = {}
    cpu: dict[str, float] = {}
    started = time.perf_counter()
    with viewer(folder) as (process, address), MemoryWatch(process.pid) as memory:
        _get(address, "/")
        first_page = time.perf_counter() - started
        yield Line("page of the run, first time: its questions are indexed", _get(address, _PAGES["run"]), "s")
        for name, path in _PAGES.items():
            path = path.replace("BENCHMARK", benchmark)
            _get(address, path)
            before = _cpu_seconds(process.pid)
            times[name] = [_get(address, path) for _ in range(2 * setup.rounds)]
            cpu[name] = (_cpu_seconds(process.pid) - before) / len(times[name])
            yield Line(f"page: {name}", 1000 * median(times[name]), "ms")
    middle = median(seconds for own in times.values() for seconds in own)
    yield at_most(f"median page of the viewer, {PROVIDERS * questions:,} trials", 1000 * middle, 150, "ms")
    yield Line("  CPU", 1000 * median(cpu.values()), "ms")
    yield at_most("  50 questions / bare SQL query of their outcomes", median(times["questions"]) / bare, 20)
    yield at_most("  first page after the start of the viewer", first_page, 1.5, "s")
    yield at_most("  memory of the server", memory.alone, 200, "MB")
    yield Line("  memory of the server and, for two seconds, the process that draws charts", memory.together, "MB")


def write_run(sample_folder: Path, folder: Path, questions: int) -> str:
    """Write a complete run with its reports; return the name of its benchmark."""
    sample = sample_folder / "sample"
    run_command(sample_folder, [*_SAMPLE, "--limit", "20", "--run-id", "sample", "--output", str(sample)], {})
    with RunReader.open(sample) as reader:
        run = reader.run("sample")
        outcomes = list(reader.outcomes("sample"))
        templates = [
            (one, reader.case("sample", one.trial.benchmark, one.trial.case_id) or {}, reader.steps_of("sample", one))
            for one in outcomes
        ]
    (benchmark,) = map(str, run.spec["questions"])
    names = [f"memory-{n}" for n in range(PROVIDERS)]
    spec = {**run.spec, "providers": names, "subjects": names, "questions": {benchmark: questions}}
    row = Run(id=RUN, suite="bench", spec=spec, program=run.program, planned=questions * PROVIDERS)
    with open_run(folder, row) as run_writer:
        for place, name in enumerate(names):
            asyncio.run(_write_provider(run_writer, place, name, questions, templates))
        run_writer.end("complete")
    run_command(sample_folder, ["report", RUN, "--results", str(folder)], {})
    return benchmark


async def _write_provider(
    run_writer: RunWriter,
    place: int,
    name: str,
    questions: int,
    templates: Sequence[Template],
) -> None:
    subject = Subject(role="provider", name=name)
    for first in range(0, questions, _TOGETHER):
        await asyncio.gather(
            *(
                _write_trial(run_writer, subject, n, place * questions + n, templates[(7 * n + place) % len(templates)])
                for n in range(first, min(first + _TOGETHER, questions))
            )
        )


async def _write_trial(
    run_writer: RunWriter,
    subject: Subject,
    number: int,
    ordinal: int,
    template: Template,
) -> None:
    outcome, case, steps = template
    steps = [step for step in steps if step.name in _STEPS]
    ours = {"case_id": f"q{number}", "subject": subject, "cluster": f"history-{number // 20}"}
    keys = [f"{subject.name} {number} {step.name}" for step in steps]
    for key, step in zip(keys, steps, strict=True):
        own = subject.name if step.subject == outcome.trial.subject.name else step.subject
        found = {"memories": step.result["memories"][:_MEMORIES]} if step.name == "search" else step.result
        texts = json.dumps(step.inputs), json.dumps(found)
        await run_writer.record_step(Step(key, step.name, own, *texts, step.started, step.seconds))
    recorded = Outcome(**{**dict(outcome), "trial": Trial(**{**dict(outcome.trial), **ours}), "steps": tuple(keys)})
    await run_writer.record_outcome(recorded, ordinal, StoredCase(**{**dict(case), "id": f"q{number}"}))


def _bare_query(folder: Path, rounds: int) -> float:
    """Return the median seconds to read the 500 outcomes of a page of questions by their keys."""
    with closing(sqlite3.connect(f"file:{folder / FILE_NAME}?mode=ro", uri=True)) as db:
        keys = json.dumps([f"q{n}" for n in range(50)])
        trials = db.execute(
            "SELECT trial FROM outcomes WHERE case_id IN (SELECT value FROM json_each(?))", (keys,)
        ).fetchall()
        wanted = json.dumps([trial for (trial,) in trials])
        times = []
        for _ in range(2 * rounds + 1):
            started = time.perf_counter()
            db.execute(
                "SELECT * FROM outcomes WHERE run = ? AND trial IN (SELECT value FROM json_each(?)) ORDER BY ordinal",
                (RUN, wanted),
            ).fetchall()
            times.append(time.perf_counter() - started)
    return median(times)


@contextmanager
def viewer(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start `memorybench view` and yield its process and address."""
    command = [sys.executable, "-m", "memorybench", "view", "--results", str(folder), "--no-browser", "--port", "0"]
    # modules are compiled once, as on any machine that has run the program before
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdout is not None
        try:
            yield process, urlsplit(json.loads(process.stdout.readline())["url"]).netloc
        finally:
            process.send_signal(signal.SIGTERM)


def _get(address: str, path: str) -> float:
    """Return the seconds until the whole page is there; while the viewer prepares a part, it is asked for again."""
    started = time.perf_counter()
    for _ in count():
        connection = HTTPConnection(address)
        connection.request("GET", path)
        with closing(connection), connection.getresponse() as response:
            text = response.read().decode()
            if response.status == 200 and not ("/charts" in path and "hx-get" in text):
                return time.perf_counter() - started
            assert response.status in (200, 202), f"{path}: {text}"
    raise AssertionError


def _cpu_seconds(process: int) -> float:
    """Return the CPU time of a process so far; 0 where the system does not say it."""
    stat = Path(f"/proc/{process}/stat")
    fields = stat.read_text().rpartition(")")[2].split() if stat.exists() else ["0"] * 13
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


class MemoryWatch(Thread):
    """Reads the memory of a process and of those that it starts, many times a second: charts are drawn by a child."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self._process = process
        self._ended = Event()
        self.alone = 0.0
        """The most that the process itself had, in MB; 0 where the system does not say it."""
        self.together = 0.0
        """The most that all of them had at one time."""

    def run(self) -> None:
        while not self._ended.wait(_BETWEEN):
            own, *others = (_megabytes(process) for process in _family(self._process))
            self.alone = max(self.alone, own)
            self.together = max(self.together, own + sum(others))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()


def _family(process: int) -> list[int]:
    """Return a process and its descendants."""
    found = [process]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            with suppress(OSError):  # the process has ended
                found += map(int, children.read_text().split())
    return found


def _megabytes(process: int) -> float:
    """Return the resident memory of a process; 0 if it has ended, or the system does not say it."""
    with suppress(OSError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return 0.0
