"""The commands of docker compose for one stack; their errors become one line with a remedy."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput, MemorybenchError, ServiceError
from memorybench.core.records import digest
from memorybench.secrets.redaction import Redactor
from memorybench.text.sanitize import preview, sanitize
from memorybench.text.spelling import join_names, suggestion

PREFIX = "memorybench-"
"""Prefix of the name of every stack of ours."""
PATIENCE = 120.0
"""Timeout of a command in seconds; removing a stack waits 10 s for each container that does not stop."""
UP_PATIENCE = 3600.0
"""Timeout of `up` in seconds; it may pull or build images."""
GRACE = 10.0
"""Seconds that an interrupted command has to end."""
LAST_LINES = 10
"""Number of lines of a container's log in an error."""
LONGEST_COMPLAINT = 3
"""Number of lines of a command's output in an error; earlier lines show progress."""
LONGEST_LINE = 200

_NO_ENGINE = re.compile(
    r"Can(?:no|')t connect to the Docker daemon|Couldn't connect to Docker daemon|Is the docker daemon running"
    r"|Error while fetching server API version|error during connect|permission denied while trying to connect"
)
_PORT_TAKEN = re.compile(r"port is already allocated|address already in use|[Pp]orts are not available")
_NO_IMAGE = re.compile(
    r"pull access denied|manifest unknown|manifest for \S+ not found|failed to (?:resolve|do request)"
    r"|[Nn]o such image|Get \"?https?://\S*|failed to pull|error pulling image"
)


@dataclass(frozen=True, slots=True)
class _Ended:
    succeeded: bool
    said: str
    """On its standard output."""
    complained: str
    """On its standard error, or where that is empty, on its standard output."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The containers of one run of one provider."""

    where: str
    """Names the provider in errors."""
    compose: tuple[str, ...]
    project: str
    file: Path
    service: str
    environment: Mapping[str, str] = field(repr=False)
    redactor: Redactor = field(repr=False)

    async def check(self) -> None:
        """Raise BadInput if the compose file is invalid, has no such service, or the Docker engine does not respond."""
        ended = await self._run("config", "--services")
        if not ended.succeeded:
            raise BadInput(str(self.file), f"compose can not read it: {self._told(ended.complained)}")
        services = sorted(ended.said.split())
        if self.service not in services:
            raise BadInput(
                f"{self.where}: docker.service",
                f"{self.file} has no service {preview(self.service)}",
                expected=f"one of {join_names(services)}",
                remedy=suggestion(self.service, services),
            )
        if self._has_docker:
            # clearer in its complaints than `docker info`
            version = await _ended(("docker", "version", "--format", "{{.Server.Version}}"), self.environment)
            if not version.succeeded:
                raise self._no_engine(version.complained)

    async def up(self) -> None:
        ended = await self._run("up", "-d", patience=UP_PATIENCE)
        if not ended.succeeded:
            raise self._failure("start", ended.complained)

    async def down(self) -> None:
        """Remove the stack, also one of an earlier process of this run; having none is not an error."""
        ended = await self._run("down", "-v", "--remove-orphans")
        if not ended.succeeded:
            raise self._failure("take down", ended.complained)

    async def alive(self) -> bool:
        """Return whether the service runs or restarts: one that waits for its database may fail a few times."""
        for status in ("running", "restarting"):
            ended = await self._run("ps", "--services", "--filter", f"status={status}")
            if not ended.succeeded:
                raise self._failure("look after", ended.complained)
            if self.service in ended.said.split():
                return True
        return False

    async def last_words(self) -> str:
        ended = await self._run("logs", "--no-color", "--tail", str(LAST_LINES), self.service)
        lines = self._lines(ended.said if ended.succeeded else ended.complained)
        told = " / ".join([line for line in lines if not line.startswith("Attaching to ")][-LAST_LINES:])
        return f"it logged: {told}" if told else "it logged nothing"

    async def holder(self, port: int) -> str | None:
        """Return our stack that publishes this port: of another run, or left by a killed one."""
        label = '{{.Label "com.docker.compose.project"}}'
        if not self._has_docker:
            return None
        ended = await _ended(("docker", "ps", "--filter", f"publish={port}", "--format", label), self.environment)
        return next((name for name in ended.said.split() if name.startswith(PREFIX)), None)

    def by_hand(self, *arguments: str, project: str | None = None) -> str:
        """Return the command as a user would type it."""
        return shlex.join([*self.compose, "-p", project or self.project, "-f", str(self.file), *arguments])

    @property
    def _has_docker(self) -> bool:
        """Whether the program docker exists; docker-compose works without it."""
        return shutil.which("docker", path=self.environment.get("PATH")) is not None

    async def _run(self, *arguments: str, patience: float = PATIENCE) -> _Ended:
        command = (*self.compose, "-p", self.project, "-f", str(self.file), *arguments)
        return await _ended(command, self.environment, patience)

    def _failure(self, doing: str, complaint: str) -> MemorybenchError:
        if _NO_ENGINE.search(complaint):
            return self._no_engine(complaint)
        if _PORT_TAKEN.search(complaint):
            return BadInput(
                self.where,
                f"a port that it publishes is taken: {self._told(complaint, _PORT_TAKEN)}",
                remedy=f"change it in {self.file}, or free it",
            )
        if _NO_IMAGE.search(complaint):
            return BadInput(
                self.where,
                f"an image can not be had: {self._told(complaint, _NO_IMAGE)}",
                remedy=f"try by hand: {self.by_hand('pull')} (or build)",
            )
        return ServiceError(f"{self.where}: can not {doing} its stack: {self._told(complaint)}")

    def _no_engine(self, complaint: str) -> BadInput:
        return BadInput(
            self.where,
            f"the Docker engine does not answer: {self._told(complaint, _NO_ENGINE)}",
            remedy="start it; docker info tells when it runs",
        )

    def _told(self, complaint: str, pattern: re.Pattern[str] | None = None) -> str:
        """Return the last matching line, or else the last few."""
        lines = self._lines(complaint)
        telling = [line for line in lines if pattern is not None and pattern.search(line)]
        return " / ".join(telling[-1:] or lines[-LONGEST_COMPLAINT:]) or "it said nothing"

    def _lines(self, text: str) -> Sequence[str]:
        # redacted before lines are cut, because a part of a key would not be recognized
        lines = (" ".join(line.split()) for line in sanitize(self.redactor.clean(text)).splitlines())
        # the cause is at the end of a line
        return [line if len(line) <= LONGEST_LINE else f"…{line[1 - LONGEST_LINE :]}" for line in lines if line]


