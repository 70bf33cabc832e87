"""300 random changes of bundles whose manifest the attacker repairs: each is detected, or listed as declared only."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memorybench.bundles.claims import Verification
from memorybench.bundles.verification import verify_bundle
from memorybench.core.errors import BadInput, MemorybenchError
from memorybench.core.questions import Dataset
from memorybench.suites.recorded_form import ERRORS
from memorybench.wiring.live import LiveWiring
from tests.bundles.editing import ROWS, RUNS, as_lines, derive_files, read_files, rows_of, write_files
from tests.cli.command import Command

pytestmark = pytest.mark.slow

MakeBundle = Callable[..., Path]
Files = dict[str, bytes]
CHANGES = 300


@dataclass(frozen=True)
class Change:
    """A change of one value or row."""

    what: str
    claims: tuple[str, ...]
    """The claims of which one must not be proved, if the change is not detected."""
    scores: tuple[str, ...] = ()
    """The scores that it changes."""


def is_honest(found: Verification, change: Change) -> bool:
    """Whether the change is detected, or some claim about it is only declared."""
    if not found.is_consistent:
        return True
    unproved = [claim for claim in found.claims if claim.level != "proved"]
    if change.scores:
        return all(any(score in claim.names for claim in unproved) for score in change.scores)
    return any(claim.name in change.claims for claim in unproved)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from leaves(inner, (*path, place))
    else:
        yield path, value


def other(value: Any, rng: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice([1, 2])
    if isinstance(value, float):
        return 1.0 - value if 0 <= value <= 1 and value != 0.5 else value + 0.25
    if isinstance(value, str):
        if {*value} <= {*"0123456789abcdef"} and len(value) >= 32:
            return value[:-1] + ("0" if value[-1] != "0" else "1")
        return rng.choice([value + " indeed", "yes" if value == "no" else "no", value[:-1] or "x"])
    return 1  # null


def change_leaf(row: dict[str, Any], rng: random.Random, keep: Callable[[tuple[Any, ...]], bool]) -> tuple[Any, ...]:
    found = [(path, value) for path, value in leaves(row) if keep(path)]
    path, value = rng.choice(found)
    place: Any = row
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = other(value, rng)
    return path


def change_row(files: Files, name: str, rng: random.Random, keep: Callable[[tuple[Any, ...]], bool]) -> tuple[Any, ...]:
    rows = rows_of(files, name)
    candidates = [row for row in rows if any(keep(path) for path, _ in leaves(row))]
    path = change_leaf(rng.choice(candidates), rng, keep)
    files[name] = as_lines(rows)
    return path


def change_score(files: Files, rng: random.Random, _: Files) -> Change:
    rows = rows_of(files, "outcomes.jsonl")
    row = rng.choice([row for row in rows if row["body"]["scores"]])
    score = rng.choice(row["body"]["scores"])
    score["value"] = other(float(score["value"]), rng)
    files["outcomes.jsonl"] = as_lines(rows)
    return Change(f"score {score['name']}", (), (score["name"],))


def change_outcome(files: Files, rng: random.Random, _: Files) -> Change:
    path = change_row(files, "outcomes.jsonl", rng, lambda path: path[:2] != ("body", "scores"))
    claims = ("times and costs",) if path[0] == "finished" else ("texts",) if "shown" in path else ()
    return Change(f"outcome {path}", (*claims, *(("texts", "scores") if "failure" in path else ())))


def change_reply(files: Files, rng: random.Random, _: Files) -> Change:
    path = change_row(files, "steps.jsonl", rng, lambda path: path[0] == "result")
    return Change(f"reply {path}", ("replies",))


def change_prompt(files: Files, rng: random.Random, _: Files) -> Change:
    return Change(f"prompt {change_row(files, 'steps.jsonl', rng, lambda path: path[0] == 'inputs')}", ())


def change_step(files: Files, rng: random.Random, _: Files) -> Change:
    path = change_row(files, "steps.jsonl", rng, lambda path: path[0] not in ("result", "inputs"))
    return Change(f"step {path}", ("times and costs",) if path[0] not in ("key", "name", "digests") else ())


def change_case(files: Files, rng: random.Random, _: Files) -> Change:
    return Change(f"case {change_row(files, 'cases.jsonl', rng, lambda path: True)}", ("cases",))


def change_run(files: Files, rng: random.Random, _: Files) -> Change:
    run = json.loads(files["run.json"])
    path = change_leaf(run, rng, lambda path: True)
    files["run.json"] = json.dumps(run).encode()
    declared = {"spec": "settings", "id": "settings", "program": "settings", "fingerprints": "fingerprints"}
    return Change(f"run {path}", (declared.get(path[0], "times and costs"),) if path[0] not in _CHECKED else ())


_CHECKED = ("suite", "planned", "status")
"""Fields of a run that follow from its rows."""


def change_report(files: Files, rng: random.Random, _: Files) -> Change:
    report = json.loads(files["report.json"])
    path = change_leaf(report, rng, lambda path: True)
    files["report.json"] = json.dumps(report).encode()
    return Change(f"report {path}", ())


def change_description(files: Files, rng: random.Random, _: Files) -> Change:
    name = rng.choice(["ro-crate-metadata.json", "every-eval-ever.json", "croissant.json"])
    document = json.loads(files[name])
    path = change_leaf({"whole": document}, rng, lambda path: True)
    files[name] = json.dumps(document).encode()
    return Change(f"{name} {path}", ())


def drop_row(files: Files, rng: random.Random, _: Files) -> Change:
    name = rng.choice([one for one in files if one.endswith(".jsonl") and files[one]])
    rows = rows_of(files, name)
    dropped = rows.pop(rng.randrange(len(rows)))
    files[name] = as_lines(rows)
    declared = {"notes.jsonl": ("settings",), "attempts.jsonl": ("times and costs",), "steps.jsonl": ("replies",)}
    steps = [key for row in rows_of(files, "outcomes.jsonl") for key in row["body"]["steps"]]
    if name == "steps.jsonl" and dropped["key"] in steps:
        # as after a judge that did not reply: scores that do not need it are proved, and the others declared
        declared[name] = ("scores",) if dropped["name"] == "judge" else ()
    return Change(f"dropped {name} {dropped.get('name', '')}", declared.get(name, ()))


def add_row(files: Files, rng: random.Random, others: Files) -> Change:
    """Add a row of another run, or one of the run a second time."""
    name = rng.choice([one for one in files if one.endswith(".jsonl") and files[one]])
    rows = rows_of(files, name)
    rows.insert(rng.randrange(len(rows) + 1), rng.choice(rows_of(others, name) or rows))
    files[name] = as_lines(rows)
    declared = {"notes.jsonl": ("settings",), "attempts.jsonl": ("times and costs",), "steps.jsonl": ("replies",)}
    return Change(f"added {name}", declared.get(name, ()))


def swap_file(files: Files, rng: random.Random, others: Files) -> Change:
    name = rng.choice([one for one in files if one != "manifest.json" and files[one] != others[one]])
    files[name] = others[name]
    declared = {"notes.jsonl": ("settings",), "attempts.jsonl": ("times and costs",)}
    return Change(f"swapped {name}", declared.get(name, ()))


KINDS = (
    *(change_score, change_score, change_outcome, change_reply, change_prompt, change_step, change_case),
    *(change_run, change_report, change_report, change_description, drop_row, add_row, swap_file),
)


def verify(path: Path, datasets: dict[str, Dataset]) -> Verification | None:
    """Return None if the bundle is refused."""
    try:
        return verify_bundle(path, datasets)
    except BadInput:
        return None


@pytest.fixture(scope="module")
def starter() -> dict[str, Dataset]:
    wiring = LiveWiring()
    return {"starter": wiring.dataset(wiring.benchmark("starter"))}


def tamper(bundle: MakeBundle, name: str, seeds: range, datasets: dict[str, Dataset]) -> list[str]:
    """Return the changes that pass as proved."""
    original = read_files(bundle(name))
    others = read_files(bundle("judged" if name != "judged" else "plain"))
    path = bundle(name)
    missed = []
    for seed in seeds:
        rng = random.Random(f"{name} {seed}")
        files = dict(original)
        change = KINDS[seed % len(KINDS)](files, rng, others)
        if any(files[name] != original[name] for name in ("run.json", *ROWS)):
            # otherwise, the digests of rows in a description would give every change away
            with suppress(*ERRORS, MemorybenchError):
                files = derive_files(files)
        found = verify(write_files(path, files), datasets)
        if found is not None and not is_honest(found, change):
            missed.append(f"{seed}: {change.what}")
    return missed


@pytest.mark.parametrize("name", RUNS)
def test_a_change_is_detected_or_listed_as_declared(
    bundle: MakeBundle, starter: dict[str, Dataset], command: Command, name: str
) -> None:
    assert tamper(bundle, name, range(len(KINDS)), starter) == []


@pytest.mark.parametrize("first", range(0, CHANGES, 100))
@pytest.mark.parametrize("name", RUNS)
def test_none_of_300_changes_passes_as_proved(
    bundle: MakeBundle, starter: dict[str, Dataset], command: Command, name: str, first: int
) -> None:
    assert tamper(bundle, name, range(first, first + 100), starter) == []


@pytest.mark.parametrize("name", RUNS)
def test_a_changed_score_is_detected(
    bundle: MakeBundle, starter: dict[str, Dataset], command: Command, name: str
) -> None:
    """The score that the main figure is made of, and the report that the attacker makes from it."""
    path = bundle(name)
    files = read_files(path)
    rows = rows_of(files, "outcomes.jsonl")
    main = {"plain": "recall@5", "hygiene": "passed"}.get(name, "correct")
    score = next(one for row in rows for one in row["body"]["scores"] if one["name"] == main)
    score["value"] = 1.0 - score["value"]
    files["outcomes.jsonl"] = as_lines(rows)
    found = verify_bundle(write_files(path, files), starter)
    assert "scores" in {claim.name for claim in found.contradicted}


def test_a_changed_verdict_is_detected_although_scores_and_report_fit_it(
    bundle: MakeBundle, starter: dict[str, Dataset], command: Command
) -> None:
    path = bundle("judged")
    files = read_files(path)
    steps = rows_of(files, "steps.jsonl")
    verdict = next(step for step in steps if step["name"] == "judge" and not step["result"]["correct"])
    verdict["result"]["correct"] = True
    files["steps.jsonl"] = as_lines(steps)
    found = verify_bundle(write_files(path, files), starter)
    assert {"verdicts", "scores"} <= {claim.name for claim in found.contradicted}
