"""Compares runs, or subjects of runs, and describes the result as a report."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from memorybench.core.errors import BadInput
from memorybench.core.measures import Metric
from memorybench.core.records import Record
from memorybench.core.report_sections import (
    Column,
    Notes,
    Provenance,
    Report,
    Section,
    Table,
    columns_and_rows,
    text_column,
)
from memorybench.journal.rows import CODE, Fingerprint, Run, changed_lines, config_text
from memorybench.metrics.names import ALIASES
from memorybench.reporting.formatting import value
from memorybench.text.sanitize import shorten
from memorybench.text.spelling import suggestion

from .comparison import ComparedCase, Pair, adjust, compare_measure, format_p
from .registry import suite_of, verb_of
from .searching import DEFAULT_SETTINGS
from .sides import COSTS, Cases, Side, are_costs, open_sides
from .spec import flag_options

Only = Literal["wins", "losses", "changed"]
ALL = "all"
SHOWN_CASES = 20
SETTINGS = "Settings that differ"
"""The title of the tables that come first."""
_RESULTS: Mapping[Only, tuple[str, ...]] = {"wins": ("win",), "losses": ("loss",), "changed": ("win", "loss")}
_DATA = ("benchmark ", "dataset ")
"""A fingerprint of one of these names, followed by the name of a benchmark, is that of its data."""
_NOT_COMPARED = frozenset({"providers", "reuse", "run", "answers_of"})
"""Fields of a spec that say which subjects there are, or where steps were taken from."""
_SELECTING = frozenset({"limit", "sample_seed", "start", "end", "question_ids", "question_types", "failed_in"})
"""Fields of a spec that select questions. Where one differs, `chosen`, the ids of the selected ones, says no more."""
_SEARCH_DEFAULTS = {"top_k": "default_limit", "context_limit": "context_limit"}
"""By field of a spec: the key of its default in the section `search` of a benchmark's config."""
_UNSET: tuple[Any, ...] = (None, [], {})
_JSON_KEY = re.compile(r'^"(\w+)": "?(.*?)"?$')
_TYPES = ("question_type", "category", "scenario")
"""The labels that cases are grouped by, the preferred one first."""
_LONGEST = 60
_LONGEST_NAME = 12
_MOST_LINES = 4
_MOST_SETTINGS = 20


class SideFacts(Record):
    side: str
    """As the user named it."""
    run: str
    """Its id, or FOLDER/RUN where the id alone does not say which run it is."""
    subjects: tuple[str, ...]
    status: str
    program: str
    created: str


class Setting(Record):
    """Something that differs between two runs: a setting, data, a version, a model or a prompt."""

    name: str
    first_run: str
    second_run: str
    first: str
    second: str
    first_side: str = ""
    """The run; the subject if both are of one run."""
    second_side: str = ""


