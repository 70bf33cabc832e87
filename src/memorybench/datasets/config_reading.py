"""Reads a benchmark config from a file and makes every check that needs no data."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any
from urllib.parse import urlsplit

from memorybench.core.errors import BadInput
from memorybench.files.entry_points import built_in_points
from memorybench.files.environment import expand_environment
from memorybench.files.located import Document, Place
from memorybench.files.names import safe_name
from memorybench.files.prompts import JUDGE_PROMPTS
from memorybench.files.templates import Template
from memorybench.files.validation import validated
from memorybench.files.yaml_file import load_yaml
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names, suggestion, unknown_name

from .config import (
    AnswerPrompt,
    BenchmarkConfig,
    Context,
    Data,
    ItemSchema,
    Join,
    JudgePrompts,
    RubricItemSchema,
    SchemaMapping,
)
from .dates import check_format
from .log_lines import LinePattern
from .prompts import answer_prompt, judge_prompt

GROUP = "memorybench.benchmarks"
"""Entry point group of datasets that need no config: classes that are called without arguments."""
RUBRIC_VARIABLES = ("answer",)
"""Variables of `questionTypes[].rubric`."""
SESSION_VARIABLES = ("date", "sessionDate", "session", "dialogue", "sessionId", "speakers")
"""Variables of `formatTemplate`; `sessionDate` is an alias of `date`."""

_QUESTION_PATHS = {
    "cluster",
    "question",
    "answer",
    "rubric",
    "must_contain",
    "must_not_contain",
    "forbidden",
    "evidence",
    "choices",
}
_WITHOUT_EFFECT = {
    "turns": {"id_field": "remove it", "turns_field": "remove it"},
    "object": {"id_field": "remove it: the keys are the ids", "date_field": "write datePattern, or type: array"},
    "string": dict.fromkeys(("id_field", "date_field", "turns_field"), "remove it, or set schema.context.type: array"),
}
"""Keys of `schema.context` that are not read: by type, each with what to do."""
WITHOUT_FILES = ("bundled", "plugin")
"""Values of `data.type` whose data is read by a class, not from a file by a mapping."""


def read_benchmark(
    document: Document, environment: Mapping[str, str] | None = None, metrics: Collection[str] | None = None
) -> BenchmarkConfig:
    """Return the benchmark config in `document`; raise BadInput at the first error.

    `metrics` are the known metric names; if None, names under `metrics:` are not checked. Only `data` may refer to the
    environment, so that a prompt is the same on every machine and cannot leak a key.
    """
    document = merge_base(document)
    if environment is not None and isinstance(document.value, dict) and "data" in document.value:
        data = expand_environment(document.at("data"), environment)
        document = replace(document, value={**document.value, "data": data.value})
    config = validated(document, BenchmarkConfig)
    safe_name(config.name, document.where("name"))
    _check_data(config, document.at("data"))
    _check_mapping(config, document)
    _check_question_types(config, document)
    template = config.ingestion.preprocessing.format_template
    if template is not None:
        where = document.where("ingestion", "preprocessing", "format_template")
        Template.parse(template, SESSION_VARIABLES, where)
    _check_evaluation(config, document)
    for index, name in enumerate(config.metrics):
        # a plug-in's retrieval metric is known by its name without the cutoff
        if metrics is not None and not {name, name.partition("@")[0]} & set(metrics):
            raise unknown_name(document.where("metrics", index), f"unknown metric {preview(name)}", name, metrics)
    return config


def merge_base(document: Document) -> Document:
    """Return the document merged with the one that it extends, if any.

    Line numbers are those of `document`; the other file is checked separately.
    """
    if not isinstance(document.value, dict) or not isinstance(document.value.get("extends"), str):
        return document
    where, name = document.where("extends"), document.value["extends"]
    base_file = FilePath(document.path).with_name(f"{safe_name(name, where)}.yaml")
    if not base_file.is_file():
        raise BadInput(
            where, f"{base_file.name} not found", remedy=f"put {base_file.name} into the folder of this file"
        )
    base = load_yaml(base_file).value
    if not isinstance(base, dict) or "extends" in base:
        raise BadInput(where, f"{preview(name)} cannot be extended", expected="a config without extends")
    return replace(document, value=_merge(base, document.value))


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**base, **over}
    for key in base.keys() & over.keys():
        if isinstance(base[key], dict) and isinstance(over[key], dict):
            merged[key] = _merge(base[key], over[key])
    return merged


def is_archive(name: str) -> bool:
    return name.lower().endswith(".zip")


def is_glob(name: str) -> bool:
    return name.startswith("!") or any(mark in name for mark in "*?[")


def _check_data(config: BenchmarkConfig, part: Document) -> None:
    data, where = config.data, part.where("path")
    if config.needles is not None and config.cues is not None:
        raise BadInput(part.where(), "needles and cues cannot be combined", remedy="remove one of the two")
    if config.cues is not None and len(data.files) != 2:
        raise BadInput(part.where("files"), f"{len(data.files)} files", expected="two: dialogues and conversations")
    if config.needles is not None and len(data.files) < 2:
        raise BadInput(part.where("files"), f"{len(data.files)} files", expected="at least two: needles and a book")
    _check_files(config, part)
    match data.type:
        case "huggingface":
            if not re.fullmatch(r"[\w.-]+/[\w.-]+(/[\w./-]+)?", data.path) or ".." in data.path:
                raise BadInput(where, f"invalid dataset {preview(data.path)}", expected="owner/name or owner/name/file")
        case "url":
            scheme = urlsplit(data.path).scheme
            if scheme not in ("http", "https") and "${" not in data.path:
                raise BadInput(where, f"invalid URL {preview(data.path)}", expected="https://…")
        case "local":
            if "://" in data.path:
                raise BadInput(where, f"{preview(data.path)} is a URL", expected="a path", remedy="set type: url")
        case "bundled":
            names = built_in_points(GROUP)
            if data.path not in names:
                remedy = suggestion(data.path, names)
                problem = f"unknown bundled dataset {preview(data.path)}"
                raise BadInput(where, problem, expected=join_names(names), remedy=remedy)
        case "plugin":
            safe_name(data.path, where)


def _check_files(config: BenchmarkConfig, part: Document) -> None:
    data, packed = config.data, is_archive(config.data.path)
    if data.files and data.type not in ("local", "huggingface") and not packed:
        expected = "type: local or huggingface, or a zip archive"
        raise BadInput(part.where("files"), f"has no effect on {data.type} data", expected=expected, remedy="remove it")
    if packed and config.is_built:
        raise BadInput(part.where("path"), "needles and cues cannot be in a zip archive", remedy="unpack it")
    several = len(data.files) > 1 or bool(data.join) or any(map(is_glob, (data.path, *data.files)))
    _check_checksums(data, part, several=several and not packed)
    for place, names in ((("files",), data.files), *((("join", n, "files"), j.files) for n, j in data.join.items())):
        if any(".." in name or name.startswith("/") for name in names):
            raise BadInput(part.where(*place), "a file is outside the dataset", expected="relative paths without ..")
        if data.type == "huggingface" and not packed and any(map(is_glob, names)):
            raise BadInput(part.where(*place), "no globs on Hugging Face", expected="the names of files")
    if data.where is not None:
        if config.mapping is None:
            raise BadInput(part.where("where"), "no effect without schema", remedy="remove it")
        from memorybench.files.jsonpaths import Path as JsonPath  # takes long to import, and few configs need it

        JsonPath.parse(f"$[?{data.where}]", part.where("where"))
    for name, join in data.join.items():
        _check_join(config, name, join, part)


def _check_checksums(data: Data, part: Document, *, several: bool) -> None:
    """Check that a checksum is that of one file, and that a mapping has the checksums of several."""
    sums, where = data.sha256, part.where("sha256")
    if several and isinstance(sums, str):
        problem = "is the checksum of one file, but there are several"
        raise BadInput(where, problem, remedy="write one per file, under its name")
    if sums is None or isinstance(sums, str):
        return
    if not several and (data.type != "local" or is_archive(data.path)):
        raise BadInput(where, "has checksums of several files, but there is one", expected="its checksum")
    names = {*data.files, *(name for join in data.join.values() for name in join.files)}
    for name in sums:
        if data.type == "huggingface" and name not in names:
            raise unknown_name(where, f"no file {preview(name)} is read", name, names)


def _check_join(config: BenchmarkConfig, name: str, join: Join, part: Document) -> None:
    from .paths import parse_path

    where, packed = part.where("join", name), is_archive(config.data.path)
    if config.mapping is None:
        raise BadInput(where, "no effect without schema", remedy="remove it")
    if not re.fullmatch(r"[A-Za-z_][\w-]*", name):
        raise BadInput(where, f"invalid name {preview(name)}", expected="letters, digits, _ and -")
    if (join.file is None) == (not join.files):
        raise BadInput(where, "which file is joined?", expected="either file, or files with key and by")
    if join.file is None and join.format == "text":
        raise BadInput(part.where("join", name, "format"), "no effect on files", expected="file, which is one text")
    if join.file is None and not (join.key and join.by):
        missing = "by" if join.key else "key"
        raise BadInput(where, f'"{missing}" is missing', expected="key, within a row, and by, within an item")
    if join.file is not None:
        for key in ("key", "by", "items"):
            if getattr(join, key):
                raise BadInput(part.where("join", name, key), "no effect on file", remedy="remove it, or write files")
        if config.data.type != "local" and not packed:
            raise BadInput(where, f"file is not supported on {config.data.type} data", expected="files, key and by")
        for variable in re.findall(r"\$\{(\w*)\}", join.file):
            if variable not in ("stem", "folder", "number"):
                file = part.where("join", name, "file")
                raise BadInput(file, f"unknown variable {variable}", expected="stem, folder, number")
    elif config.data.type == "url" and not packed:
        raise BadInput(where, "not supported on url data", expected="type: local or huggingface, or a zip archive")
    for key in ("key", "by"):
        text = getattr(join, key)
        if text:
            parse_path(text, part.where("join", name, key))
    if join.items is not None:
        parse_path(join.items, part.where("join", name, "items"))


def _check_mapping(config: BenchmarkConfig, document: Document) -> None:
    mapping = config.mapping
    if config.data.type in WITHOUT_FILES or config.is_built:
        if mapping is not None:
            kind = f"{config.data.type} data" if not config.is_built else "needles" if config.needles else "cues"
            raise BadInput(document.where("schema"), f"no effect on {kind}", remedy="remove it")
        return
    if mapping is None:
        raise BadInput(document.where(), '"schema" is missing', expected="itemId, question, answer and context")
    from .paths import OTHERS, parse_path

    part = document.at("schema")
    _check_questions(mapping, part, only_retrieval=config.evaluation.method == "retrieval")
    if mapping.answer_mode == "all":
        is_similar = config.evaluation.method == "semantic-similarity"
        if is_similar or config.evaluation.f1_rule == "locomo":
            rule = "semantic-similarity" if is_similar else "f1Rule: locomo"
            problem = f"all is not supported by {rule}, which compares with one answer"
            raise BadInput(part.where("answer_mode"), problem, expected="any", remedy="use another evaluation.method")
    if not mapping.item_id_paths:
        raise BadInput(part.where("item_id"), "the list is empty", expected="a path, or a list of paths")
    for text in mapping.item_id_paths:
        parse_path(text, part.where("item_id"))
    is_numbered = mapping.evidence_format.startswith(("numbers", "ranges"))
    if is_numbered and "evidence_level" not in mapping.model_fields_set:
        problem, expected = "what do the numbers count?", "evidenceLevel: session, or evidenceLevel: turn"
        raise BadInput(part.where("evidence_format"), problem, expected=expected)
    _check_patterns(mapping.context, part.at("context"))
    if mapping.date_format is not None:
        formats = (mapping.date_format,) if isinstance(mapping.date_format, str) else mapping.date_format
        try:
            for format in formats or ("",):
                check_format(format)
        except ValueError as error:
            problem, expected = f"invalid date format: {error}", "codes of strptime, such as %d.%m.%Y"
            raise BadInput(part.where("date_format"), problem, expected=expected) from None
    for place, path in _paths(mapping):
        if path != OTHERS or place[-1] not in ("forbidden", "forbidden_field"):
            parse_path(path, part.where(*place))
    for path, format in mapping.parse.items():
        parse_path(path, part.where("parse"))
        if not format or (format.isalnum() and format not in ("json", "python", "lines")):
            expected = "json, python, lines, or a separator such as ;"
            raise BadInput(part.where("parse", path), f"unknown format {preview(format)}", expected=expected)
    if config.data.items is not None:
        parse_path(config.data.items, document.where("data", "items"))
    if mapping.context.prefix is not None and mapping.context.type not in ("array", "turns"):
        raise BadInput(part.where("context", "prefix"), f"no effect on type: {mapping.context.type}")
    if mapping.questions is not None and mapping.questions.prefix_field is not None:
        where = part.where("questions", "prefix_field")
        if mapping.context.type != "array":
            raise BadInput(where, f"no effect on type: {mapping.context.type}", remedy="remove it")
        if mapping.context.session_per is not None:
            raise BadInput(where, "cannot be combined with context.sessionPer", remedy="remove one of the two")
        if mapping.context.prefix is not None:
            raise BadInput(where, "cannot be combined with context.prefix", remedy="remove one of the two")
    _check_whole_path(mapping.context.item_schema.evidence, part.where("context", "item_schema", "evidence"))


def _check_whole_path(text: str | None, where: str) -> None:
    """Raise BadInput unless the path consists of names alone, so that its match has one known place."""
    from .paths import parse_path

    if text is not None and not parse_path(text, where).singular:
        raise BadInput(where, f"{preview(text)} may match several places", expected="names alone, as in $.data.items")


def _check_questions(mapping: SchemaMapping, part: Document, *, only_retrieval: bool) -> None:
    if mapping.questions is not None:
        if mapping.question or mapping.answer:
            raise BadInput(
                part.where("questions"), "cannot be combined with question and answer", remedy="remove one of the two"
            )
    elif not mapping.question:
        raise BadInput(part.where(), '"question" is missing', expected="question and answer, or questions")
    if only_retrieval:
        evidence = mapping.evidence if mapping.questions is None else mapping.questions.evidence_field
        if evidence is None and mapping.context.item_schema.evidence is None:
            key = "evidence" if mapping.questions is None else "questions.evidenceField"
            raise BadInput(
                part.where(), f'"{key}" is missing', expected="a path, because evaluation.method is retrieval"
            )
    if mapping.questions is not None and bool(mapping.questions.field) == bool(mapping.questions.columns):
        raise BadInput(part.where("questions"), "where are the questions?", expected="either field or columns")
    _check_gold(mapping, part, only_retrieval=only_retrieval)


def _check_gold(mapping: SchemaMapping, part: Document, *, only_retrieval: bool) -> None:
    """Raise BadInput if the keys that say what a right answer is are missing or contradict each other."""
    many = mapping.questions
    answer, rubric, choices, required, excluded = (
        (many.answer_field, many.rubric_field, many.choices_field, many.must_contain_field, many.must_not_contain_field)
        if many is not None
        else (mapping.answer, mapping.rubric, mapping.choices, mapping.must_contain, mapping.must_not_contain)
    )
    if many is not None:
        for name in ("rubric", "must_contain", "must_not_contain", "forbidden", "evidence", "choices"):
            if getattr(mapping, name) is not None:
                key = "".join(word.capitalize() if place else word for place, word in enumerate(name.split("_")))
                raise BadInput(
                    part.where(name),
                    "has no effect on items with several questions",
                    remedy=f"move it to questions.{key}Field",
                )
    if not (answer or rubric or required or excluded or only_retrieval):
        where, key = (part.where("questions"), "answerField") if many is not None else (part.where(), "answer")
        expected = "question and answer, or questions" if many is None else "a path to the gold answer, or a rubric"
        raise BadInput(where, f'"{key}" is missing', expected=expected)
    if mapping.choice_index is not None and not choices:
        raise BadInput(part.where("choice_index"), "no effect without choices", remedy="remove it")
    if mapping.rubric_item != RubricItemSchema.model_construct() and not rubric:
        raise BadInput(part.where("rubric_item"), "no effect without rubric", remedy="remove it, or write rubric")
    mode = mapping.answer_mode
    if mode is None:
        return
    where = part.where("answer_mode")
    if rubric and mode != "rubric":
        raise BadInput(where, f"{mode} contradicts the rubric", expected="rubric", remedy="remove one of the two")
    if not rubric and not answer:
        raise BadInput(where, "there are no answers", remedy="remove it, or write the path of the answers")
    if choices and mode != "any":
        problem = f"{mode} is not supported for multiple choice"
        raise BadInput(where, problem, expected="any", remedy="remove it, or remove the choices")


def _check_patterns(context: Context, part: Document) -> None:
    if context.split is not None and context.type != "string":
        raise BadInput(part.where("split"), f"no effect on type: {context.type}", remedy="set type: string")
    if context.speaker_separator is not None and (context.item_schema.speaker or context.line_pattern):
        other = "itemSchema.speaker" if context.item_schema.speaker else "linePattern"
        raise BadInput(
            part.where("speaker_separator"), f"cannot be combined with {other}", remedy="remove one of the two"
        )
    if context.line_pattern is not None:
        where = part.where("line_pattern")
        if context.type != "string":
            raise BadInput(where, f"no effect on type: {context.type}", remedy="set type: string")
        if context.split == "paragraphs" or context.item_schema != ItemSchema.model_construct():
            other = "split: paragraphs" if context.split == "paragraphs" else "itemSchema"
            raise BadInput(where, f"cannot be combined with {other}", remedy="remove one of the two")
        LinePattern(context.line_pattern, where)
    if context.session_per is not None:
        where = part.where("session_per")
        if context.type == "object" or context.turns_field is not None:
            raise BadInput(where, "no effect: the data has sessions", expected="a list of turns, or a log")
        if context.turn_schema.date is None:
            raise BadInput(where, "turns have no date", expected="itemSchema.date, or {date} in linePattern")
        for name in ("prefix", "date_field", "id_field"):
            if getattr(context, name) is not None:
                raise BadInput(part.where(name), "cannot be combined with sessionPer", remedy="remove one of the two")
    if context.item_schema.content and context.item_schema.text:
        raise BadInput(
            part.where("item_schema", "text"), "cannot be combined with content", remedy="remove one of the two"
        )
    for name, other in (("id", "id_field"), ("date", "date_field")):
        if getattr(context.session_schema, name) is None:
            continue
        if getattr(context, other) is not None:
            where = part.where("session_schema", name)
            raise BadInput(where, f"cannot be combined with {name}Field", remedy="remove one of the two")
        if context.type != "array":
            raise BadInput(part.where("session_schema", name), f"no effect on type: {context.type}", remedy="remove it")
    if context.type == "object" and context.session_pattern is None:
        raise BadInput(
            part.where(), '"sessionPattern" is missing', expected="a pattern of session keys, such as session_*"
        )
    for name in ("session_pattern", "date_pattern"):
        pattern = getattr(context, name)
        if pattern is None:
            continue
        if context.type != "object":
            raise BadInput(part.where(name), f"no effect on type: {context.type}", remedy="set type: object")
        if pattern.count("*") != 1:
            raise BadInput(
                part.where(name),
                f"invalid pattern {preview(pattern)}",
                expected="exactly one *, in place of the number",
            )
    for name, remedy in _WITHOUT_EFFECT.get(context.type, {}).items():
        if getattr(context, name) is not None:
            raise BadInput(part.where(name), f"no effect on type: {context.type}", remedy=remedy)


def _paths(mapping: SchemaMapping) -> Iterator[tuple[Place, str]]:
    """Yield each path of a mapping with its place in the config."""
    sections: dict[Place, Mapping[str, object]] = {
        (): mapping.model_dump(include=_QUESTION_PATHS),
        ("rubric_item",): mapping.rubric_item.model_dump(),
        ("context",): mapping.context.model_dump(include={"field", "date_field", "id_field", "turns_field", "prefix"}),
        ("context", "session_schema"): mapping.context.session_schema.model_dump(),
        ("context", "item_schema"): mapping.context.item_schema.model_dump(),
        ("metadata",): mapping.metadata,
    }
    if mapping.questions is not None:
        sections["questions",] = mapping.questions.model_dump()
        sections["questions", "labels"] = mapping.questions.labels
        sections["questions", "columns"] = mapping.questions.columns
    for place, section in sections.items():
        for name, path in section.items():
            if isinstance(path, str):
                yield (*place, name), path


def _check_question_types(config: BenchmarkConfig, document: Document) -> None:
    names = [kind.name for kind in config.question_types]
    for index, kind in enumerate(config.question_types):
        if kind.name in names[:index]:
            where = document.where("question_types", index, "name")
            raise BadInput(where, f"duplicate question type {preview(kind.name)}", remedy="remove one")
        for number, text in enumerate(kind.rubric):
            where = document.where("question_types", index, "rubric", number)
            Template.parse(text, RUBRIC_VARIABLES, where)
            mapping = config.mapping
            if mapping is None or _has_rubric(mapping) or not text.strip():
                problem = "the item is empty" if not text.strip() else "the data has its own rubric, or none can be set"
                raise BadInput(where, problem, expected="a text, and a schema without rubric and choices")
        if kind.evaluation_prompt not in JUDGE_PROMPTS:
            raise BadInput(
                document.where("question_types", index, "evaluation_prompt"),
                f"unknown judge prompt {preview(kind.evaluation_prompt)}",
                expected=f"one of {join_names(JUDGE_PROMPTS)}",
                remedy=suggestion(kind.evaluation_prompt, JUDGE_PROMPTS) or "or set judgePrompts.byQuestionType",
            )


def _has_rubric(mapping: SchemaMapping) -> bool:
    many = mapping.questions
    own = (mapping.rubric, mapping.choices) if many is None else (many.rubric_field, many.choices_field)
    return any(own) or mapping.answer_mode == "rubric"


def _scores_rubrics(config: BenchmarkConfig) -> bool:
    mapping = config.mapping
    assert mapping is not None
    rubric = mapping.rubric if mapping.questions is None else mapping.questions.rubric_field
    return bool(rubric) or mapping.answer_mode == "rubric" or any(kind.rubric for kind in config.question_types)


def _check_evaluation(config: BenchmarkConfig, document: Document) -> None:
    part, evaluation = document.at("evaluation"), config.evaluation
    if evaluation.method == "custom" and evaluation.custom_evaluator is None:
        raise BadInput(part.where(), '"customEvaluator" is missing', expected="./file.py:function")
    if evaluation.custom_evaluator is not None:
        _check_evaluator(evaluation.custom_evaluator, part.where("custom_evaluator"))
    if evaluation.f1_rule == "locomo" and evaluation.method == "contains":
        problem = "locomo has no effect on method: contains"
        raise BadInput(part.where("f1_rule"), problem, expected="method: f1", remedy="remove one of the two")
    if "partial_credit" in evaluation.model_fields_set and config.mapping is not None and not _scores_rubrics(config):
        raise BadInput(part.where("partial_credit"), "no effect without a rubric", remedy="remove it")
    types = [kind.name for kind in config.question_types]
    sections: tuple[tuple[str, AnswerPrompt | JudgePrompts, Callable[[str, str], Template]], ...] = (
        ("answer_prompt", evaluation.answer_prompt, answer_prompt),
        ("judge_prompts", evaluation.judge_prompts, judge_prompt),
    )
    for name, prompts, parse in sections:
        if prompts.default is not None:
            parse(prompts.default, part.where(name, "default"))
        for kind, text in prompts.by_question_type.items():
            where = part.where(name, "by_question_type", kind)
            if types and kind not in types:
                raise unknown_name(where, f"unknown question type {preview(kind)}", kind, types)
            parse(text, where)


def _check_evaluator(evaluator: str, where: str) -> None:
    stem, _, suffix = evaluator.rpartition(".")
    if suffix in ("ts", "js", "mjs"):
        raise BadInput(where, f"{preview(evaluator)} is not Python", expected=f"{stem}.py:evaluate")
    if not re.fullmatch(r".+\.py:[A-Za-z_]\w*", evaluator):
        raise BadInput(where, f"no function in {preview(evaluator)}", expected="./file.py:function")
