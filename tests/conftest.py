from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from memorybench.suites.html_report import start_without_charts
from tests.cli.command import Command
from tests.doubles.refusals import refused
from tests.doubles.stub import Stub

# a slow machine must not fail a test
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def performed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of commands that are performed once for all tests."""
    return tmp_path_factory.mktemp("performed")


@pytest.fixture
def command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, performed: Path
) -> Command:
    """The command in an empty folder, without keys or models in the environment."""
    monkeypatch.chdir(tmp_path)
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "MEMORYBENCH_MODEL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    # drawing charts takes seconds of CPU; tests/reporting/test_page_of_run.py tests it
    monkeypatch.setattr("memorybench.workers.placement.start_page", start_without_charts)
    return Command(tmp_path, capsys, performed)


@pytest.fixture
def complaint() -> Callable[..., str]:
    """`refused`, as text: prefer the fields of the error that tests.doubles.refusals.refused returns."""

    def error_text(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
        return str(refused(call, *arguments, **options))

    return error_text


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A local server; the test says what it replies."""
    with Stub() as running:
        yield running
