"""Extractions that happened elsewhere: traces are fetched once, judged once, and what was found goes back if asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field

from memorybench import __version__
from memorybench.core.errors import BadInput
from memorybench.core.extraction import TraceSource
from memorybench.core.plans import Limits
from memorybench.core.records import Record
from memorybench.core.trials import Subject
from memorybench.engine.budget import Budget
from memorybench.engine.limiter import RateLimiter
from memorybench.engine.retries import RetryState, with_retries
from memorybench.engine.run import Ending, Watch, perform
from memorybench.engine.stopping import Stop
from memorybench.http.client import open_http
from memorybench.http.replies import Reply
from memorybench.journal.rows import Fingerprint, Run
from memorybench.journal.run_reader import RunReader
from memorybench.journal.run_writer import RunWriter
from memorybench.judging.enumeration import Enumerator
from memorybench.judging.judge import Judge
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.suites.extraction.evaluator import MemoryExtractionEvaluator
from memorybench.suites.extraction.online import DISAGREEMENTS, Doubts, OnlinePlan, TraceJudge
from memorybench.suites.extraction.report import baseline_drifts
from memorybench.traces.jsonl import JsonlTraces
from memorybench.traces.langsmith import API_URL, TAG, Ask, LangSmith, RunQuery
from memorybench.traces.paths import OF_FILES, OF_RUNS, TracePaths
from memorybench.traces.spool import Spool, spool

from .environment import environment, redactor
from .extraction import SUITE
from .models import JUDGE_VARIABLE, Chosen, model_named, open_chosen
from .running import blocking, saved_run, saved_spec

KEY_VARIABLES = ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
URL_VARIABLES = ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT")
DEFAULT_JUDGE = "gpt-4o"
SPOOL, LABELS = "traces.jsonl", "labels.jsonl"
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


class OnlineSpec(Record):
    """All that an online run depends on, beside the traces, which are kept with it."""

    source: Literal["langsmith", "jsonl"]
    file: str | None = None
    project: str | None = None
    tag: str = TAG
    since: str | None = None
    """As it was told: the moment follows when the run begins."""
    limit: int | None = Field(default=None, ge=1)
    feedback: bool = False
    judge_model: str | None = None
    paths: Mapping[str, str] = Field(default_factory=dict)
    baseline: str | None = None
    reuse: str | None = None


@dataclass(frozen=True, slots=True)
class PreparedOnline:
    """Everything is resolved and the traces are fetched; nobody was asked for a judgement yet."""

    spec: OnlineSpec
    judge: Chosen
    subject: Subject
    traces: Spool
    fingerprints: Mapping[str, Fingerprint]

    @property
    def reuse(self) -> str | None:
        return self.spec.reuse

    @property
    def models(self) -> tuple[Chosen | None, ...]:
        return (self.judge,)

    def discard(self) -> None:
        """Forgets traces that were fetched for a run that does not take place."""
        self.traces.path.unlink()
        self.traces.path.parent.rmdir()

    def totals(self) -> dict[tuple[str, str], int]:
        return {(self.spec.source, self.subject.name): len(self.traces)}

    def row(self, run_id: str) -> Run:
        return Run(
            id=run_id,
            suite=SUITE,
            spec={
                **self.spec.model_dump(mode="json"),
                "mode": "online",
                "benchmarks": [self.spec.source],
                "subjects": [self.subject.name],
                "questions": {self.spec.source: len(self.traces)},
                "judge": self.judge.name,
            },
            fingerprints=self.fingerprints,
            program=f"memorybench {__version__}",
            planned=len(self.traces),
        )

    async def perform(
        self, run_writer: RunWriter, output: Path, *, concurrency: int, budget: Budget, watch: Watch | None
    ) -> Ending:
        async with AsyncExitStack() as stack:
            model = await open_chosen(stack, self.judge)
            source = await _open_source(stack, self.spec)
            plan = OnlinePlan(
                self.subject,
                self.traces,
                len(self.traces),
                TraceJudge(Enumerator(model), EntailmentJudge(Judge(model))),
                problems=self.traces.problems,
                feedback=source if self.spec.feedback and isinstance(source, LangSmith) else None,
            )
            ending = await perform(plan.plan(), run_writer, concurrency=concurrency, budget=budget, watch=watch)
        _write_labels(output, run_writer.run.id)
        return ending


def prepare_online(spec: OnlineSpec, output: Path, run_id: str) -> PreparedOnline:
    """Raises before anything is spent; then fetches the traces, which costs nothing."""
    if spec.feedback and spec.source != "langsmith":
        raise BadInput("--feedback", "a file takes no feedback", remedy="leave it out")
    if spec.source == "langsmith":
        if spec.project is None:
            raise BadInput("--project", "which project's runs?", expected="the name of a LangSmith project")
        _key()
    elif spec.file is None:
        raise BadInput("--source", "jsonl needs a file", expected="--source jsonl FILE")
    if spec.since is not None:
        moment(spec.since)
    judge = model_named(spec.judge_model or environment().get(JUDGE_VARIABLE) or DEFAULT_JUDGE)
    if spec.baseline is not None:
        with RunReader.open(output) as run_reader:
            if run_reader.run(spec.baseline).suite != SUITE:
                raise BadInput("--baseline", f"run {spec.baseline} is no run of `memorybench extraction`")
    subject, traces = _fetched(spec, output / run_id)
    return PreparedOnline(spec, judge, subject, traces, {"judge model": Fingerprint.of(judge.described())})


def online_again(run_id: str, output: Path) -> PreparedOnline:
    saved = saved_run(run_id, output, SUITE)
    if saved.spec.get("mode") != "online":
        raise BadInput("--resume", f"run {run_id} is offline", remedy="memorybench extraction run --resume RUN")
    return prepare_online(saved_spec(OnlineSpec, saved), output, run_id)


def _fetched(spec: OnlineSpec, folder: Path) -> tuple[Subject, Spool]:
    """The traces, in the run's own folder. A refusal leaves no folder behind that was not there."""
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return blocking(_spooled(spec, folder / SPOOL))
    except BaseException:
        for place in new:
            place.rmdir()
        raise


