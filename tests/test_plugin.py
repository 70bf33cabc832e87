"""A provider, a benchmark and a metric from another package, installed and used as a user would."""

from pathlib import Path

import pytest

import memorybench
from tests.cli.command import Command
from tests.doubles.packages import install_package
from tests.doubles.refusals import refused

PACKAGE = Path(__file__).parent / "plugin_package"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_package(PACKAGE, tmp_path_factory.mktemp("plugin"))


@pytest.fixture(autouse=True)
def sample_package(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(site)


@pytest.mark.slow
def test_a_plug_in_is_listed_with_its_origin(command: Command) -> None:
    listed = command("list", "--json").json
    origins = {entry["name"]: entry["origin"] for entry in listed}
    for name in ("newest-first", "three-questions", "found_at_all", "last_gold"):
        assert origins[name] == "memorybench-sample-plugin 1.0"


def test_a_plug_in_provider_benchmark_and_metric_run_together(command: Command) -> None:
    arguments = ("eval", "--benchmarks", "three-questions", "--providers", "newest-first", "bm25", "--json")
    document = command(*arguments, "--run-id", "r").json
    assert "| last_gold@2 |" in (command.folder / "results/r/report.md").read_text()
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


def test_the_settings_of_a_plug_in_can_be_varied(command: Command) -> None:
    arguments = ("eval", "--benchmarks", "three-questions", "--providers", "newest-first(skip=1)", "newest-first")
    document = command(*arguments, "--json").json
    found = {
        result["subject"]: measure["value"]
        for result in document["results"]
        for measure in result["measures"]
        if measure["name"] == "mrr" and not result["group"]
    }
    assert found["newest-first(skip=1)"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert found["newest-first"] == pytest.approx((1 / 3 + 1 / 2 + 1) / 3)
    error = refused(memorybench.evaluate, providers=["newest-first(skpi=1)"])
    assert error.where == 'provider "newest-first(skpi=1)": settings.skpi'
    assert "skip" in error.remedy
    described = command("describe", "newest-first", "--json").json
    assert described["settings"]["skip"] == {"value": "0", "meaning": "How many of the latest turns are left out."}
