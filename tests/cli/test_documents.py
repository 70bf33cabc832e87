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


def test_config_schemas_are_schemas(command: Command) -> None:
    for kind in ("provider", "benchmark"):
        schema = command("schema", kind).json
        jsonschema.Draft202012Validator.check_schema(schema)
