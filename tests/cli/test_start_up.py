"""What a run does not import, because importing takes longer than the run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import json, sys
from memorybench.cli.main import main
code = main(["eval", "--providers", "bm25", "--limit", "1", "--output", "results"])
print(json.dumps([code, sorted(sys.modules)]))
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    folder = tmp_path_factory.mktemp("run")
    ended = subprocess.run([sys.executable, "-c", RUN], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    code, names = json.loads(ended.stdout.splitlines()[-1])
    assert code == 0
    assert Path(folder, "results").is_dir()
    return frozenset(names)


@pytest.mark.parametrize(
    "name",
    [
        "aiohttp",
        "genai_prices",
        "jsonpath",
        "mcp",
        "numpy",
        "scipy",
        "shtab",
        "yarl",
        "memorybench.agents",
        "memorybench.extractors",
        "memorybench.judging.judge",
        "memorybench.models",
        "memorybench.providers.http",
        "memorybench.secrets.credentials",
        "memorybench.stores",
        "memorybench.suites.audit",
        "memorybench.suites.extraction",
        "memorybench.suites.gate",
        "memorybench.suites.hygiene",
        "memorybench.suites.judge_check",
        "memorybench.suites.junit",
        "memorybench.wiring.isolation",
        "memorybench.wiring.models",
    ],
)
def test_a_bm25_run_does_not_import(modules: frozenset[str], name: str) -> None:
    assert not [module for module in modules if module == name or module.startswith(f"{name}.")]
