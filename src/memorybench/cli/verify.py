"""Checks a bundle: recomputes its results and reports what that proves."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memorybench.core.errors import BadInput
from memorybench.text.spelling import suggestion

from .arguments import (
    add_budget,
    add_config_dir,
    add_consent,
    add_json,
    add_list,
    given_budget,
    given_consent,
    positive,
    refuse_flags,
    split_list,
)
from .output import interval_text

if TYPE_CHECKING:
    from memorybench.bundles.claims import Verification
    from memorybench.bundles.rejudging import Rejudging, Sample
    from memorybench.bundles.signing import PublicKey
    from memorybench.core.questions import Dataset
    from memorybench.datasets.audit import AuditDataset
    from memorybench.wiring.live import LiveWiring


_SAMPLE = 50
_CONCURRENCY = 10
_RESULTS = Path("verify-results")
_MOST_SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="Check this bundle")
    add_list(
        parser,
        "--data",
        metavar="NAME=PATH",
        help="Check questions and retrieval of benchmark NAME with this copy of its data",
    )
    add_list(parser, "--key", metavar="FILE", help="Require a signature by one of these public key files")
    _add_rejudging(parser)
    add_json(parser)


def _add_rejudging(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rejudge", metavar="MODEL", help="Ask this model to judge a sample; sends its texts")
    parser.add_argument(
        "--sample", metavar="N", type=positive, help=f"With --rejudge: ask about N verdicts (default: {_SAMPLE})"
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, help="With --rejudge: draw the sample with this seed (default: 0)"
    )
    add_budget(parser, needed="--rejudge")
    parser.add_argument(
        "--concurrency",
        metavar="N",
        type=positive,
        help="With --rejudge: make at most N calls at the same time (default: 10)",
    )
    parser.add_argument(
        "--results",
        metavar="DIR",
        type=Path,
        help=f"With --rejudge: record the replies in this folder (default: ./{_RESULTS})",
    )
    parser.add_argument("--dry-run", action="store_true", help="With --rejudge: only show how often it would be asked")
    add_consent(parser)
    add_config_dir(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.bundles.verification import verify_bundle
    from memorybench.wiring.live import LiveWiring

    if args.rejudge is None:
        flags = ("--sample", "--seed", "--budget", "--concurrency", "--results", "--dry-run")
        refuse_flags(args, flags, "--rejudge", "add --rejudge MODEL")
    wiring = LiveWiring(split_list(args.config_dir), given_consent(args))
    datasets = open_available_data(args.file, split_list(args.data), wiring)
    found = verify_bundle(args.file, datasets, read_keys(args.key), config_texts(wiring))
    document = found.document()
    rejudging = None
    if args.rejudge is not None and found.is_consistent:
        from memorybench.bundles.rejudging import draw_sample

        sample = draw_sample(args.file, found, args.sample or _SAMPLE, args.seed or 0)
        if args.dry_run:
            return _show_estimate(args, sample)
        rejudging = _rejudge(args, sample, found, wiring)
        document["rejudge"] = rejudging.document()
    elif args.rejudge is not None:
        print(f"{args.rejudge} is not asked: the bundle contradicts itself", file=sys.stderr)
    if args.json:
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        _show(found, has_keys=args.key is not None)
        if rejudging is not None:
            _show_rejudging(rejudging)
    if rejudging is not None and rejudging.problem:
        print(f"memorybench: {rejudging.problem}", file=sys.stderr)
    if rejudging is not None and rejudging.is_interrupted:
        return 130
    return 0 if found.is_consistent and (rejudging is None or not rejudging.missing) else 1


def open_available_data(
    file: Path, given: Sequence[str], wiring: LiveWiring, *, is_strict: bool = True
) -> dict[str, Dataset | AuditDataset]:
    """Open the available data of the bundle's benchmarks: data that ships with memorybench, and files in `given`.

    An item of `given` is NAME=PATH, or PATH if the bundle has one benchmark.

    With `is_strict`, a name that is not a benchmark of the bundle is an error; otherwise it is ignored.
    """
    from memorybench.datasets.audit import load_audit

    names, audited = benchmarks_of(file)
    files: dict[str, Path] = {}
    for text in given:
        name, separator, path = text.partition("=")
        if not separator and len(names) == 1:
            name, path = names[0], text
        if name not in names and not is_strict:
            continue
        if name not in names:
            raise BadInput(
                "--data",
                f"unknown benchmark {name!r}",
                expected=" or ".join(f"{one}=PATH" for one in names) or "no data: the run has no benchmark",
                remedy=suggestion(name, names),
            )
        files[name] = Path(path)
    datasets: dict[str, Dataset | AuditDataset] = {name: load_audit(files[name]) for name in audited if name in files}
    for name in (name for name in names if name not in audited):
        known = name in wiring.catalog.names("benchmark")
        if not known and name in files:
            raise BadInput(
                "--data", f'there is no config of benchmark "{name}"', remedy="add --config-dir FOLDER with its config"
            )
        if known:
            config = wiring.benchmark(name)
            if name in files or config.data.type == "bundled":
                datasets[name] = wiring.dataset(config, files.get(name))
    return datasets


def benchmarks_of(file: Path) -> tuple[list[str], list[str]]:
    """Return the names of all benchmarks of a bundle, and of those that are audit datasets."""
    from memorybench.bundles.archive import open_archive
    from memorybench.bundles.bundled_run import AUDIT_DATA
    from memorybench.bundles.contents import Rows

    with open_archive(file) as archive:
        run = Rows.in_archive(archive).run()
    marks = [name.partition(" ") for name in run.fingerprints]
    names = [name for kind, _, name in marks if name and kind in ("benchmark", AUDIT_DATA)]
    return names, [name for kind, _, name in marks if name and kind == AUDIT_DATA]


def config_texts(wiring: LiveWiring) -> Callable[[str], str | None]:
    """Return a function that returns the text of a benchmark's config on this machine, or None if it is unknown."""
    names = frozenset(wiring.catalog.names("benchmark"))
    return lambda name: wiring.describe_benchmark(wiring.benchmark(name).name) if name in names else None


