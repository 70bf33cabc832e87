from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bundles.editing import RUNS
from tests.cli.command import Command

DATASET = Path(__file__).parents[2] / "data" / "sample-dataset.json"


@pytest.fixture
def bundle(command: Command) -> Callable[..., Path]:
    """Make the run of RUNS with that name, and its bundle."""
    shutil.copy(DATASET, command.folder / "dataset.json")

    made = set()

    def make(name: str, *options: str) -> Path:
        words = [word.replace("DATASET", "dataset.json") for word in RUNS[name]]
        if name not in made:
            command.once(*words, "--run-id", name, "--output", "results")
            made.add(name)
        path = command.folder / f"{name}.mbz"
        said = command("bundle", name, "--output", str(path), *options)
        assert said.code == 0, said.err
        return path

    return make
