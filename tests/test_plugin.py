"""A provider, a benchmark and a metric from another package, installed and used as a user would."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent / "plugin_package"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The sample package installed into a folder of its own, beside this environment's packages."""
    folder = tmp_path_factory.mktemp("plugin")
    source = folder / "source"
    subprocess.run(["cp", "-r", str(PACKAGE), str(source)], check=True)  # building leaves files behind
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", str(folder / "site"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": str(folder / "site"), "COLUMNS": "100"}


def memorybench(environment: dict[str, str], folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "memorybench", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_plug_in_is_listed_with_its_origin(environment: dict[str, str], tmp_path: Path) -> None:
    listed = json.loads(memorybench(environment, tmp_path, "list", "--json"))
    origins = {entry["name"]: entry["origin"] for entry in listed}
    for name in ("newest-first", "three-questions", "found_at_all", "last_gold"):
        assert origins[name] == "memorybench-sample-plugin 1.0"


def test_a_plug_in_provider_benchmark_and_metric_run_together(environment: dict[str, str], tmp_path: Path) -> None:
    arguments = ("eval", "--benchmarks", "three-questions", "--providers", "newest-first", "bm25", "--json")
    document = json.loads(memorybench(environment, tmp_path, *arguments))
    found = {
        (result["subject"], measure["name"]): measure["value"]
        for result in document["results"]
        for measure in result["measures"]
        if not result["group"]
    }
    assert found["newest-first", "found_at_all"] == 1.0
    assert found["newest-first", "mrr"] == pytest.approx((1 / 3 + 1 / 2 + 1) / 3)
    assert found["bm25", "recall@1"] == 1.0
    assert found["newest-first", "last_gold@2"] == pytest.approx((0 + 1 / 2 + 1) / 3)
    assert found["newest-first", "last_gold@7"] == found["newest-first", "mrr"]