def read_keys(given: Sequence[str] | None) -> list[PublicKey]:
    """Read the public keys that --key names; return [] if `given` is None, because --key was not used."""
    if given is None:
        return []
    from memorybench.bundles.signing import PublicKey, check_installed

    files = split_list(given)
    if not files:  # an unset variable in a script must not drop the requirement
        raise BadInput("--key", "empty value", remedy="give a value, or leave out --key")
    check_installed()
    return [PublicKey.read(Path(file)) for file in files]


def _show(found: Verification, *, has_keys: bool) -> None:
    from memorybench.bundles.claims import LEVELS
    from memorybench.core.report_sections import Table, text_column
    from memorybench.reporting.terminal import console, show_table

    out = console()
    columns = (text_column("level"), text_column("what"), text_column("n"), text_column("how", wrap=True))
    ordered = sorted(found.claims, key=lambda one: list(LEVELS).index(one.level))
    rows = tuple((one.level, one.name, "" if one.n is None else f"{one.n:,}", one.text) for one in ordered)
    show_table(out, Table(f"RUN {found.run_id}" if found.run_id else "BUNDLE", columns, rows))
    for one in found.contradicted:
        for example in one.examples:
            out.print(f"  ✗ {one.name}: {example}", markup=False, highlight=False)
        if one.n and one.n > len(one.examples):
            out.print(f"  … and {one.n - len(one.examples)} more")
    for level, meaning in LEVELS.items():
        if any(one.level == level for one in found.claims):
            out.print(f"{level}: {meaning}")
    out.print(f"root {found.root}")
    if found.is_consistent:
        out.print("Nothing in this bundle is contradicted.")
    elif has_keys and {one.name for one in found.contradicted} == {"signature"}:
        out.print("This bundle has no valid signature by a key that you named.")
    else:
        out.print("This bundle contradicts itself.")


def _rejudge(args: argparse.Namespace, sample: Sample, found: Verification, wiring: LiveWiring) -> Rejudging:
    from memorybench.bundles.rejudging import rejudge
    from memorybench.suites.estimates import check_prices

    model, budget = wiring.model(args.rejudge), given_budget(args)
    check_prices((model,), budget)
    concurrency = args.concurrency or _CONCURRENCY
    return rejudge(sample, found, model, args.results or _RESULTS, wiring, concurrency=concurrency, budget=budget)


def _show_estimate(args: argparse.Namespace, sample: Sample) -> int:
    from memorybench.bundles.rejudging import expected_cost
    from memorybench.wiring.live import LiveWiring

    wiring = LiveWiring(split_list(args.config_dir), given_consent(args), need_keys=False)
    cost = expected_cost(sample, wiring.model(args.rejudge))
    if args.json:
        row = {"judge": args.rejudge, "calls": len(sample.steps), "available": sample.available, "cost": cost}
        print(json.dumps({"expected": row}, indent=2))
    else:
        dollars = "unknown cost" if cost is None else f"about ${cost:.4f}"
        calls = f"about {len(sample.steps)} of {sample.available} verdicts"
        print(f"{args.rejudge} would be asked {calls}, {dollars}; nothing was sent")
    return 0


def _show_rejudging(rejudging: Rejudging) -> None:
    from memorybench.reporting.terminal import console

    out = console()
    document, sample = rejudging.document(), rejudging.sample
    agreement = interval_text(rejudging.agreement, scale=100, unit=" %")
    lines = [
        "",
        f"{rejudging.judge} was asked about {len(sample.steps)} of {sample.available} verdicts"
        f" of {', '.join(rejudging.recorded_judges)} (seed {sample.seed})",
        f"{document['agreed']} of {document['compared']} agree{agreement and f': {agreement}'}",
        f"Cohen's kappa: {interval_text(rejudging.kappa) or 'undefined'}",
        f"{document['prompts_proved']} of {len(sample.steps)} prompts are those that the code makes",
        f"cost: {rejudging.costs.text()}",
    ]
    if rejudging.is_same_judge:
        lines.append("It is the judge of the run: agreement shows that it repeats itself, not that it is right.")
    lines += [f"left out: {n} verdicts, because {reason}" for reason, n in sample.left_out.items()]
    for line in lines:
        out.print(line, markup=False, highlight=False)
    for one in rejudging.disagreements[:_MOST_SHOWN]:
        recorded, other = (
            _verdict(verdict, score)
            for verdict, score in ((one.recorded, one.recorded_score), (one.verdict, one.score))
        )
        more = f" and {one.trials - 1} more" if one.trials > 1 else ""
        out.print(f"  ✗ {one.trial}{more}: recorded {recorded}, now {other}", markup=False, highlight=False)
    if len(rejudging.disagreements) > _MOST_SHOWN:
        out.print(f"  … and {len(rejudging.disagreements) - _MOST_SHOWN} more; --json lists all")
    for one in rejudging.missing[:_MOST_SHOWN]:
        out.print(f"  ? {one.trial}: no verdict ({one.reason or one.status})", markup=False, highlight=False)
    if rejudging.missing:
        out.print(f"{len(rejudging.missing)} verdicts are missing; repeating the command asks for those only")
    out.print(f"Recorded as run {rejudging.run_id}; repeating the command reuses its verdicts")


def _verdict(verdict: bool | None, score: float | None) -> str:
    return f"{score:g}" if score is not None else "yes" if verdict else "no"