async def _spooled(spec: OnlineSpec, path: Path) -> tuple[Subject, Spool]:
    async with AsyncExitStack() as stack:
        source = await _open_source(stack, spec)
        return source.subject, await spool(source, path)


async def _open_source(stack: AsyncExitStack, spec: OnlineSpec) -> TraceSource | LangSmith:
    if spec.source == "jsonl":
        return JsonlTraces(Path(spec.file or ""), TracePaths.of(OF_FILES, spec.paths), limit=spec.limit)
    http = await stack.enter_async_context(open_http(redactor()))
    url = next((value for name in URL_VARIABLES if (value := environment().get(name))), API_URL)
    since = moment(spec.since) if spec.since else None
    query = RunQuery(spec.project or "", tag=spec.tag, since=since, limit=spec.limit)
    return LangSmith(http, _key(), query, TracePaths.of(OF_RUNS, spec.paths), url=url, attempt=_patiently)


async def _patiently(ask: Ask) -> Reply:
    """Pages are fetched before there is a run: with the patience that steps have."""
    return await with_retries(ask, RateLimiter("LangSmith", Limits(), Stop()), RetryState())


def _key() -> str:
    key = next((value for name in KEY_VARIABLES if (value := environment().get(name))), None)
    if key is None:
        raise BadInput(KEY_VARIABLES[0], "is not set", remedy="set it, or judge a file with --source jsonl FILE")
    return key


def moment(since: str) -> datetime:
    """`24h`, `30m`, `7d`, `2w`, or a date."""
    number, unit = since[:-1], since[-1:]
    if unit in _UNITS and number.isdecimal():
        return datetime.now(UTC) - int(number) * _UNITS[unit]
    try:
        at = datetime.fromisoformat(since)
    except ValueError:
        raise BadInput("--since", f"{since!r} is no time", expected="as 24h, 7d or 2026-01-31") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def open_evaluator(judge_model: str, paths: Mapping[str, str]) -> MemoryExtractionEvaluator:
    """Opens its judge for each run it is asked about: whoever evaluates has loops and threads of their own."""
    chosen = model_named(judge_model)

    @asynccontextmanager
    async def opening() -> AsyncIterator[TraceJudge]:
        async with AsyncExitStack() as stack:
            model = await open_chosen(stack, chosen)
            yield TraceJudge(Enumerator(model), EntailmentJudge(Judge(model)))

    return MemoryExtractionEvaluator(opening, TracePaths.of(OF_RUNS, paths).judgeable)


def _write_labels(output: Path, run_id: str) -> None:
    """What judge and matcher disagree on, for a person to label and for `judge calibrate` to read."""
    with RunReader.open(output, thorough=False) as run_reader:
        told = [Doubts.model_validate_json(result) for _, result in run_reader.step_records(run_id, DISAGREEMENTS)]
    if told:
        (output / run_id / LABELS).write_text("".join(doubts.lines() for doubts in told), encoding="utf-8")


def worse_than_baseline(run_id: str, output: Path) -> bool:
    with RunReader.open(output, thorough=False) as run_reader:
        return any(drift.worse for drift in baseline_drifts(run_reader, run_reader.run(run_id)))
