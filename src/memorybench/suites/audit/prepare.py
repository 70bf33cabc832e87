"""Prepares a run from an audit spec: resolves names and reports problems before any paid call."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.core.plans import Limits, Plan
from memorybench.core.records import canonical
from memorybench.core.trials import Subject
from memorybench.datasets.audit import AuditDataset, load_audit
from memorybench.datasets.prompts import answer_prompt
from memorybench.files.prompts import load_prompt
from memorybench.journal.rows import Fingerprint
from memorybench.judging.canaries import choose_canaries
from memorybench.judging.judge import Judge
from memorybench.suites.answering import Answering, Scoring, estimated_tokens
from memorybench.suites.estimates import (
    JUDGE_TOKENS,
    PROMPT_TOKENS,
    REPLY_TOKENS,
    VERDICT_TOKENS,
    Estimate,
    canary_calls,
    model_calls,
)
from memorybench.suites.ingest import DEFAULT_INGEST_OPTIONS, Ingest, still_pending
from memorybench.suites.judge_check import canary_limit
from memorybench.suites.repeats import open_repeats
from memorybench.suites.searching import DEFAULT_SETTINGS, SearchLimits, default_settings
from memorybench.suites.suite import FORMATS, Opening, PreparedRun, RunPlace
from memorybench.suites.wiring import ResolvedModel, ResolvedProvider, Wiring

from .generation import Probes, generate
from .judgement import judge_prompts, question_of
from .measures import measures, selected
from .plan import SHOWN, AuditedSubject, AuditPlan, Transcripts, find_oversized, trial_of
from .spec import AuditSpec

MODEL_VARIABLE, JUDGE_VARIABLE = "MEMAUDIT_MODEL", "MEMORYBENCH_JUDGE"
DEFAULT_MODEL, DEFAULT_JUDGE, NO_JUDGE = "gpt-4o-mini", "gpt-4o", "none"


def prepare(spec: AuditSpec, wiring: Wiring, place: RunPlace) -> PreparedRun:
    """Read the dataset, generate its probes and resolve the models and providers."""
    dataset = load_audit(Path(spec.dataset))
    generated = generate(dataset, spec.kinds, policy=spec.policy, limit=spec.limit, seed=spec.sample_seed)
    if not generated.probes:
        raise BadInput(
            spec.dataset,
            f"no probes of the kinds {', '.join(spec.kinds)}",
            remedy=f"memaudit validate {spec.dataset} shows why",
        )
    resolved = (wiring.provider(name) for name in spec.providers)
    providers = tuple({provider.name: provider for provider in resolved}.values())  # two spellings are one provider
    spec = spec.model_copy(update={"providers": tuple(provider.name for provider in providers)})
    for provider in providers:
        if provider.is_baseline:
            raise BadInput(
                "--providers",
                f"{provider.name} is a baseline, not a memory",
                remedy="leave it out: the conversation is replayed",
            )
    depth = spec.top_k or max(SHOWN, spec.context_limit or 0)
    limits = SearchLimits.of(spec, "the audit", depth=depth, shown=SHOWN)
    limits.check(providers, "the audit")
    answerer = wiring.model(spec.model or wiring.variable(MODEL_VARIABLE) or DEFAULT_MODEL)
    judge_name = spec.judge_model or wiring.variable(JUDGE_VARIABLE) or DEFAULT_JUDGE
    judge = None if judge_name == NO_JUDGE else wiring.model(judge_name)
    writer = wiring.model(spec.probe_model) if spec.probe_model else None
    window = spec.context_window or answerer.listed_window
    if window is not None and not providers:
        too_long = find_oversized(Transcripts(dataset), generated.probes, window)
        if too_long:
            more = f" (and {len(too_long) - 1} more)" if len(too_long) > 1 else ""
            raise BadInput("--model", f"{too_long[0]}{more}")
    run = _AuditRun(spec, wiring, dataset, generated, providers, answerer, judge, writer, window, limits)
    subjects = tuple(provider.name for provider in providers) or (answerer.name,)
    any_subject = Subject(role="", name="")
    hints = {}
    if not providers:
        models = ("--model", answerer.name, "--judge-model", judge.name if judge else NO_JUDGE)
        again = shlex.join(("memorybench", "audit", spec.dataset, "--providers", "bm25", "hybrid", *models))
        hints[again] = "ask the same probes through a memory"
    return PreparedRun(
        spec=spec,
        totals={(dataset.id, subject): len(generated.probes) * spec.repeats for subject in subjects},
        repeats=spec.repeats,
        subjects=subjects,
        fingerprints=run.fingerprints(),
        metrics=measures(),
        open_plan=run.open_plan,
        cases={dataset.id: frozenset(probe.id for probe in generated.probes)},
        details={
            "selected": selected(trial_of(probe, dataset.id, any_subject) for probe in generated.probes),
            "answerer": answerer.name,
            DEFAULT_SETTINGS: default_settings(providers),
            "judge": judge.name if judge else None,
            "conversations": len(dataset.conversations),
            "facts": sum(len(conversation.facts) for conversation in dataset.conversations),
            "probes": dict(Counter(probe.type for probe in generated.probes)),
            "gates": dict(generated.gates),
            "skipped": dict(Counter(skipped.reason for skipped in generated.skipped)),
        },
        models=(answerer, judge, writer),
        estimate=run.estimate,
        formats=FORMATS if spec.format == "all" else (spec.format,),
        hints=hints,
    )


@dataclass(frozen=True, slots=True)
class _AuditRun:
    """A spec with its probes and its resolved models and providers."""

    spec: AuditSpec
    wiring: Wiring
    dataset: AuditDataset
    generated: Probes
    providers: tuple[ResolvedProvider, ...]
    answerer: ResolvedModel
    judge: ResolvedModel | None
    writer: ResolvedModel | None
    """The model that rewrites the questions; None: they are not rewritten."""
    window: int | None
    search_limits: SearchLimits

    def fingerprints(self) -> dict[str, Fingerprint]:
        texts = {f"provider {provider.name}": provider.described() for provider in self.providers}
        texts[f"dataset {self.dataset.id}"] = canonical(self.dataset)
        texts["probes"] = canonical([probe.plain() for probe in self.generated.probes])
        texts["prompt"] = load_prompt("audit-answer")
        texts["model"] = self.answerer.described()
        if self.judge is not None:
            texts["judge model"] = self.judge.described()
        if self.writer is not None:
            texts["probe model"] = self.writer.described()
        return {name: Fingerprint.of(text) for name, text in texts.items()}

    async def open_plan(self, opening: Opening) -> Plan:
        repeats = self.spec.repeats
        answerers = await open_repeats(self.answerer, opening.stack, self.spec.seed, repeats)
        prompts = {"": answer_prompt(load_prompt("audit-answer"), "audit prompt")}
        answering, *repeated = (Answering(model, prompts, Scoring(method="audit")) for model in answerers)
        judge = await self.judge.open(opening.stack) if self.judge else None
        transcripts = Transcripts(self.dataset)
        audited: list[AuditedSubject] = []
        limits: dict[str, Limits] = {}
        window = self.window
        if self.providers:
            opener = self.wiring.open_providers(opening.stack, opening.stores, run_id=opening.run_id)
            for resolved in self.providers:
                opened = await opener.open(resolved.name)
                subject = opened.provider.subject
                trials = [
                    trial_of(probe, self.dataset.id, subject, repeat)
                    for probe in self.generated.probes
                    for repeat in range(1, repeats + 1)
                ]
                pending = still_pending([(trial.key, trial.cluster) for trial in trials], opening.scored)
                ingest = Ingest(
                    opening.run_id,
                    transcripts,
                    opened.provider,
                    opened.spends,
                    DEFAULT_INGEST_OPTIONS,
                    pending,
                    opening.scope_suffix,
                )
                audited.append(AuditedSubject(subject, ingest))
                limits[subject.key] = opened.limits
        else:
            audited.append(AuditedSubject(answering.model.subject))
            if window is None:
                window = await self.answerer.fetch_window()
        return AuditPlan(
            transcripts,
            self.generated.probes,
            audited,
            answering,
            Judge(judge, judge_prompts()) if judge else None,
            writer=await self.writer.open(opening.stack) if self.writer else None,
            verify=self.spec.verify_probes,
            window=window,
            limits=limits,
            search_limits=self.search_limits,
            canaries=self._canaries,
            repeated=repeated,
        ).plan()

    def estimate(self) -> Iterator[Estimate]:
        """Yield the calls per stage. The answer of a twin is recorded and counts once."""
        name, probes = self.dataset.id, self.generated.probes
        transcripts = Transcripts(self.dataset)
        for subject in [provider.name for provider in self.providers] or [self.answerer.name]:
            if self.providers:
                conversations = dict.fromkeys(probe.conversation for probe in probes)
                sessions = sum(len(transcripts.haystack(id).sessions) for id in conversations)
                cost = None if any(one.spends for one in self.providers if one.name == subject) else 0.0
                yield Estimate(benchmark=name, subject=subject, stage="add", calls=sessions, cost=cost)
                yield Estimate(benchmark=name, subject=subject, stage="search", calls=len(probes), cost=cost)
            sizes = [self._context_tokens(transcripts, probe.conversation) + PROMPT_TOKENS for probe in probes]
            yield model_calls(name, subject, "answer", self.answerer, sizes * self.spec.repeats, REPLY_TOKENS)
            if self.spec.verify_probes:
                bare = [PROMPT_TOKENS for probe in probes if probe.type == "recall"]
                yield model_calls(name, subject, "answer without context", self.answerer, bare, REPLY_TOKENS)
            if self.judge is not None:
                judged = [JUDGE_TOKENS + REPLY_TOKENS] * self._judge_calls
                yield model_calls(name, subject, "judge", self.judge, judged, VERDICT_TOKENS)
        if self.writer is not None:
            yield model_calls(name, "", "question", self.writer, [PROMPT_TOKENS] * len(probes), REPLY_TOKENS)
        if self.judge is not None:
            used = judge_prompts().used(question_of(probe) for probe in probes)
            yield canary_calls(name, self.judge, choose_canaries(used, self._canaries))

    @property
    def _canaries(self) -> int:
        return canary_limit(self.spec.canaries, self._judge_calls * max(1, len(self.providers)))

    @property
    def _judge_calls(self) -> int:
        """The number of answers of one subject that a judge may have to decide."""
        return self.spec.repeats * sum(not probe.options for probe in self.generated.probes)

    def _context_tokens(self, transcripts: Transcripts, conversation: str) -> int:
        whole = estimated_tokens(transcripts.transcript(conversation))
        turns = sum(len(session.turns) for session in transcripts.haystack(conversation).sessions)
        if not self.providers:
            return whole
        limits = self.search_limits
        return min(round(whole * min(1.0, limits.shown / turns)), limits.token_budget or whole)
