"""Compares runs, or subjects of runs, and describes the result as a report."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from memorybench.core.errors import BadInput
from memorybench.core.measures import Metric
from memorybench.core.records import Record
from memorybench.core.report_sections import Notes, Provenance, Report, Section
from memorybench.journal.rows import Fingerprint
from memorybench.metrics.names import ALIASES
from memorybench.text.spelling import join_choices, suggestion

from .comparison import Pair, adjust, compare_measure
from .comparison_tables import (
    Only,
    by_subjects,
    case_tables,
    measure_table,
    select_cases,
    sentences,
    titles,
    type_label,
    type_table,
    unpaired,
)
from .registry import suite_of, verb_of
from .setting_differences import Setting, differing_settings, settings_tables
from .sides import COSTS, Cases, Side, are_costs, open_sides

ALL = "all"
SHOWN_CASES = 20
_DATA = ("benchmark ", "dataset ")
"""The names of fingerprints of data begin with one of these words; the name of the benchmark follows."""


class SideFacts(Record):
    side: str
    """The side as the user named it."""
    run: str
    """The id of the run, or FOLDER/RUN if another side has a run with the same id."""
    subjects: tuple[str, ...]
    status: str
    program: str
    created: str


class DataDifference(Record):
    """How the questions of a benchmark differ between two runs. Questions that differ are not compared."""

    benchmark: str
    first_run: str
    second_run: str
    same_data: bool
    """Whether both runs have the same data files; also True if one of them did not record which files it had.

    Even then, questions differ if the runs used different corrections.
    """
    same: int
    changed_questions: int
    changed: Mapping[str, int]
    """By field of a question, such as `question`, `answers` or `history`: the number of questions in which it
    differs."""
    only_first: int
    only_second: int

    def sentence(self) -> str:
        same = f"{self.same or 'no'} question{'s are' if self.same > 1 else ' is'} the same in both runs"
        parts = []
        if self.changed_questions:
            fields = ", ".join(f"{name} {n}" for name, n in self.changed.items())
            parts.append(f"{self.changed_questions} changed ({fields})")
        alone = ((self.only_first, self.first_run), (self.only_second, self.second_run))
        parts += [f"{n} only in {run}" for n, run in alone if n]
        return f"{self.benchmark}: {same}{' and compared' if self.same else ''}; left out: {', '.join(parts) or 'none'}"


class RunComparison(Record):
    """What `memorybench compare` prints, and its JSON document (`memorybench schema comparison`)."""

    suite: str
    sides: tuple[SideFacts, ...]
    settings: tuple[Setting, ...]
    data: tuple[DataDifference, ...] = ()
    """One entry for each benchmark whose data or questions differ between two runs."""
    correction: Literal["holm"] = "holm"
    tests: int
    """The number of tests that the p-values are adjusted for."""
    comparisons: tuple[Pair, ...]
    """One entry for each pair of sides, subject, benchmark and measure. Differences are first minus second."""
    warnings: tuple[str, ...] = ()

    def document(self, only: Only | None = None, limit: int | None = None, offset: int = 0) -> dict[str, Any]:
        """Return the JSON document. It lists cases only if `only` selects some."""
        pairs = []
        for pair in self.comparisons:
            cases = select_cases(pair, only)[offset:][:limit] if only else ()
            pairs.append(pair.model_copy(update={"cases": tuple(cases)}))
        return self.model_copy(update={"comparisons": tuple(pairs)}).model_dump(mode="json")

    def report(self, only: Only | None = None, limit: int | None = None, offset: int = 0) -> Report:
        return Report(
            title=f"Comparison of {join_choices([side.side for side in self.sides], 'and')}",
            sections=(
                Provenance(self.facts()),
                *self.sections(),
                *case_tables(self.comparisons, only, SHOWN_CASES if limit is None else limit, offset),
            ),
            warnings=self.warnings,
            document=self.document(only, limit, offset),
        )

    def facts(self) -> dict[str, str]:
        return {
            f"Side {place}": f"{', '.join(side.subjects)} of run {side.run} ({side.status}, {side.created[:10]})"
            for place, side in enumerate(self.sides, 1)
        }

    def sections(self, *, types: bool = True) -> list[Section]:
        """Return report sections: data and settings that differ, then measures, question types and the correction."""
        sections: list[Section] = [Notes(tuple(f"{one.sentence()}." for one in self.data))] if self.data else []
        sections += settings_tables(self.settings)
        if not sections:
            sections.append(Notes(("No difference in settings, data, code, versions, models or prompts.",)))
        for pairs in by_subjects(self.comparisons):
            sections += [measure_table(pairs), Notes((*sentences(pairs), *unpaired(pairs)))]
            lead = next((pair for pair in pairs if pair.comparison.n), pairs[0])
            sections += [type_table(pair, detail=pair is not lead) for pair in pairs if types and type_label(pair)]
        if all(pair.comparison.p is None for pair in self.comparisons):
            return sections
        tests = (
            f"p-values are two-sided and adjusted by Holm's method for {self.tests} tests; intervals are not adjusted"
        )
        one = "p-values are two-sided; there is one test, so none is adjusted"
        sections.append(Notes((f"{tests if self.tests > 1 else one}; * marks p < 0.05.",)))
        return sections


def compare_runs(
    texts: Sequence[str],
    folders: Sequence[Path],
    *,
    among: Sequence[str] = (),
    benchmark: str | None = None,
    measures: Sequence[str] = (),
) -> RunComparison:
    """Compare every pair of the sides that these texts name; if they name one run, compare its subjects."""
    with open_sides(texts, folders, among=among, benchmark=benchmark, costs=are_costs(measures)) as sides:
        for place, text in enumerate(texts):
            if text in texts[:place]:
                is_provider = sides[place].subject is not None and ":" not in text
                remedy = f"name two runs: RUN:{text} OTHER:{text}" if is_provider else "name another run or provider"
                raise BadInput(text, "named twice", remedy=remedy)
        if len(sides) == 1:
            (side,) = sides
            sides = [Side(f"{side.run.id}:{subject}", side.compared, subject) for subject in side.subjects]
        if len(sides) < 2:
            raise BadInput(
                " ".join(texts) or "SIDE",
                "there is only one side, so there is nothing to compare",
                expected="two runs or providers, or one run with several providers",
            )
        return compare_sides(sides, benchmark=benchmark, measures=measures)


def compare_sides(
    sides: Sequence[Side], *, benchmark: str | None = None, measures: Sequence[str] = ()
) -> RunComparison:
    """Compare every pair of sides. Raise BadInput if two sides have no question in common."""
    pairs: list[Pair] = []
    settings: dict[tuple[str, ...], Setting] = {}
    data: dict[tuple[str, ...], DataDifference] = {}
    warnings: dict[str, None] = {}
    for side in sides:
        if side.run.status != "complete":
            only = "only its finished trials are compared"
            warnings[f"Run {_run_name(side, sides)} is {side.run.status}: {only}."] = None
    for first, second in combinations(sides, 2):
        runs = _run_name(first, sides), _run_name(second, sides)
        if first.run.suite != second.run.suite:
            problem = f"a run of {verb_of(first.run.suite)} and a run of {verb_of(second.run.suite)} cannot be compared"
            raise BadInput(f"{first.text} and {second.text}", problem, expected="runs of one suite")
        names_in_both = subject_pairs(first, second)
        for place, side in enumerate((first, second)):
            alone = [name for name in side.subjects if name not in [names[place] for names in names_in_both]]
            if alone:
                warnings[f"Not compared, because only {side.text} has it: {', '.join(alone)}."] = None
        for names in names_in_both:
            for setting in differing_settings(first.run, second.run, names, runs):
                settings.setdefault((setting.name, setting.first_side, setting.second_side), setting)
            pairs += _compare_subjects(first, second, names, runs, benchmark, measures, data)
    pairs = adjust(pairs)
    tests = max((pair.tests for pair in pairs), default=1)
    warnings |= dict.fromkeys(_too_few_groups(pairs, tests))
    return RunComparison(
        suite=sides[0].run.suite,
        sides=tuple(_side_facts(side, _run_name(side, sides)) for side in sides),
        settings=tuple(settings.values()),
        data=tuple(data.values()),
        tests=tests,
        comparisons=tuple(pairs),
        warnings=tuple(warnings),
    )


def _too_few_groups(pairs: Sequence[Pair], tests: int) -> Iterator[str]:
    """Yield a line for each pair of subjects with too few clusters of questions for a significant difference."""
    left = tests - sum(pair.comparison.significant for pair in pairs)  # Holm's factor for the next smallest p-value
    for own in by_subjects(pairs):
        tested = [pair.comparison for pair in own if pair.comparison.p is not None]
        if tested and left * min(comparison.least_p for comparison in tested) >= 0.05:
            groups = max(comparison.clusters for comparison in tested)
            only = f"{groups} independent group{'s' * (groups != 1)} of questions (histories, conversations or cases)"
            there = f"there {'is' if groups == 1 else 'are'} only {only} for {tests} test{'s' * (tests > 1)}"
            first, second = titles(own[0])
            yield f"{own[0].benchmark}: no difference between {first} and {second} can be significant: {there}."


def subject_pairs(first: Side, second: Side) -> list[tuple[str, str]]:
    """Pair the subjects of two sides by name; if each side has only one, pair those. Raise BadInput if none match."""
    where = f"{first.text} and {second.text}"
    pairs = pair_subjects(first.subjects, second.subjects, where)
    if first.compared is second.compared:
        pairs = [(one, other) for one, other in pairs if one != other]
        if not pairs:
            raise BadInput(
                where, "both sides name the same provider of the same run", expected="two different runs or providers"
            )
    return pairs


def pair_subjects(ours: Sequence[str], theirs: Sequence[str], where: str) -> list[tuple[str, str]]:
    if len(ours) == len(theirs) == 1:
        return [(ours[0], theirs[0])]
    pairs = [(name, name) for name in ours if name in theirs]
    if not pairs:
        raise BadInput(
            where,
            f"no provider in common: {', '.join(ours)} and {', '.join(theirs)}",
            remedy="name one provider of each run, as RUN:PROVIDER",
        )
    return pairs


def is_same_data(first: Mapping[str, Fingerprint], second: Mapping[str, Fingerprint], benchmark: str) -> bool:
    """Whether both runs recorded the same data of a benchmark; also True if one of them did not record it."""
    names = [f"{prefix}{benchmark}" for prefix in _DATA]
    return all(first[name].digest == second[name].digest for name in names if name in first and name in second)


def chosen_metrics(names: Sequence[str], metrics: Sequence[Metric], main: Sequence[str], flag: str) -> list[Metric]:
    """Return the metrics with these names, or with the names in `main` if `names` is empty.

    A name may be one of an earlier version; `all` stands for all of `metrics`. Raise BadInput for an unknown name.
    """
    if ALL in names:
        return list(metrics)
    known = {metric.name: metric for metric in (*metrics, *COSTS)}
    for name in names:
        if name not in known and ALIASES.get(name, name) not in known:
            raise BadInput(flag, f'unknown measure "{name}"', remedy=suggestion(name, list(known)))
    return [known[name if name in known else ALIASES[name]] for name in names or main]


def _compare_subjects(
    first: Side,
    second: Side,
    names: tuple[str, str],
    runs: tuple[str, str],
    benchmark: str | None,
    measures: Sequence[str],
    data: dict[tuple[str, ...], DataDifference],
) -> Iterator[Pair]:
    where = f"{first.text} and {second.text}"
    ours, theirs = first.compared.cases, second.compared.cases
    benchmarks = [one for one, subject in ours if subject == names[0] and (one, names[1]) in theirs]
    if benchmark is not None and benchmark not in benchmarks:
        raise BadInput(
            "--benchmark", f'{where} do not both have results on "{benchmark}"', expected=", ".join(benchmarks)
        )
    if not benchmarks:
        raise BadInput(where, "no benchmark in common", remedy="compare runs on the same benchmark")
    stored, suite = first.compared.stored, suite_of(first.run)
    metrics = chosen_metrics(measures, stored.metrics, suite.main_measures(stored), "--measure")
    for name in [benchmark] if benchmark else benchmarks:
        own, other = ours[name, names[0]], theirs[name, names[1]]
        difference, changed = _compare_data(first, second, name, own, other, runs)
        if not difference.same:
            raise BadInput(
                where,
                f"no question of {name} in common" if not changed else difference.sentence(),
                remedy="compare runs on the same questions",
            )
        if changed or not difference.same_data:
            data[name, *runs] = difference
            own, other = ({key: cases[key] for key in cases if key not in changed} for cases in (own, other))
        for metric in metrics:
            if measures or any(metric.name in case.rows for case in (*own.values(), *other.values())):
                yield compare_measure(metric, own, other, benchmark=name, names=names, runs=runs)


def _compare_data(
    first: Side, second: Side, benchmark: str, own: Cases, other: Cases, runs: tuple[str, str]
) -> tuple[DataDifference, set[str]]:
    """Count the questions that are the same in both runs and those that differ; return the keys of the latter."""
    same_data = is_same_data(first.run.fingerprints, second.run.fingerprints, benchmark)
    both = own.keys() & other.keys()
    fields = {
        key: first.compared.changed_fields(second.compared, benchmark, own[key].case_id, same_data=same_data)
        for key in both
    }
    changed = {key for key in both if fields[key]}
    difference = DataDifference(
        benchmark=benchmark,
        first_run=runs[0],
        second_run=runs[1],
        same_data=same_data,
        same=len(both) - len(changed),
        changed=dict(sorted(Counter(name for key in changed for name in fields[key]).items())),
        changed_questions=len(changed),
        only_first=len(own.keys() - both),
        only_second=len(other.keys() - both),
    )
    return difference, changed


def _run_name(side: Side, sides: Sequence[Side]) -> str:
    """Return the name of a side's run: its id, or FOLDER/RUN.

    FOLDER/RUN is used if another side has a run with the same id. It is also used if the user named the run so, and
    either all sides are named so or another side is in a different folder.
    """
    is_shared = any(one.run.id == side.run.id and one.compared is not side.compared for one in sides)
    with_folder = ["/" in one.text.partition(":")[0] for one in (side, *sides)]
    is_elsewhere = any(one.compared.folder != side.compared.folder for one in sides)
    if with_folder[0] and (is_elsewhere or all(with_folder)):
        return str(side.compared.folder / side.run.id)
    return os.path.join(os.path.relpath(side.compared.folder), side.run.id) if is_shared else side.run.id


def _side_facts(side: Side, run_name: str) -> SideFacts:
    run = side.run
    return SideFacts(
        side=side.text,
        run=run_name,
        subjects=tuple(side.subjects),
        status=run.status,
        program=run.program,
        created=run.created,
    )
