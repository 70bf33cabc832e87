"""The wheel contains the licence of the starter data."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LICENCE = "memorybench/datasets/starter_histories/LICENSE.txt"


def test_the_licence_of_the_starter_data_is_packaged() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert LICENCE.removeprefix("memorybench/") in settings["tool"]["setuptools"]["package-data"]["memorybench"]
    assert f"src/{LICENCE}" in settings["project"]["license-files"]
    text = (ROOT / "src" / LICENCE).read_text(encoding="utf-8")
    assert "Section 8 -- Interpretation." in text


@pytest.mark.slow
def test_the_wheel_contains_the_licence(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE", "src"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)  # building leaves files behind
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    [wheel] = (tmp_path / "dist").iterdir()
    assert LICENCE in zipfile.ZipFile(wheel).namelist()
