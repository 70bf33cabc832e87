"""The sides of a comparison.

A side is RUN, RUN:PROVIDER, FOLDER/RUN, or a provider, which is taken from its latest run.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import groupby
from math import fsum
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from memorybench.core.errors import BadInput
from memorybench.core.measures import Metric
from memorybench.core.records import digest
from memorybench.core.trials import Outcome, Score
from memorybench.files.expressions import canonical_name
from memorybench.journal.places import journal_words
from memorybench.journal.rows import Run
from memorybench.journal.run_reader import RecordedTrial, RunReader
from memorybench.metrics.rates import Mean
from memorybench.text.spelling import suggestion

from .comparison import CaseScores
from .stored_run import LATEST, StoredRun, find_folder, folder_of, no_results, resolve_run, with_current_status
from .summary import subjects_of

Cases = Mapping[str, CaseScores]
"""The scores of cases, by case id; with several variants, by id and variant."""
COSTS: tuple[Metric, ...] = (
    Mean("latency", "latency", higher_is_better=False, unit="s"),
    Mean("cost", "cost", higher_is_better=False, unit="$"),
)
"""Two metrics of a case, which are compared only if the user names them: how long its steps took, and what they cost.
Ingest, judging and clearing the memory are not included."""
HISTORY = "history"
"""The field of a stored case that has the digest of its history."""
_NOT_COUNTED = frozenset({"add", "settle", "wait_until_searchable", "judge", "canary"})
"""Steps whose time and cost are not those of a question: ingest and judging."""


class ComparedRun(Struct, frozen=True, dict=True):
    """A stored run for a comparison. Its outcomes are read once and kept."""

    stored: StoredRun
    folder: Path
    costs: bool = False
    """If True, time and cost of the cases (COSTS) are read, too."""
    subjects: frozenset[str] | None = None
    """The subjects whose outcomes are read; None for all. With `costs`, all are read."""
    measures: tuple[str, ...] = ()
    """The names of the measures that are read; all if empty."""

    @cached_property
    def cases(self) -> Mapping[tuple[str, str], Cases]:
        """The scores of the cases, by benchmark and subject."""
        known = (*self.stored.metrics, *COSTS)
        metrics = [one for one in known if not self.measures or one.name in self.measures]
        cases: dict[tuple[str, str], dict[str, CaseScores]] = {}
        outcomes = self._outcomes_with_costs() if self.costs else self.stored.outcomes(self.subjects)
        for _, same in groupby(outcomes, key=lambda outcome: outcome.trial.item):
            repeats = tuple(same)
            trial = repeats[0].trial
            key = f"{trial.case_id} ({trial.variant})" if trial.variant else trial.case_id
            cases.setdefault((trial.benchmark, trial.subject.name), {})[key] = CaseScores.of(repeats, metrics)
            self.roles.setdefault(trial.subject.name, trial.subject.role)
        return cases

    def _outcomes_with_costs(self) -> Iterator[Outcome]:
        for run_reader, run in self.stored.parts:
            paid = run_reader.paid_steps(run.id, leave_out=_NOT_COUNTED)
            yield from (_with_costs(trial, paid) for trial in run_reader.trials(run.id))

    roles: dict[str, str] = field(default_factory=dict)
    """By subject: its role. Filled while the cases are read."""

    @cached_property
    def content(self) -> Mapping[tuple[str, str], Mapping[str, str]]:
        """The digest of each field of a case, by (benchmark, case id) and field. Labels are left out, because they do
        not affect a question."""
        return {
            (benchmark, id): content_of(body)
            for run_reader, run in self.stored.parts
            for benchmark, id, body in run_reader.cases(run.id)
        }

    def changed_fields(self, other: ComparedRun, benchmark: str, id: str, *, same_data: bool) -> list[str]:
        """Return the fields of a case that differ, of those that both runs have stored.

        If the data is not the same, `history` counts as changed unless both runs have stored its digest.
        """
        if other is self:
            return []
        own, its = (run.content.get((benchmark, id), {}) for run in (self, other))
        changed = [name for name, value in own.items() if its.get(name, value) != value]
        is_unknown = not same_data and not (HISTORY in own and HISTORY in its)
        return [*changed, HISTORY] if is_unknown else changed


class Side(Struct, frozen=True):
    """One side of a comparison: a run, or one subject of a run."""

    text: str
    """The side as the user named it."""
    compared: ComparedRun
    subject: str | None = None
    """The subject that is compared; None for all subjects of the run."""

    @property
    def run(self) -> Run:
        return self.compared.stored.run

    @property
    def subjects(self) -> list[str]:
        """The named subject, or all of the run. Baselines are included only if the run has nothing else."""
        names = list(dict.fromkeys(name for _, name in self.compared.cases))
        if self.subject is not None:
            return [self.subject]
        return [name for name in names if self.compared.roles[name] != "baseline"] or names


@contextmanager
def open_sides(
    texts: Sequence[str],
    folders: Sequence[Path],
    *,
    among: Sequence[str] = (),
    benchmark: str | None = None,
    runs_only: bool = False,
    costs: bool = False,
) -> Iterator[list[Side]]:
    """Open the sides that the texts name, while the context is open.

    A provider is taken from the latest complete run that has it, preferably from one that has all named providers.
    `among` restricts the runs in which providers are looked for. With `runs_only`, a side must name a run.
    """
    with ExitStack() as stack:
        opened: dict[Path, RunReader] = {}

        def reader(folder: Path) -> RunReader:
            if folder not in opened:
                opened[folder] = stack.enter_context(RunReader.open(folder))
            return opened[folder]

        located = {text: _run_in_folder(text) for text in dict.fromkeys(texts)}
        searched = {} if all(located.values()) else {folder: reader(folder) for folder in folders}
        places = {text: place or _locate_run(text, searched) for text, place in located.items()}
        named = {text: place for text, place in places.items() if place is not None}
        rest = [text for text in dict.fromkeys(texts) if text not in named]
        taken = {(folder, run) for folder, run, _ in named.values()}
        if rest:
            candidates = [] if runs_only else _candidates(searched, among, benchmark, taken)
            ids = [run.id for one in searched.values() for run in one.runs()]
            named |= _latest_runs(rest, candidates, ids, [word for one in folders for word in journal_words(one)])
        runs: dict[tuple[Path, str], ComparedRun] = {}
        for folder, run, _ in named.values():
            if (folder, run) not in runs:
                saved = with_current_status(reader(folder).run(run), folder)
                stored = StoredRun(((reader(folder), saved),))
                runs[folder, run] = ComparedRun(stored, folder, costs)
        sides = [Side(text, runs[named[text][:2]], named[text][2] or None) for text in texts]
        for side in sides:
            _check_subject(side)
        yield sides


def content_of(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the digest of each field of a case, except labels, which do not affect the question."""
    return {name: digest(value) for name, value in body.items() if name != "labels"}


