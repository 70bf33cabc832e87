"""A small run: haystacks shared by questions, paid answers and verdicts.

Every call is written to a ledger file, which tests read after the process was killed.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from memorybench.core.plans import Job, Limits, Performed, Plan, Steps
from memorybench.core.spending import Spending, charge
from memorybench.core.trials import Case, Exhibit, Score, Subject, Trial
from memorybench.engine.budget import Budget
from memorybench.engine.run import Ending, perform
from memorybench.journal.places import journal_of
from memorybench.journal.rows import Fingerprint, Run
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.journal.run_reader import RunReader

PROVIDER = Subject(role="provider", name="memory")
MODEL = Subject(role="model", name="reader")
PRICE = 0.01
FINGERPRINTS = {"dataset": Fingerprint.of("forty questions"), "prompt": Fingerprint.of("Answer ${question}")}
RUN = Run(id="sweep", suite="bench", spec={"providers": ["memory"]}, fingerprints=FINGERPRINTS, planned=40)


class Ledger:
    """A file with one line per call; appends are atomic, so a kill leaves no partial line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, call: str) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{call}\n".encode())
        os.close(file)

    def read(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []


Hook = Callable[[str], Awaitable[None]]


async def no_hook(call: str) -> None:
    await asyncio.sleep(0)


def plan(
    ledger: Ledger,
    *,
    haystacks: int = 8,
    questions: int = 5,
    sessions: int = 3,
    hook: Hook = no_hook,
    limits: Limits | None = None,
) -> Plan:
    def jobs() -> Iterator[Job]:
        for haystack in range(haystacks):
            for question in range(questions):
                place = haystack * questions + question
                yield _job(place, ledger, f"h{haystack}", f"h{haystack}q{question}", sessions, hook)

    chosen = limits or Limits(first_delay=0.0)
    return Plan(jobs=jobs(), size=haystacks * questions, limits={MODEL.key: chosen, PROVIDER.key: chosen})


def _job(place: int, ledger: Ledger, haystack: str, question: str, sessions: int, hook: Hook) -> Job:
    async def call(label: str, reply: str, *, paid: bool = False) -> str:
        ledger.write(label)
        await hook(label)
        if paid:
            charge(Spending(calls=1, input_tokens=10, output_tokens=2, cost=PRICE))
        return reply

    async def ingest(steps: Steps) -> None:
        for n in range(sessions):
            label = f"add:{haystack}:{n}"
            await steps.once("add", {"call": label}, lambda label=label: call(label, "added"), str, on=PROVIDER)
        label = f"wait:{haystack}"
        await steps.once("wait_until_searchable", {"call": label}, lambda: call(label, "searchable"), str, on=PROVIDER)

    async def job(steps: Steps) -> Performed:
        label = f"search:{question}"
        found = await steps.once(
            "search",
            {"call": label},
            lambda: call(label, f"memory of {question}"),
            str,
            on=PROVIDER,
            after=lambda: ingest(steps),
        )
        asked = f"answer:{question}"
        answer = await steps.once(
            "answer",
            {"call": asked},
            lambda: call(asked, f"{found}!", paid=True),
            str,
            on=MODEL,
            paid=True,
            highest_cost=lambda: PRICE,
        )
        judged = f"judge:{question}"
        verdict = await steps.once(
            "judge",
            {"call": judged, "answer": answer},
            lambda: call(judged, "yes" if len(question) % 2 else "no", paid=True),
            str,
            on=MODEL,
            paid=True,
            highest_cost=lambda: PRICE,
        )
        correct = Score(name="correct", value=float(verdict == "yes"))
        return Performed(scores=(correct,), shown=Exhibit(asked=question, got=answer))

    trial = Trial(suite="bench", case_id=question, subject=PROVIDER, benchmark="mini", cluster=haystack)
    return Job(trial=trial, perform=job, ordinal=place, case=Case(id=question))


def killer(at: int) -> Callable[[], None]:
    """Make a fault that kills the process at the n-th begin or end of a commit."""
    left = at

    def tick() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), 9)

    return tick


def run_once(
    folder: Path,
    work: Plan,
    *,
    fault: Callable[[], None] | None = None,
    concurrency: int = 4,
    budget: Budget | None = None,
    run: Run = RUN,
    is_joining: bool = False,
) -> Ending:
    """Start the run, or resume or join it if it exists."""
    exists = False
    if journal_of(folder).exists():
        with RunReader.open(folder) as run_reader:
            exists = run_reader.has(run.id)
    opened = (
        reopen_run(folder, run.id, fingerprints=run.fingerprints, fault=fault, is_joining=is_joining)
        if exists
        else open_run(folder, run, fault=fault)
    )
    with opened as run_writer:
        ending = asyncio.run(perform(work, run_writer, concurrency=concurrency, budget=budget))
        run_writer.end(ending.status)
    return ending


def in_child(work: Callable[[], object]) -> int | None:
    """Run in a forked child; return its exit code, or None if it was killed."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            print(f"child: {error!r}", flush=True)
            os._exit(99)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def report(folder: Path, run: str = RUN.id) -> str:
    """Return the data of a report without times."""
    with RunReader.open(folder) as run_reader:
        outcomes = [outcome.model_dump(mode="json") for outcome in run_reader.outcomes(run)]
        return json.dumps({"counts": run_reader.counts(run), "outcomes": outcomes}, indent=1)


def committed(folder: Path, run: str = RUN.id) -> set[str]:
    """Return the calls whose steps are recorded."""
    if not journal_of(folder).exists():
        return set()
    with RunReader.open(folder) as run_reader:
        rows = run_reader.connection.execute("SELECT inputs FROM steps WHERE run = ?", (run,))
        return {json.loads(inputs)["call"] for (inputs,) in rows}
