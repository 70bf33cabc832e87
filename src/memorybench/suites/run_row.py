"""Makes the record of a run that the journal stores when the run begins: its spec, command line and versions."""

from __future__ import annotations

import platform
import re
import secrets
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

from memorybench import __version__
from memorybench.core.timing import TIMING
from memorybench.journal.places import hide_password
from memorybench.journal.rows import Run

from .shards import PART
from .suite import SAVED_BASELINE, SCOPE_SUFFIX, STARTED_WITH

if TYPE_CHECKING:
    from .starting import Start
    from .suite import PreparedRun


CONCURRENCY = 10


def new_row(start: Start) -> Run:
    prepared = start.prepared
    return Run(
        id=start.place.run_id,
        suite=start.suite.name,
        spec={
            "benchmarks": list(dict.fromkeys(benchmark for benchmark, _ in prepared.totals)),
            "subjects": list(dict.fromkeys(subject for _, subject in prepared.totals)),
            "questions": _questions(prepared.totals, prepared.repeats),
            **prepared.spec.model_dump(mode="json"),
            **start.command.marks,
            **prepared.details,
            **_saved_part(prepared),
            **({"targets": prepared.targets, "lower_bounds": prepared.lower_bounds} if prepared.targets else {}),
            "concurrency": start.options.concurrency or CONCURRENCY,
            SCOPE_SUFFIX: secrets.token_hex(4),
            "budget": start.budget,
            **start.saved_thresholds,
            **saved_baseline(start),
            "timing": TIMING,
            STARTED_WITH: {
                "command_line": [hide_password(word) for word in start.options.command_line],
                "versions": installed_versions(),
            },
        },
        fingerprints=prepared.fingerprints,
        program=f"memorybench {__version__}",
        planned=prepared.planned,
    )


def _questions(totals: Mapping[tuple[str, str], int], repeats: int) -> dict[str, int]:
    return {benchmark: n // repeats for (benchmark, _), n in totals.items()}


def _saved_part(prepared: PreparedRun) -> dict[str, Any]:
    """Return what the spec of a shard records about the whole run, for reports and for `merge`."""
    part = prepared.part
    if part is None:
        return {}
    whole = {"questions": _questions(part.totals, prepared.repeats), **part.details}
    return {
        PART: {
            "histories": len(part.units),
            "histories_in_all": part.units_in_all,
            "planned_in_all": sum(part.totals.values()),
            "whole": whole,
        }
    }


def saved_baseline(start: Start) -> dict[str, Any]:
    """Return the baseline as a field of the saved spec; empty if none is given, at this or an earlier start.

    The value is None if `--baseline none` removes the baseline of an earlier start.
    """
    if start.baseline is None and start.options.baseline is None:
        return {}
    return {SAVED_BASELINE: start.baseline.plain() if start.baseline else None}


def installed_versions() -> dict[str, str]:
    """Return the versions of Python, the operating system, and the packages that memorybench depends on."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for requirement in _headers("memorybench", "Requires-Dist"):
        if re.search(r"""extra == ["'](dev|docs)""", requirement):
            continue
        name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        try:
            found[name] = next(_headers(name, "Version"))
        except (metadata.PackageNotFoundError, StopIteration):
            continue  # of an extra that is not installed
    return found


def _headers(package: str, name: str) -> Iterator[str]:
    """Yield the values of a header of a package's metadata. Faster than `metadata.version`, which parses more."""
    installed = metadata.distribution(package)
    text = installed.read_text("METADATA") or installed.read_text("PKG-INFO") or ""
    return (match[1].strip() for match in re.finditer(rf"^{name}:(.*)$", text.partition("\n\n")[0], re.MULTILINE))
