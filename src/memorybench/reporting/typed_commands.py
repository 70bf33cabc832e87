"""Rewrites commands in hints and errors so that they work in the shell of the user."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from functools import cache
from pathlib import Path

PROGRAM = "memorybench"
_AFTER_THE_NAME = "cannot|gives|has|knows|sets|starts|that|wrote"
"""Words that follow the program's name in sentences that are not commands, such as "memorybench sets it"."""
_COMMAND = re.compile(rf"(?<![\w./-])(?<!\ba )(?<!\bof )(?<!-m ){PROGRAM} (?!(?:{_AFTER_THE_NAME})\b)(?=[a-z-])")
"""Matches the program's name at the beginning of a command, but not in "a memorybench results file" or after "-m"."""


def as_typed(text: str) -> str:
    """Return `text` with the program name of each command replaced by the way the user started it.

    For example, `memorybench eval` becomes `python -m memorybench eval`.
    """
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
    """Return the name of a program if the shell finds it by its name, else its quoted path."""
    found = shutil.which(program.name)
    if found is not None and Path(found).absolute() == program.absolute():
        return program.name
    folder = Path.cwd()
    path = program.relative_to(folder) if program.is_relative_to(folder) else program
    return shlex.quote(str(path))
