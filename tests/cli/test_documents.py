"""What programs read keeps its shape."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.cli.command import Command

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text())


@pytest.mark.parametrize("more", [[], ["--answering-model", "scripted/quote"]], ids=["retrieval only", "answered"])
def test_the_report_follows_its_schema(command: Command, more: list[str]) -> None:
    said = command("eval", "--providers", "bm25", "full-context", "--limit", "8", "--run-id", "r", "--json", *more)
    jsonschema.validate(said.json, SCHEMA)
    jsonschema.validate(json.loads(Path("results/r/report.json").read_text()), SCHEMA)
    assert command("results", "r", "--json").json == said.json


SAMPLE = str(Path(__file__).parents[2] / "data/sample-dataset.json")


@pytest.mark.parametrize(
    "asked",
    [
        ("audit", SAMPLE, "--model", "scripted/quote", "--judge-model", "none", "--limit", "12", "--output", "results"),
        ("extraction", "run", "--extractor", "hoarder", "--limit", "6", "--no-targets"),
        ("hygiene", "run", "memory-skip-local"),
    ],
    ids=lambda asked: asked[0],
)
def test_every_suite_writes_the_same_document(command: Command, asked: tuple[str, ...]) -> None:
    said = command(*asked, "--run-id", "r", "--json")
    assert said.code in (0, 1), said.err
    jsonschema.validate(said.json, SCHEMA)
    assert said.json["suite"] == asked[0]
    assert command("results", "r", "--json").json == said.json
    assert json.loads(Path("results/r/report.json").read_text()) == said.json
    assert command("results", "r").code == command("results", "r", "--failures").code == 0


def test_config_schemas_are_schemas(command: Command) -> None:
    for kind in ("provider", "benchmark", "extractor", "store", "agent"):
        schema = command("schema", kind).json
        jsonschema.Draft202012Validator.check_schema(schema)