def are_costs(names: Iterable[str]) -> bool:
    """Whether any of these measures is one of COSTS."""
    return not {metric.name for metric in COSTS}.isdisjoint(names)


def _with_costs(trial: RecordedTrial, paid: Mapping[str, float | None]) -> Outcome:
    """Return the outcome with two more scores: its time, unless a step was reused, and its cost, if known.

    `paid` has the costs of steps by key. A reused step counts as much as it cost in the run that performed it. A failed
    trial has neither: it lacks the steps that it did not get to, so that it would be fast and cheap.
    """
    if trial.outcome.status == "failed":
        return trial.outcome
    timed = [step for step in trial.own_steps if step.name not in _NOT_COUNTED]
    costs = [paid[key] for key in dict.fromkeys(trial.outcome.steps) if key in paid]
    scores = list(trial.outcome.scores)
    if timed and not any(step.reused_from for step in timed):
        scores.append(Score(name="latency", value=fsum(step.seconds or 0 for step in timed)))
    if trial.steps and None not in costs:
        scores.append(Score(name="cost", value=fsum(cost for cost in costs if cost is not None)))
    return Outcome(**{**dict(trial.outcome), "scores": tuple(scores)})


def _locate_run(text: str, readers: Mapping[Path, RunReader]) -> tuple[Path, str, str] | None:
    """Return folder, run and subject of RUN or RUN:SUBJECT; None if no folder has the run."""
    head, _, subject = text.partition(":")
    head, subject = resolve_run(head, readers) if head == LATEST else head, canonical_name(subject)
    for folder, run_reader in readers.items():
        if run_reader.has(head):
            return folder, head, subject
    return None