def project_name(run: str, provider: str) -> str:
    """Return the same name for the same run and provider, so that the stack of a killed process is found.

    Compose 1 accepts only lower-case letters, digits, hyphens and underscores.
    """
    readable = re.sub(r"[^a-z0-9]+", "-", f"{provider[:24]}-{run[:24]}".lower())
    return f"{PREFIX}{readable}-{digest([run, provider])[:8]}"


async def find_compose(environment: Mapping[str, str], where: str) -> tuple[str, ...]:
    for command in _compose_commands(environment):
        if (await _ended((*command, "version"), environment)).succeeded:
            return command
    raise BadInput(
        where,
        "neither docker compose nor docker-compose is installed",
        remedy="install Docker with its compose plug-in",
    )


def _compose_commands(environment: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for command in (("docker", "compose"), ("docker-compose",)):
        if shutil.which(command[0], path=environment.get("PATH")):
            yield command


async def _ended(command: Sequence[str], environment: Mapping[str, str], patience: float = PATIENCE) -> _Ended:
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C in the terminal must not stop docker: we remove the stack
    )
    try:
        async with asyncio.timeout(patience):
            said, complained = (text.decode(errors="replace") for text in await process.communicate())
    except TimeoutError:
        raise ServiceError(f"{' '.join(command)}: did not end within {patience:.0f} s") from None
    finally:
        if process.returncode is None:
            await to_the_end(_stop(process))
    return _Ended(process.returncode == 0, said, complained if complained.strip() else said)


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Stop a process with SIGTERM, so that compose can stop its work, and then with SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await process.communicate()
                return


async def to_the_end(work: Coroutine[Any, Any, None]) -> None:
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
