"""How much less the first question and the default run take than at an earlier commit, measured side by side."""

from __future__ import annotations

import io
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from perf.measuring import Line, Setup, Usage, at_most, run_child

ROOT = Path(__file__).parents[1]
FIRST_QUESTION = ("eval", "--providers", "bm25", "--limit", "1")
DEFAULT_RUN = ("eval",)


def measure(setup: Setup) -> Iterator[Line]:
    old = extract_sources(setup.base, setup.folder / "old")
    best = _best(setup, FIRST_QUESTION, old)
    yield Line("eval --providers bm25 --limit 1: CPU", best[ROOT].cpu, "s")
    if old is not None:
        yield at_most(f"eval --providers bm25 --limit 1 / at {setup.base}: CPU", best[ROOT].cpu / best[old].cpu, 0.45)
    if not setup.in_children:
        return  # the default run takes too long for a test
    best = _best(setup, DEFAULT_RUN, old)
    yield Line("eval: wall", best[ROOT].wall, "s")
    if old is not None:
        yield at_most(f"eval / at {setup.base}: wall", best[ROOT].wall / best[old].wall, 0.5)


def extract_sources(commit: str, folder: Path) -> Path | None:
    """Write the sources of a commit to a folder; None if git does not have the commit."""
    if shutil.which("git") is None:
        return None
    command = ["git", "-C", str(ROOT), "archive", commit, "src", "pyproject.toml"]
    archive = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if archive.returncode:
        return None
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    # hides the entry points of the installed version
    metadata = folder / "src" / "memorybench-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: memorybench\nVersion: 0\n", encoding="utf-8")
    return folder


def _best(setup: Setup, words: tuple[str, ...], old: Path | None) -> dict[Path, Usage]:
    """Run a command of both versions in turn and return the least usage of each."""
    found: dict[Path, list[Usage]] = {ROOT: []} if old is None else {ROOT: [], old: []}
    for checkout in found:
        _run(checkout, words)  # compiles the modules
    for _ in range(setup.rounds):
        for checkout, usages in found.items():
            usages.append(_run(checkout, words))
    return {
        checkout: Usage(wall=min(usage.wall for usage in usages), cpu=min(usage.cpu for usage in usages))
        for checkout, usages in found.items()
    }


def _run(checkout: Path, words: tuple[str, ...]) -> Usage:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    variables["PYTHONPATH"] = str(checkout / "src")
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "memorybench", *words]
        run_child(command, variables, folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Usage(wall=time.perf_counter() - started, cpu=cpu)
