"""Checks the section `schema` of a benchmark config: which keys it has, and which of them exclude each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memorybench.core.errors import BadInput
from memorybench.files.located import Document, Place
from memorybench.text.sanitize import preview
from memorybench.text.spelling import camel

from .config import BenchmarkConfig, Context, ItemSchema, RubricItemSchema, SchemaMapping
from .log_lines import LinePattern

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
_TYPES = {
    "context.split": ("string",),
    "context.line_pattern": ("string",),
    "context.session_pattern": ("object",),
    "context.date_pattern": ("object",),
    "context.date_field": ("array", "turns"),
    "context.id_field": ("array",),
    "context.turns_field": ("array",),
    "context.prefix": ("array", "turns"),
    "context.session_schema.id": ("array",),
    "context.session_schema.date": ("array",),
    "questions.prefix_field": ("array",),
}
"""Keys of `schema`, each with the values of `schema.context.type` for which the key has an effect."""
_ALTERNATIVES = (
    ("questions", "question"),
    ("questions", "answer"),
    ("questions.prefix_field", "context.session_per"),
    ("questions.prefix_field", "context.prefix"),
    ("context.prefix", "context.session_per"),
    ("context.date_field", "context.session_per"),
    ("context.id_field", "context.session_per"),
    ("context.session_schema.id", "context.id_field"),
    ("context.session_schema.date", "context.date_field"),
    ("context.item_schema.text", "context.item_schema.content"),
    ("context.speaker_separator", "context.item_schema.speaker"),
    ("context.speaker_separator", "context.line_pattern"),
)
"""Pairs of keys that cannot be combined."""
WITHOUT_FILES = ("bundled", "plugin")
"""Values of `data.type` for data that a class provides, so that the config needs no `schema`."""


def check_schema(config: BenchmarkConfig, document: Document) -> None:
    """Raise BadInput at the first error of the section `schema`."""
    mapping = config.mapping
    if config.data.type in WITHOUT_FILES or config.is_built:
        if mapping is not None:
            kind = f"{config.data.type} data" if not config.is_built else "needles" if config.needles else "cues"
            raise BadInput(document.where("schema"), f"schema has no effect with {kind}", remedy="remove it")
        return
    if mapping is None:
        raise BadInput(
            document.where(),
            '"schema" is missing',
            expected="a section that says where itemId, question, answer and context are in the data",
        )
    from .paths import OTHERS, parse_path

    part = document.at("schema")
    _check_questions(mapping, part, only_retrieval=config.evaluation.method == "retrieval")
    if mapping.answer_mode == "all":
        is_similar = config.evaluation.method == "semantic-similarity"
        if is_similar or config.evaluation.f1_rule == "locomo":
            rule = "semantic-similarity" if is_similar else "f1Rule: locomo"
            raise BadInput(
                part.where("answer_mode"),
                f"answerMode: all is not supported by {rule}, which compares with one answer",
                expected="any",
                remedy="use another evaluation.method",
            )
    if not mapping.item_id_paths:
        raise BadInput(part.where("item_id"), "the list is empty", expected="a path, or a list of paths")
    for text in mapping.item_id_paths:
        parse_path(text, part.where("item_id"))
    is_numbered = mapping.evidence_format.startswith(("numbers", "ranges"))
    if is_numbered and "evidence_level" not in mapping.model_fields_set:
        raise BadInput(
            part.where("evidence_format"),
            "evidenceLevel is missing: it says whether these numbers count sessions or turns",
            remedy="add evidenceLevel: session or evidenceLevel: turn",
        )
    _check_patterns(mapping.context, part.at("context"))
    _check_combinations(mapping, part)
    if mapping.date_format is not None:
        from .dates import check_format

        formats = (mapping.date_format,) if isinstance(mapping.date_format, str) else mapping.date_format
        try:
            for format in formats or ("",):
                check_format(format)
        except ValueError as error:
            raise BadInput(
                part.where("date_format"),
                f"invalid date format: {error}",
                expected="codes of strptime, such as %d.%m.%Y",
            ) from None
    for place, path in _paths(mapping):
        if path != OTHERS or place[-1] not in ("forbidden", "forbidden_field"):
            parse_path(path, part.where(*place))
    for path, format in mapping.parse.items():
        parse_path(path, part.where("parse"))
        if not format or (format.isalnum() and format not in ("json", "python", "lines")):
            raise BadInput(
                part.where("parse", path),
                f"unknown format {preview(format)}",
                expected="json, python, lines, or a separator such as ;",
            )
    if config.data.items is not None:
        parse_path(config.data.items, document.where("data", "items"))
    mark, where = mapping.context.item_schema.evidence, part.where("context", "item_schema", "evidence")
    if mark is not None and not parse_path(mark, where).singular:  # it could mark several places
        raise BadInput(
            where, f"{preview(mark)} may match several places", expected="a path of names only, such as $.data.items"
        )


def _check_combinations(mapping: SchemaMapping, part: Document) -> None:
    """Raise BadInput if a key has no effect with the type of the context, or with another key."""
    for key, types in _TYPES.items():
        if _value(mapping, key) is not None and mapping.context.type not in types:
            raise BadInput(
                part.where(*key.split(".")),
                f"this key has no effect with context.type: {mapping.context.type}",
                remedy=f"remove it, or set schema.context.type: {' or '.join(types)}",
            )
    for key, other in _ALTERNATIVES:
        if _value(mapping, key) is not None and _value(mapping, other) is not None:
            raise BadInput(
                part.where(*key.split(".")),
                f"this key cannot be combined with schema.{'.'.join(map(camel, other.split('.')))}",
                remedy="remove one of the two",
            )


def _value(section: object, key: str) -> object:
    """Return the value of a key such as `context.prefix` within a section; None if it is not set."""
    for name in key.split("."):
        section = None if section is None else getattr(section, name)
    return section


def _check_questions(mapping: SchemaMapping, part: Document, *, only_retrieval: bool) -> None:
    if mapping.questions is None and not mapping.question:
        raise BadInput(part.where(), '"question" is missing', expected="question and answer, or questions")
    evidence = (mapping.question_path("evidence"), mapping.context.item_schema.evidence)
    if only_retrieval and evidence == (None, None):
        key = "evidence" if mapping.questions is None else "questions.evidenceField"
        raise BadInput(part.where(), f'"{key}" is missing', expected="a path, because evaluation.method is retrieval")
    if mapping.questions is not None and bool(mapping.questions.field) == bool(mapping.questions.columns):
        raise BadInput(
            part.where("questions"), "expected exactly one of field and columns", remedy="write one of the two"
        )
    _check_gold(mapping, part, only_retrieval=only_retrieval)


def _check_gold(mapping: SchemaMapping, part: Document, *, only_retrieval: bool) -> None:
    """Raise BadInput if the keys that say what a right answer is are missing or contradict each other."""
    many = mapping.questions
    fields = ("answer", "rubric", "choices", "must_contain", "must_not_contain")
    answer, rubric, choices, required, excluded = map(mapping.question_path, fields)
    if many is not None:
        for name in ("rubric", "must_contain", "must_not_contain", "forbidden", "evidence", "choices"):
            if getattr(mapping, name) is not None:
                key = camel(name)
                raise BadInput(
                    part.where(name),
                    f"{key} has no effect if items have several questions",
                    remedy=f"move it to questions.{key}Field",
                )
    if not (answer or rubric or required or excluded or only_retrieval):
        where, key = (part.where("questions"), "answerField") if many is not None else (part.where(), "answer")
        raise BadInput(
            where,
            f'"{key}" is missing',
            expected="question and answer, or questions" if many is None else "a path to the gold answer, or a rubric",
        )
    if mapping.choice_index is not None and not choices:
        raise BadInput(part.where("choice_index"), "choiceIndex has no effect without choices", remedy="remove it")
    if mapping.rubric_item != RubricItemSchema.model_construct() and not rubric:
        raise BadInput(
            part.where("rubric_item"), "rubricItem has no effect without rubric", remedy="remove it, or write rubric"
        )
    mode = mapping.answer_mode
    if mode is None:
        return
    where = part.where("answer_mode")
    if rubric and mode != "rubric":
        raise BadInput(
            where,
            f"answerMode: {mode} contradicts the rubric",
            expected="answerMode: rubric",
            remedy="remove one of the two",
        )
    if not rubric and not answer:
        raise BadInput(
            where,
            "answerMode has no effect, because schema has no path to answers",
            remedy="remove it, or add the path",
        )
    if choices and mode != "any":
        raise BadInput(
            where,
            f"answerMode: {mode} is not supported for multiple choice",
            expected="any",
            remedy="remove it, or remove the choices",
        )


def _check_patterns(context: Context, part: Document) -> None:
    if context.line_pattern is not None:
        where = part.where("line_pattern")
        if context.split == "paragraphs" or context.item_schema != ItemSchema.model_construct():
            other = "split: paragraphs" if context.split == "paragraphs" else "itemSchema"
            raise BadInput(where, f"linePattern cannot be combined with {other}", remedy="remove one of the two")
        LinePattern(context.line_pattern, where)
    if context.session_per is not None:
        where = part.where("session_per")
        if context.type == "object" or context.turns_field is not None:
            raise BadInput(
                where, "sessionPer has no effect: the data already has sessions", expected="a list of turns, or a log"
            )
        if context.turn_schema.date is None:
            raise BadInput(
                where, "sessionPer needs the dates of turns", expected="itemSchema.date, or {date} in linePattern"
            )
    if context.type == "object" and context.session_pattern is None:
        raise BadInput(
            part.where(), '"sessionPattern" is missing', expected="a pattern of session keys, such as session_*"
        )
    for name in ("session_pattern", "date_pattern"):
        pattern = getattr(context, name)
        if pattern is not None and pattern.count("*") != 1:
            raise BadInput(
                part.where(name),
                f"{preview(pattern)} contains * {pattern.count('*')} times",
                expected="exactly one *, in place of the number",
            )


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
