from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memorybench.suites.audit.probe_file import write_probes
from tests.bundles.editing import RUNS
from tests.cli.command import Command
from tests.suites.audit.probing import sample_probes

DATASET = Path(__file__).parents[2] / "data" / "sample-dataset.json"


@pytest.fixture
def bundle(command: Command) -> Callable[..., Path]:
    """Make the run of RUNS with that name, and its bundle."""
    shutil.copy(DATASET, command.folder / "dataset.json")

    made = set()

    def make(name: str, *options: str) -> Path:
        words = [word.replace("DATASET", "dataset.json").replace("PROBES", "probes.jsonl") for word in RUNS[name]]
        if "probes.jsonl" in words:  # code asks for no order of events
            write_probes(command.folder / "probes.jsonl", [probe for probe in sample_probes() if probe.options])
        if name not in made:
            command.once(*words, "--run-id", name, "--output", "results")
            made.add(name)
        path = command.folder / f"{name}.mbz"
        said = command("bundle", name, "--output", str(path), *options)
        assert said.code == 0, said.err
        return path

    return make
