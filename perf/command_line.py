"""How long `memorybench --help` takes, compared with starting Python."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from perf.measuring import Line, Setup, at_most


def measure(setup: Setup) -> Iterator[Line]:
    times: dict[str, list[float]] = {"-c pass": [], "-m memorybench --help": []}
    for _ in range(3 * setup.rounds):
        for arguments, seconds in times.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments.split()], check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - started)
    python, help = (min(seconds) for seconds in times.values())
    yield at_most("--help / starting Python: wall", help / python, 4)
