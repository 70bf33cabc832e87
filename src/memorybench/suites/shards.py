"""Shards: parts of one run that separate machines perform without a common journal. `memorybench merge` joins them.

A shard prepares the whole run, so that samples, canaries, fingerprints and the order of the trials are those of one
run, and performs the trials of its histories.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memorybench.core.errors import BadInput
from memorybench.core.records import digest

if TYPE_CHECKING:
    from memorybench.core.plans import Job, Plan
    from memorybench.core.report_sections import Report
    from memorybench.journal.rows import Run

Unit = tuple[str, str]
"""A benchmark and one of its histories: a haystack, a conversation, a case or a scenario."""
SHARD, PART = "shard", "part"
"""Keys of a saved spec: the shard, such as `2/3`, and the part of the run that it performs."""
_CASES = {"bench": "questions", "audit": "probes", "extraction": "cases"}


class ShardPart(Struct, frozen=True):
    """The part of a run that a shard performs, and the figures of the whole run."""

    units: Collection[Unit]
    units_in_all: int
    totals: Mapping[tuple[str, str], int]
    """Planned trials of the whole run by benchmark and subject."""
    details: Mapping[str, Any]
    """Details of the whole run that differ from those of the shard."""


def parse_shard(text: str) -> tuple[int, int]:
    """Return the number of a shard and the count of shards, from a text such as `2/3`. Raise ValueError otherwise."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
    number, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= count:
        raise ValueError("I/N with I from 1 to N, such as 1/4")
    return number, count


def choose_units(shard: str, units: Iterable[Unit]) -> frozenset[Unit]:
    """Return the histories that belong to a shard.

    Histories are sorted by a hash of their ids and assigned to the shards in turn. So the numbers of histories differ
    by at most one, and depend neither on the order of the histories nor on the providers.
    """
    number, count = parse_shard(shard)
    ordered = sorted(set(units), key=lambda unit: (digest(unit), unit))
    if count > len(ordered):
        histories = "history" if len(ordered) == 1 else "histories"
        raise BadInput(
            "--shard",
            f"{count} shards are too many for the {len(ordered)} {histories} of the run",
            expected=f"at most {len(ordered)} shards",
        )
    return frozenset(ordered[number - 1 :: count])


def plan_of_shard(plan: Plan, units: Collection[Unit], size: int) -> Plan:
    """Return the plan with only the jobs of these histories."""

    def is_part(job: Job) -> bool:
        return (job.trial.benchmark, job.trial.cluster or job.trial.case_id) in units

    return replace(plan, jobs=filter(is_part, plan.jobs), size=size)


def describe_shards(runs: Sequence[Run]) -> dict[str, Any] | None:
    """Return, for report.json, which shards these are and the size of the whole run; None if all shards are given."""
    shards = [parse_shard(run.spec[SHARD]) for run in runs if run.spec.get(SHARD)]
    if not shards or len(shards) == shards[0][1]:
        return None
    parts = [run.spec[PART] for run in runs]
    return {
        **({"number": shards[0][0]} if len(shards) == 1 else {"numbers": sorted(number for number, _ in shards)}),
        "of": shards[0][1],
        "questions": sum(sum(run.spec["questions"].values()) for run in runs),
        "questions_in_all": sum(parts[0]["whole"]["questions"].values()),
        "histories": sum(part["histories"] for part in parts),
        "histories_in_all": parts[0]["histories_in_all"],
    }


def shard_label(runs: Sequence[Run]) -> str:
    """Return `shard 2/3`, or `shards 1/3 + 2/3`; "" for a whole run, or if all its shards are given."""
    if describe_shards(runs) is None:
        return ""
    return f"shard{'s' if len(runs) > 1 else ''} {' + '.join(run.spec[SHARD] for run in runs)}"


def shard_facts(runs: Sequence[Run]) -> dict[str, str]:
    """Return the line of the header about a shard; empty for a whole run."""
    part = describe_shards(runs)
    if part is None:
        return {}
    cases = _CASES.get(runs[0].suite, "trials")
    text = f"{part['questions']} of {part['questions_in_all']} {cases}"
    histories = f"{part['histories']} of {part['histories_in_all']} histories"
    return {
        "Part of a run": f"{shard_label(runs)}: {text}{f', {histories}' if cases in ('questions', 'probes') else ''}"
    }


def count_in_shards(runs: Sequence[Run], key: str) -> dict[str, int]:
    """Return the counts that the specs of these shards have under `key`, added up, sorted by name.

    Empty if the runs were made before the key was saved.
    """
    counts: Counter[str] = Counter()
    for run in runs:
        counts.update(run.spec.get(key, {}))
    return dict(sorted(counts.items()))


def mark_shards(report: Report, runs: Sequence[Run]) -> Report:
    """Return the report; if it covers only some shards, its title, a warning and its JSON document say so."""
    part = describe_shards(runs)
    if part is None:
        return report
    (text,) = shard_facts(runs).values()
    warning = f"These are the figures of {text}; `memorybench merge` makes one run of all shards."
    return dataclasses.replace(
        report,
        title=f"{report.title} ({shard_label(runs)})",
        warnings=(warning, *report.warnings),
        document={**report.document, "shard": part},
    )
