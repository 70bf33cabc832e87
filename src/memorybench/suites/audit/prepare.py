"""Prepares a run from an audit spec: resolves names and reports problems before any paid call."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.core.packed import PackedSequence
from memorybench.core.plans import Limits, Plan
from memorybench.core.trials import Subject
from memorybench.datasets.audit import AuditDataset, load_audit
from memorybench.datasets.prompts import answer_prompt
from memorybench.files.prompts import load_prompt
from memorybench.files.templates import Template
from memorybench.journal.rows import Fingerprint
from memorybench.judging.canaries import choose_canaries
from memorybench.judging.judge import Judge
from memorybench.metrics.rates import count_selected
from memorybench.suites.answering import Answering, Scoring, context_of, estimated_tokens
from memorybench.suites.comparison import MODEL_MARK
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
from memorybench.suites.shards import ShardPart, Unit, choose_units
from memorybench.suites.suite import FORMATS, Opening, PreparedRun, RunPlace
from memorybench.suites.wiring import ResolvedModel, ResolvedProvider, Wiring

from .generation import apply_limit, count_gates, generate
from .history import PLAN, UNDATED
from .judgement import judge_prompts, question_of
from .measures import MEASURES
from .plan import FULL_CONTEXT, SHOWN, AuditedSubject, AuditPlan, Transcripts, find_oversized, trial_of
from .probe_file import read_probes
from .probes import PROBE_TYPES, Probe, Probes
from .spec import AuditSpec
from .verification import ProbeModel, calls_to_verify
from .writing import drafts

MODEL_VARIABLE, JUDGE_VARIABLE = "MEMAUDIT_MODEL", "MEMORYBENCH_JUDGE"
DEFAULT_MODEL, DEFAULT_JUDGE, NO_JUDGE = "gpt-4o-mini", "gpt-4o", "none"


def make_probes(spec: AuditSpec, dataset: AuditDataset) -> Probes:
    """Return the probes of a file, or those that structure proves; with a probe model, also those that it writes."""
    if spec.probe_file:
        read = read_probes(Path(spec.probe_file[0]), dataset, verify=spec.probe_model is None)
        of_kind = [probe for probe in read.probes if probe.type in spec.kinds]
        chosen = apply_limit(of_kind, spec.kinds, spec.limit, spec.sample_seed)
        left_out = {"beyond the limit": len(of_kind) - len(chosen)}
        return replace(read, probes=chosen, gates={**read.gates, "made": len(chosen), **left_out})
    if spec.probe_model is None:
        return generate(dataset, spec.kinds, policy=spec.policy, limit=spec.limit, seed=spec.sample_seed)
    made = generate(dataset, spec.kinds, policy=spec.policy, gaps=False)
    dropped: Counter[str] = Counter()
    every = PackedSequence(chain(made.probes, drafts(dataset, made.probes, spec.kinds, spec.policy, dropped)))
    chosen = apply_limit(every, spec.kinds, spec.limit, spec.sample_seed)
    drafted = {(one.conversation, fact) for one in every for fact in one.related_facts}
    skipped = [one for one in made.skipped if (one.conversation, one.fact) not in drafted]
    dropped.update(one.reason for one in skipped if one.reason in (PLAN, UNDATED))
    return Probes(chosen, skipped, count_gates(len(chosen), len(every) - len(chosen), dropped))


def _no_probes(spec: AuditSpec, generated: Probes) -> BadInput:
    problem = f"no probes of the kinds {', '.join(spec.kinds)}"
    if generated.gates.get("not English") and spec.probe_model is None:
        problem += "; the templates are English, and the conversations are not, or too short to tell"
        return BadInput(
            spec.dataset, problem, remedy="add --probe-model MODEL, or give each fact a question and a value"
        )
    return BadInput(
        spec.dataset, problem, remedy=f"memaudit validate {spec.dataset} shows why; --probe-model writes more"
    )


def prepare(spec: AuditSpec, wiring: Wiring, place: RunPlace) -> PreparedRun:
    """Read the dataset, generate its probes and resolve the models and providers."""
    dataset = load_audit(Path(spec.dataset))
    generated = make_probes(spec, dataset)
    if not generated.probes:
        raise _no_probes(spec, generated)
    if "placebo" in spec.providers:
        problem = "placebo is not supported: a probe asks about facts of one conversation"
        raise BadInput("--providers", problem, expected="none, full-context or oracle as baselines")
    resolved = (wiring.provider(name) for name in spec.providers)
    providers = tuple({provider.name: provider for provider in resolved}.values())  # two spellings are one provider
    spec = spec.model_copy(update={"providers": tuple(provider.name for provider in providers)})
    depth = spec.top_k or max(SHOWN, spec.context_limit or 0)
    limits = SearchLimits.of(spec, "the audit", depth=depth, shown=SHOWN)
    limits.check(providers, "the audit")
    names = spec.model or (wiring.variable(MODEL_VARIABLE) or DEFAULT_MODEL,)
    models = tuple({model.name: model for model in map(wiring.model, names)}.values())
    judge_name = spec.judge_model or wiring.variable(JUDGE_VARIABLE) or DEFAULT_JUDGE
    judge = None if judge_name == NO_JUDGE else wiring.model(judge_name)
    spec.check_canaries(has_judge=judge is not None)
    writer = wiring.model(spec.probe_model) if spec.probe_model else None
    prompt = answer_prompt(spec.answer_prompt or load_prompt("audit-answer"), "--answer-prompt")
    units, part, asked = {(dataset.id, probe.conversation) for probe in generated.probes}, None, generated.probes
    if spec.shard is not None:
        part = choose_units(spec.shard, units)
        asked = PackedSequence(probe for probe in asked if (dataset.id, probe.conversation) in part)
    run = _AuditRun(
        spec,
        wiring,
        dataset,
        Transcripts(dataset),
        generated,
        providers,
        models,
        judge,
        writer,
        limits,
        prompt,
        asked=asked,
        part=part,
    )
    if not providers or any(provider.name == FULL_CONTEXT for provider in providers):
        run.check_windows()
    return PreparedRun(
        spec=spec,
        totals=run.totals(asked),
        repeats=spec.repeats,
        subjects=tuple(run.names(baselines=False)) or tuple(run.names()),
        fingerprints=run.fingerprints(),
        metrics=MEASURES,
        open_plan=run.open_plan,
        cases={dataset.id: frozenset(probe.id for probe in asked)},
        details={
            **_count_probes(dataset, asked),
            "answerer": ", ".join(model.name for model in models),
            DEFAULT_SETTINGS: default_settings(providers),
            "judge": judge.name if judge else None,
            "conversations": len(dataset.conversations),
            "facts": dataset.fact_count,
            "gates": dict(generated.gates),
            "skipped": dict(Counter(skipped.reason for skipped in generated.skipped)),
        },
        models=(*models, judge, writer),
        estimate=run.estimate,
        formats=FORMATS if spec.format == "all" else (spec.format,),
        hints={} if providers else run.hints(),
        part=None
        if part is None
        else ShardPart(part, len(units), run.totals(generated.probes), _count_probes(dataset, generated.probes)),
    )


def _count_probes(dataset: AuditDataset, probes: Sequence[Probe]) -> dict[str, dict[str, int]]:
    """The numbers of probes by measure and by type."""
    any_subject = Subject(role="", name="")
    return {
        "selected": count_selected(MEASURES, (trial_of(probe, dataset.id, any_subject) for probe in probes)),
        "probes": dict(Counter(probe.type for probe in probes)),
    }


@dataclass(frozen=True, slots=True)
class _AuditRun:
    """A spec with its probes and its resolved models and providers."""

    spec: AuditSpec
    wiring: Wiring
    dataset: AuditDataset
    transcripts: Transcripts
    generated: Probes
    providers: tuple[ResolvedProvider, ...]
    models: tuple[ResolvedModel, ...]
    judge: ResolvedModel | None
    writer: ResolvedModel | None
    """The model that writes and verifies probes; None: structure has verified them."""
    search_limits: SearchLimits
    prompt: Template
    asked: Sequence[Probe]
    """The probes of this shard; all, if the run is not one."""
    part: Collection[Unit] | None
    """The conversations of this shard."""

    def totals(self, probes: Sequence[Probe]) -> dict[tuple[str, str], int]:
        """Planned trials by dataset and subject."""
        return {(self.dataset.id, subject): len(probes) * self.spec.repeats for subject in self.names()}

    def name(self, provider: ResolvedProvider | None, model: ResolvedModel) -> str:
        """Return the name of a subject; with several models, it names the model as well."""
        if provider is None:
            return model.name
        return provider.name if len(self.models) == 1 else f"{provider.name}{MODEL_MARK}{model.name}"

    def names(self, *, baselines: bool = True) -> list[str]:
        wanted = [provider for provider in self.providers if baselines or not provider.is_baseline]
        return [
            self.name(provider, model) for model in self.models for provider in (wanted if self.providers else [None])
        ]

    def check_windows(self) -> None:
        """Raise BadInput if a conversation exceeds the context window of a model."""
        for model in self.models:
            window = self.spec.context_window or model.listed_window
            too_long = find_oversized(self.transcripts, self.generated.probes, window) if window else []
            if too_long:
                more = f" (and {len(too_long) - 1} more)" if len(too_long) > 1 else ""
                raise BadInput("--model", f"{too_long[0]}{more}")

    def hints(self) -> dict[str, str]:
        judge = self.judge.name if self.judge else NO_JUDGE
        models = ("--model", *(model.name for model in self.models), "--judge-model", judge)
        compared = ("--providers", "bm25", "hybrid", "full-context", "oracle", "none")
        spec = self.spec
        probes = ["--probes", *spec.probe_file] if spec.probe_file else []
        probes += ["--probe-model", spec.probe_model] if spec.probe_model else []
        probes += ["--kinds", *spec.kinds] if spec.kinds != PROBE_TYPES else []
        probes += ["--limit", str(spec.limit)] if spec.limit else []
        command = shlex.join(("memorybench", "audit", spec.dataset, *compared, *models, *probes))
        return {command: "ask the same probes through memories, beside baselines"}

    def fingerprints(self) -> dict[str, Fingerprint]:
        texts = {f"provider {provider.name}": provider.described() for provider in self.providers}
        texts["prompt"] = self.spec.answer_prompt or load_prompt("audit-answer")
        texts["model"] = "\n".join(model.described() for model in self.models)
        if self.judge is not None:
            texts["judge model"] = self.judge.described()
        if self.writer is not None:
            texts["probe model"] = self.writer.described()
        found = {name: Fingerprint.of(text) for name, text in texts.items()}
        found[f"dataset {self.dataset.id}"] = Fingerprint.of_parts(self.dataset.canonical_parts())
        found["probes"] = Fingerprint.of_list(self.generated.probes)
        return found

    async def open_plan(self, opening: Opening) -> Plan:
        judge = await self.judge.open(opening.stack) if self.judge else None
        writer = ProbeModel(await self.writer.open(opening.stack)) if self.writer else None
        answering = {model.name: await self._open_answering(model, opening) for model in self.models}
        audited: list[AuditedSubject] = []
        limits: dict[str, Limits] = {}
        for model in self.models:
            if not self.providers:
                subject = answering[model.name][0].model.subject
                audited.append(AuditedSubject(subject, answering[model.name], window=await self._window(model)))
        for provider in self.providers:
            audited += await self._open_provider(provider, opening, answering, limits)
        return AuditPlan(
            self.transcripts,
            self.generated.probes,
            audited,
            Judge(judge, judge_prompts()) if judge else None,
            probe_model=writer,
            verify=self.spec.verify_probes,
            limits=limits,
            search_limits=self.search_limits,
            canaries=self._canaries,
            part=self.part,
        ).plan()

    async def _open_answering(self, model: ResolvedModel, opening: Opening) -> list[Answering]:
        opened = await open_repeats(model, opening.stack, self.spec.seed, self.spec.repeats)
        return [Answering(one, {"": self.prompt}, Scoring(method="audit")) for one in opened]

    async def _window(self, model: ResolvedModel) -> int | None:
        return self.spec.context_window or model.listed_window or await model.fetch_window()

    async def _open_provider(
        self,
        provider: ResolvedProvider,
        opening: Opening,
        answering: Mapping[str, list[Answering]],
        limits: dict[str, Limits],
    ) -> list[AuditedSubject]:
        """Open a memory once for all models that read it; a baseline needs none."""
        if provider.is_baseline:
            return [
                AuditedSubject(
                    Subject(role="baseline", name=self.name(provider, model)),
                    answering[model.name],
                    baseline=provider.name,
                    window=await self._window(model) if provider.name == FULL_CONTEXT else None,
                )
                for model in self.models
            ]
        opener = self.wiring.open_providers(opening.stack, opening.stores, run_id=opening.run_id)
        opened = await opener.open(provider.name)
        own = opened.provider.subject
        limits[own.key] = opened.limits
        subjects = [
            own
            if len(self.models) == 1
            else Subject(role=own.role, name=self.name(provider, model), settings=own.settings)
            for model in self.models
        ]
        trials = (
            trial_of(probe, self.dataset.id, subject, repeat)
            for subject in subjects
            for probe in self.asked
            for repeat in range(1, self.spec.repeats + 1)
        )
        pending = still_pending(((trial.key, trial.cluster) for trial in trials), opening.scored)
        ingest = Ingest(
            opening.run_id,
            self.transcripts,
            opened.provider,
            opened.spends,
            DEFAULT_INGEST_OPTIONS,
            pending,
            opening.scope_suffix,
        )
        return [
            AuditedSubject(subject, answering[model.name], ingest)
            for subject, model in zip(subjects, self.models, strict=True)
        ]

    def estimate(self) -> Iterator[Estimate]:
        """Yield the calls per stage. The answer of a twin is recorded and counts once."""
        name, probes, transcripts = self.dataset.id, self.asked, self.transcripts
        for provider in self.providers or (None,):
            for model in self.models:
                subject = self.name(provider, model)
                if provider is not None and not provider.is_baseline and model is self.models[0]:
                    conversations = dict.fromkeys(probe.conversation for probe in probes)
                    sessions = sum(len(transcripts.haystack(id).sessions) for id in conversations)
                    cost = None if provider.spends else 0.0
                    yield Estimate(benchmark=name, subject=subject, stage="add", calls=sessions, cost=cost)
                    yield Estimate(benchmark=name, subject=subject, stage="search", calls=len(probes), cost=cost)
                sizes = [self._context_tokens(transcripts, probe, provider) + PROMPT_TOKENS for probe in probes]
                yield model_calls(name, subject, "answer", model, sizes * self.spec.repeats, REPLY_TOKENS)
                if self.spec.verify_probes:
                    bare = [PROMPT_TOKENS for probe in probes if probe.type == "recall"]
                    yield model_calls(name, subject, "answer without context", model, bare, REPLY_TOKENS)
                if self.judge is not None:
                    judged = [JUDGE_TOKENS + REPLY_TOKENS] * self.spec.repeats * len(probes)
                    yield model_calls(name, subject, "judge", self.judge, judged, VERDICT_TOKENS)
        if self.writer is not None:
            yield probe_calls(name, self.writer, transcripts, probes)
        if self.judge is not None:
            used = judge_prompts().used(question_of(probe) for probe in self.generated.probes)
            yield canary_calls(name, self.judge, choose_canaries(used, self._canaries))

    @property
    def _canaries(self) -> int:
        return canary_limit(self.spec.canaries, sum(self.totals(self.generated.probes).values()))

    def _context_tokens(self, transcripts: Transcripts, probe: Probe, provider: ResolvedProvider | None) -> int:
        whole = estimated_tokens(transcripts.transcript(probe.conversation))
        if provider is None or provider.name == FULL_CONTEXT:
            return whole
        if provider.is_baseline:
            return estimated_tokens(context_of(transcripts.evidence(probe))) if provider.name != "none" else 0
        turns = len(transcripts.conversation(probe.conversation).turns)
        limits = self.search_limits
        return min(round(whole * min(1.0, limits.shown / turns)), limits.token_budget or whole)


def probe_calls(name: str, model: ResolvedModel, transcripts: Transcripts, probes: Sequence[Probe]) -> Estimate:
    """Estimate the calls that write and verify probes if all replies agree and are worded as expected."""
    sizes: list[int] = []
    written: set[str] = set()
    for probe in probes:
        whole = estimated_tokens(transcripts.transcript(probe.conversation)) if probe.abstain else 0
        sizes += [PROMPT_TOKENS + whole] * calls_to_verify(probe)
        draft = probe.conversation if probe.abstain else probe.id  # one reply has all absent facts of a conversation
        if not probe.question and draft not in written:
            written.add(draft)
            sizes.append(PROMPT_TOKENS + whole)
    return model_calls(name, "", "probe check", model, sizes, REPLY_TOKENS)
