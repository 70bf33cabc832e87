"""Runs docker compose for one stack, and turns its error output into errors of one line with a remedy."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct

from memorybench.core.errors import BadInput, MemorybenchError, ServiceError
from memorybench.core.records import digest
from memorybench.secrets.redaction import Redactor
from memorybench.text.sanitize import preview, sanitize
from memorybench.text.spelling import unknown_name

PREFIX = "memorybench-"
"""Prefix of the names of all stacks that memorybench starts."""
TIMEOUT = 120.0
"""Timeout of a command in seconds; removing a stack waits 10 s for each container that does not stop."""
UP_TIMEOUT = 3600.0
"""Timeout of `up` in seconds; it may pull or build images."""
STOP_TIMEOUT = 10.0
"""Seconds to wait for an interrupted command to end, before it is killed."""
LOG_LINES = 10
"""Number of lines of the service's log that an error shows."""
ERROR_LINES = 3
"""Number of lines, from the end of a command's output, that an error shows; earlier lines only report progress."""
MAX_LINE = 200

_NO_ENGINE = re.compile(
    r"Can(?:no|')t connect to the Docker daemon|Couldn't connect to Docker daemon|Is the docker daemon running"
    r"|Error while fetching server API version|error during connect|permission denied while trying to connect"
)
_PORT_TAKEN = re.compile(r"port is already allocated|address already in use|[Pp]orts are not available")
_NO_IMAGE = re.compile(
    r"pull access denied|manifest unknown|manifest for \S+ not found|failed to (?:resolve|do request)"
    r"|[Nn]o such image|Get \"?https?://\S*|failed to pull|error pulling image"
)


class _Result(Struct, frozen=True):
    """The output of a finished command."""

    succeeded: bool
    output: str
    error: str
    """Standard error; if that is empty, standard output."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The docker compose stack of one provider in one run: its containers, and the commands to control them."""

    where: str
    """The name of the provider, with which error messages begin."""
    compose: tuple[str, ...]
    project: str
    file: Path
    service: str
    environment: Mapping[str, str] = field(repr=False)
    redactor: Redactor = field(repr=False)

    async def check(self) -> None:
        """Raise BadInput if the compose file is invalid or lacks `service`, or the Docker engine does not respond."""
        config = await self._run("config", "--services")
        if not config.succeeded:
            raise BadInput(str(self.file), f"invalid compose file: {self._shorten(config.error)}", remedy="correct it")
        services = sorted(config.output.split())
        if self.service not in services:
            raise unknown_name(
                f"{self.where}: docker.service",
                f"{self.file} has no service {preview(self.service)}",
                self.service,
                services,
            )
        if self._has_docker:
            # `docker version` has clearer errors than `docker info`
            version = await _run(("docker", "version", "--format", "{{.Server.Version}}"), self.environment)
            if not version.succeeded:
                raise self._no_engine(version.error)

    async def up(self) -> None:
        await self._run("up", "-d", seconds=UP_TIMEOUT, failure="cannot start its stack")

    async def down(self) -> None:
        """Remove the stack, even if an earlier process of this run started it. If there is none, do nothing."""
        await self._run("down", "-v", "--remove-orphans", failure="cannot remove its stack")

    async def is_running(self) -> bool:
        """Return whether the service is running or restarting.

        Restarting counts, because a service may fail a few times until its database is ready.
        """
        for status in ("running", "restarting"):
            arguments = ("ps", "--services", "--filter", f"status={status}")
            result = await self._run(*arguments, failure="cannot list its containers")
            if self.service in result.output.split():
                return True
        return False

    async def read_log(self) -> str:
        """Return the end of the service's log as a clause for an error message, such as `its log: …`."""
        result = await self._run("logs", "--no-color", "--tail", str(LOG_LINES), self.service)
        lines = self._lines(result.output if result.succeeded else result.error)
        text = " / ".join([line for line in lines if not line.startswith("Attaching to ")][-LOG_LINES:])
        return f"its log: {text}" if text else "its log is empty"

    async def find_project_on(self, port: int) -> str | None:
        """Return the name of another memorybench run's stack that uses this port; None if there is none.

        The process of that run may have been killed, so that it did not remove its stack.
        """
        if not self._has_docker:
            return None
        label = '{{.Label "com.docker.compose.project"}}'
        result = await _run(("docker", "ps", "--filter", f"publish={port}", "--format", label), self.environment)
        return next((name for name in result.output.split() if name.startswith(PREFIX)), None)

    def command_line(self, *arguments: str, project: str | None = None) -> str:
        """Return a compose command as a user would type it."""
        return shlex.join(self._command(project or self.project, arguments))

    def _command(self, project: str, arguments: Sequence[str]) -> tuple[str, ...]:
        return (*self.compose, "-p", project, "-f", str(self.file), *arguments)

    @property
    def _has_docker(self) -> bool:
        """Whether the program docker exists; docker-compose works without it."""
        return shutil.which("docker", path=self.environment.get("PATH")) is not None

    async def _run(self, *arguments: str, seconds: float = TIMEOUT, failure: str = "") -> _Result:
        """Run a compose command. With `failure`, raise an error that begins with it if the command fails."""
        result = await _run(self._command(self.project, arguments), self.environment, seconds)
        if failure and not result.succeeded:
            raise self._error(failure, result.error)
        return result

    def _error(self, failure: str, text: str) -> MemorybenchError:
        if _NO_ENGINE.search(text):
            return self._no_engine(text)
        if _PORT_TAKEN.search(text):
            return BadInput(
                self.where,
                f"a published port is in use: {self._shorten(text, _PORT_TAKEN)}",
                remedy=f"change the port in {self.file}, or stop the program that uses it",
            )
        if _NO_IMAGE.search(text):
            return BadInput(
                self.where,
                f"cannot get a Docker image: {self._shorten(text, _NO_IMAGE)}",
                remedy=f"run `{self.command_line('pull')}`, or build the image",
            )
        return ServiceError(f"{self.where}: {failure}: {self._shorten(text)}")

    def _no_engine(self, text: str) -> BadInput:
        return BadInput(
            self.where,
            f"the Docker engine does not respond: {self._shorten(text, _NO_ENGINE)}",
            remedy="start Docker, and check it with `docker info`",
        )

    def _shorten(self, text: str, pattern: re.Pattern[str] | None = None) -> str:
        """Return the last line of a text that matches the pattern; if none does, the last ERROR_LINES lines."""
        lines = self._lines(text)
        matches = [line for line in lines if pattern is not None and pattern.search(line)]
        return " / ".join(matches[-1:] or lines[-ERROR_LINES:]) or "no error message"

    def _lines(self, text: str) -> Sequence[str]:
        # redacted before lines are cut, because a part of a key would not be recognized
        lines = (" ".join(line.split()) for line in sanitize(self.redactor.clean(text)).splitlines())
        # the cause is at the end of a line
        return [line if len(line) <= MAX_LINE else f"…{line[1 - MAX_LINE :]}" for line in lines if line]


