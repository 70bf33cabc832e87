"""A `docker` (or `docker-compose`) for tests without an engine: its containers are reference memory servers.

    docker = FakeDocker(folder)             # or with "docker-compose", as old installations have it
    ... docker.environment ...              # PATH finds it, and little else
    docker.fault("dies")
    assert docker.commands == ["version", "config", …]

What it does, and the faults that it knows, are in fake_docker_command.py. That one is told by variables that begin with
DOCKER_, because these are handed on.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

from tests.doubles.reference_server import SERVER

COMMAND = Path(__file__).with_name("fake_docker_command.py")


class FakeDocker:
    def __init__(self, folder: Path, *, command: str = "docker") -> None:
        self._state = folder / "engine"
        self._state.mkdir()
        executables = folder / "bin"
        executables.mkdir()
        executable = executables / command
        # without site-packages it starts four times as fast
        executable.write_text(f"#!{sys.executable} -SE\n{COMMAND.read_text()}")
        executable.chmod(0o700)
        self.port = free_port()
        self.environment = {
            "PATH": str(executables),
            "HOME": str(folder),
            "DOCKER_STATE": str(self._state),
            "DOCKER_SERVER": str(SERVER),
            "REFERENCE_MEMORY_PORT": str(self.port),
        }

    def fault(self, name: str) -> None:
        self.environment["DOCKER_FAULT"] = name

    @property
    def calls(self) -> list[dict[str, Any]]:
        """What was asked, and with which environment."""
        ledger = self._state / "calls"
        return [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []

    @property
    def commands(self) -> list[str]:
        return [call["command"] for call in self.calls]

    @property
    def running(self) -> list[str]:
        """The projects that have a container."""
        return sorted(file.stem for file in self._state.glob("*.container"))

    def wait_for(self, command: str) -> None:
        while command not in self.commands:
            time.sleep(0.01)


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port: int = door.getsockname()[1]
        return port
