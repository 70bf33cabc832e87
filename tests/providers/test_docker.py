from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import BadInput, MemorybenchError, ServiceError
from memorybench.files.yaml_file import load_yaml
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.reading import read_provider
from memorybench.providers.http.docker import compose_environment, open_docker
from memorybench.providers.http.docker_stack import project_name
from memorybench.providers.http.provider import open_http_provider
from memorybench.secrets.redaction import Redactor
from tests.doubles.fake_docker import FakeDocker
from tests.doubles.stack_process import stack_process
from tests.providers.embedded import HOME, fill, session

EXAMPLE = Path(__file__).parents[2] / "examples" / "providers" / "reference-docker.yaml"
COMPOSE = EXAMPLE.parents[1] / "reference-memory" / "docker-compose.yml"
RUN = "run_1"
SECRET = "sk-sentinel-0123456789"


@pytest.fixture
def docker(tmp_path: Path) -> FakeDocker:
    return FakeDocker(tmp_path)


def config_of(environment: Mapping[str, str], **changed: Any) -> ProviderConfig:
    """The example's config; `changed` are keys of its section `docker`."""
    config = read_provider(load_yaml(EXAMPLE), environment)
    assert config.docker is not None
    return config.model_copy(update={"docker": config.docker.model_copy(update=changed)})


@asynccontextmanager
async def opened(
    docker: FakeDocker, *, run: str = RUN, base: Path = EXAMPLE.parent, leaked: list[str] | None = None, **changed: Any
) -> AsyncIterator[str]:
    async with open_docker(
        config_of(docker.environment, **changed),
        run=run,
        config_file=base / "config.yaml",
        environment=docker.environment,
        redactor=Redactor([SECRET]),
        report_leak=[].append if leaked is None else leaked.append,
    ) as store_id:
        yield store_id


def failure(docker: FakeDocker, *, base: Path = EXAMPLE.parent, **changed: Any) -> MemorybenchError:
    """Return the error of a failed opening; it is one line, and nothing is left running."""

    async def fail() -> None:
        async with opened(docker, base=base, **changed):
            pass

    with pytest.raises(MemorybenchError) as failed:
        asyncio.run(fail())
    assert "\n" not in str(failed.value)
    assert str(failed.value).startswith(('provider "reference-docker": ', str(base)))
    assert not docker.running
    return failed.value


@pytest.mark.slow
def test_stack_is_started_used_and_removed_with_its_volumes(docker: FakeDocker) -> None:
    async def use() -> None:
        async with (
            opened(docker) as store_id,
            open_http_provider(
                config_of(docker.environment), key=None, redactor=Redactor([]), store_id=store_id
            ) as provider,
        ):
            assert docker.running == [project_name(RUN, "reference-docker")]
            await fill(provider, [session("topic", "My pet is a zebrafinch."), session("talk", "Lovely weather.")])
            found = await provider.search(HOME, "Which pet?", 5)
            assert [memory.sources for memory in found] == [("topic", "topic:1")]
            assert provider.store_id == store_id

    asyncio.run(use())
    assert not docker.running
    assert [command for command in docker.commands if command in ("up", "down")] == ["down", "up", "down"]
    up, down = docker.calls[docker.commands.index("up")], docker.calls[-1]
    assert up["arguments"] == ["-d"]
    assert down["arguments"] == ["-v", "--remove-orphans"]
    assert {call.get("-f") for call in (up, down)} == {str(COMPOSE)}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["", "no plugin"])
def test_docker_compose_is_used_without_the_compose_plug_in(tmp_path: Path, fault: str) -> None:
    old = FakeDocker(tmp_path, command="docker-compose")
    if fault:
        # an installation with both, of which docker alone lacks the plug-in
        (tmp_path / "bin" / "docker").symlink_to(tmp_path / "bin" / "docker-compose")
        old.fault(fault)

    async def use() -> None:
        async with opened(old):
            assert old.running

    asyncio.run(use())
    assert not old.running


