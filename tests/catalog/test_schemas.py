"""The JSON Schemas and the table of keys match the records."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from memorybench.catalog.files import Described, bundled_files
from memorybench.catalog.schemas import json_schema
from memorybench.files.yaml_file import load_yaml, parse_yaml

DOCS = Path(__file__).parents[2] / "docs/config-keys.md"
KINDS: tuple[Described, ...] = ("provider", "benchmark")


def accepts(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    """Validate the part of JSON Schema that our schemas use."""
    if "$ref" in schema and not accepts(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root):
        return False
    if "anyOf" in schema and not any(accepts(part, value, root) for part in schema["anyOf"]):
        return False
    if not all(accepts(part, value, root) for part in schema.get("allOf", ())):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
    if "type" in schema and not isinstance(value, kinds.get(schema["type"], type(None))):
        return False
    if isinstance(value, list):
        return all(accepts(schema.get("items", {}), item, root) for item in value)
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is False and not value.keys() <= properties.keys():
            return False
        return set(schema.get("required", ())) <= value.keys() and all(
            accepts(properties.get(key, {}), inner, root) for key, inner in value.items()
        )
    return True


def is_accepted(kind: Described, text: str) -> bool:
    schema = json_schema(kind)
    return accepts(schema, parse_yaml(text, "sample.yaml").value, schema)


@pytest.mark.slow
def test_bundled_configs_match_the_schema() -> None:
    for path, kind in bundled_files():
        schema = json_schema(kind)
        assert accepts(schema, load_yaml(path).value, schema), path


@pytest.mark.parametrize(
    ("text", "sound"),
    [
        ("name: a\ntype: local\ndisplayName: A\nrateLimit: {maxRetries: 1}", True),
        ("name: a\ntype: local\ndisplay_name: A\nrate_limit: {max_retries: 1}", True),
        ("name: a\ntype: local\ndisplaName: A", False),
        ("name: a", False),
        ("name: a\nextends: bm25\nsettings: {k1: 2}", True),
        ("name: a\ntype: remote", False),
        ("name: a\ntype: local\nrateLimit: {maxRetrys: 1}", False),
        ("name: a\ntype: docker\ndocker: {compose: c, service: s, healthcheck: h, baseUrl: u}", True),
        ("name: a\ntype: docker\ndocker: {compose: c, service: s, healthcheck: h, base_url: u}", True),
        ("name: a\ntype: docker\ndocker: {compose: c, service: s, healthcheck: h}", False),
        ("name: a\ntype: local\nlocal: {database: {schema: tables.sql}}", True),
        ("name: a\ntype: local\nlocal: {database: {schemaFile: tables.sql}}", False),
        ("name: a\ntype: hosted\nsetup: [{method: POST, path: /a, captures: {b: $.c}}]", True),
    ],
)
def test_the_provider_schema_accepts_both_spellings_and_nothing_else(text: str, sound: bool) -> None:
    assert is_accepted("provider", text) is sound


@pytest.mark.slow
def test_the_benchmark_schema_knows_schema_by_its_name() -> None:
    text = "name: a\ndata: {type: local, path: p}\nevaluation: {method: f1}\nschema: {item_id: i, context: {field: c}}"
    assert is_accepted("benchmark", text)
    assert not is_accepted("benchmark", text.replace("schema:", "mapping:"))
    assert not is_accepted("benchmark", text.replace("item_id", "id"))


def documented(kind: Described) -> str:
    """The tables of a kind in docs/config-keys.md, which tests/test_documentation.py compares with the code."""
    return DOCS.read_text(encoding="utf-8").split(f"## {kind.capitalize()} configs\n\n")[1].partition("\n## ")[0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_documented(kind: Described) -> None:
    for table in documented(kind).split("### ")[1:]:
        title, about, _, _, *rows = filter(None, table.splitlines())
        assert not about.startswith("|"), title
        assert [row for row in rows if not row.endswith(". |")] == [], title


SPEC_KEYS = {
    "provider": """name displayName description type connection.baseUrl connection.timeout adapter docker.compose
        docker.service docker.healthcheck docker.baseUrl auth.type auth.header auth.prefix auth.envVar scoping.strategy
        scoping.runIdFormat endpoints.add endpoints.search endpoints.clear capabilities.supportsChunks
        capabilities.supportsBatch capabilities.supportsMetadata capabilities.supportsRerank rateLimit.addDelayMs
        rateLimit.searchDelayMs rateLimit.batchDelayMs rateLimit.maxRetries rateLimit.retryDelayMs method path body
        results contentField scoreField chunksField local.database.type local.database.connectionString
        local.database.schema local.chunking.size local.chunking.overlap local.chunking.strategy provider model
        dimensions local.enhancement.enabled local.enhancement.model local.enhancement.generateQuestions
        local.enhancement.questionsPerChunk local.retrieval.strategy local.retrieval.maxResults
        local.retrieval.weights""",
    "benchmark": """name displayName description version source paper data.type data.path data.localPath data.format
        schema.itemId schema.question schema.answer schema.context.field schema.context.type schema.context.dateField
        schema.context.itemSchema.content schema.context.itemSchema.role schema.metadata questionTypes[].name
        questionTypes[].evaluationPrompt questionTypes[].allowOffByOne ingestion.mode ingestion.batchSize
        ingestion.delayBetweenBatches ingestion.preprocessing.escapeHtml ingestion.preprocessing.removeFields
        ingestion.preprocessing.formatTemplate search.defaultLimit search.defaultThreshold search.includeChunks
        evaluation.method model temperature evaluation.answerPrompt.default evaluation.answerPrompt.byQuestionType
        evaluation.answerPrompt.userOverride evaluation.judgePrompts.source evaluation.judgePrompts.paperReference
        evaluation.judgePrompts.default evaluation.judgePrompts.byQuestionType evaluation.judgePrompts.userOverride
        evaluation.customEvaluator metrics runtime.checkpointing runtime.checkpointGranularity runtime.resumable
        schema.questions.field schema.questions.questionField schema.questions.answerField
        schema.questions.evidenceField schema.questions.categoryField schema.context.sessionPattern
        schema.context.datePattern schema.context.itemSchema.speaker schema.context.itemSchema.text
        schema.context.itemSchema.dialogId categories""",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_of_the_spec_is_in_the_table(kind: Described) -> None:
    names = set(re.findall(r"^\| `([^`]+)` \|", documented(kind), re.MULTILINE))
    assert set(SPEC_KEYS[kind].split()) <= names
