"""Start programs, exchange data with them, and end them with everything they started.

Running programs and temporary folders are registered, so that `abandon_all` can end and remove them when this process
must exit at once.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from memorybench.core.errors import BadInput, Malformed, ServiceError
from memorybench.secrets.redaction import Redactor
from memorybench.text.sanitize import EXCERPT, printable

GRACE = 3.0
"""Seconds that a program has to exit after its input is closed, and again after SIGTERM."""
STDERR_TAIL = 8192
"""How many bytes of error output are kept. Errors quote less, so that a quote does not begin within a secret."""
_CHUNK = 2**16
INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "NODE_PATH", "SSL_CERT_FILE")
"""Environment variables that every program gets. API keys are not among them."""
PRIVATE_FOLDERS: Mapping[str, str] = {
    "HOME": "",
    "USERPROFILE": "",
    "TMPDIR": "tmp",
    "TMP": "tmp",
    "TEMP": "tmp",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
    "XDG_RUNTIME_DIR": ".run",
    "APPDATA": "AppData/Roaming",
    "LOCALAPPDATA": "AppData/Local",
}
"""Environment variables that say where programs keep data and settings, each with its folder in the private home."""

# shared by all runs and threads of this process, because `abandon_all` must reach every program
_groups: set[int] = set()
_folders: set[Path] = set()
_starting: set[object] = set()
"""One object for each program that is being started and is not in `_groups` yet."""


class ProgramTimeout(ServiceError):
    """The program did not finish in time and was killed. It may already have done its work."""


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Create a temporary folder that is removed at the end of the `with` block, or by `abandon_all`."""
    with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _folders.add(folder)
        try:
            yield folder
        finally:
            _folders.discard(folder)


def abandon_all() -> None:
    """Kill every running program and remove every temporary folder, without waiting.

    Call this only right before `os._exit`, because connections stay open and tasks are not cancelled.
    """
    for group in (*_groups, *(_started_groups() if _starting else ())):
        _signal_group(group, signal.SIGKILL)
    for _ in range(3):  # a program that is being killed may still write into a folder
        for folder in tuple(_folders):
            shutil.rmtree(folder, ignore_errors=True)


def _started_groups() -> list[int]:
    """Return the ids of child processes that lead a session of their own; an empty list on systems without /proc."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # a process that has ended
            _, parent = status.read_text(errors="replace").rpartition(")")[2].split()[:2]
            child = int(status.parent.name)
            if int(parent) == os.getpid() and os.getsid(child) == child:
                found.append(child)
    return found


def child_environment(environment: Mapping[str, str], own: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the environment of a program: INHERITED variables of `environment`, those in `own`, and PRIVATE_FOLDERS.

    The variables of PRIVATE_FOLDERS name folders in `home`, which are created; they take precedence.
    """
    inherited = {name: environment[name] for name in INHERITED if name in environment}
    return inherited | dict(own) | make_private_home(home, environment)


