from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memorybench.catalog.catalog import Catalog
from memorybench.catalog.entries import BASELINES, Entry
from memorybench.catalog.files import recognise
from memorybench.core.conversation import Haystack, Session, Turn
from memorybench.core.errors import BadInput
from memorybench.core.questions import Question
from memorybench.files.yaml_file import parse_yaml
from memorybench.suites.bench.baselines import all_turns
from memorybench.suites.bench.baselines import remembered as remembered_by
from tests.cli.command import Command

PROVIDER = "name: NAME\ntype: local\nadapter: ./mine.py:Mine\ntags: [mine]\n"
BENCHMARK = """\
name: NAME
data: {type: local, path: data.json}
schema: {itemId: id, question: q, answer: a, context: {field: c}}
evaluation: {method: exact-match}
"""


def write_file(folder: Path, place: str, text: str) -> Path:
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace("NAME", path.stem), encoding="utf-8")
    return path


def entry_named(entries: tuple[Entry, ...], name: str) -> Entry:
    return next(entry for entry in entries if entry.name == name)


def error_line(catalog: Catalog, name: str) -> str:
    with pytest.raises(BadInput) as caught:
        catalog.provider(name)
    return str(caught.value)


def test_bundled_entries_are_valid_and_described(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    listing = catalog.entries("provider", "baseline", "benchmark")
    assert {"bm25", "dense", "hybrid", "none", "full-context", "oracle", "starter"} <= {entry.name for entry in listing}
    for entry in listing:
        assert entry.broken is None
        assert entry.origin == "bundled"
        assert entry.display_name
        assert entry.description
        assert entry.tags
    assert catalog.provider("bm25").adapter == "builtin:bm25"
    assert catalog.benchmark("starter").data.licence == "CC BY 4.0"


@pytest.mark.parametrize("baseline", [entry.name for entry in BASELINES])
def test_the_suite_can_build_every_baseline(baseline: str) -> None:
    haystack = Haystack(id="h", sessions=(Session(id="s", turns=(Turn(role="user", content="It rained."),)),))
    question = Question(id="q", haystack="h", question="Did it rain?", gold_sessions=("s",))
    remembered = remembered_by(baseline, question, all_turns(haystack))
    assert [memory.content for memory in remembered] == ([] if baseline == "none" else ["user: It rained."])


def test_a_baseline_is_chosen_like_a_provider_and_has_no_config(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    assert catalog.chosen("provider", "oracle").kind == "baseline"
    assert error_line(catalog, "oracle") == 'baseline "oracle": it has no config; expected a provider with a config'


def test_configs_in_the_working_folder_are_listed(tmp_path: Path) -> None:
    mine = write_file(tmp_path, "providers/configs/mine.yaml", PROVIDER)
    write_file(tmp_path, "benchmarks/configs/quiz.yml", BENCHMARK)
    write_file(tmp_path, "providers/configs/notes.txt", "no config")
    catalog = Catalog(tmp_path)
    entry = catalog.chosen("provider", "mine")
    assert (entry.origin, entry.file, entry.tags) == (str(mine), mine, ("mine",))
    assert catalog.provider("mine").adapter == "./mine.py:Mine"
    assert catalog.benchmark("quiz").evaluation.method == "exact-match"


def test_files_in_an_extra_folder_are_recognised_by_their_content(tmp_path: Path) -> None:
    write_file(tmp_path, "shared/mine.yaml", PROVIDER)
    write_file(tmp_path, "shared/quiz.yaml", BENCHMARK)
    write_file(tmp_path, "sorted/providers/yours.yaml", PROVIDER)
    write_file(tmp_path, "sorted/benchmarks/exam.yaml", BENCHMARK)
    catalog = Catalog(tmp_path, [tmp_path / "shared", tmp_path / "sorted"])
    assert {"mine", "yours"} <= {entry.name for entry in catalog.entries("provider")}
    assert {"quiz", "exam"} <= {entry.name for entry in catalog.entries("benchmark")}


def test_an_extra_folder_may_be_one_that_is_searched_anyway(tmp_path: Path) -> None:
    write_file(tmp_path, "providers/configs/mine.yaml", PROVIDER)
    assert Catalog(tmp_path, [tmp_path / "providers/configs"]).chosen("provider", "mine").broken is None


@pytest.mark.parametrize("folder", ["missing", "empty"])
def test_an_extra_folder_without_configs_is_an_error(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput) as caught:
        Catalog(tmp_path, [tmp_path / folder]).entries("provider")
    assert caught.value.where == str(tmp_path / folder)


def test_an_unknown_file_is_listed_with_an_error(tmp_path: Path) -> None:
    write_file(tmp_path, "shared/mine.yaml", PROVIDER)
    write_file(tmp_path, "shared/shopping.yaml", "milk: 2\n")
    write_file(tmp_path, "shared/torn.yaml", "name: [\n")
    shopping, torn = Catalog(tmp_path, [tmp_path / "shared"]).entries("unknown")
    assert shopping.broken is not None
    assert "shopping.yaml" in shopping.broken.where
    assert torn.broken is not None
    assert "torn.yaml" in torn.broken.where


@pytest.mark.parametrize(
    "text", ["name: [\n", "name: broken\ntype: hosted\n", "name: broken\ntype: local\nadaptor: x\n", "- a\n- b\n"]
)
def test_an_invalid_entry_is_listed_and_does_not_affect_others(tmp_path: Path, text: str) -> None:
    path = write_file(tmp_path, "providers/configs/broken.yaml", text)
    catalog = Catalog(tmp_path)
    broken = entry_named(catalog.entries("provider"), "broken").broken
    assert str(broken).startswith(f"{path}:")
    assert error_line(catalog, "broken") == str(broken)
    with pytest.raises(BadInput):
        catalog.chosen("provider", "broken")
    assert catalog.provider("bm25").name == "bm25"


def test_a_duplicate_name_is_an_error_with_both_places(tmp_path: Path) -> None:
    first = write_file(tmp_path, "providers/configs/mine.yaml", PROVIDER)
    second = write_file(tmp_path, "more/mine.yaml", PROVIDER)
    third = write_file(tmp_path, "more/again.yaml", PROVIDER.replace("NAME", "bm25"))
    catalog = Catalog(tmp_path, [tmp_path / "more"])
    assert error_line(catalog, "mine") == (
        f'2 providers are called "mine": {first} and {second}; rename or remove one of them'
    )
    assert f"bundled and {third}" in error_line(catalog, "bm25")
    assert entry_named(catalog.entries("provider"), "mine").broken is not None
    assert catalog.provider("dense").name == "dense"


def test_a_provider_may_not_have_the_name_of_a_baseline(tmp_path: Path) -> None:
    path = write_file(tmp_path, "providers/configs/oracle.yaml", PROVIDER)
    assert f"bundled and {path}" in error_line(Catalog(tmp_path), "oracle")


def test_a_benchmark_may_have_the_name_of_a_provider(tmp_path: Path) -> None:
    write_file(tmp_path, "benchmarks/configs/bm25.yaml", BENCHMARK)
    assert Catalog(tmp_path).benchmark("bm25").name == "bm25"
    assert Catalog(tmp_path).provider("bm25").name == "bm25"


def test_an_unknown_name_suggests_the_nearest(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    assert (
        error_line(catalog, "hybird") == 'no provider "hybird"; did you mean "hybrid"? (memorybench list --providers)'
    )
    with pytest.raises(BadInput, match=r'no benchmark "zzz"; .memorybench list --benchmarks. shows all'):
        catalog.benchmark("zzz")


def test_a_missing_variable_is_an_error_only_with_an_environment(tmp_path: Path) -> None:
    text = PROVIDER + 'local: {database: {type: postgres, connectionString: "${DATABASE_URL}"}}\n'
    write_file(tmp_path, "providers/configs/mine.yaml", text)
    catalog = Catalog(tmp_path)
    assert entry_named(catalog.entries("provider"), "mine").broken is None
    with pytest.raises(BadInput, match="DATABASE_URL is not set"):
        catalog.provider("mine", {})
    local = catalog.provider("mine", {"DATABASE_URL": "postgres://here"}).local
    assert local is not None
    assert local.database.connection_string == "postgres://here"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (PROVIDER, "provider"),
        (BENCHMARK, "benchmark"),
        ("name: a\nrate_limit: {}\n", "provider"),
        ("name: a\nquestion_types: []\n", "benchmark"),
        ("name: a\ndescription: b\n", None),
        ("- 1\n", None),
    ],
)
def test_files_are_recognised_by_their_keys(tmp_path: Path, text: str, kind: str | None) -> None:
    assert recognise(parse_yaml(text, str(tmp_path / "file.yaml"))) == kind


@pytest.fixture
def sample_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with entry points whose code cannot be imported."""
    info = tmp_path / "site/sample_plugin-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-plugin\nVersion: 1.2\nSummary: Remembers\n")
    (info / "entry_points.txt").write_text(
        "[memorybench.providers]\nelephant = no_such_module:open\nBad Name = no_such_module:open\n"
        "[memorybench.benchmarks]\ntrivia = no_such_module:load\n"
        "[memorybench.metrics]\nnovelty = no_such_module:Novelty\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


@pytest.mark.usefixtures("sample_package")
def test_plug_ins_are_listed_without_being_loaded(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    entry = catalog.chosen("provider", "elephant")
    assert (entry.origin, entry.description) == ("sample-plugin 1.2", "Remembers")
    assert catalog.provider("elephant").adapter == "plugin:elephant"
    assert catalog.benchmark("trivia").data.type == "plugin"
    assert catalog.plugin("metric", "novelty").value == "no_such_module:Novelty"
    assert [entry.name for entry in catalog.entries("metric")] == ["novelty"]


@pytest.mark.usefixtures("sample_package")
def test_a_plug_in_with_an_invalid_name_is_broken(tmp_path: Path) -> None:
    assert "Bad Name" in str(entry_named(Catalog(tmp_path).entries("provider"), "Bad Name").broken)


@pytest.mark.usefixtures("sample_package")
def test_a_benchmark_may_use_the_metric_of_a_plug_in(tmp_path: Path) -> None:
    write_file(tmp_path, "benchmarks/configs/quiz.yaml", BENCHMARK + "metrics: [novelty]\n")
    assert Catalog(tmp_path).benchmark("quiz").metrics == ("novelty",)


@pytest.mark.usefixtures("sample_package")
def test_a_file_may_not_have_the_name_of_a_plug_in(tmp_path: Path) -> None:
    path = write_file(tmp_path, "providers/configs/elephant.yaml", PROVIDER)
    assert f"sample-plugin 1.2 and {path}" in error_line(Catalog(tmp_path), "elephant")


def test_a_bundled_provider_is_not_a_plug_in(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match='the provider "bm25"'):
        Catalog(tmp_path).plugin("provider", "bm25")


@pytest.mark.slow
def test_listing_loads_nothing_heavy() -> None:
    program = (
        "import sys; from pathlib import Path; from memorybench.catalog.catalog import Catalog;"
        "Catalog(Path('.')).entries('provider', 'baseline', 'benchmark');"
        "print([m for m in ('numpy', 'scipy', 'aiohttp', 'rich', 'wordllama') if m in sys.modules])"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"


def test_a_file_is_found_by_its_name_which_the_error_tells(tmp_path: Path) -> None:
    configs = tmp_path / "providers" / "configs"
    configs.mkdir(parents=True)
    (configs / "second.yaml").write_text("name: first\nextends: bm25\n", encoding="utf-8")
    catalog = Catalog(tmp_path)
    for name, remedy in (("second", "write first,"), ("second.yaml", "providers/configs/"), ("other", "list")):
        with pytest.raises(BadInput) as raised:
            catalog.provider(name)
        assert remedy in raised.value.remedy


@pytest.mark.parametrize(
    "arguments",
    [("eval", "--providers", "unk"), ("extraction", "run", "--extractor", "unk"), ("hygiene", "run", "--store", "unk")],
)
def test_a_file_that_was_read_as_another_kind_is_named(command: Command, arguments: tuple[str, ...]) -> None:
    write_file(command.folder, "shared/unk.yaml", "name: unk\nkind: http\nendpoint: http://localhost:1\n")
    said = command(*arguments, "--config-dir", "shared")
    assert said.code == 2
    assert "shared/unk.yaml has this name, but was read as a model;" in said.err
    kind = arguments[-2].removeprefix("--").removesuffix("s")
    assert f"`memorybench schema {kind}`" in said.err
    assert command("schema", kind).code == 0


@pytest.mark.parametrize("text", ["name: torn\n\ttype: hosted\n", "name: torn\nmilk: 2\n"])
def test_the_name_of_a_file_that_cannot_be_read_raises_its_error(command: Command, text: str) -> None:
    write_file(command.folder, "shared/torn.yaml", text)
    for arguments in (
        ("eval", "--providers", "torn"),
        ("eval", "--benchmarks", "torn"),
        ("eval", "--answering-model", "torn"),
        ("extraction", "run", "--extractor", "torn"),
        ("hygiene", "run", "--store", "torn"),
        ("hygiene", "run", "--agent", "torn", "--agent-turn", "--i-understand-model-cost"),
        ("describe", "torn"),
    ):
        said = command(*arguments, "--config-dir", "shared")
        assert said.code == 2
        assert said.err.startswith("memorybench: shared/torn.yaml:")
