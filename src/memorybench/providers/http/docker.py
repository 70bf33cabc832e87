"""Memory systems in containers: starts a docker compose stack for a run and removes it at the end.

A stack that a killed process left is removed when its run is resumed.
"""

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
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.sections import Docker
from memorybench.providers.storage.paths import find_file
from memorybench.secrets.redaction import Redactor
from memorybench.text.sanitize import preview

from .docker_stack import Stack, find_compose, project_name, run_to_completion

HEALTH_INTERVAL = 0.2
HEALTH_TIMEOUT = 5.0
CONNECT_TIMEOUT = 2.0
"""Timeout in seconds for connecting to a port, to see whether it is in use."""

_DOCKER_VARIABLE = re.compile(r"PATH|HOME|DOCKER_[A-Z0-9_]+")
_REFERENCE = re.compile(r"(?<!\$)\$\{([A-Z][A-Z0-9_]*)")


def compose_environment(config: ProviderConfig, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `environment` that a docker compose stack gets.

    These are PATH, HOME and DOCKER_*, the key of `auth`, and each variable that the section `docker` contains as
    `${VAR}`. `config` must have been read without an environment, because otherwise it has values instead of `${VAR}`.
    """
    names = {config.auth.env_var}
    if config.docker is not None:
        names.update(name for text in config.docker.plain().values() for name in _REFERENCE.findall(str(text)))
    return {name: value for name, value in environment.items() if name in names or _DOCKER_VARIABLE.fullmatch(name)}


@asynccontextmanager
async def open_docker(
    config: ProviderConfig,
    *,
    run: str,
    config_file: Path | None,
    environment: Mapping[str, str],
    redactor: Redactor,
    report_leak: Callable[[str], object],
) -> AsyncIterator[str]:
    """Start the docker compose stack of a config, wait until it is healthy, and yield its store id.

    First, remove the stack of an earlier process of the same `run` that was killed. `environment` comes from
    `compose_environment`. `report_leak` is called with one line of text if the stack cannot be removed at the end.
    """
    docker, connection = config.docker, config.connection
    assert docker is not None
    where = f'provider "{config.name}"'
    stack = Stack(
        where=where,
        file=find_file(docker.compose, config_file, f"{where}: docker.compose"),
        compose=await find_compose(environment, where),
        project=project_name(run, config.name),
        service=docker.service,
        environment=environment,
        redactor=redactor,
    )
    await stack.check()
    await stack.down()
    for url in dict.fromkeys((docker.healthcheck, docker.base_url)):
        await _check_port_is_free(url, stack)
    try:
        await stack.up()
        async with open_http(redactor, insecure=connection.insecure, tls=connection.tls) as http:
            await _wait_until_healthy(stack, docker, http)
        yield f"{stack.project}:{secrets.token_hex(8)}"
    finally:
        await run_to_completion(_remove(stack, report_leak))


async def _check_port_is_free(url: str, stack: Stack) -> None:
    """Raise BadInput if the port of `url` is in use before the stack starts: another program would be measured."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, TimeoutError):
        return
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    user, remedy = "another program", "stop that program, or change the port in the compose file and in the config"
    project = await stack.find_project_on(port)
    if project is not None:
        user = f"the stack {project} of another run"
        remedy = f"wait for that run, or if it was killed: {stack.command_line('down', '-v', project=project)}"
    raise BadInput(stack.where, f"{parts.hostname}:{port} is in use by {user}", remedy=remedy)


async def _wait_until_healthy(stack: Stack, docker: Docker, http: Http) -> None:
    clock = asyncio.get_running_loop().time
    seconds = docker.timeout / 1000
    end = clock() + seconds
    service = f"{stack.where}: service {preview(docker.service)}"
    while True:
        try:
            await http.request("GET", docker.healthcheck, deadline=HEALTH_TIMEOUT)
            return
        except ServiceError as error:
            problem = str(error)
        if not await stack.is_running():
            raise ServiceError(f"{service} stopped before it was healthy; {await stack.read_log()}")
        if clock() >= end:
            raise ServiceError(f"{service} was not healthy within {seconds:g} s ({problem}); {await stack.read_log()}")
        await asyncio.sleep(HEALTH_INTERVAL)


async def _remove(stack: Stack, report_leak: Callable[[str], object]) -> None:
    try:
        await stack.down()
    except MemorybenchError as error:
        report_leak(f"{error}; it may still run: {stack.command_line('down', '-v')}")
