"""A small benchmark put to an HTTP provider through suite, engine and journal.

`python -m tests.providers.http_bench FOLDER URL KILL_AT` runs or resumes it in a process that kills itself at the
n-th durable step.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memorybench.core.conversation import Haystack, Session, Turn
from memorybench.core.plans import Limits
from memorybench.core.questions import EvidenceLevel, Question
from memorybench.core.trials import Outcome
from memorybench.engine.run import perform
from memorybench.files.yaml_file import parse_yaml
from memorybench.journal.rows import Run
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.journal.run_reader import RunReader
from memorybench.providers.config.reading import read_provider
from memorybench.providers.http.provider import open_http_provider
from memorybench.secrets.redaction import Redactor
from memorybench.suites.bench.baselines import Candidate
from memorybench.suites.bench.plan import Bench, BenchPlan
from memorybench.suites.ingest import DEFAULT_INGEST_OPTIONS, IngestOptions
from memorybench.suites.search_limits import SearchLimits
from tests.engine.workload import killer
from tests.providers.http_memory import CONFIG, KEY

SESSIONS = 3


@dataclass(frozen=True)
class Cats:
    """One question per haystack: the name of its cat, which one of its sessions contains."""

    haystacks: int
    name: str = "cats"
    fingerprint: str = "cats"
    evidence: EvidenceLevel = "session"

    @property
    def questions(self) -> Sequence[Question]:
        return [
            Question(id=f"q{n}", haystack=f"h{n}", question="What is the cat called?", gold_sessions=(f"h{n}s1",))
            for n in range(self.haystacks)
        ]

    def haystack(self, id: str) -> Haystack:
        contents = [f"The weather of {id} is mild.", f"The cat is called {id}o.", f"Nothing happened in {id}."]
        begun = datetime(2024, 5, 1, tzinfo=UTC)
        return Haystack(
            id=id,
            sessions=tuple(
                Session(id=f"{id}s{n}", turns=(Turn(role="user", content=text),), at=begun + timedelta(days=n))
                for n, text in enumerate(contents)
            ),
        )


@dataclass(frozen=True)
class Ended:
    outcomes: Sequence[Outcome]
    notes: Sequence[tuple[str, str]]
    charged_twice: int

    @property
    def counts(self) -> dict[str, int]:
        statuses = [outcome.status for outcome in self.outcomes]
        return {status: statuses.count(status) for status in dict.fromkeys(statuses)}

    @property
    def failures(self) -> list[str]:
        return [outcome.failure.message for outcome in self.outcomes if outcome.failure]


def bench(
    folder: Path,
    url: str,
    text: str = CONFIG,
    *,
    haystacks: int = 2,
    concurrency: int = 4,
    run: str = "r1",
    ingest_options: IngestOptions = DEFAULT_INGEST_OPTIONS,
    fault: Callable[[], None] | None = None,
) -> Ended:
    """Start the run, or resume it if it exists."""
    dataset = Cats(haystacks)
    config = read_provider(parse_yaml(text.replace("URL", url), "spaces.yaml"), {})
    redactor = Redactor([KEY])
    limits = Limits(tries=config.rate_limit.max_retries + 1, first_delay=config.rate_limit.retry_delay_ms / 1000)
    begun = (folder / run).exists()

    async def live() -> None:
        async with open_http_provider(config, key=KEY, redactor=redactor) as provider:
            candidate = Candidate(
                provider.subject, provider, spends=True, remote=True, unordered=config.capabilities.unordered
            )
            plan = BenchPlan(
                run,
                [Bench(dataset, dataset.questions, limits=SearchLimits(depth=5), ingest_options=ingest_options)],
                [candidate],
                scored=run_writer.scored(),
                limits={provider.subject.key: limits},
            ).plan()
            ending = await perform(plan, run_writer, concurrency=concurrency)
            run_writer.end(ending.status)

    row = Run(id=run, suite="bench", spec={}, planned=haystacks)
    opened = (
        reopen_run(folder, run, fingerprints={}, redact=redactor.clean, fault=fault)
        if begun
        else open_run(folder, row, redact=redactor.clean, fault=fault)
    )
    with opened as run_writer:
        asyncio.run(live())
    with RunReader.open(folder) as run_reader:
        return Ended(list(run_reader.outcomes(run)), run_reader.notes(run), run_reader.possibly_charged_twice(run))


if __name__ == "__main__":
    bench(Path(sys.argv[1]), sys.argv[2], fault=killer(int(sys.argv[3])))