@pytest.mark.slow
def test_stack_is_removed_after_an_error_of_the_run(docker: FakeDocker) -> None:
    async def stumble() -> None:
        async with opened(docker):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(stumble())
    assert not docker.running


@pytest.mark.slow
def test_repeated_cancelling_does_not_stop_the_removal(docker: FakeDocker) -> None:
    inside = asyncio.Event()

    async def live() -> None:
        async with opened(docker):
            inside.set()
            await asyncio.Event().wait()

    async def cancel() -> None:
        life = asyncio.create_task(live())
        await inside.wait()
        while not life.done():
            life.cancel()
            await asyncio.sleep(0.005)
        assert life.cancelled()

    asyncio.run(cancel())
    assert docker.commands[-1] == "down"
    assert not docker.running


def test_interrupt_stops_a_pull_and_removes_the_stack(docker: FakeDocker) -> None:
    docker.fault("pulls for ever")

    async def live() -> None:
        async with opened(docker):
            raise AssertionError("it is never healthy")

    async def cancel() -> None:
        life = asyncio.create_task(live())
        await asyncio.to_thread(docker.wait_for, "up")
        life.cancel()
        with pytest.raises(asyncio.CancelledError):
            await life

    asyncio.run(cancel())
    assert docker.commands[-2:] == ["up", "down"]
    assert not docker.running


@pytest.mark.slow
def test_ctrl_c_removes_the_stack(docker: FakeDocker) -> None:
    with stack_process(EXAMPLE, docker.environment) as process:
        assert docker.running
        os.killpg(process.pid, signal.SIGINT)
    assert docker.commands[-1] == "down"
    assert not docker.running


@pytest.mark.slow
def test_stack_of_a_killed_process_is_removed_at_resume(docker: FakeDocker) -> None:
    with stack_process(EXAMPLE, docker.environment) as process:
        os.killpg(process.pid, signal.SIGKILL)
    [left] = docker.running
    seen = len(docker.commands)

    async def resume() -> None:
        async with opened(docker):
            assert docker.running == [left]

    asyncio.run(resume())
    again = [command for command in docker.commands[seen:] if command in ("up", "down")]
    assert again == ["down", "up", "down"], "an unknown store was reused"
    assert not docker.running


@pytest.mark.slow
def test_port_used_by_another_run_is_an_error_with_remedy(docker: FakeDocker) -> None:
    async def collide() -> None:
        async with opened(docker, run="run_1"), opened(docker, run="run_2"):
            pass

    with pytest.raises(BadInput) as refused:
        asyncio.run(collide())
    left = project_name("run_1", "reference-docker")
    assert f"the stack {left}" in refused.value.problem
    assert f"docker compose -p {left} -f {COMPOSE} down -v" in refused.value.remedy


def test_port_in_use_is_an_error_before_the_start(docker: FakeDocker) -> None:
    with socket.create_server(("127.0.0.1", docker.port)):
        refused = failure(docker)
    assert f"127.0.0.1:{docker.port}" in str(refused)
    assert "up" not in docker.commands


@pytest.mark.parametrize(
    ("fault", "kind", "cause"),
    [
        ("no engine", BadInput, ": Cannot connect to the Docker daemon"),
        ("port", BadInput, ": Error starting userland proxy: listen tcp4 127.0.0.1"),
        ("image", BadInput, ": Error response from daemon: pull access denied for nobody/noth"),
        ("strange", ServiceError, ": memory Creating / Error response from daemon: the moon"),
        ("dies", ServiceError, "memory_1 | line"),
        ("never healthy", ServiceError, "not healthy within 0.01 s (GET http://127.0.0.1:"),
    ],
)
def test_stack_failures_are_one_line_errors(
    docker: FakeDocker, fault: str, kind: type[MemorybenchError], cause: str
) -> None:
    docker.fault(fault)
    failed = failure(docker, timeout=10)
    assert type(failed) is kind
    assert cause in str(failed)


