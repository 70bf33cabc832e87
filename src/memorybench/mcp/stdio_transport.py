"""MCP over the standard streams of a child process: one JSON message a line."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from memorybench.core.errors import BadInput, Malformed, ServiceError
from memorybench.processes.programs import PATIENCE, TAIL, ended, how_ended, quoted, running
from memorybench.secrets.redaction import Redactor

from .client import DEADLINE, McpClient
from .messages import MESSAGE_CAP, Message, Reader, answer, decode, encode, is_reply, messages_in

INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "NODE_PATH", "SSL_CERT_FILE")
"""What a program needs of its surroundings, and no more: keys of other services stay where they are."""


def child_environment(environment: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """What a child sees: the harmless part of `environment`, and what is given to it by name."""
    return {name: environment[name] for name in INHERITED if name in environment} | dict(own)


@asynccontextmanager
async def open_mcp_stdio(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    redactor: Redactor,
    *,
    deadline: float = DEADLINE,
    message_cap: int = MESSAGE_CAP,
) -> AsyncIterator[McpClient]:
    """Starts `command` with exactly the environment `env`, and ends it with all its children.

    `deadline`: seconds that a call may take, unless it says otherwise.
    """
    reader = Reader(Path(command[0]).name, redactor)
    process = await _started(command, env, cwd, message_cap)
    child = _Child(process, reader, message_cap)
    with running(process.pid):
        try:
            client = McpClient(child, reader, deadline)
            await client.shake_hands()
            yield client
        finally:
            await child.close()


async def _started(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, message_cap: int
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            env=dict(env),
            cwd=cwd,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=message_cap,
            start_new_session=True,  # so that what the child starts can be ended with it
        )
    except FileNotFoundError:
        raise BadInput(f'"{command[0]}"', "no such program is found", remedy="install it, or name its path") from None
    except OSError as error:
        raise BadInput(f'"{command[0]}"', f"can not be started: {error.strerror}") from None


class _Child:
    def __init__(self, process: asyncio.subprocess.Process, reader: Reader, message_cap: int) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._reader = reader
        self._message_cap = message_cap
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._failure: ServiceError | None = None
        self._last_words = b""
        self._listening_to_errors = asyncio.create_task(self._listen_to_errors())
        self._listening = asyncio.create_task(self._listen())

    async def ask(self, message: Message) -> Message:
        if self._failure is not None:
            raise self._failure
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[message["id"]] = reply
        try:
            await self.tell(message)
            return await reply
        finally:
            del self._waiting[message["id"]]
            if reply.done() and not reply.cancelled():
                reply.exception()  # seen, even where sending it had failed first

    async def tell(self, message: Message) -> None:
        try:
            self._stdin.write(encode(message) + b"\n")
            await self._stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            await asyncio.shield(self._listening)  # which finds out why
            raise self._failure or ServiceError(f"{self._reader.server}: it closed its input") from None

    def agreed(self, version: str) -> None:
        """Nothing on these streams depends on the version."""

    async def close(self) -> None:
        """As the protocol asks: its input is closed, then it is told to end, then it is ended."""
        self._stdin.close()
        if not await ended(self._process):
            self._signal(signal.SIGTERM)
            await ended(self._process)
        self._signal(signal.SIGKILL)  # also to what it left behind
        await self._process.wait()
        for task in (self._listening, self._listening_to_errors):
            task.cancel()
        await asyncio.gather(self._listening, self._listening_to_errors, return_exceptions=True)
        with suppress(BrokenPipeError, ConnectionResetError):
            await self._stdin.wait_closed()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _listen(self) -> None:
        try:
            while line := await self._stdout.readline():
                await self._hear(line)
        except ValueError:  # the stream holds more than a message may
            self._fail(Malformed(f"{self._reader.server}: a message is larger than {self._message_cap:,} bytes"))
            self._signal(signal.SIGKILL)  # it would block on the rest of it for ever
            return
        # what the child has started may hold its streams open when it is gone
        await asyncio.wait([self._listening_to_errors], timeout=PATIENCE)
        ending = how_ended(self._process.returncode or 0) if await ended(self._process) else "closed its output"
        words = self._reader.redactor.clean(self._last_words.decode("utf-8", "replace"))
        self._fail(ServiceError(f"{self._reader.server}: {ending}{quoted(words)}"))

    async def _hear(self, line: bytes) -> None:
        try:
            messages = messages_in(decode(line))
        except ValueError:
            messages = []
        if not messages and line.strip():
            self._keep(line)  # some servers log where only messages should be; it is as good as an error stream
        for message in messages:
            if is_reply(message):
                waiting = self._waiting.get(message["id"]) if isinstance(message["id"], int) else None
                if waiting is not None and not waiting.done():  # else it comes too late, or nobody asked
                    waiting.set_result(message)
            elif (said := answer(message)) is not None:
                # not drained: a child that reads nothing must not keep us from hearing it
                self._stdin.write(encode(said) + b"\n")

    async def _listen_to_errors(self) -> None:
        while piece := await self._stderr.read(TAIL):
            self._keep(piece)

    def _keep(self, piece: bytes) -> None:
        self._last_words = (self._last_words + piece)[-TAIL:]

    def _fail(self, failure: ServiceError) -> None:
        self._failure = failure
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(failure)
