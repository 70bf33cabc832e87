"""Reads a benchmark config from a file and makes every check that needs no data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec.structs import replace

from memorybench.core.errors import BadInput
from memorybench.files.configs import merge
from memorybench.files.environment import expand_environment
from memorybench.files.located import Document
from memorybench.files.names import safe_name
from memorybench.files.templates import Template
from memorybench.files.validation import validated
from memorybench.files.yaml_file import load_yaml
from memorybench.text.sanitize import preview
from memorybench.text.spelling import unknown_name

from .config import BenchmarkConfig
from .data_checks import check_data
from .schema_checks import check_schema
from .scoring_checks import check_evaluation, check_question_types

SESSION_VARIABLES = ("date", "sessionDate", "session", "dialogue", "sessionId", "speakers")
"""Variables of `formatTemplate`; `sessionDate` is an alias of `date`."""


def read_benchmark(
    document: Document, environment: Mapping[str, str] | None = None, metrics: Collection[str] | None = None
) -> BenchmarkConfig:
    """Return the benchmark config in `document`; raise BadInput at the first error.

    `metrics` are the known metric names; if None, names under `metrics:` are not checked. In the section `data`,
    `${VAR}` is replaced by its value in `environment`; None: it stays as it is. It is not replaced in other sections,
    so that a prompt is the same on every machine and cannot contain a key.
    """
    document = merge_base(document)
    if environment is not None and isinstance(document.value, dict) and "data" in document.value:
        data = expand_environment(document.at("data"), environment)
        document = replace(document, value={**document.value, "data": data.value})
    config = validated(document, BenchmarkConfig)
    safe_name(config.name, document.where("name"))
    check_data(config, document.at("data"))
    check_schema(config, document)
    check_question_types(config, document)
    template = config.ingestion.preprocessing.format_template
    if template is not None:
        where = document.where("ingestion", "preprocessing", "format_template")
        Template.parse(template, SESSION_VARIABLES, where)
    check_evaluation(config, document)
    for index, name in enumerate(config.metrics):
        # a plug-in's retrieval metric is known by its name without the cutoff
        if metrics is not None and not {name, name.partition("@")[0]} & set(metrics):
            raise unknown_name(document.where("metrics", index), f"unknown metric {preview(name)}", name, metrics)
    return config


def merge_base(document: Document) -> Document:
    """Return the document with the keys that it inherits, if it extends another; otherwise return it unchanged.

    Errors name the lines of `document`; the config that it extends is checked separately.
    """
    if not isinstance(document.value, dict) or not isinstance(document.value.get("extends"), str):
        return document
    where, name = document.where("extends"), document.value["extends"]
    base_file = Path(document.path).with_name(f"{safe_name(name, where)}.yaml")
    if not base_file.is_file():
        raise BadInput(
            where, f"{base_file.name} not found", remedy=f"put {base_file.name} into the folder of this file"
        )
    base = load_yaml(base_file).value
    if not isinstance(base, dict) or "extends" in base:
        raise BadInput(
            where,
            f"{base_file.name} cannot be extended",
            expected="a config of keys and values, without the key extends",
        )
    return replace(document, value=merge(base, document.value))
