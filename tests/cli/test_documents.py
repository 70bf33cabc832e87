"""What programs read keeps its shape."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.cli.command import Command
from tests.suites.recorded import record, scored

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text())


JUDGED = [
    "--answering-model",
    "scripted/quote",
    "--judge-model",
    "scripted/judge",
    "--repeats",
    "2",
    "--canaries",
    "24",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [[], ["--answering-model", "scripted/quote"], JUDGED], ids=["retrieval only", "answered", "judged twice"]
)
def test_the_report_follows_its_schema(command: Command, more: list[str]) -> None:
    said = command("eval", "--providers", "bm25", "full-context", "--end", "8", "--run-id", "r", "--json", *more)
    jsonschema.validate(said.json, SCHEMA)
    jsonschema.validate(json.loads(Path("results/r/report.json").read_text()), SCHEMA)
    assert command("results", "r", "--json").json == said.json


SAMPLE = str(Path(__file__).parents[2] / "data/sample-dataset.json")


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        ("audit", SAMPLE, "--model", "scripted/quote", "--judge-model", "none", "--limit", "12", "--output", "results"),
        ("extraction", "run", "--extractor", "hoarder", "--limit", "6", "--no-targets"),
        ("online", str(Path(SAMPLE).with_name("sample-spans.json"))),
        ("hygiene", "run", "memory-skip-local"),
        ("hygiene", "forget"),
        ("hygiene", "corrections"),
    ],
    ids=lambda asked: "-".join(asked[:2]) if asked[0] == "hygiene" else asked[0],
)
def test_every_suite_writes_the_same_document(command: Command, asked: tuple[str, ...]) -> None:
    said = command(*asked, "--run-id", "r", "--json")
    assert said.code in (0, 1), said.err
    jsonschema.validate(said.json, SCHEMA)
    assert said.json["suite"] == asked[0]
    assert command("results", "r", "--json").json == said.json
    assert json.loads(Path("results/r/report.json").read_text()) == said.json
    assert command("results", "r").code == command("results", "r", "--failures").code == 0


@pytest.mark.slow
def test_reports_of_shards_and_merged_runs_follow_the_schema(command: Command) -> None:
    for number in (1, 2):
        shard = ("--shard", f"{number}/2", "--run-id", f"s{number}")
        said = command("eval", "--providers", "bm25", "--end", "40", *shard, "--json")
        jsonschema.validate(said.json, SCHEMA)
        assert command("results", f"s{number}", "--json").json == said.json
    assert command("merge", "s1", "s2", "--run-id", "all").code == 0
    jsonschema.validate(json.loads(Path("results/all/report.json").read_text()), SCHEMA)
    jsonschema.validate(command("results", "s1", "s2", "--json").json, SCHEMA)


@pytest.mark.slow
def test_config_schemas_are_schemas(command: Command) -> None:
    for kind in ("provider", "benchmark", "extractor", "store", "agent"):
        schema = command("schema", kind).json
        jsonschema.Draft202012Validator.check_schema(schema)


def test_a_report_says_how_it_was_made(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTES_API_KEY", "sentinel-4711-secret")
    arguments = ("eval", "--providers", "bm25", "none", "--limit", "3", "--seed", "7", "--concurrency", "2")
    answered = (
        "--answering-model",
        "scripted/quote",
        "--answer-prompt",
        "Answer ${question} from ${retrievedContext}: 4711",
    )
    said = command(*arguments, *answered, "--run-id", "sentinel-4711-secret", "--json")
    made, circumstances = said.json["provenance"], said.json["circumstances"]
    assert (made["settings"]["seed"], made["settings"]["limit"]) == (7, 3)
    assert set(made["fingerprints"]) >= {"provider bm25", "benchmark starter", "answer prompts of starter"}
    assert "4711" in made["fingerprints"]["answer prompts of starter"]["text"]
    assert circumstances["command_line"][:5] == ["memorybench", *arguments[:4]]
    assert {"python", "numpy", "pydantic"} <= set(circumstances["versions"])
    assert circumstances["concurrency"] == 2
    assert "sentinel-4711" not in said.out


@pytest.mark.slow
def test_what_a_report_depends_on_is_the_same_in_two_runs(command: Command) -> None:
    arguments = ("eval", "--providers", "bm25", "--end", "3", "--json")
    one, other = command(*arguments), command(*arguments, "--concurrency", "1")
    assert one.json["provenance"] == other.json["provenance"]
    changed = command(*arguments, "--seed", "7")
    assert one.json["provenance"] != changed.json["provenance"]


def test_a_run_of_an_earlier_version_has_a_report(tmp_path: Path, command: Command) -> None:
    record(tmp_path, [scored("one", 1.0)])
    document = command("results", "r", "--results", str(tmp_path), "--json").json
    jsonschema.validate(document, SCHEMA)
    assert (document["circumstances"]["command_line"], document["circumstances"]["versions"]) == ([], {})
