"""The tables and sentences of a comparison of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from memorybench.core.report_sections import Column, Notes, Section, Table, columns_and_rows, text_column
from memorybench.reporting.formatting import value

from .comparison import ComparedCase, Pair, format_p

Only = Literal["wins", "losses", "changed"]
_RESULTS: Mapping[Only, tuple[str, ...]] = {"wins": ("win",), "losses": ("loss",), "changed": ("win", "loss")}
_TYPES = ("question_type", "category", "scenario")
"""The labels that may group the cases of a table, the preferred one first."""
_LONGEST_NAME = 12


def select_cases(pair: Pair, only: Only) -> list[ComparedCase]:
    return [case for case in pair.cases if case.result in _RESULTS[only]]


def by_subjects(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Group the comparisons that share a table: those of the same runs, subjects and benchmark."""
    tables: dict[tuple[str, ...], list[Pair]] = {}
    for pair in pairs:
        tables.setdefault((pair.benchmark, pair.first_run, pair.first, pair.second_run, pair.second), []).append(pair)
    return list(tables.values())


def titles(pair: Pair) -> tuple[str, str]:
    """Return the names of the two subjects for a title, each with its run if the runs differ."""
    if pair.first_run == pair.second_run:
        return pair.first, pair.second
    return f"{pair.first} of {pair.first_run}", f"{pair.second} of {pair.second_run}"


def _numbered(pair: Pair, names: tuple[str, str]) -> tuple[str, str]:
    """Return the names for a title, followed by "(side 1)" and "(side 2)" if column headings have these, not names."""
    return names if _column_names(pair) == pair.names else (f"{names[0]} (side 1)", f"{names[1]} (side 2)")


def measure_table(pairs: Sequence[Pair]) -> Table:
    one = pairs[0]
    first, second = _numbered(one, titles(one))
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


def sentences(pairs: Sequence[Pair]) -> list[str]:
    """Return a sentence for each significant difference; if there is none, one about the first measure.

    The last sentence names the measures of which lower values are better, if there are any.
    """
    lines = [pair.sentence() for pair in pairs if pair.comparison.significant] or [pairs[0].sentence()]
    lower = [pair.measure for pair in pairs if not pair.higher_is_better]
    return [*lines, f"Lower is better: {', '.join(lower)}."] if lower else lines


def unpaired(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield a line for each measure that some cases have on one side only, with the number of these cases."""
    for pair in pairs:
        parts = [(pair.only_first, pair.names[0]), (pair.only_second, pair.names[1])]
        if alone := " and ".join(f"{n} of {name}" for n, name in parts if n):
            paired = f"{pair.measure}: questions paired: {pair.comparison.n}"
            yield f"{paired}; {alone} have no counterpart and are left out."


def type_label(pair: Pair) -> str | None:
    labels = list(dict.fromkeys(group.label for group in pair.groups))
    return next((label for label in _TYPES if label in labels), labels[0] if labels else None)


def type_table(pair: Pair, *, detail: bool) -> Table:
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


def case_tables(pairs: Sequence[Pair], only: Only | None, limit: int, offset: int) -> Iterator[Section]:
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
    """Return the names of the sides for column headings; "side 1" and "side 2" if a name is too long."""
    return pair.names if max(map(len, pair.names)) <= _LONGEST_NAME else ("side 1", "side 2")