def project_name(run: str, provider: str) -> str:
    """Return the name of the stack of a run and provider, which is the same in every process of the run.

    It consists of lower-case letters, digits and hyphens, because Compose 1 accepts only these and underscores.
    """
    readable = re.sub(r"[^a-z0-9]+", "-", f"{provider[:24]}-{run[:24]}".lower())
    return f"{PREFIX}{readable}-{digest([run, provider])[:8]}"


async def find_compose(environment: Mapping[str, str], where: str) -> tuple[str, ...]:
    """Return `docker compose` or `docker-compose`, whichever works on this machine; raise BadInput if none does."""
    for command in (("docker", "compose"), ("docker-compose",)):
        is_installed = shutil.which(command[0], path=environment.get("PATH"))
        if is_installed and (await _run((*command, "version"), environment)).succeeded:
            return command
    raise BadInput(
        where,
        "neither docker compose nor docker-compose is installed",
        remedy="install Docker with its compose plug-in",
    )


async def _run(command: Sequence[str], environment: Mapping[str, str], seconds: float = TIMEOUT) -> _Result:
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C in the terminal must not stop docker: we remove the stack
    )
    try:
        async with asyncio.timeout(seconds):
            output, error = (text.decode(errors="replace") for text in await process.communicate())
    except TimeoutError:
        raise ServiceError(f"{' '.join(command)}: timed out after {seconds:.0f} s") from None
    finally:
        if process.returncode is None:
            await run_to_completion(_stop(process))
    return _Result(process.returncode == 0, output, error if error.strip() else output)


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Stop a process with SIGTERM, so that compose can stop its work, and then with SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_TIMEOUT):
                await process.communicate()
                return


async def run_to_completion(work: Coroutine[Any, Any, None]) -> None:
    """Await `work` even if this task is cancelled meanwhile; raise the cancellation afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as cancellation:
            cancelled = cancellation
    if cancelled is not None:
        raise cancelled
