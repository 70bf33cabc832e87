from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("starlette")

from starlette.testclient import TestClient

from memorybench import catalog
from memorybench.cli.main import main
from memorybench.view.app import create_app
from tests.cli.test_extraction import KNOWN

SAMPLE = Path(catalog.__file__).parent / "data" / "sample-dataset.json"
SCRIPTED = ("--answering-model", "scripted/quote", "--judge-model", "scripted/judge")
Open = Callable[..., TestClient]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with a run of each suite; `first` and `second` have the same questions."""
    folder = tmp_path_factory.mktemp("recorded")
    before = Path.cwd()
    os.chdir(folder)
    try:
        providers = ("--providers", "bm25", "oracle", "none")
        assert main(["eval", *providers, "--end", "12", "--run-id", "first", "--tag", "paper"]) == 0
        assert main(["eval", *providers, "--end", "8", *SCRIPTED, "--run-id", "second"]) == 0
        audit = ["audit", str(SAMPLE), "--limit", "8", "--model", "scripted/quote", "--judge-model", "scripted/judge"]
        assert main([*audit, "--run-id", "a"]) in (0, 3)
        scenarios = ("memory-skip-local", "memory-deletion-on-request")
        assert main(["hygiene", "run", *scenarios, "--run-id", "h", "--output", "results"]) in (0, 3)
        extractor = ["--extractor", f"{KNOWN}:perfect", "--allow-code"]
        assert main(["extraction", "run", *extractor, "--limit", "4", "--run-id", "e"]) in (0, 3)
    finally:
        os.chdir(before)
    return folder


@contextmanager
def opened(*folders: Path, **options: str) -> Iterator[TestClient]:
    app = create_app(folders, **options)  # type: ignore[arg-type]
    with TestClient(app, base_url="http://127.0.0.1:8750", follow_redirects=False) as client:
        yield client


@pytest.fixture
def client(recorded: Path) -> Iterator[TestClient]:
    with opened(recorded / "results", recorded / "audit-results") as client:
        yield client


def get(client: TestClient, path: str) -> str:
    """The page, once its parts are ready."""
    reply = client.get(path)
    while reply.status_code == 202:
        reply = client.get(path)
    assert reply.status_code == 200, reply.text
    return reply.text