def test_missing_engine_is_reported_without_the_docker_program(tmp_path: Path) -> None:
    old = FakeDocker(tmp_path, command="docker-compose")
    old.fault("no engine")
    assert ": Cannot connect to the Docker daemon" in str(failure(old))


def test_missing_docker_is_an_error(tmp_path: Path, docker: FakeDocker) -> None:
    docker.environment["PATH"] = str(tmp_path)
    assert "docker-compose is installed" in str(failure(docker))


def test_the_last_log_lines_are_shown_without_secrets_and_control_characters(docker: FakeDocker) -> None:
    docker.fault("dies")
    docker.environment["DOCKER_SECRET"] = SECRET
    line = str(failure(docker))
    assert line.endswith("/ memory_1 | line 19 / memory_1 | no database for [redacted]")
    assert line.count("memory_1 |") == 10
    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"service": "memry"}, 'has no service "memry"; expected one of memory; did you mean "memory"?'),
        ({"compose": "./nowhere.yml"}, 'docker.compose: file not found: "./nowhere.yml"'),
    ],
)
def test_invalid_docker_section_is_an_error(docker: FakeDocker, changed: dict[str, str], problem: str) -> None:
    assert problem in str(failure(docker, **changed))
    assert "up" not in docker.commands


@pytest.mark.slow
def test_compose_file_may_be_relative_to_the_working_folder(
    docker: FakeDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLE.parent)

    async def use() -> None:
        async with opened(docker, base=tmp_path):
            assert docker.running

    asyncio.run(use())


@pytest.mark.slow
def test_failed_removal_is_reported_and_the_result_returned(docker: FakeDocker) -> None:
    docker.fault("stuck")
    leaked: list[str] = []

    async def use() -> str:
        async with opened(docker, leaked=leaked):
            return "result"

    assert asyncio.run(use()) == "result"
    [line] = leaked
    assert ": error while removing network: has active endpoints" in line
    assert line.endswith(f"-f {COMPOSE} down -v")
    os.kill(int(next((Path(docker.environment["DOCKER_STATE"])).glob("*.container")).read_text()), signal.SIGKILL)


@pytest.mark.slow
def test_every_opening_has_its_own_store_id(docker: FakeDocker) -> None:
    async def open_twice() -> set[str]:
        incarnations = set()
        for _ in range(2):
            async with opened(docker) as store_id:
                incarnations.add(store_id)
        return incarnations

    assert len(asyncio.run(open_twice())) == 2


def test_stack_gets_only_docker_and_config_variables() -> None:
    written = read_provider(load_yaml(EXAMPLE))
    written = written.model_copy(update={"auth": written.auth.model_copy(update={"env_var": "REFERENCE_KEY"})})
    seen = {"PATH": "/bin", "HOME": "/home", "DOCKER_HOST": "ssh://far", "REFERENCE_KEY": "k"}
    seen["REFERENCE_MEMORY_PORT"] = "9000"
    hidden = {"OPENAI_API_KEY": SECRET, "HOMEBREW": "x", "MY_DOCKER_KEY": SECRET, "COMPOSE_FILE": "other.yml"}
    assert compose_environment(written, {**seen, **hidden}) == seen


@pytest.mark.slow
def test_docker_does_not_inherit_our_environment(docker: FakeDocker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)

    async def use() -> None:
        async with opened(docker):
            pass

    asyncio.run(use())
    assert SECRET not in str(docker.calls)
    assert docker.calls[0]["environment"]["REFERENCE_MEMORY_PORT"] == str(docker.port)


def test_stack_name_contains_run_and_provider_and_is_unique() -> None:
    named = project_name("run_1", "reference-docker")
    assert named == project_name("run_1", "reference-docker")
    assert named.startswith("memorybench-reference-docker-run-1-")
    others = [project_name(run, provider) for run, provider in (("run-1", "reference-docker"), ("run_1", "reference"))]
    assert len({named, *others}) == 3
    assert re.fullmatch(r"[a-z0-9-]{1,80}", project_name("Run.With_Capitals" * 4, "_provider-" * 6))
