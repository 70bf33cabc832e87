"""The reference memory server, as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVER = Path(__file__).parents[2] / "examples" / "reference-memory" / "server.py"


@contextmanager
def reference_server(data: Path, *options: str) -> Iterator[str]:
    """Its URL; what it keeps is in the file `data`."""
    command = [sys.executable, SERVER, "--port", "0", "--data", data, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip().removeprefix("listening on ")
        finally:
            process.terminate()
