"""Two versions of Python write the same bundle, and verify each other's.

Set MEMORYBENCH_OTHER_PYTHON to a Python of another version with memorybench and the same zlib.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bundles.conftest import bundle as bundle
from tests.bundles.editing import RUNS
from tests.cli.command import Command

OTHER = os.environ.get("MEMORYBENCH_OTHER_PYTHON", "")
pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not OTHER, reason="MEMORYBENCH_OTHER_PYTHON names no other Python"),
]


def test_the_versions_differ() -> None:
    code = "import sys; print(sys.version_info[:2])"
    found = subprocess.run([OTHER, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() != str(sys.version_info[:2])


@pytest.mark.parametrize("name", RUNS)
def test_both_versions_write_the_same_bytes_and_verify_them(
    command: Command, bundle: Callable[..., Path], name: str
) -> None:
    path, other = bundle(name), command.folder / "other.mbz"

    def run_other(*arguments: str) -> None:
        subprocess.run([OTHER, "-m", "memorybench", *arguments], check=True, cwd=command.folder)

    run_other("bundle", name, "--output", str(other))
    assert other.read_bytes() == path.read_bytes()
    run_other("verify", str(path))
    assert command("verify", str(other)).code == 0


@pytest.mark.parametrize("name", ["judged", "hygiene"])
def test_a_bundle_of_a_run_of_the_other_version_is_verified(command: Command, name: str) -> None:
    """The other version performs the run, too: steps have keys that depend on how it writes JSON."""
    words = [OTHER, "-m", "memorybench", *RUNS[name], "--run-id", name, "--output", "results"]
    subprocess.run(words, check=True, cwd=command.folder)
    subprocess.run([OTHER, "-m", "memorybench", "bundle", name], check=True, cwd=command.folder)
    document = command("verify", f"{name}.mbz", "--json").json
    assert document["consistent"] is True
    assert document["level"] in ("recomputed", "recomputed with data")
