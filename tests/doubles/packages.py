"""Installs a sample package into a folder of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def install_package(package: Path, folder: Path) -> Path:
    """Build and install `package` without network; return the folder to put on `sys.path`."""
    shutil.copytree(package, folder / "source")  # building leaves files behind
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", str(folder / "site")]
    done = subprocess.run([*command, str(folder / "source")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"
