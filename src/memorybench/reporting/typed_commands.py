"""Commands in hints and errors, written so that they work where the user typed the last one."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from functools import cache
from pathlib import Path

PROGRAM = "memorybench"
_COMMAND = re.compile(rf"(?<![\w./-])(?<!\ba )(?<!\bof )(?<!-m ){PROGRAM} (?=[a-z-])")
"""The program before a verb. "a memorybench results file" is not a command, and "-m memorybench" is as typed."""


def as_typed(text: str) -> str:
    """Return `text` with the program as it was started: `.venv/bin/memorybench list`, `python -m memorybench list`."""
    program = _started_program(sys.argv[0])
    return text if program == PROGRAM else _COMMAND.sub(lambda _: f"{program} ", text)


@cache
def _started_program(started: str) -> str:
    path = Path(started)
    if path.name == "__main__.py" and path.parent.name == PROGRAM:
        return f"{_shown(Path(sys.executable))} -m {PROGRAM}"
    if path.stem in (PROGRAM, "memaudit"):  # they are installed side by side
        return _shown(path.with_name(f"{PROGRAM}{path.suffix}"))
    return PROGRAM


def _shown(program: Path) -> str:
    """Return its name if the shell finds it by that, else its path."""
    found = shutil.which(program.name)
    if found is not None and Path(found).absolute() == program.absolute():
        return program.name
    folder = Path.cwd()
    path = program.relative_to(folder) if program.is_relative_to(folder) else program
    return shlex.quote(str(path))
