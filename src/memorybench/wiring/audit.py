"""From an audit spec to a run: every name is resolved, and every refusal said, before anything is spent or written."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from memorybench import __version__
from memorybench.catalog.catalog import Catalog
from memorybench.catalog.entries import Entry
from memorybench.core.errors import BadInput
from memorybench.core.plans import Limits
from memorybench.core.records import Record, canonical
from memorybench.core.trials import Subject
from memorybench.datasets.audit import AuditDataset, load_audit
from memorybench.datasets.prompts import answer_prompt
from memorybench.engine.budget import Budget
from memorybench.engine.run import Ending, Watch, perform
from memorybench.files.prompts import load_prompt
from memorybench.journal.rows import Fingerprint, Run
from memorybench.journal.run_writer import RunWriter
from memorybench.judging.judge import Judge
from memorybench.models.windows import fetch_window, known_window
from memorybench.suites.answering import Reading, Scoring, estimated_tokens
from memorybench.suites.audit.generation import Probes, generate
from memorybench.suites.audit.judgement import judge_prompts, question_of
from memorybench.suites.audit.measures import selected
from memorybench.suites.audit.plan import SHOWN, Audited, AuditPlan, Transcripts, oversized, trial_of
from memorybench.suites.audit.probes import PROBE_TYPES, Policy, ProbeType
from memorybench.suites.ingest import DEFAULT_INGEST_OPTIONS, Ingest, still_pending

from .bench import STORES
from .environment import environment, redactor
from .estimates import (
    JUDGE_TOKENS,
    PROMPT_TOKENS,
    REPLY_TOKENS,
    VERDICT_TOKENS,
    Expected,
    asked,
    canaries,
)
from .models import JUDGE_VARIABLE, NO_MODEL, Chosen, model_named, open_chosen
from .providers import ProviderOpener, check_provider, described
from .running import saved_run, saved_spec

SUITE = "audit"
MODEL_VARIABLE = "MEMAUDIT_MODEL"
DEFAULT_MODEL, DEFAULT_JUDGE = "gpt-4o-mini", "gpt-4o"


class AuditSpec(Record):
    """All that an audit depends on. Saved with the run: `--resume` needs nothing else."""

    dataset: str
    model: str | None = None
    judge_model: str | None = None
    providers: tuple[str, ...] = ()
    kinds: tuple[ProbeType, ...] = PROBE_TYPES
    policy: Policy = "latest"
    limit: int | None = Field(default=None, ge=1)
    seed: int | None = None
    context_window: int | None = Field(default=None, ge=1)
    probe_model: str | None = None
    verify_probes: bool = False
    config_dirs: tuple[str, ...] = ()
    allow_code: bool = False
    reuse: str | None = None


@dataclass(frozen=True, slots=True)
class PreparedAudit:
    """Everything is resolved, nothing is opened."""

    spec: AuditSpec
    catalog: Catalog
    dataset: AuditDataset
    made: Probes
    providers: tuple[Entry, ...]
    reader: Chosen
    judge: Chosen | None
    writer: Chosen | None
    """Who writes the questions anew; None: they stay as the code made them."""
    window: int | None
    fingerprints: Mapping[str, Fingerprint]

    @property
    def reuse(self) -> str | None:
        return self.spec.reuse

    @property
    def subjects(self) -> list[str]:
        return [entry.name for entry in self.providers] or [self.reader.name]

    @property
    def models(self) -> tuple[Chosen | None, ...]:
        return self.reader, self.judge, self.writer

    @property
    def planned(self) -> int:
        return len(self.made.probes) * len(self.subjects)

    def totals(self) -> dict[tuple[str, str], int]:
        return {(self.dataset.id, subject): len(self.made.probes) for subject in self.subjects}

    def row(self, run_id: str) -> Run:
        probes = self.made.probes
        anybody = Subject(role="", name="")
        return Run(
            id=run_id,
            suite=SUITE,
            spec={
                **self.spec.model_dump(mode="json"),
                "benchmarks": [self.dataset.id],
                "subjects": self.subjects,
                "questions": {self.dataset.id: len(probes)},
                "selected": selected(trial_of(probe, self.dataset.id, anybody) for probe in probes),
                "reader": self.reader.name,
                "judge": self.judge.name if self.judge else None,
                "conversations": len(self.dataset.conversations),
                "facts": sum(len(conversation.facts) for conversation in self.dataset.conversations),
                "probes": dict(Counter(probe.type for probe in probes)),
                "gates": dict(self.made.gates),
                "skipped": dict(Counter(skipped.reason for skipped in self.made.skipped)),
            },
            fingerprints=self.fingerprints,
            program=f"memorybench {__version__}",
            planned=self.planned,
        )

    async def perform(
        self, run_writer: RunWriter, output: Path, *, concurrency: int, budget: Budget, watch: Watch | None
    ) -> Ending:
        stores = (output / run_writer.run.id / STORES).absolute()
        async with AsyncExitStack() as stack:
            plan = await self._plan(stack, run_writer, stores)
            ending = await perform(plan.plan(), run_writer, concurrency=concurrency, budget=budget, watch=watch)
        if ending.status == "complete":
            await asyncio.to_thread(shutil.rmtree, stores, ignore_errors=True)  # cleared, and made anew if need be
        return ending

    async def _plan(self, stack: AsyncExitStack, run_writer: RunWriter, stores: Path) -> AuditPlan:
        reader = await open_chosen(stack, self.reader, seed=self.spec.seed)
        judge = await open_chosen(stack, self.judge) if self.judge else None
        transcripts = Transcripts(self.dataset)
        audited: list[Audited] = []
        limits: dict[str, Limits] = {}
        if self.providers:
            opener = ProviderOpener(
                stack, self.catalog, stores, run=run_writer.run.id, allow_code=self.spec.allow_code, threshold=None
            )
            for entry in self.providers:
                opened = await opener.open(entry)
                subject = opened.provider.subject
                trials = [trial_of(probe, self.dataset.id, subject) for probe in self.made.probes]
                pending = still_pending([(trial.key, trial.cluster) for trial in trials], run_writer.scored())
                ingest = Ingest(
                    run_writer.run.id, transcripts, opened.provider, opened.spends, DEFAULT_INGEST_OPTIONS, pending
                )
                audited.append(Audited(subject, ingest))
                limits[subject.key] = opened.limits
        else:
            audited.append(Audited(reader.subject))
        return AuditPlan(
            transcripts,
            self.made.probes,
            audited,
            Reading(reader, {"": answer_prompt(load_prompt("audit-answer"), "audit prompt")}, Scoring(method="audit")),
            Judge(judge, judge_prompts()) if judge else None,
            writer=await open_chosen(stack, self.writer) if self.writer else None,
            verified=self.spec.verify_probes,
            window=await self._window(),
            limits=limits,
        )

    async def _window(self) -> int | None:
        """Declared, listed, or as the server tells: the last is only asked when the run begins."""
        address = self.reader.address
        if self.window is not None or self.providers or address is None:
            return self.window
        key = next((value for name in address.key_variables if (value := environment().get(name))), None)
        return await fetch_window(address, key=key, redactor=redactor())


def prepare_audit(spec: AuditSpec, folder: Path) -> PreparedAudit:
    """Reads the dataset, makes its probes and finds everybody who takes part."""
    dataset = load_audit(Path(spec.dataset))
    made = generate(dataset, spec.kinds, policy=spec.policy, limit=spec.limit, seed=spec.seed or 0)
    if not made.probes:
        raise BadInput(
            spec.dataset,
            f"gives no probe of the kinds {', '.join(spec.kinds)}",
            remedy=f"memaudit validate {spec.dataset} tells why",
        )
    catalog = Catalog(folder, [Path(place) for place in spec.config_dirs])
    providers = tuple(catalog.chosen("provider", name) for name in dict.fromkeys(spec.providers))
    for entry in providers:
        if entry.kind == "baseline":
            raise BadInput(
                "--provider", f"{entry.name} is no memory", remedy="leave it out: the conversation is replayed"
            )
        check_provider(catalog, entry, allow_code=spec.allow_code)
    reader = model_named(spec.model or environment().get(MODEL_VARIABLE) or DEFAULT_MODEL)
    judge_name = spec.judge_model or environment().get(JUDGE_VARIABLE) or DEFAULT_JUDGE
    judge = None if judge_name == NO_MODEL else model_named(judge_name)
    writer = model_named(spec.probe_model) if spec.probe_model else None
    window = spec.context_window or (known_window(reader.address) if reader.address else None)
    if window is not None and not providers:
        _check_fits(dataset, made, window)
    return PreparedAudit(
        spec,
        catalog,
        dataset,
        made,
        providers,
        reader,
        judge,
        writer,
        window,
        _fingerprints(dataset, made, catalog, providers, reader, judge, writer),
    )


def _check_fits(dataset: AuditDataset, made: Probes, window: int) -> None:
    lines = oversized(Transcripts(dataset), made.probes, window)
    if lines:
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        raise BadInput("--model", f"{lines[0]}{more}")


def _fingerprints(
    dataset: AuditDataset,
    made: Probes,
    catalog: Catalog,
    providers: Sequence[Entry],
    reader: Chosen,
    judge: Chosen | None,
    writer: Chosen | None,
) -> dict[str, Fingerprint]:
    found = {f"provider {entry.name}": Fingerprint.of(described(catalog, entry)) for entry in providers}
    found[f"dataset {dataset.id}"] = Fingerprint.of(canonical(dataset))
    found["probes"] = Fingerprint.of(canonical([probe.plain() for probe in made.probes]))
    found["prompt"] = Fingerprint.of(load_prompt("audit-answer"))
    found["model"] = Fingerprint.of(reader.described())
    if judge is not None:
        found["judge model"] = Fingerprint.of(judge.described())
    if writer is not None:
        found["probe model"] = Fingerprint.of(writer.described())
    return found


def audit_again(run_id: str, output: Path) -> PreparedAudit:
    """What an audit was started with, provided that there is something left to do."""
    return prepare_audit(saved_spec(AuditSpec, saved_run(run_id, output, SUITE)), Path())


def expected(prepared: PreparedAudit) -> Iterator[Expected]:
    """What it would take. A twin is asked once, whoever looks at its answer."""
    name, probes = prepared.dataset.id, prepared.made.probes
    transcripts = Transcripts(prepared.dataset)
    for subject in prepared.subjects:
        if prepared.providers:
            conversations = dict.fromkeys(probe.conversation for probe in probes)
            sessions = sum(len(transcripts.haystack(id).sessions) for id in conversations)
            yield Expected(benchmark=name, arm=subject, stage="add", calls=sessions)
            yield Expected(benchmark=name, arm=subject, stage="search", calls=len(probes))
        sizes = [_context_tokens(prepared, transcripts, probe.conversation) + PROMPT_TOKENS for probe in probes]
        yield asked(name, subject, "answer", prepared.reader, sizes, REPLY_TOKENS)
        if prepared.spec.verify_probes:
            bare = [PROMPT_TOKENS for probe in probes if probe.type == "recall"]
            yield asked(name, subject, "answer without context", prepared.reader, bare, REPLY_TOKENS)
        if prepared.judge is not None:
            judged = [JUDGE_TOKENS + REPLY_TOKENS for probe in probes if not probe.options]
            yield asked(name, subject, "judge", prepared.judge, judged, VERDICT_TOKENS)
    if prepared.writer is not None:
        yield asked(name, "", "question", prepared.writer, [PROMPT_TOKENS] * len(probes), REPLY_TOKENS)
    if prepared.judge is not None:
        yield canaries(name, prepared.judge, len(judge_prompts().used(question_of(probe) for probe in probes)))


def _context_tokens(prepared: PreparedAudit, transcripts: Transcripts, conversation: str) -> int:
    whole = estimated_tokens(transcripts.transcript(conversation))
    turns = sum(len(session.turns) for session in transcripts.haystack(conversation).sessions)
    return round(whole * min(1.0, SHOWN / turns)) if prepared.providers else whole
