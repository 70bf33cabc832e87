"""What every measure needs: resource usage of a function, sizes, and the lines that are printed."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

_PROCESSES = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


@dataclass
class Usage:
    """Wall and CPU seconds and peak memory of this process and its children, and what the stub server counted."""

    wall: float = 0.0
    cpu: float = 0.0
    megabytes: float = 0.0
    most_in_flight: int = 0
    calls: int = 0


@contextmanager
def usage_measured() -> Iterator[Usage]:
    """Fill the yielded usage when the block ends."""
    usage, wall, cpu = Usage(), time.perf_counter(), _cpu_seconds()
    yield usage
    usage.wall = time.perf_counter() - wall
    usage.cpu = _cpu_seconds() - cpu
    usage.megabytes = memory_peak()


def memory_peak() -> float:
    """Return the peak memory of this process so far, and that of its largest child that ended, in MB."""
    kilobytes = [resource.getrusage(who).ru_maxrss for who in _PROCESSES]
    if (status := Path("/proc/self/status")).exists():  # getrusage counts the process that started this one, too
        kilobytes[0] = next(
            int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")
        )
    return sum(kilobytes) / 1024


def _cpu_seconds() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in _PROCESSES)


def run_command(folder: Path, arguments: Sequence[str], variables: Mapping[str, str], program: str = "main") -> Usage:
    """Run `memorybench` in this process, or the `program` memaudit.

    The start of Python does not count, the import of the program does.
    """
    with (
        patch.dict(os.environ, variables),
        (folder / "out").open("w") as out,
        redirect_stdout(out),
        redirect_stderr(out),
        usage_measured() as usage,
    ):
        code = getattr(import_module("memorybench.cli.main"), program)(list(arguments))
    assert code == 0, (folder / "out").read_text()
    return usage


def run_child(command: Sequence[str], variables: Mapping[str, str], folder: str | None = None) -> str:
    """Run a command and return its output. Its standard error is shown only if it fails."""
    child = subprocess.run(command, check=False, capture_output=True, text=True, env=variables, cwd=folder)
    if child.returncode:
        sys.stderr.write(child.stderr)
        child.check_returncode()
    return child.stdout


@dataclass(frozen=True)
class Line:
    """One printed line. Without a goal the figure only explains another one."""

    name: str
    figure: float
    unit: str = "×"
    goal: str = ""
    is_met: bool = True

    def __str__(self) -> str:
        figure = f"{self.figure:,.2f} {self.unit}"
        return f"{self.name:<66} {figure:>12} {self.goal:>10}{'' if self.is_met else '  MISSED'}"


def at_most(name: str, figure: float, limit: float, unit: str = "×") -> Line:
    return Line(name, figure, unit, f"≤ {limit:g} {unit}", figure <= limit)


def at_least(name: str, figure: float, limit: float, unit: str = "×") -> Line:
    return Line(name, figure, unit, f"≥ {limit:g} {unit}", figure >= limit)


class Skipped(Exception):
    """This machine lacks what a measure needs; the text says what."""


@dataclass(frozen=True)
class Setup:
    """The folder that a measure may fill, and its sizes."""

    folder: Path
    items: int = 2_000
    few: int = 1_000
    many: int = 100_000
    traces: int = 5_000
    spans: int = 50_000
    probes: int = 1_000
    dialogs: int = 250
    dense_facts: int = 470_000
    """Facts of the audit file that the measure audit reads: about 200 MB."""
    haystacks: int = 50
    histories: int = 500
    base: str = "9c38e88"
    """The commit that the measure start compares with."""
    proxy_calls: int = 500
    workers: tuple[int, ...] = (1, 2, 4, 8)
    """Numbers of processes of the measure workers."""
    scenarios: tuple[str, ...] = ()
    """Of the hygiene run; all of them if empty."""
    rounds: int = 3
    in_children: bool = True

    def run(self, function: Callable[..., Usage], name: str, *arguments: int | str) -> Usage:
        """Call `function(folder, *arguments)` in a process of its own, so that its memory is its own as well."""
        folder = self.folder / f"{function.__module__}-{name}"
        if not self.in_children:
            return function(folder, *arguments)
        call = json.dumps([function.__module__, function.__name__, str(folder), *arguments])
        command = [sys.executable, "-m", "perf.measuring", call]
        # modules are compiled once, as on any machine that has run the program before
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return Usage(**json.loads(run_child(command, variables)))


def tiny(folder: Path) -> Setup:
    """The smallest sizes, in this process: for tests that each measure still works."""
    return Setup(
        folder,
        items=3,
        few=2,
        many=4,
        traces=5,
        spans=50,
        probes=3,
        dialogs=2,
        dense_facts=60,
        haystacks=2,
        histories=1,
        base="",
        proxy_calls=3,
        workers=(1, 2),
        scenarios=("memory-skip-local",),
        rounds=1,
        in_children=False,
    )


if __name__ == "__main__":
    module, function, folder, *arguments = json.loads(sys.argv[1])
    print(json.dumps(asdict(getattr(import_module(module), function)(Path(folder), *arguments))))
