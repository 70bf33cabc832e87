"""Runs the command as a user does, in this process or in a forked one that may be killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from memorybench.cli.main import main
from tests.engine.workload import in_child


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Command:
    """`command("eval", "--limit", "5")` in a folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], performed: Path) -> None:
        self.folder = folder
        self._capsys = capsys
        self._performed = performed
        self._earlier: tuple[tuple[str, ...], ...] = ()

    def __call__(self, *arguments: str) -> Said:
        self._capsys.readouterr()
        try:
            code = main(list(arguments))
        except SystemExit as left:  # argparse
            code = int(left.code or 0)
        said = self._capsys.readouterr()
        return Said(code, said.out, said.err)

    def once(self, *arguments: str) -> None:
        """Perform a command that succeeds once for all tests, and copy the files that it wrote.

        Only other commands that were performed once may have changed the folder before, and tests must not have changed
        what the command depends on, such as the environment.
        """
        self._earlier = (*self._earlier, arguments)
        files = self._performed / sha256(repr(self._earlier).encode()).hexdigest()
        if not files.exists():
            said = self(*arguments)
            assert said.code == 0, said.err
            shutil.copytree(self.folder, files)
            return
        shutil.rmtree(self.folder / "results", ignore_errors=True)
        shutil.copytree(files, self.folder, dirs_exist_ok=True)

    def killed(self, *arguments: str, at: int) -> bool:
        """Whether the command was killed at its n-th durable step; False: it came to its end."""

        def die() -> None:
            os.environ["MEMORYBENCH_FAULT_AT"] = str(at)
            with open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), 1)
                os.dup2(nowhere.fileno(), 2)
            assert main(list(arguments)) == 0

        return in_child(die) is None

    def killed_when(self, *arguments: str, ready: Callable[[], bool]) -> bool:
        """Whether the command was killed as soon as `ready`; False: it came to its end."""
        child = os.fork()
        if child == 0:
            code = 99
            try:
                with open(os.devnull, "w") as nowhere:
                    os.dup2(nowhere.fileno(), 1)
                    os.dup2(nowhere.fileno(), 2)
                code = main(list(arguments))
            finally:
                os._exit(code)
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
            if ready():
                os.kill(child, signal.SIGKILL)
                ended = os.waitpid(child, 0)
                break
            time.sleep(0.01)
        return os.WIFSIGNALED(ended[1])


def measured(document: Mapping[str, Any]) -> str:
    """A report without its circumstances: what must not depend on kills, time or machine."""
    kept = {name: value for name, value in document.items() if name not in ("circumstances", "run_id")}
    return json.dumps(kept, indent=1, sort_keys=True)
