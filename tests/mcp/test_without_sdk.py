"""Commands that do not use MCP work without its SDK."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memorybench.core.errors import BadInput
from memorybench.mcp import check_sdk

WITHOUT_SDK = """
import sys
for name in ("mcp", "mcp_types", "httpx2", "uvicorn", "starlette"):
    sys.modules[name] = None  # importing it raises ImportError
from memorybench.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_SDK, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenarios", [("memory-skip-local",), pytest.param((), id="every scenario", marks=pytest.mark.slow)]
)
def test_the_default_hygiene_run_does_not_import_the_sdk(tmp_path: Path, scenarios: tuple[str, ...]) -> None:
    completed = run(tmp_path, "hygiene", "run", *scenarios, "--output", str(tmp_path / "runs"))
    assert completed.returncode == 0, completed.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("hygiene", "run", "--store", "mcp-memory"),
        ("hygiene", "record", "--name", "seen", "--to", "seen.json", "--", "true"),
    ],
)
def test_commands_that_need_the_sdk_name_the_extra(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    completed = run(tmp_path, *arguments)
    assert completed.returncode == 2, completed.stderr
    assert "memorybench[mcp]" in completed.stderr


def test_check_sdk_names_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(BadInput) as raised:
        check_sdk('store "mine"')
    assert raised.value.where == 'store "mine"'
    assert raised.value.remedy == 'pip install "memorybench[mcp]"'
