"""What a run does not import, because importing takes longer than the run."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memorybench.cli.main import main

RUN = """
import json, sys
from memorybench.cli.main import main
code = main(["eval", "--providers", "bm25", "--limit", "1", "--output", "results"])
print(json.dumps([code, sorted(sys.modules)]))
"""

COMMAND = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count() > 0))
from memorybench.cli.main import main
usual = gc.get_threshold()
main(["list", "--suites"])
print(gc.get_threshold() == usual)
sys.argv = ["memorybench", "list", "--suites"]
main()
print(gc.get_threshold()[0] > usual[0])
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
        "babel",
        "cryptography",
        "difflib",
        "genai_prices",
        "jsonpath",
        "mcp",
        "numpy",
        "opentelemetry",
        "ray",
        "requests",
        "scipy",
        "shtab",
        "text_to_num",
        "vl_convert",
        "yarl",
        "memorybench.agents",
        "memorybench.bundles",
        "memorybench.charts.rendering",
        "memorybench.charts.run_charts",
        "memorybench.datasets.dates",
        "memorybench.engine.observing",
        "memorybench.extractors",
        "memorybench.judging.judge",
        "memorybench.metrics.answers",
        "memorybench.models",
        "memorybench.mcp",
        "memorybench.processes",
        "memorybench.providers.config.provider",
        "memorybench.providers.config.requests",
        "memorybench.providers.config.retired",
        "memorybench.providers.config_mcp",
        "memorybench.providers.http",
        "memorybench.secrets.credentials",
        "memorybench.stores",
        "memorybench.suites.audit",
        "memorybench.suites.bench.recorded",
        "memorybench.suites.extraction",
        "memorybench.suites.gate",
        "memorybench.suites.hygiene",
        "memorybench.suites.noise",
        "memorybench.suites.wiring",
        "memorybench.telemetry",
        "memorybench.suites.judge_check",
        "memorybench.suites.junit",
        "memorybench.wiring.isolation",
        "memorybench.wiring.models",
        "memorybench.workers.joining",
        "memorybench.workers.ray_cluster",
    ],
)
def test_a_bm25_run_does_not_import(modules: frozenset[str], name: str) -> None:
    assert not [module for module in modules if module == name or module.startswith(f"{name}.")]


def test_a_run_of_a_benchmark_of_the_user_does_not_import_the_detector_of_passwords(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        """
name: own
displayName: Own
data: {type: local, path: data.json}
schema: {itemId: id, question: question, answer: answer, context: {field: turns, itemSchema: {content: $.text}}}
evaluation: {method: llm-judge}
""",
        encoding="utf-8",
    )
    item = {"id": "1", "question": "Where?", "answer": "Porto", "turns": [{"text": "I live in Porto."}]}
    (tmp_path / "data.json").write_text(json.dumps([item]), encoding="utf-8")
    script = RUN.replace('"--limit", "1"', '"--benchmarks", "own", "--config-dir", "."')
    ended = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True)
    code, names = json.loads(ended.stdout.splitlines()[-1])
    assert code == 0
    assert "memorybench.secrets.credentials" not in names


def test_a_command_spares_the_garbage_collector_what_it_imported_and_a_call_from_python_changes_nothing() -> None:
    ended = subprocess.run([sys.executable, "-c", COMMAND], check=True, stdout=subprocess.PIPE, text=True)
    assert [line for line in ended.stdout.splitlines() if line in ("True", "False")] == ["True", "True", "True"]


def test_a_command_makes_no_parsers_of_other_verbs(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    make = argparse.ArgumentParser.__init__

    def make_and_note(parser: argparse.ArgumentParser, *args: Any, **options: Any) -> None:
        make(parser, *args, **options)
        made.append(parser.prog)

    monkeypatch.setattr(argparse.ArgumentParser, "__init__", make_and_note)
    assert main(["list", "--suites"]) == 0
    assert made == ["memorybench", "memorybench list"]


def test_importing_the_config_classes_builds_none_of_them() -> None:
    script = """
from memorybench.core.records import Record
from memorybench.datasets import config
from memorybench.providers.config import sections
classes = [one for one in Record.__subclasses__() if one.__module__ in (config.__name__, sections.__name__)]
print(len(classes) > 20, [one.__name__ for one in classes if one.__pydantic_complete__])
"""
    ended = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True)
    assert ended.stdout == "True []\n"


def test_data_files_are_opened_without_an_http_client() -> None:
    script = "import sys; from memorybench.wiring import datasets, data; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
