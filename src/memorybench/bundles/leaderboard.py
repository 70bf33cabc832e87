"""Builds a static page from verified bundles. A bundle with a contradicted claim is listed as refused."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from memorybench.core.errors import BadInput
from memorybench.core.measures import Measure
from memorybench.core.questions import Dataset
from memorybench.core.records import digest
from memorybench.datasets.audit import AuditDataset
from memorybench.files.writing import write_file
from memorybench.reporting.formatting import about
from memorybench.suites.registry import suite_of
from memorybench.suites.stored_run import StoredRun, read_run
from memorybench.text.sanitize import printable

from .archive import open_archive
from .claims import LEVELS, Verification, bundle_text
from .contents import Rows, opened_run
from .data_claims import CONFIG_OF
from .signing import PublicKey
from .verification import verify_bundle

PAGE, BUNDLES = "index.html", "bundles"
GetDatasets = Callable[[Path], Mapping[str, Dataset | AuditDataset]]
"""A function that takes the path of a bundle and returns the data of its benchmarks that is available on this machine,
by benchmark."""
_FACTS_IN_ROWS = ("Run ID", "Providers", "Benchmarks")
"""The names of facts about a run that are left out of its details, because the rows of the page show them."""
VERIFICATION = {
    "recomputed with data": "scores recomputed, questions checked",
    "recomputed": "scores recomputed, questions declared",
    "consistent": "scores declared, measures recomputed",
}
"""The text on the page for each level of a bundle (`Verification.level`)."""


class Entry(Struct, frozen=True):
    """One row of a leaderboard: one subject of one bundle."""

    subject: str
    role: str
    measures: tuple[Measure, ...]
    """The main measures. Entries are ordered by the first one."""
    failed: int
    """The number of trials that failed. The measures do not include them, so that failures can make measures better."""
    cost: str
    verification: str
    signature: str
    link: str
    run_id: str
    facts: Mapping[str, str]


class Refused(Struct, frozen=True):
    name: str
    reason: str


class Board(Struct):
    """One table of the page: entries that have the same questions, data, answering model, judge and judge prompt."""

    title: str
    settings: Mapping[str, str]
    columns: tuple[str, ...]
    entries: list[Entry] = field(default_factory=list)


class Leaderboard(Struct, frozen=True):
    boards: Sequence[Board]
    refused: Sequence[Refused]
    bundles: int


def build_leaderboard(
    folder: Path,
    output: Path,
    get_datasets: GetDatasets,
    keys: Sequence[PublicKey] = (),
    known_config: Callable[[str], str | None] = lambda _: None,
) -> Leaderboard:
    """Verify all bundles of a folder; write the page, and copies of the bundles without contradicted claims."""
    if not folder.is_dir():
        raise BadInput(str(folder), "folder not found", remedy="check the path")
    paths = sorted(path for path in folder.glob("*.mbz") if path.is_file())
    if not paths:
        raise BadInput(str(folder), "the folder contains no bundles", expected="files that end with .mbz")
    boards: dict[str, Board] = {}
    refused: list[Refused] = []
    accepted: dict[str, Path] = {}
    for path in paths:
        try:
            found = verify_bundle(path, get_datasets(path), keys, known_config)
        except BadInput as error:
            refused.append(Refused(printable(path.name), printable(error.problem)))
            continue
        if not found.is_consistent:
            refused.append(Refused(printable(path.name), _reason(found)))
        elif found.root not in accepted:
            accepted[found.root] = path
            _add(boards, path, found)
    for board in boards.values():
        board.entries.sort(key=_order)
    leaderboard = Leaderboard(list(boards.values()), refused, len(accepted))
    _write(leaderboard, {_file_name(path, root): path for root, path in accepted.items()}, output)
    return leaderboard


def _reason(found: Verification) -> str:
    first = found.contradicted[0]
    example = f" ({first.examples[0]})" if first.examples else ""
    return f"{first.name}: {first.text}{example}"


def _add(boards: dict[str, Board], path: Path, found: Verification) -> None:
    with (
        open_archive(path) as archive,
        opened_run(Rows.in_archive(archive)) as (run, results),
        read_run([f"{results}/{run}"], []) as one,
    ):
        for key, board, entry in _entries(one, path, found):
            boards.setdefault(key, board).entries.append(entry)


def _entries(stored: StoredRun, path: Path, found: Verification) -> list[tuple[str, Board, Entry]]:
    suite, summary = suite_of(stored.run), stored.summary
    names = suite.main_measures(stored)
    facts = {name: bundle_text(text) for name, text in suite.facts(stored.runs).items() if name not in _FACTS_IN_ROWS}
    signed = next((claim for claim in found.claims if claim.name == "signature"), None)
    roles: dict[str, str] = {}
    cases: dict[str, set[str]] = {}
    for outcome in stored.outcomes():
        trial = outcome.trial
        roles[trial.subject.name] = trial.subject.role
        cases.setdefault(trial.benchmark, set()).add(trial.case_id)
    failed = {(one.benchmark, one.subject): one.failed for one in summary.failures}
    entries = []
    for benchmark in summary.benchmarks:
        data = stored.run.fingerprints.get(f"benchmark {benchmark}") or stored.run.fingerprints.get(
            f"dataset {benchmark}"
        )
        settings = {
            "suite": stored.run.suite,
            "questions": f"{len(cases.get(benchmark, ())):,}",
            "answering model": bundle_text(str(stored.spec.get("answerer") or "none")),
            "judge": bundle_text(str(stored.spec.get("judge") or "none")),
            "data": data.digest[:12] if data else "unknown",
        }
        # a lenient prompt gives better scores, so runs with another judge prompt have a table of their own
        prompts, custom = stored.run.fingerprints.get(f"judge prompts of {benchmark}"), stored.spec.get("judge_prompt")
        if custom:
            settings["judge prompt"] = f"custom {digest(custom)[:12]}"
        elif prompts is not None:
            settings["judge prompt"] = prompts.digest[:12]
        config = stored.run.fingerprints.get(f"{CONFIG_OF}{benchmark}")
        if config is not None and any(
            one.name == "configs" and printable(benchmark) in one.names for one in found.claims
        ):
            settings["config"] = f"not the one here: {config.digest[:12]}"
        models = [stored.spec.get(name) for name in ("answerer", "judge")]  # as they are: `settings` has them shortened
        key = digest([benchmark, settings, models, sorted(cases.get(benchmark, ())), names])
        for result in summary.overall(benchmark):
            measures = tuple(measure for name in names if (measure := result.measure(name)) is not None)
            cost = summary.question_costs.get(benchmark, {}).get(result.subject, 0.0)
            entry = Entry(
                subject=bundle_text(result.subject),
                role=roles.get(result.subject, ""),
                measures=measures,
                failed=failed.get((benchmark, result.subject), 0),
                cost="?" if cost is None else about(cost),
                verification=VERIFICATION[found.level],
                signature=signed.text if signed and signed.level == "proved" else "",
                link=f"{BUNDLES}/{_file_name(path, found.root)}",
                run_id=stored.run.id,
                facts=facts,
            )
            entries.append((key, Board(bundle_text(benchmark), settings, tuple(one.name for one in measures)), entry))
    return entries


def _order(entry: Entry) -> tuple[bool, float]:
    first = entry.measures[0] if entry.measures else None
    if first is None or first.value is None:
        return True, 0.0
    return False, -first.value if first.higher_is_better else first.value


def _file_name(path: Path, root: str) -> str:
    """Return a unique file name that is safe in a URL."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", path.stem).strip("-")[:60] or "bundle"
    return f"{stem}-{root[:12]}.mbz"


def _write(leaderboard: Leaderboard, bundles: Mapping[str, Path], output: Path) -> None:
    from memorybench.reporting.html import single_page

    try:
        (output / BUNDLES).mkdir(parents=True, exist_ok=True)
        for name, path in bundles.items():
            shutil.copyfile(path, output / BUNDLES / name)
    except OSError as error:
        raise BadInput(
            str(output), f"the folder cannot be written ({error.strerror})", remedy="name another folder"
        ) from error
    write_file(output / PAGE, single_page("leaderboard.html", leaderboard=leaderboard, levels=LEVELS))
