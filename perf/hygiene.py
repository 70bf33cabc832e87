"""The default hygiene run with its files on a disk, and in memory: what waiting for the disk takes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from perf.measuring import Line, Setup, Usage, at_most, run_command

MEMORY = Path("/dev/shm")  # a file system in memory, on Linux


def measure(setup: Setup) -> Iterator[Line]:
    """The best of some rounds each, taken in turn."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as in_memory:
        disks, memories = zip(
            *(
                [setup.run(run, f"{n}", place, *setup.scenarios) for place in (str(setup.folder), in_memory)]
                for n in range(setup.rounds)
            ),
            strict=True,
        )
    seconds = min(usage.wall for usage in disks)
    yield at_most(
        "default hygiene run, on a disk / in memory: wall", seconds / min(usage.wall for usage in memories), 1.5
    )
    yield Line("  wall", seconds, "s")


def run(folder: Path, place: str, *scenarios: str) -> Usage:
    """Results, stores and temporary files are in `place`."""
    files = Path(place) / folder.name
    files.mkdir()
    return run_command(
        files, ["hygiene", "run", *scenarios, "--output", str(files / "results")], {"TMPDIR": str(files)}
    )