def _run_in_folder(text: str) -> tuple[Path, str, str] | None:
    """Return folder, run and subject of FOLDER/RUN or FOLDER/RUN:SUBJECT; None if the text names no folder."""
    head, _, subject = text.partition(":")
    if (folder := folder_of(head)) is None:
        if "/" in head and Path(head).is_dir():
            raise no_results(head)
        return None
    return folder, find_folder(head, ())[0], canonical_name(subject)


def _candidates(
    readers: Mapping[Path, RunReader], among: Sequence[str], benchmark: str | None, taken: set[tuple[Path, str]]
) -> list[tuple[Path, Run]]:
    """Return the runs in which to look for a provider, oldest first: those in `among`, else all complete ones.

    Only runs of the same suite as the runs in `taken`, which the user named.
    """
    runs = [(folder, run) for folder, run_reader in readers.items() for run in run_reader.runs()]
    suites = {run.suite for folder, run in runs if (folder, run.id) in taken}
    if among:
        for name in among:
            if not any(run.id == name for _, run in runs):
                next(iter(readers.values())).run(name)  # raises, naming the nearest
        found = [(folder, run) for folder, run in runs if run.id in among]
    else:
        found = [(folder, run) for folder, run in runs if run.status == "complete" and (folder, run.id) not in taken]
    found = [
        (folder, run)
        for folder, run in found
        if (not suites or run.suite in suites) and (benchmark is None or benchmark in run.spec.get("questions", ()))
    ]
    return sorted(found, key=lambda one: one[1].created)


def _latest_runs(
    names: Sequence[str], runs: Sequence[tuple[Path, Run]], ids: Sequence[str], place: Sequence[str]
) -> dict[str, tuple[Path, str, str]]:
    subjects = {name: canonical_name(name) for name in names}
    together = [one for one in runs if set(subjects.values()) <= set(subjects_of(one[1]))]
    found: dict[str, tuple[Path, str, str]] = {}
    for folder, run in together[-1:] or runs:
        found |= {name: (folder, run.id, one) for name, one in subjects.items() if one in subjects_of(run)}
    for name in names:
        if name not in found:
            known = [*ids, *(subject for _, run in runs for subject in subjects_of(run))]
            listing = shlex.join(["memorybench", "results", *place])
            raise BadInput(
                name,
                "no run has this name, and no complete run has such a provider" if runs else "no run has this name",
                expected=f"RUN, RUN:PROVIDER{', FOLDER/RUN or a provider' if runs else ' or FOLDER/RUN'}",
                remedy=suggestion(name, list(dict.fromkeys(known))) or f"`{listing}` lists the runs",
            )
    return found


def _check_subject(side: Side) -> None:
    names = list(dict.fromkeys(name for _, name in side.compared.cases))
    if not names:
        raise BadInput(side.text, f"run {side.run.id} has no results yet", remedy="wait for results, or resume the run")
    if side.subject is not None and side.subject not in names:
        raise BadInput(side.text, f'run {side.run.id} has no results of "{side.subject}"', expected=" or ".join(names))
