"""Memory systems in containers: a docker compose stack is started for the run and always removed."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from memorybench.core.errors import BadInput, MemorybenchError, ServiceError
from memorybench.http.client import Http, open_http
from memorybench.providers.config.provider import Docker, ProviderConfig
from memorybench.secrets.redaction import Redactor
from memorybench.text.sanitize import preview

from .docker_stack import Stack, find_compose, project_name, to_the_end

HEALTH_EVERY = 0.2
HEALTH_DEADLINE = 5.0
KNOCK_DEADLINE = 2.0
"""Seconds."""

_OF_DOCKER = re.compile(r"PATH|HOME|DOCKER_[A-Z0-9_]+")
_REFERENCE = re.compile(r"(?<!\$)\$\{([A-Z][A-Z0-9_]*)")


def compose_environment(written: ProviderConfig, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a stack: what docker itself needs, and what the config names.

    The config names the key of `auth`, which the service must know, and `${VAR}` in the section `docker`, such as a
    port that is also in the compose file. `written` is the config without variables filled in.
    """
    named = {written.auth.env_var}
    if written.docker is not None:
        named.update(name for text in written.docker.plain().values() for name in _REFERENCE.findall(str(text)))
    return {name: value for name, value in environment.items() if name in named or _OF_DOCKER.fullmatch(name)}


@asynccontextmanager
async def open_docker(
    config: ProviderConfig,
    *,
    run: str,
    base: Path,
    environment: Mapping[str, str],
    redactor: Redactor,
    leaked: Callable[[str], object],
) -> AsyncIterator[str]:
    """Start a stack, wait until it is healthy, and yield its store id.

    A stack that a killed process of the same `run` left is removed first. `base` is the folder of the config;
    `environment` comes from `compose_environment`. `leaked` is called with one line if the stack cannot be removed.
    """
    assert config.docker is not None
    where = f'provider "{config.name}"'
    stack = Stack(
        where=where,
        file=_compose_file(config.docker, base, where),
        compose=await find_compose(environment, where),
        project=project_name(run, config.name),
        service=config.docker.service,
        environment=environment,
        redactor=redactor,
    )
    await stack.check()
    await stack.down()
    for url in dict.fromkeys((config.docker.healthcheck, config.docker.base_url)):
        await _refuse_taken(url, stack)
    try:
        await stack.up()
        connection = config.connection
        async with open_http(redactor, insecure=connection.insecure, tls=connection.tls) as http:
            await _until_healthy(stack, config.docker, http)
        yield f"{stack.project}:{secrets.token_hex(8)}"
    finally:
        await to_the_end(_taken_down(stack, leaked))


def _compose_file(docker: Docker, base: Path, where: str) -> Path:
    for folder in (base, Path()):
        file = (folder / docker.compose).resolve()
        if file.is_file():
            return file
    raise BadInput(
        f"{where}: docker.compose",
        f"there is no file {preview(docker.compose)}",
        expected=f"a path from {base} or from the working folder",
    )


async def _refuse_taken(url: str, stack: Stack) -> None:
    """Raise BadInput if the port is in use before the stack starts: another program would be measured."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(KNOCK_DEADLINE):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, TimeoutError):
        return
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    remedy = "stop it, or change the port in the compose file and in the config"
    holder = await stack.holder(port)
    if holder is not None:
        remedy = f"wait for that run, or if it was killed: {stack.by_hand('down', '-v', project=holder)}"
    raise BadInput(
        stack.where,
        f"{parts.hostname}:{port} is taken by {f'the stack {holder} of another run' if holder else 'another program'}",
        remedy=remedy,
    )


async def _until_healthy(stack: Stack, docker: Docker, http: Http) -> None:
    clock = asyncio.get_running_loop().time
    end = clock() + docker.timeout / 1000
    while (trouble := await _unhealthy(docker.healthcheck, http)) is not None:
        service = f"{stack.where}: its service {preview(docker.service)}"
        if not await stack.alive():
            raise ServiceError(f"{service} died; {await stack.last_words()}")
        if clock() >= end:
            seconds = docker.timeout / 1000
            raise ServiceError(
                f"{service} was not healthy within {seconds:g} s ({trouble}); {await stack.last_words()}"
            )
        await asyncio.sleep(HEALTH_EVERY)


async def _unhealthy(url: str, http: Http) -> str | None:
    """Return why the service is not healthy; None if it is."""
    try:
        await http.request("GET", url, deadline=HEALTH_DEADLINE)
    except ServiceError as trouble:
        return str(trouble)
    return None


async def _taken_down(stack: Stack, leaked: Callable[[str], object]) -> None:
    try:
        await stack.down()
    except MemorybenchError as trouble:
        leaked(f"{trouble}; it may still run: {stack.by_hand('down', '-v')}")