class DataDifference(Record):
    """How many questions of a benchmark are not the same in two runs. They are left out."""

    benchmark: str
    first_run: str
    second_run: str
    same_data: bool
    """Whether the files are the same. If so, questions can still differ in their corrections."""
    same: int
    changed_questions: int
    changed: Mapping[str, int]
    """By field, such as `question`, `answers` or `history`: in how many questions it differs."""
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
    """Of each benchmark whose data or questions changed between two runs."""
    correction: Literal["holm"] = "holm"
    tests: int
    """How many tests the p-values are adjusted for."""
    comparisons: tuple[Pair, ...]
    """First minus second, for each pair of sides, subject, benchmark and measure."""
    warnings: tuple[str, ...] = ()

    def document(self, only: Only | None = None, limit: int | None = None, offset: int = 0) -> dict[str, Any]:
        """The JSON document. Without `only`, no cases are listed."""
        pairs = []
        for pair in self.comparisons:
            cases = select_cases(pair, only)[offset:][:limit] if only else ()
            pairs.append(pair.model_copy(update={"cases": tuple(cases)}))
        return self.model_copy(update={"comparisons": tuple(pairs)}).model_dump(mode="json")

    def report(self, only: Only | None = None, limit: int | None = None, offset: int = 0) -> Report:
        return Report(
            title=f"Comparison of {' and '.join(side.side for side in self.sides)}",
            sections=(
                Provenance(self.facts()),
                *self.sections(),
                *_case_tables(self.comparisons, only, SHOWN_CASES if limit is None else limit, offset),
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
        """Settings that differ first, then the measures, the types of questions, and the correction."""
        sections: list[Section] = [Notes(tuple(f"{one.sentence()}." for one in self.data))] if self.data else []
        sections += _settings_tables(self.settings)
        if not sections:
            sections.append(Notes(("No difference in settings, data, code, versions, models or prompts.",)))
        for pairs in _by_subjects(self.comparisons):
            sections += [_measure_table(pairs), Notes((*_sentences(pairs), *_unpaired(pairs)))]
            lead = next((pair for pair in pairs if pair.comparison.n), pairs[0])
            sections += [_type_table(pair, detail=pair is not lead) for pair in pairs if types and type_label(pair)]
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
    """Compare the sides that these texts name: each with each, or the subjects of a single run."""
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
            raise BadInput(" ".join(texts) or "SIDE", "one side", expected="two sides, or a run with several providers")
        return compare_sides(sides, benchmark=benchmark, measures=measures)


def compare_sides(
    sides: Sequence[Side], *, benchmark: str | None = None, measures: Sequence[str] = ()
) -> RunComparison:
    """Compare each side with each. Raises where two sides have no question in common."""
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
            for setting in _settings(first.run, second.run, names, runs):
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
    """A line for each pair of subjects between which no difference can be significant."""
    left = tests - sum(pair.comparison.significant for pair in pairs)  # Holm's factor for the next smallest p-value
    for own in _by_subjects(pairs):
        tested = [pair.comparison for pair in own if pair.comparison.p is not None]
        if tested and left * min(comparison.least_p for comparison in tested) >= 0.05:
            groups = max(comparison.clusters for comparison in tested)
            only = f"{groups} independent group{'s' * (groups != 1)} of questions (histories, conversations or cases)"
            there = f"there {'is' if groups == 1 else 'are'} only {only} for {tests} test{'s' * (tests > 1)}"
            first, second = _titles(own[0])
            yield f"{own[0].benchmark}: no difference between {first} and {second} can be significant: {there}."


def subject_pairs(first: Side, second: Side) -> list[tuple[str, str]]:
    """The subjects that both sides have, or the only subject of each, whatever they are called."""
    where = f"{first.text} and {second.text}"
    pairs = pair_subjects(first.subjects, second.subjects, where)
    if first.compared is second.compared:
        pairs = [(one, other) for one, other in pairs if one != other]
        if not pairs:
            raise BadInput(where, "both sides are the same", expected="two runs or providers")
    return pairs


def pair_subjects(ours: Sequence[str], theirs: Sequence[str], where: str) -> list[tuple[str, str]]:
    if len(ours) == len(theirs) == 1:
        return [(ours[0], theirs[0])]
    pairs = [(name, name) for name in ours if name in theirs]
    if not pairs:
        problem = f"no provider in common: {', '.join(ours)} and {', '.join(theirs)}"
        raise BadInput(where, problem, remedy="name one of each: RUN:PROVIDER")
    return pairs


def select_cases(pair: Pair, only: Only) -> list[ComparedCase]:
    return [case for case in pair.cases if case.result in _RESULTS[only]]


def is_same_data(first: Mapping[str, Fingerprint], second: Mapping[str, Fingerprint], benchmark: str) -> bool:
    """Whether the data of a benchmark is the same in both runs, as far as they have recorded it."""
    names = [f"{prefix}{benchmark}" for prefix in _DATA]
    return all(first[name].digest == second[name].digest for name in names if name in first and name in second)


def chosen_metrics(names: Sequence[str], metrics: Sequence[Metric], main: Sequence[str], flag: str) -> list[Metric]:
    """The metrics of these names, by any of their names; without names, the main ones."""
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
        raise BadInput("--benchmark", f'{where} have no "{benchmark}" in common', expected=", ".join(benchmarks))
    if not benchmarks:
        raise BadInput(where, "no benchmark in common", remedy="run both on the same data")
    stored, suite = first.compared.stored, suite_of(first.run)
    metrics = chosen_metrics(measures, stored.metrics(stored), suite.main_measures(stored), "--measure")
    for name in [benchmark] if benchmark else benchmarks:
        own, other = ours[name, names[0]], theirs[name, names[1]]
        difference, changed = _compare_data(first, second, name, own, other, runs)
        if not difference.same:
            problem = f"no question of {name} in common" if not changed else difference.sentence()
            raise BadInput(where, problem, remedy="run both on the same questions")
        if changed or not difference.same_data:
            data[name, *runs] = difference
            own, other = ({key: cases[key] for key in cases if key not in changed} for cases in (own, other))
        for metric in metrics:
            if measures or any(metric.name in case.rows for case in (*own.values(), *other.values())):
                yield compare_measure(metric, own, other, benchmark=name, names=names, runs=runs)


def _compare_data(
    first: Side, second: Side, benchmark: str, own: Cases, other: Cases, runs: tuple[str, str]
) -> tuple[DataDifference, set[str]]:
    """Count the questions that are the same and those that are not, and return the keys of changed ones."""
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
    """The id of its run; FOLDER/RUN if another side has a run of that id, or if it was named so and is elsewhere."""
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


def _settings(first: Run, second: Run, names: tuple[str, str], run_names: tuple[str, str]) -> Iterator[Setting]:
    """What differs between two runs, as far as it concerns these subjects."""
    sides = names if run_names[0] == run_names[1] else run_names
    runs = {"first_run": run_names[0], "second_run": run_names[1], "first_side": sides[0], "second_side": sides[1]}
    marks, others = _fingerprints(first, names[0]), _fingerprints(second, names[1])
    code, other_code = _code(marks), _code(others)
    for name in sorted(code.keys() | other_code.keys()):
        if code.get(name) != other_code.get(name):
            texts = [found.get(name, "none recorded") for found in (code, other_code)]
            yield Setting(name=name, first=texts[0], second=texts[1], **runs)
    if first.program != second.program:
        yield Setting(name="version", first=first.program, second=second.program, **runs)
    ours, theirs = _spec_fields(first), _spec_fields(second)
    changed = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    for name in changed:
        mark = name.replace("_", " ")  # that of a model says more than the field that names it
        is_shown_below = mark in marks and mark in others and marks[mark].digest != others[mark].digest
        if not is_shown_below and (name != "chosen" or _SELECTING.isdisjoint(changed)):
            texts = [_field_text(run, name, own.get(name)) for run, own in ((first, ours), (second, theirs))]
            yield Setting(name=name, first=texts[0], second=texts[1], **runs)
    for name in sorted(marks.keys() | others.keys()):
        one, other, field = marks.get(name), others.get(name), name.replace(" ", "_")
        if one is None or other is None:
            if field not in changed:
                yield Setting(name=name, first=_presence(one), second=_presence(other), **runs)
            continue
        (one, own), (other, its) = _without_settings(one), _without_settings(other)
        bases = list(dict.fromkeys(subject.partition("(")[0] for subject in names))
        title = bases[0] if name == "provider" and len(bases) == 1 else name
        for key in sorted(own.keys() | its.keys()):
            if own.get(key) != its.get(key):
                unset = [_default_text(run, subject, key) for run, subject in zip((first, second), names, strict=True)]
                texts = [_value_text(found[key]) if key in found else unset[n] for n, found in enumerate((own, its))]
                yield Setting(name=f"{title}: {key}", first=texts[0], second=texts[1], **runs)
        before, after = ([line for line in lines if not line.startswith(CODE)] for lines in changed_lines(one, other))
        if before or after:
            texts = [_lines_text(before, one), _lines_text(after, other)]
            yield Setting(name=field if field in ours else name, first=texts[0], second=texts[1], **runs)


def changed_settings(first: Run, second: Run, subject: str) -> list[str]:
    """Name the settings, data, models and prompts that differ between two runs of a subject; not the version."""
    found = _settings(first, second, (subject, subject), (first.id, second.id))
    return list(dict.fromkeys(one.name for one in found if one.name != "version"))


def _spec_fields(run: Run) -> dict[str, Any]:
    """The saved fields of a run's spec, as JSON; those that an older version did not save have their default."""
    spec = suite_of(run).command_of(run).spec
    saved, fields = spec.migrate(run.spec), {}
    for name, field in spec.model_fields.items():
        if not field.exclude and name not in _NOT_COMPARED:
            default = None if field.is_required() else field.get_default(call_default_factory=True)
            fields[name] = json.loads(json.dumps(saved.get(name, default), default=str))
    return fields


def _field_text(run: Run, name: str, value: Any) -> str:
    """The value of a field of a spec; the default of one that was not given, as far as it is known."""
    if value not in _UNSET:
        return _value_text(value)
    configs = [_config(mark)[0] for title, mark in run.fingerprints.items() if title.startswith("config of ")]
    defaults = {config.get("search", {}).get(_SEARCH_DEFAULTS.get(name)) for config in configs}
    known = defaults.pop() if len(defaults) == 1 else None
    default = known or flag_options(suite_of(run).command_of(run).spec.model_fields[name]).get("default_text")
    return f"{default} (default)" if default else "not set"


def _fingerprints(run: Run, subject: str) -> dict[str, Fingerprint]:
    """The fingerprints of a run; that of the subject has the same name in every run."""
    own = f"provider {subject}"
    return {
        "provider" if name == own else name: mark
        for name, mark in run.fingerprints.items()
        if name == own or not name.startswith("provider ")
    }


def _code(marks: Mapping[str, Fingerprint]) -> dict[str, str]:
    """By `code of MODULE`: its digest, from the lines of all fingerprints."""
    lines = (line for mark in marks.values() for line in (mark.text or "").splitlines() if line.startswith(CODE))
    return {name: text for name, _, text in (line.rpartition(": ") for line in lines)}


def _config(mark: Fingerprint) -> tuple[dict[str, Any], int]:
    """Return the config that the text of a fingerprint begins with, and where it ends; empty if there is none."""
    try:
        config, end = json.JSONDecoder().raw_decode(mark.text or "")
    except ValueError:
        return {}, 0
    return (config, end) if isinstance(config, dict) else ({}, 0)


def _without_settings(mark: Fingerprint) -> tuple[Fingerprint, Mapping[str, Any]]:
    """Return the fingerprint of a config without its name and its section `settings`, and that section."""
    config, end = _config(mark)
    if not config:
        return mark, {}
    settings = config.get("settings")
    others = {key: value for key, value in config.items() if key not in ("name", "settings")}
    text = config_text(others) + (mark.text or "")[end:]
    return mark.model_copy(update={"text": text}), settings if isinstance(settings, dict) else {}


def _default_text(run: Run, subject: str, key: str) -> str:
    """The value of a setting that a provider was not given, if the run has recorded it."""
    defaults = run.spec.get(DEFAULT_SETTINGS, {})
    if subject not in defaults:
        return "default"
    return f"{_value_text(defaults[subject][key])} (default)" if key in defaults[subject] else "not set"


def _presence(mark: Fingerprint | None) -> str:
    return "none" if mark is None else mark.digest[:12]


def _value_text(value: Any) -> str:
    if value in _UNSET:
        return "not set"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shorten(text, _LONGEST)


def _lines_text(lines: Sequence[str], mark: Fingerprint) -> str:
    """The lines that differ; the digest of a text without line breaks, such as a dataset."""
    texts = (_JSON_KEY.sub(r"\1: \2", line.strip(" ,{}[]")) for line in lines)
    kept = [text for text in texts if any(map(str.isalnum, text)) and not text.startswith("name:")]
    if any(len(line) > 10 * _LONGEST for line in kept):
        return mark.digest[:12]
    more = ["…"] if len(kept) > _MOST_LINES else []
    return "\n".join([*(shorten(line, _LONGEST) for line in kept[:_MOST_LINES]), *more]) or "(no such line)"


def _settings_tables(settings: Sequence[Setting]) -> Iterator[Section]:
    by_sides: dict[tuple[str, str], list[Setting]] = {}
    for setting in settings:
        by_sides.setdefault((setting.first_side, setting.second_side), []).append(setting)
    for (first, second), own in by_sides.items():
        rows = tuple((one.name, one.first, one.second) for one in own)
        columns = (text_column("setting"), text_column(first, wrap=True), text_column(second, wrap=True))
        yield Table(SETTINGS, columns, rows[:_MOST_SETTINGS], rows[_MOST_SETTINGS:])
        if len(rows) > _MOST_SETTINGS:
            yield Notes((f"… and {len(rows) - _MOST_SETTINGS} more settings: --format markdown shows all.",))


def _by_subjects(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """The comparisons of the same sides, subjects and benchmark, which share a table."""
    tables: dict[tuple[str, ...], list[Pair]] = {}
    for pair in pairs:
        tables.setdefault((pair.benchmark, pair.first_run, pair.first, pair.second_run, pair.second), []).append(pair)
    return list(tables.values())


def _titles(pair: Pair) -> tuple[str, str]:
    """The subjects, each with its run if there are two."""
    if pair.first_run == pair.second_run:
        return pair.first, pair.second
    return f"{pair.first} of {pair.first_run}", f"{pair.second} of {pair.second_run}"


def _numbered(pair: Pair, names: tuple[str, str]) -> tuple[str, str]:
    """The names for a title, with the numbers of the sides if columns have numbers instead of names."""
    return names if _column_names(pair) == pair.names else (f"{names[0]} (side 1)", f"{names[1]} (side 2)")


def _measure_table(pairs: Sequence[Pair]) -> Table:
    one = pairs[0]
    first, second = _numbered(one, _titles(one))
    columns, rows = columns_and_rows(
        pairs,
        (text_column("measure"), lambda pair: pair.measure),
        (
            Column(" / ".join(_column_names(one))),
            lambda pair: " / ".join(value(pair.measured(each)) for each in (pair.first_value, pair.second_value)),
        ),
        (Column("difference [95%]"), Pair.cell),
        (
            Column("p"),
            lambda pair: None if (p := pair.comparison.adjusted_p) is None else format_p(p).removeprefix("= "),
        ),
        (Column("n", priority=1), lambda pair: pair.comparison.n),
        (Column("wins/losses/ties", priority=2), lambda pair: f"{pair.wins} / {pair.losses} / {pair.ties}"),
        (Column("only one has", priority=3), lambda pair: f"{pair.only_first} / {pair.only_second}"),
    )
    return Table(f"{one.benchmark}: {first} minus {second}", columns, rows)


def _sentences(pairs: Sequence[Pair]) -> list[str]:
    """What is significant; or, if nothing is, the first measure. Then what a reader of the table must know."""
    lines = [pair.sentence() for pair in pairs if pair.comparison.significant] or [pairs[0].sentence()]
    lower = [pair.measure for pair in pairs if not pair.higher_is_better]
    return [*lines, f"Lower is better: {', '.join(lower)}."] if lower else lines


def _unpaired(pairs: Sequence[Pair]) -> Iterator[str]:
    """A line for each measure that some cases have on one side only."""
    for pair in pairs:
        parts = [(pair.only_first, pair.names[0]), (pair.only_second, pair.names[1])]
        if alone := " and ".join(f"{n} of {name}" for n, name in parts if n):
            paired = f"{pair.measure}: questions paired: {pair.comparison.n}"
            yield f"{paired}; {alone} have no counterpart and are left out."


def type_label(pair: Pair) -> str | None:
    labels = list(dict.fromkeys(group.label for group in pair.groups))
    return next((label for label in _TYPES if label in labels), labels[0] if labels else None)


def _type_table(pair: Pair, *, detail: bool) -> Table:
    first, second = _numbered(pair, pair.names)
    label = type_label(pair) or ""
    names = _column_names(pair)
    columns, rows = columns_and_rows(
        [group for group in pair.groups if group.label == label],
        (text_column("", wrap=True), lambda group: group.value),
        (Column("wins"), lambda group: group.wins),
        (Column("losses"), lambda group: group.losses),
        (Column("ties"), lambda group: group.ties),
        (Column(names[0], priority=1), lambda group: pair.measured(group.first)),
        (Column(names[1], priority=1), lambda group: pair.measured(group.second)),
        (Column("n"), lambda group: group.n),
    )
    title = f"{pair.measure} by {label.replace('_', ' ')}: wins of {first} over {second}"
    return Table(title, columns, rows, level=3, detail=detail)


def _case_tables(pairs: Sequence[Pair], only: Only | None, limit: int, offset: int) -> Iterator[Section]:
    if only is None:
        return
    for pair in pairs:
        cases, (first, second) = select_cases(pair, only), _numbered(pair, pair.names)
        shown = cases[offset:][:limit]
        better = {
            "wins": f"{first} is better than {second}",
            "losses": f"{first} is worse than {second}",
            "changed": f"{first} and {second} differ",
        }[only]
        title = f"{pair.benchmark}: questions in which {better} in {pair.measure}"
        if not shown:
            yield Notes((f"{title}: none{f' after the first {offset}' if cases else ''}.",))
            continue
        columns = (
            text_column("question id", wrap=True),
            text_column("type", priority=1, wrap=True),
            text_column("question", wrap=True),
            *(Column(name) for name in _column_names(pair)),
        )
        rows = tuple(
            (
                f"{case.case_id} {case.variant}".strip(),
                case.labels.get(type_label(pair) or _TYPES[0], ""),
                case.question,
                pair.measured(case.first),
                pair.measured(case.second),
            )
            for case in shown
        )
        yield Table(f"{title} ({offset + 1} to {offset + len(shown)} of {len(cases)})", columns, rows, level=3)
        more = f"More: --offset {offset + len(shown)}. " if offset + len(shown) < len(cases) else ""
        example = f"memorybench show {pair.first_run} {shown[0].case_id} --provider {pair.first}"
        yield Notes((f"{more}One of them in full: {example}",))


def _column_names(pair: Pair) -> tuple[str, str]:
    """The names of the sides, or, where they are too long for a column, their numbers: the title names both."""
    return pair.names if max(map(len, pair.names)) <= _LONGEST_NAME else ("side 1", "side 2")
