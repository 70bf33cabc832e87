"""A real Docker engine, and an image made of nothing but this machine's own Python: no registry is asked.

Tests that want it say

    pytest_plugins = ("tests.real.docker_engine",)

and take `docker_engine`, the environment in which `docker` reaches it, or `reference_image`, the same with the image
`memorybench-reference` built by its own Dockerfile. An engine that runs is used; else, as root, one is started with a
data root and a socket of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "examples" / "reference-memory"
PYTHON_IMAGE = "memorybench-local-python"
REFERENCE_IMAGE = "memorybench-reference"
_START_SECONDS = 60


@pytest.fixture(scope="session")
def docker_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "DOCKER_HOST")}
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed")
    if _answers(environment):
        yield environment
        return
    if shutil.which("dockerd") is None or os.geteuid() != 0:
        pytest.skip("no Docker engine answers, and only root with dockerd could start one")
    with _engine(tmp_path_factory.mktemp("docker")) as host:
        yield {**environment, "DOCKER_HOST": host}


@pytest.fixture(scope="session")
def reference_image(
    docker_engine: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, str]]:
    if sys.platform != "linux":
        pytest.skip("the image is made of this machine's Python, which is not Linux's")
    root = tmp_path_factory.mktemp("image") / "python.tar"
    libraries = _pack_python(root)
    path = f"ENV LD_LIBRARY_PATH={':'.join(sorted({str(library.parent) for library in libraries}))}"
    _docker(docker_engine, "import", "--change", path, str(root), PYTHON_IMAGE)
    _docker(docker_engine, "build", "--build-arg", f"PYTHON={PYTHON_IMAGE}", "-t", REFERENCE_IMAGE, str(REFERENCE))
    yield docker_engine
    _docker(docker_engine, "rmi", "--force", REFERENCE_IMAGE, PYTHON_IMAGE)


@contextmanager
def _engine(folder: Path) -> Iterator[str]:
    """dockerd in a folder; skips where it does not start."""
    host = f"unix://{folder}/sock"
    command = ["dockerd", "--host", host, "--data-root", folder / "data", "--exec-root", folder / "exec"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, "--pidfile", folder / "pid"], stdout=log, stderr=log)
    try:
        end = time.monotonic() + _START_SECONDS
        while not _answers({**os.environ, "DOCKER_HOST": host}):
            if process.poll() is not None or time.monotonic() > end:
                last = (folder / "log").read_text(errors="replace").splitlines()[-1:]
                pytest.skip(f"dockerd was tried as root and did not start: {last}")
            time.sleep(0.2)
        yield host
    finally:
        process.terminate()
        process.wait()


def _answers(environment: Mapping[str, str]) -> bool:
    asked = ["docker", "info", "--format", "{{.ServerVersion}}"]
    told = subprocess.run(asked, env=environment, capture_output=True, text=True)
    return told.returncode == 0 and bool(told.stdout.strip())


def _docker(environment: Mapping[str, str], *arguments: str) -> None:
    done = subprocess.run(["docker", *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"docker {arguments[0]}: {done.stderr or done.stdout}"


def _pack_python(target: Path) -> set[Path]:
    """Puts this Python, its library and the shared libraries of both into a root file system; returns the latter."""
    executable = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    library = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix}))
    shared = _needed_by(executable, *library.glob("lib-dynload/*.so"))
    with tarfile.open(target, "w") as root:
        root.add(executable, executable)
        root.add(library, library, filter=_without_ballast)
        for file in shared:
            root.add(file.resolve(), file)  # under the name that the loader asks for
        link = tarfile.TarInfo("usr/bin/python3")
        if executable != Path("/", link.name):
            link.type, link.linkname = tarfile.SYMTYPE, str(executable)
            root.addfile(link)
    return shared


def _needed_by(*binaries: Path) -> set[Path]:
    told = subprocess.run(["ldd", *binaries], capture_output=True, text=True).stdout
    return {Path(found) for found in re.findall(r"(/\S+) \(0x", told)}


def _without_ballast(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    ballast = {"test", "tests", "site-packages", "dist-packages", "__pycache__", "idlelib", "ensurepip"}
    return None if ballast & set(Path(member.name).parts) or member.name.endswith(".a") else member
