"""Docker providers with a real engine and a real container: our reference memory on this machine's own Python."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from memorybench.core.contracts import Listing
from memorybench.core.errors import BadInput, ServiceError
from memorybench.files.yaml_file import load_yaml
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.reading import read_provider
from memorybench.providers.http.docker import open_docker
from memorybench.providers.http.docker_stack import project_name
from memorybench.providers.http.provider import open_http_provider
from memorybench.secrets.redaction import Redactor
from tests.doubles.fake_docker import free_port
from tests.doubles.stack_process import stack_process
from tests.providers.embedded import HOME, fill, session

pytest_plugins = ("tests.real.docker_engine",)
pytestmark = pytest.mark.real

EXAMPLES = Path(__file__).parents[2] / "examples"
CONFIG = EXAMPLES / "providers" / "reference-docker.yaml"
COMPOSE = EXAMPLES / "reference-memory" / "docker-compose.yml"
REFERENCE_IMAGE = "memorybench-reference"
PROJECT = project_name("run_1", "reference-docker")
SECRET = "sk-sentinel-0123456789"


@pytest.fixture
def engine(reference_image: Mapping[str, str]) -> Mapping[str, str]:
    has_plugin = subprocess.run(["docker", "compose", "version"], env=reference_image, capture_output=True)
    if has_plugin.returncode != 0 and shutil.which("docker-compose") is None:
        pytest.skip("neither docker compose nor docker-compose is installed")
    return {**reference_image, "REFERENCE_MEMORY_PORT": str(free_port())}


def left(engine: Mapping[str, str]) -> list[str]:
    """Containers, volumes and networks of the run's stack."""
    label = f"label=com.docker.compose.project={PROJECT}"
    found = []
    for what in ("container", "volume", "network"):
        every = ["--all"] if what == "container" else []
        command = ["docker", what, "ls", "--quiet", *every, "--filter", label]
        found += subprocess.run(command, env=engine, capture_output=True, text=True, check=True).stdout.split()
    return found


def config_of(engine: Mapping[str, str], compose: Path, timeout: int = 60_000) -> ProviderConfig:
    config = read_provider(load_yaml(CONFIG), engine)
    assert config.docker is not None
    changed = {"compose": str(compose), "timeout": timeout}
    return config.model_copy(update={"docker": config.docker.model_copy(update=changed)})


def use(engine: Mapping[str, str], compose: Path = COMPOSE, timeout: int = 60_000) -> list[tuple[str, ...] | None]:
    """Starts the stack, tells it two things, asks one, and clears; returns where the answers came from."""

    async def live() -> list[tuple[str, ...] | None]:
        config = config_of(engine, compose, timeout)
        redactor = Redactor([SECRET])
        async with (
            open_docker(
                config, run="run_1", config_file=CONFIG, environment=engine, redactor=redactor, report_leak=pytest.fail
            ) as store_id,
            open_http_provider(config, key=None, redactor=redactor, store_id=store_id) as provider,
        ):
            assert isinstance(provider, Listing)
            assert not await provider.list(HOME), "it was not started from nothing"
            await fill(provider, [session("told", "My pet is a zebrafinch."), session("talk", "Lovely weather.")])
            found = await provider.search(HOME, "Which pet?", 5)
            await provider.clear(HOME)
            assert not await provider.list(HOME)
            return [memory.sources for memory in found]

    return asyncio.run(live())


def compose_file(folder: Path, *service: str) -> Path:
    """A stack with this service."""
    file = folder / "docker-compose.yml"
    file.write_text("\n    ".join(["services:\n  memory:", *service]))
    return file


def running(python: str) -> tuple[str, ...]:
    """A service that is a program of ours."""
    return f"image: {REFERENCE_IMAGE}", "stop_grace_period: 0s", f"command: [python3, -uc, {python!r}]"


def test_a_container_is_started_used_and_removed_with_its_volumes(engine: Mapping[str, str]) -> None:
    assert use(engine) == [("told", "told:1")]
    assert not left(engine)


def test_ctrl_c_removes_the_containers(engine: Mapping[str, str]) -> None:
    with stack_process(CONFIG, engine) as process:
        assert left(engine)
        os.killpg(process.pid, signal.SIGINT)
    assert not left(engine)


def test_containers_of_a_killed_process_are_replaced_and_removed(engine: Mapping[str, str]) -> None:
    with stack_process(CONFIG, engine) as process:
        os.killpg(process.pid, signal.SIGKILL)
    assert left(engine)
    assert use(engine) == [("told", "told:1")]
    assert not left(engine)


def test_a_container_that_exits_is_reported_with_its_last_output(engine: Mapping[str, str], tmp_path: Path) -> None:
    program = f'import sys; print("key {SECRET}"); sys.exit("no database")'
    with pytest.raises(ServiceError, match="no database") as died:
        use(engine, compose_file(tmp_path, *running(program)))
    assert "key [redacted]" in str(died.value)
    assert not left(engine)


def test_an_unhealthy_container_is_reported_with_its_last_output(engine: Mapping[str, str], tmp_path: Path) -> None:
    program = 'import time; print("still waiting"); time.sleep(3600)'
    with pytest.raises(ServiceError, match=r"was not healthy within 0\.5 s"):
        use(engine, compose_file(tmp_path, *running(program)), timeout=500)
    assert not left(engine)


def test_an_image_that_cannot_be_pulled_is_reported(engine: Mapping[str, str], tmp_path: Path) -> None:
    # a registry that is not there: nothing leaves this machine
    image = f"127.0.0.1:{free_port()}/nothing:none"
    with pytest.raises(BadInput, match="image"):
        use(engine, compose_file(tmp_path, f"image: {image}"))
    assert not left(engine)


def test_a_published_port_in_use_is_reported(engine: Mapping[str, str], tmp_path: Path) -> None:
    with stack_process(CONFIG, engine) as process:
        published = f'ports: ["127.0.0.1:{engine["REFERENCE_MEMORY_PORT"]}:8765"]'
        compose = compose_file(tmp_path, f"image: {REFERENCE_IMAGE}", published)
        # whoever only asks the address of the config finds nobody there
        config = config_of({**engine, "REFERENCE_MEMORY_PORT": str(free_port())}, compose)

        async def collide() -> None:
            async with open_docker(
                config,
                run="run_2",
                config_file=tmp_path / "config.yaml",
                environment=engine,
                redactor=Redactor([]),
                report_leak=pytest.fail,
            ):
                pytest.fail("two stacks share a port")

        with pytest.raises(BadInput, match="port"):
            asyncio.run(collide())
        os.killpg(process.pid, signal.SIGINT)
    assert not left(engine)


def test_an_engine_that_does_not_answer_is_reported(engine: Mapping[str, str], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Docker engine"):
        use({**engine, "DOCKER_HOST": f"unix://{tmp_path}/nowhere"})