def make_private_home(home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Create PRIVATE_FOLDERS in `home` and return the variables that name them.

    The result also has PYTHONUSERBASE, so that the program finds Python packages that the user has installed.
    """
    variables = {}
    for name, place in PRIVATE_FOLDERS.items():
        folder = (home / place).absolute()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        variables[name] = str(folder)
    if "HOME" in environment:
        variables["PYTHONUSERBASE"] = environment.get("PYTHONUSERBASE", str(Path(environment["HOME"], ".local")))
    return variables


def check_no_private_folder(variables: Collection[str], where: Callable[[str], str]) -> None:
    """Raise BadInput if a config sets a variable of PRIVATE_FOLDERS. `where` returns its place in the config."""
    for name in PRIVATE_FOLDERS:
        if name in variables:
            raise BadInput(
                where(name),
                f"a config cannot set {name}, because memorybench sets it to a private folder",
                remedy="remove it; pass the path to the program in another way",
            )


def check_program(program: str, where: str, *, path: str | None, install: str = "") -> None:
    """Raise BadInput unless `program` is found on `path`."""
    if shutil.which(program, path=path) is None:
        raise BadInput(
            where,
            f'the program "{printable(program)}" was not found',
            remedy=f"install it: {install}" if install else "install it, or give its full path",
        )


def describe_exit(status: int) -> str:
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"


def quote_stderr(text: str) -> str:
    """Return the end of a program's error output for an error message. `text` must be redacted already."""
    text = printable(text)
    if not text:
        return " with no error message"
    return f"; error output: {'…' if len(text) > EXCERPT else ''}{text[-EXCERPT:]}"


class Program:
    """A running program. Opened by `open_program`."""

    def __init__(self, process: Process, where: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.where = where
        self.stdin, self.stdout = process.stdin, process.stdout
        self._process = process
        self._stderr = b""
        self._stderr_reader = asyncio.create_task(self._read_stderr())
        self._is_terminated = False

    def log(self, data: bytes) -> None:
        """Add a text to the error output that is kept for errors, as if the program had written it."""
        self._stderr = (self._stderr + data)[-STDERR_TAIL:]

    def terminate(self) -> None:
        self._is_terminated = True
        _signal_group(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        self._is_terminated = True
        _signal_group(self._process.pid, signal.SIGKILL)

    async def send_input(self, data: bytes) -> None:
        """Write `data` to the standard input and close it. No error if the program exits before reading it all."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.stdin.write(data)
            await self.stdin.drain()
        self.stdin.close()

    async def wait(self) -> tuple[int, bytes]:
        """Wait until the program exits; return its exit status and the end of its error output."""
        status = await self._process.wait()
        await self._stderr_reader
        return status, self._stderr

    async def exit_error(self, redactor: Redactor) -> ServiceError:
        """Return an error that says why the program's output ended, with the end of its error output."""
        # programs that it started may hold its streams open after it has exited
        await asyncio.wait([self._stderr_reader], timeout=GRACE)
        has_exited = await self._has_exited()
        ending = describe_exit(self._process.returncode or 0) if has_exited else "closed its output"
        stderr = redactor.clean(self._stderr.decode("utf-8", "replace"))
        return ServiceError(f"{self.where}: {ending}{quote_stderr(stderr)}")

    async def end(self) -> None:
        """End the program: close its input, then send SIGTERM, then kill its process group."""
        try:
            self.stdin.close()
            if not self._is_terminated and not await self._has_exited():
                self.terminate()
            await self._has_exited()
        finally:
            self.kill()  # also after a second cancellation, and also what an exited program has started
            self._stderr_reader.cancel()
            await asyncio.gather(self._stderr_reader, return_exceptions=True)
            # a process that left the group may hold the pipes open, and wait() would wait for their end
            self._process._transport.close()  # type: ignore[attr-defined]
            await self._process.wait()
            with suppress(BrokenPipeError, ConnectionResetError):
                await self.stdin.wait_closed()

    async def _has_exited(self) -> bool:
        """Wait up to GRACE seconds; return whether the program has exited."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await self._process.wait()
        return self._process.returncode is not None

    async def _read_stderr(self) -> None:
        while self._process.stderr is not None and (data := await self._process.stderr.read(STDERR_TAIL)):
            self.log(data)


@asynccontextmanager
async def open_program(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    where: str,
    line_cap: int = _CHUNK,
    stderr: int | None = PIPE,
) -> AsyncIterator[Program]:
    """Start `command` with exactly the environment `env`; on exit, end it with everything it started.

    `where` names it in errors. `stderr=None` leaves its error output to the terminal.
    """
    starting = object()
    _starting.add(starting)
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=dict(env),
            cwd=cwd,
            stdin=PIPE,
            stdout=PIPE,
            stderr=stderr,
            limit=line_cap,
            start_new_session=True,  # a process group, so that what it starts is ended with it
        )
    except OSError as error:
        raise BadInput(where, f"the program cannot be started: {error.strerror}", remedy="check the command") from None
    else:
        _groups.add(process.pid)
    finally:
        _starting.discard(starting)
    program = Program(process, where)
    try:
        yield program
    finally:
        try:
            await program.end()
        finally:
            _groups.discard(process.pid)


class CompletedProgram(Struct, frozen=True):
    """The exit status and output of a program that has ended."""

    status: int
    output: bytes
    stderr: bytes
    """The end of its error output."""


async def run_program(
    command: Sequence[str],
    *,
    stdin: bytes,
    env: Mapping[str, str],
    cwd: Path,
    deadline: float,
    output_cap: int,
    where: str,
) -> CompletedProgram:
    """Run `command` with exactly the environment `env` and wait until it ends, at most `deadline` seconds.

    Raise ProgramTimeout, or Malformed if the output is larger than `output_cap` bytes. If the task is cancelled, the
    program gets SIGTERM and time to save its work.
    """
    try:
        async with open_program(command, env=env, cwd=cwd, where=where) as program:
            sending = asyncio.create_task(program.send_input(stdin))
            try:
                async with asyncio.timeout(deadline):
                    output = bytearray()
                    while data := await program.stdout.read(_CHUNK):
                        output += data
                        if len(output) > output_cap:
                            raise Malformed(f"{where}: the output of the program is larger than {output_cap:,} bytes")
                    status, stderr = await program.wait()
                return CompletedProgram(status, bytes(output), stderr)
            except TimeoutError:
                program.kill()
                raise ProgramTimeout(f"{where}: the program timed out after {deadline:g} s and was stopped") from None
            except asyncio.CancelledError:
                program.terminate()
                raise
            except BaseException:
                program.kill()
                raise
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
    except BadInput as error:
        # the command was checked before the run: now it is a failed trial, not wrong input
        raise ServiceError(str(error)) from None


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
