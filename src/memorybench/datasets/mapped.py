"""Datasets described by a benchmark config: LoCoMo, LongMemEval and users' own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from memorybench.core.conversation import Haystack
from memorybench.core.errors import BadInput
from memorybench.core.questions import EvidenceLevel, Question, RubricItem
from memorybench.core.records import digest
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document, Place
from memorybench.files.parquet import BinaryValues
from memorybench.files.templates import Template
from memorybench.text.sanitize import preview
from memorybench.text.spelling import suggestion

from .choices import Choices, read_choices
from .config import BenchmarkConfig, OfficialRetrieval, SchemaMapping
from .config_reading import RUBRIC_VARIABLES
from .context import ContextReader, ItemContext, comparable, read_prefix
from .dates import read_date
from .evidence import CitationReader, Evidence, EvidenceCheck, resolve
from .gold import GoldReader, is_blank
from .index import Index, index_file, load_index, save_index
from .items import Item, Selection, Span, read_items, read_span
from .joins import ItemStream
from .parsing import TextParser
from .paths import OTHERS, Marked, flatten, only, parse_path, place_of, uses_marks
from .survey import Survey

OFFICIAL = "official_retrieval"
"""Label: whether the authors include a question in their averages."""
COUNTED, LEFT_OUT = "counted by the authors", "left out by the authors"

_CACHED_HAYSTACKS = 32
"""Haystacks cached in memory: more than a run processes concurrently."""
_CACHED_CONTEXTS = 8
"""Contexts kept while the questions are read."""
_ROWS = "@rows"
"""Name of the questions of an item that are made of `questions.columns`."""
_MOST_ERRORS = 100
"""Items that cannot be read, after which the others are not tried."""
_TYPE, _DATE = ("questionType", "question_type"), ("questionDate", "question_date")

_CORRECT_COLUMNS = "correct schema.questions.columns"
_NOTES = {
    "repeated": "histories that repeat a session id",
    "unsorted": "histories not in the order of their dates",
    "undated": "sessions without a date",
    "empty": "empty turns, skipped",
    "empty_sessions": "sessions without turns, skipped",
    "images": "pictures, not read",
    "beyond": "sessions or turns after the last question about their history, not read",
    "filtered_history": "sessions or turns left out by filters in schema.context",
    "stray_dates": "dates of sessions that are not there",
    "labels": "labels that are lists or objects, left out",
    "later": "questions with sessions dated after them",
    "numbers": "gold answers that are numbers, read as text",
    "several": "questions with several answers, of which any is right (answerMode)",
    "blank": "empty answers, rubric items and texts in lists, skipped",
    "repeated_items": "rubric items that repeat another, scored twice",
    "unforbidden": "unknown ids that must not be retrieved, dropped",
    "repaired": "evidence ids with another spelling, repaired",
    "dropped": "unknown evidence ids, dropped",
    "ambiguous": "evidence texts that several turns have, dropped",
    "unproven": "questions without evidence, which have no retrieval figures",
    "abstain": "questions that their history does not answer",
    "filtered": "questions left out by the filter in schema.questions.field",
    "questionless": "items without questions",
    "unnamed": "questions of a category without a name",
}
"""Irregularities of the data. Each note is one of these texts with its count."""


class MappedDataset:
    """A Dataset with its questions in memory, which reads haystacks from the file on demand."""

    def __init__(
        self,
        config: BenchmarkConfig,
        fingerprint: str,
        questions: tuple[Question, ...],
        notes: tuple[str, ...],
        contexts: Mapping[str, Callable[[], ItemContext]],
        cached: int = _CACHED_HAYSTACKS,
    ) -> None:
        assert config.mapping is not None
        self.name = config.name
        self.fingerprint = fingerprint
        self.evidence: EvidenceLevel = config.mapping.evidence_level
        self.questions = questions
        self.notes = notes
        """Counted irregularities of the data."""
        self._format = config.mapping.evidence_format
        self._context = lru_cache(maxsize=cached)(lambda id: contexts[id]())

    def haystack(self, id: str) -> Haystack:
        return Haystack(id, self._context(id).sessions, fingerprint=digest([self.fingerprint, id]))

    def resolve_evidence(self, question: Question, ids: Sequence[str]) -> Evidence:
        """Resolve ids of the data to turns and sessions of the question's haystack."""
        return resolve(ids, self._context(question.haystack), self.evidence, self._format)


def fingerprint_of(config: BenchmarkConfig, checksum: str) -> str:
    """Return the fingerprint of a dataset whose files have this checksum."""
    return digest([checksum, *_settings(config)])


def index_of(config: BenchmarkConfig, files: Sequence[FilePath], indexes: FilePath) -> FilePath | None:
    """Return where the index of a dataset is, or would be; None if it needs none."""
    if len(files) > 1 or _is_assembled(config):
        return None
    return index_file(indexes, files[0], digest([*_settings(config)]))


def _is_assembled(config: BenchmarkConfig) -> bool:
    """Return whether items need more than their own fields: other files, or their place."""
    mapping = config.mapping
    if mapping is not None and mapping.questions is not None and mapping.questions.prefix_field is not None:
        return True
    is_marked = mapping is not None and any("@" in text for text in mapping.item_id_paths)
    return bool(config.data.join) or is_marked or _names_marks(config)


def _names_marks(config: BenchmarkConfig) -> bool:
    assert config.mapping is not None
    return '"@' in config.mapping.model_dump_json()


_LATER_KEYS = frozenset(
    ("parse", "cluster", "labels", "image", "prefix", "session_schema", "answer_mode", "rubric", "rubric_item",
     "must_contain", "must_not_contain", "forbidden", "rubric_field", "must_contain_field", "must_not_contain_field",
     "forbidden_field", "columns", "split", "prefix_field", "choice_index")
)  # fmt: skip
"""Keys that version 0.1 did not have. Without a value they are left out of fingerprints, which stay as they were."""


def _settings(config: BenchmarkConfig) -> tuple[Any, ...]:
    """Return the parts of the config that questions and haystacks depend on."""
    mapping = _without_later(config.model_dump(mode="json", include={"mapping", "categories"}))
    settings: tuple[Any, ...] = (mapping, config.ingestion.preprocessing.model_dump(mode="json"))
    rubrics = {kind.name: kind.rubric for kind in config.question_types if kind.rubric}
    if rubrics:
        settings = (*settings, rubrics)
    if config.data.where is not None:
        settings = (*settings, config.data.where)
    if "?" in (config.data.items or ""):
        settings = (*settings, config.data.items)
    if not config.data.join:
        return settings
    return *settings, config.data.model_dump(mode="json", include={"files", "items", "join"})


def _without_later(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        key: _without_later(inner)
        for key, inner in value.items()
        if key not in _LATER_KEYS or (any(inner.values()) if isinstance(inner, dict) else _is_set(inner))
    }


def _is_set(value: Any) -> bool:
    return value is not None and value is not False and value not in ([], "")  # 0 is a value


def open_mapped(
    config: BenchmarkConfig,
    file: FilePath | Sequence[FilePath],
    checksum: Callable[[], str],
    indexes: FilePath | None = None,
    *,
    cached: int = _CACHED_HAYSTACKS,
    joined: Mapping[str, Sequence[FilePath]] | None = None,
    folder: FilePath | None = None,
    survey: Survey | None = None,
) -> MappedDataset:
    """Open a data file, or several; raise BadInput at the first error.

    Each is parsed once. If the only file is large, an index in the folder `indexes` makes the next opening fast.
    `checksum` returns that of the files, or raises BadInput if it is not the expected one. `cached` haystacks stay in
    memory. `joined` are the files of each `data.join`, `folder` that of all files; `survey` collects what is read.
    """
    assert config.mapping is not None
    files = [file] if isinstance(file, FilePath) else file
    stream = ItemStream(config.data, files, joined or {}, folder) if _is_assembled(config) else None
    binary: BinaryValues = {} if stream is None else stream.binary
    selection = Selection(config.data.where, f"{config.name}: data.where") if stream is None else stream.selection
    reader = _ItemReader(config, config.mapping, stream, survey)
    index_at = index_of(config, files, indexes) if indexes is not None else None
    if index_at is not None and index_at.exists():
        index = load_index(index_at, fingerprint_of(config, checksum()))
        if index is not None:
            contexts = {id: reader.again(partial(read_span, files[0], span)) for id, span in index.spans.items()}
            return MappedDataset(config, index.fingerprint, index.questions, index.notes, contexts, cached)
    questions: list[Question] = []
    contexts = {}
    spans: dict[str, Span | None] = {}
    errors: list[tuple[BadInput, Document]] = []
    with ThreadPoolExecutor(max_workers=1) as thread:
        checking = thread.submit(checksum)  # while the file is parsed
        try:
            reader.find_cuts()
            for item in stream or selection.of(_plain_items(config, files, binary, selection)):
                try:
                    parts = reader.read(item.document)
                except BadInput as error:
                    if not questions:
                        raise  # the config may be wrong; after other items, the item is
                    errors.append((error, item.document))
                    if isinstance(error, _DuplicateId) or len(errors) == _MOST_ERRORS:
                        break
                    continue
                for part in parts:
                    if part.haystack not in contexts:
                        contexts[part.haystack] = reader.again(item.again, part)
                        spans[part.haystack] = item.span
                # in the order of the data
                numbered = sorted((one for part in parts for one in part.questions), key=lambda pair: pair[0])
                questions += [question for _, question in numbered]
            if errors:
                raise reader.broken_item(*errors[0], len(errors) - 1)
        except BadInput:
            checking.result()  # an unexpected file is the cause, and says more
            raise
        fingerprint = fingerprint_of(config, checking.result())
    if not questions:
        is_filtered = selection.left_out or selection.filtered
        remedy = f"correct data.{'where' if selection.left_out else 'items'}" if is_filtered else "check the file"
        raise BadInput(str(files[0]), "no questions in the file", expected="at least one item", remedy=remedy)
    if not all(question.abstain for question in questions):
        reader.check_evidence(str(files[0]))
    reader.check_parsed(str(files[0]))
    notes = (*selection.notes(), *reader.notes(), *_binary_notes(binary))
    places = {id: span for id, span in spans.items() if span is not None}
    if index_at is not None and len(places) == len(spans):
        save_index(index_at, Index(fingerprint=fingerprint, questions=tuple(questions), notes=notes, spans=places))
    return MappedDataset(config, fingerprint, tuple(questions), notes, contexts, cached)


def _plain_items(
    config: BenchmarkConfig, files: Sequence[FilePath], binary: BinaryValues, selection: Selection
) -> Iterator[Item]:
    data = config.data
    return chain.from_iterable(read_items(one, data.format, data.items, binary, selection) for one in files)


def _binary_notes(binary: BinaryValues) -> Iterator[str]:
    for column, count in sum(binary.values(), Counter()).items():
        yield f"binary values of the column {preview(column)}, not read: {count:,}"


@dataclass(frozen=True, slots=True)
class _Paths:
    """The paths of a question's fields."""

    question: Path
    answer: Path | None
    rubric: Path | None
    must_contain: Path | None
    must_not_contain: Path | None
    forbidden: Path | None
    evidence: Path | None
    choices: Path | None
    kind: Path | None = None
    date: Path | None = None
    id: Path | None = None


class _Part(NamedTuple):
    """A part of the history of an item, and the questions about it, each with its number within the item."""

    haystack: str
    upto: int | None
    """Number of members of the history; None: all."""
    cuts: Sequence[int]
    """Where the other parts end."""
    questions: Sequence[tuple[int, Question]]


class _ItemReader:
    """Reads the questions of items by the paths of a config, and counts irregularities."""

    def __init__(
        self, config: BenchmarkConfig, mapping: SchemaMapping, stream: ItemStream | None, survey: Survey | None
    ) -> None:
        where = f"{config.name}: schema"
        self._stream = stream
        self._survey = survey
        self._shared = _shared_join(config, mapping)
        self._cuts: dict[str, set[int]] = {}
        self._clusters: dict[str, str] = {}
        """By memory."""
        self._parser = TextParser(mapping.parse, f"{where}.parse")
        self._cluster = None if mapping.cluster is None else parse_path(mapping.cluster, where)
        self._config = config
        self._mapping = mapping
        self._where = where
        self._context = ContextReader(
            mapping.context, config.ingestion.preprocessing, mapping.date_format, f"{where}.context"
        )
        self._id_paths = [parse_path(text, where) for text in mapping.item_id_paths]
        metadata = {name: parse_path(path, where) for name, path in mapping.metadata.items()}
        self._kind = next((metadata.pop(name) for name in _TYPE if name in metadata), None)
        self._date = next((metadata.pop(name) for name in _DATE if name in metadata), None)
        self._labels = metadata
        self._columns: dict[str, Path] = {}
        after = mapping.questions.prefix_field if mapping.questions is not None else None
        self._after = None if after is None else parse_path(after, where)
        self._list, self._paths = self._parse_paths(mapping)
        self._gold = GoldReader(
            mapping, self._paths.rubric, self._paths.must_contain, self._paths.must_not_contain, where
        )
        many = mapping.questions.labels if mapping.questions is not None else {}
        self._question_labels = {name: parse_path(path, where) for name, path in many.items()}
        self._rubrics = {
            one.name: [Template.parse(text, RUBRIC_VARIABLES, f"{config.name}: questionTypes") for text in one.rubric]
            for one in config.question_types
            if one.rubric
        }
        self._unseen_labels = {*self._labels, *self._question_labels}
        own = [getattr(self._paths, name) for name in self._paths.__slots__]
        self._marks_questions = any(map(uses_marks, (*own, self._after, *self._question_labels.values())))
        self._unmatched = self._optional_paths()
        """Paths that matched nothing yet, by their keys."""
        self._ids: set[str] = set()
        """Of questions in lists."""
        self._item_ids: set[str] = set()
        self._known: dict[str, ItemContext] = _RecentContexts()
        self._items = 0
        self._quirks: Counter[str] = Counter()
        self._histories: dict[str, Counter[str]] = {}
        """Irregularities of each history."""
        self._lengths: dict[str, tuple[int, int]] = {}
        """Turns of each history, and members that are not read, as a negative number."""
        self._cited = self._paths.evidence
        key = self._key("evidence") if self._cited is not None else "schema.context.itemSchema.evidence"
        format, forbidden = mapping.evidence_format, self._paths.forbidden
        self._citations = None if self._cited is None else CitationReader(self._cited, format, key)
        self._forbidden_ids = None if forbidden is None else CitationReader(forbidden, format, self._key("forbidden"))
        self._check = EvidenceCheck(self._cited, mapping.evidence_level, key, mapping.evidence_format)

    def _key(self, name: str) -> str:
        """Return the key of the config that names a field of a question."""
        if self._mapping.questions is not None:
            return f"schema.questions.{name}Field"
        return "schema.itemId" if name == "id" else f"schema.{name}"

    def _optional_paths(self) -> dict[str, Path]:
        """Return the paths to what questions may lack, by their keys."""
        named = {
            "answer": self._paths.answer,
            "mustContain": self._paths.must_contain,
            "mustNotContain": self._paths.must_not_contain,
            "forbidden": self._paths.forbidden,
            "choices": self._paths.choices,
            "category": self._paths.kind,
            "date": self._paths.date,
        }
        found = {self._key(name): path for name, path in named.items() if path is not None}
        of_items = {"questionType": self._kind, "questionDate": self._date}
        return found | {f"schema.metadata.{name}": path for name, path in of_items.items() if path is not None}

    def _note_matches(self, item: Document, part: Document) -> None:
        for key, path in list(self._unmatched.items()):
            value = item.value if key.startswith("schema.metadata") else part.value
            if any(match is not None for match in path.all(value)):
                del self._unmatched[key]

    def _parse_paths(self, mapping: SchemaMapping) -> tuple[Path | None, _Paths]:
        def path(text: str | None) -> Path | None:
            return None if text is None else parse_path(text, self._where)

        many = mapping.questions
        forbidden = mapping.forbidden if many is None else many.forbidden_field
        self._forbids_others = forbidden == OTHERS
        if many is None:
            assert mapping.question is not None
            return None, _Paths(
                parse_path(mapping.question, self._where),
                path(mapping.answer),
                path(mapping.rubric),
                path(mapping.must_contain),
                path(mapping.must_not_contain),
                None if self._forbids_others else path(mapping.forbidden),
                path(mapping.evidence),
                path(mapping.choices),
            )
        self._columns = {name: parse_path(text, self._where) for name, text in many.columns.items()}
        return Path.parse(f'$["{_ROWS}"]', self._where) if self._columns else path(many.field), _Paths(
            parse_path(many.question_field, self._where),
            path(many.answer_field),
            path(many.rubric_field),
            path(many.must_contain_field),
            path(many.must_not_contain_field),
            None if self._forbids_others else path(many.forbidden_field),
            path(many.evidence_field),
            path(many.choices_field),
            path(many.category_field),
            path(many.date_field),
            path(many.id_field),
        )

    def notes(self) -> Iterator[str]:
        quirks = self._quirks.copy()
        for counts in self._histories.values():
            quirks.update(counts)
        for kind, text in _NOTES.items():
            if quirks[kind]:
                yield f"{text}: {quirks[kind]:,}"
        for name in sorted(self._unseen_labels):
            yield f"no question has the label {preview(name)}: nothing at its path"
        for key, path in self._unmatched.items():
            yield f"no question has a value at {preview(path.text)} ({key})"
        if self._stream is not None:
            yield from self._stream.notes()
        if self._check.first_unknown:
            yield f"first unknown evidence id: {self._check.first_unknown}"

    def check_parsed(self, file: str) -> None:
        self._parser.raise_if_unused(file)

    def check_evidence(self, file: str) -> None:
        """Raise BadInput if the config describes evidence, but no question of the data has any."""
        if self._cited is not None or self._mapping.context.item_schema.evidence is not None:
            self._check.raise_if_useless(file)

    def find_cuts(self) -> None:
        """Find where the questions about each shared history are asked, before its sessions are made."""
        if self._shared is None or self._stream is None or self._mapping.context.prefix is None:
            return
        for item in self._stream:
            document = self._parser.parse(item.document)
            upto = self._context.prefix_of(document)
            if upto is not None:
                self._cuts.setdefault(self._stream.key_of(self._shared, document), set()).add(upto)

    def _read_context(self, item: Document, upto: int | None, cuts: Sequence[int]) -> ItemContext:
        if self._shared is not None and self._stream is not None and self._cuts:
            cuts = sorted(self._cuts.get(self._stream.key_of(self._shared, item), ()))
        return self._context.read(item, cuts, upto)

    def read(self, item: Document) -> list[_Part]:
        """Return the parts of the item's history that its questions are about, each with its questions."""
        self._items += 1
        item = self._parser.parse(item)
        id = self._item_id(item)
        # an id that marks abstention would reveal it to providers
        memory = id if self._mapping.abstention.id_pattern is None else f"h{self._items}"
        if self._shared is not None and self._stream is not None:
            memory = self._stream.key_of(self._shared, item)
        if self._survey is not None:
            self._survey.add_item(item.value)
        whole = self._with_rows(item) if self._columns else item
        places: dict[int | None, list[tuple[int, Place]]] = {}
        for n, place in enumerate([()] if self._list is None else self._places(whole, self._list)):
            places.setdefault(self._prefix_of(whole, place, n), []).append((n, place))
        cuts = sorted(upto for upto in places if upto is not None) if self._after is not None else ()
        parts: dict[int | None, _Part] = {}
        for upto in places or {self._context.prefix_of(item): []}:
            context, haystack = self._part_of(item, memory, upto, cuts)
            history = memory if haystack != memory else ""
            questions = [
                (n, self._question(whole, place, n, id, haystack, history, upto or 0, context))
                for n, place in places.get(upto, ())
            ]
            parts[upto] = _Part(haystack, upto, cuts, questions)
        return list(parts.values())

    def _prefix_of(self, item: Document, place: Place, n: int) -> int | None:
        """Return how many members of the history a question is about; None: all."""
        if self._after is None:
            return self._context.prefix_of(item)
        part = self._part(item, place, n)
        if "@parentIndex" in self._after.text and not self._context.member_number(item, place):
            lists = sum(isinstance(step, int) for step in _parent_place(item, place))
            if lists > 1:
                problem = f"@parentIndex is not the number of a session: its object is in {lists} lists"
                expected = "questions within schema.context.field, or in one list"
                raise BadInput(part.where(), problem, expected=expected, remedy="correct schema.questions.prefixField")
        return read_prefix(self._after, part, "schema.questions.prefixField")

    def _part_of(self, item: Document, memory: str, upto: int | None, cuts: Sequence[int]) -> tuple[ItemContext, str]:
        """Return a part of a history and its name."""
        is_shared = self._shared is not None or self._after is not None
        haystack = f"{memory}@{upto}" if is_shared and upto is not None else memory
        context = self._known.get(haystack)
        if context is None:
            context = self._read_context(item, upto, cuts)
            self._count(memory, context)
            if self._shared is not None:
                self._known[haystack] = context
        return context, haystack

    def _with_rows(self, item: Document) -> Document:
        """Return the item with its questions: one object for the nth members of all columns."""
        columns = {name: only(path, item.value, item.where) or [] for name, path in self._columns.items()}
        for name, column in columns.items():
            if not isinstance(column, list):
                where = _place(self._columns[name], item)()
                raise BadInput(where, f"invalid column {preview(column)}", expected="a list", remedy=_CORRECT_COLUMNS)
        lengths = {name: len(column) for name, column in columns.items() if column}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{preview(name)} has {length:,}" for name, length in lengths.items())
            raise BadInput(item.where(), f"columns of different lengths: {found}", remedy=_CORRECT_COLUMNS)
        rows = [
            {name: column[n] for name, column in columns.items() if column}
            for n in range(max(lengths.values(), default=0))
        ]
        value = item.value.copy()
        value[_ROWS] = rows
        return replace(item, value=value)

    def broken_item(self, error: BadInput, item: Document, others: int) -> BadInput:
        """Return the error of an item with a condition that leaves it out; `others` cannot be read, either."""
        more = "" if not others else f" ({others:,} other item{' has' if others == 1 else 's have'} errors)"
        remedy = error.remedy
        if not isinstance(error, _DuplicateId):
            remedy = f"{remedy or 'correct it'}, or leave the item out: data.where: {self._condition_without(item)}"
        return BadInput(error.where, f"{error.problem}{more}", expected=error.expected, remedy=remedy)

    def _condition_without(self, item: Document) -> str:
        """Return the value of `data.where` that leaves an item out: by its id, if it has one of its own."""
        path, *others = self._id_paths
        id = path.first(item.value)
        is_plain = re.fullmatch(r"[A-Za-z_]\w*", path.name or "") and re.fullmatch(r"[\w .:/@-]+", str(id))
        condition = f"@.{path.name} != {id if isinstance(id, int | float) else repr(id)}"
        condition = condition if is_plain and not others else "@.FIELD != 'VALUE'"
        earlier = self._config.data.where
        return f'"{condition}"' if earlier is None else f'"({earlier}) && {condition}"'

    def _count(self, memory: str, context: ItemContext) -> None:
        """Count a history once, by its longest part that a question is about."""
        length = context.turn_count, -context.left_out.members
        if memory in self._lengths and self._lengths[memory] >= length:
            return
        self._lengths[memory] = length
        self._histories[memory] = Counter(
            repeated=context.has_repeated_ids,
            unsorted=list(context.dates) != sorted(context.dates),
            undated=context.undated_sessions,
            empty=context.empty_turns,
            empty_sessions=context.empty_sessions,
            images=context.images,
            beyond=context.left_out.members,
            filtered_history=context.left_out.filtered,
            stray_dates=context.left_out.dates,
        )
        if self._survey is not None:
            self._survey.history_keys |= dict.fromkeys(context.left_out.keys)
            self._survey.add_history(memory, context)
            for fields in context.raw_turns():
                self._survey.add_turn(fields)

    def again(self, read_item: Callable[[], Document], part: _Part | None = None) -> Callable[[], ItemContext]:
        upto, cuts = (part.upto, part.cuts) if part is not None else (None, ())
        return lambda: self._read_context(self._parser.parse(read_item()), upto, cuts)

    def _places(self, item: Document, path: Path) -> list[Place]:
        """Return the place of each question: of the members of each list that the path matches, and other matches."""
        matches = path.located(item.value)
        self._quirks["filtered"] += path.left_out(item.value)
        if path.singular and not (matches and isinstance(matches[0][1], list)):
            place, questions = matches[0] if matches else (place_of(path, item.value) or (), None)
            is_object = isinstance(questions, dict)
            raise BadInput(
                item.where(*place),
                f"invalid list of questions {preview(questions)}",
                expected=f"a list at {path.text}",
                remedy=f"write {path.text}.*, or correct schema.questions.field"
                if is_object
                else "correct schema.questions.field",
            )
        if not any(route.steps for route in path.routes):  # `$.*`: the item's own fields
            matches = [(at, match) for at, match in matches if at[0] not in self._config.data.join]
        places = [place for at, match in matches for place, _ in flatten(match, at)]
        if not places and not path.singular:
            self._quirks["questionless"] += 1
        return places

    def _question(
        self,
        item: Document,
        place: Place,
        n: int,
        id: str,
        haystack: str,
        history: str,
        asked_after: int,
        context: ItemContext,
    ) -> Question:
        part = self._part(item, place, n)
        if self._survey is not None:
            self._survey.add_question(part.value)
        self._note_matches(item, part)
        if self._paths.id is not None:
            key = self._key("id")
            id = self._unique(_id_text(self._paths.id, part, key), _place(self._paths.id, part), self._ids, key)
        elif self._list is not None:
            id = self._unique(f"{id}:q{n}", part.where, self._ids, "")
        kind = self._kind_of(item, part)
        date = only(self._paths.date, part.value, part.where) if self._paths.date else None
        if not date:
            date = only(self._date, item.value, item.where) if self._date else None
        asked_at = read_date(date, part.where, self._mapping.date_format)
        abstain = self._abstains(id, kind)
        gold = self._gold.read(part)
        text, answers, choices = self._question_and_gold(part, abstain or gold.is_enough)
        shown = "\n".join((text, *choices.lines)) if choices else text
        if gold.answers_are_rubric:
            gold, answers = self._gold.from_answers(answers, part), ()
        if kind in self._rubrics:
            listed = {"answer": "\n".join(f"- {answer}" for answer in answers)}
            rubric = tuple(RubricItem(template.render(listed).strip()) for template in self._rubrics[kind])
            gold, answers = replace(gold, rubric=rubric), ()
        self._quirks["blank"] += gold.blanks
        self._quirks["repeated_items"] += len(gold.rubric) - len(set(gold.rubric))
        self._quirks["several"] += self._mapping.answer_mode is None and not choices and len(answers) > 1
        evidence = self._evidence(part, context)
        self._check.add(part, evidence, context)
        self._quirks["abstain"] += abstain
        self._quirks["unproven"] += not (evidence.sessions or evidence.turns)
        self._quirks["later"] += asked_at is not None and any(at > comparable(asked_at) for at in context.dates)
        return Question(
            id=id,
            labels=self._labels_of(item, part, kind, abstain, evidence, context),
            haystack=haystack,
            shared_history=history,
            asked_after=asked_after if history else 0,
            cluster=self._cluster_of(item, history or haystack),
            question=shown,
            without_choices=text if choices else "",
            answers=answers,
            answer_mode="all" if self._mapping.answer_mode == "all" else "any",
            rubric=gold.rubric,
            must_contain=gold.must_contain,
            must_not_contain=gold.must_not_contain,
            forbidden=self._forbidden(part, context, evidence),
            asked_at=asked_at,
            gold_sessions=evidence.sessions,
            gold_turns=evidence.turns,
            abstain=abstain,
            choices=choices.choices if choices else (),
        )

    def _part(self, item: Document, place: Place, n: int) -> Document:
        """Return a question: an object, with the names of where it is if a path uses them."""
        part = item.at(*place)
        if self._list is None:
            return part
        part = self._parser.parse(part)
        if not self._marks_questions:
            return part
        around = _parent_place(item, place)
        parent = item.at(*around).value
        names = [step for step in place if isinstance(step, str)]
        key = names[-1] if names else ""
        marks = {"@value": part.value, "@index": n + 1, "@key": key, "@item": item.value, "@parent": parent}
        number = self._parent_index(item, around)
        if number is not None:
            marks["@parentIndex"] = number
        return replace(part, value=Marked(part.value if isinstance(part.value, dict) else {}, marks))

    def _parent_index(self, item: Document, parent: Place) -> int | None:
        """Return the number of an object in the history if it is part of it, otherwise in its list; None: no list."""
        positions = [step + 1 for step in parent if isinstance(step, int)]
        return self._context.member_number(item, parent) or (positions[-1] if positions else None)

    def _cluster_of(self, item: Document, memory: str) -> str:
        if self._cluster is None:
            return ""
        value = only(self._cluster, item.value, item.where)
        if value is None or isinstance(value, dict | list) or not str(value).strip():
            raise _missing("cluster", self._cluster, item, "schema.cluster")
        if self._clusters.setdefault(memory, str(value)) != str(value):
            problem = (
                f"questions about one history have the clusters {preview(self._clusters[memory])} and {preview(value)}"
            )
            raise BadInput(_place(self._cluster, item)(), problem, expected="one", remedy="correct schema.cluster")
        return str(value)

    def _unique(self, id: str, where: Callable[[], str], known: set[str], key: str) -> str:
        """Return the id; raise BadInput if it is known. `key` is that of the config that leads to ids."""
        if id in known:
            default = "items are then numbered"
            if key.startswith("schema.questions"):
                default = "ids are then made of the item's id and the question's index"
            remedy = f"remove {key}: {default}" if key else "make ids unique"
            raise _DuplicateId(where(), f"duplicate id {preview(id)}", remedy=remedy)
        known.add(id)
        return id

    def _item_id(self, item: Document) -> str:
        id = ":".join(_id_text(path, item, "schema.itemId") for path in self._id_paths)
        return self._unique(id, _place(self._id_paths[0], item), self._item_ids, "schema.itemId")

    def _kind_of(self, item: Document, part: Document) -> str:
        kind = only(self._paths.kind, part.value, part.where) if self._paths.kind else None
        if kind is None and self._kind is not None:
            kind = only(self._kind, item.value, item.where)
        if kind is None:
            return ""
        name = self._config.categories.get(str(kind))
        self._quirks["unnamed"] += bool(self._config.categories) and name is None
        return name or str(kind)

    def _abstains(self, id: str, kind: str) -> bool:
        rules = self._mapping.abstention
        return kind in rules.categories or (rules.id_pattern is not None and fnmatchcase(id, rules.id_pattern))

    def _forbidden(self, part: Document, context: ItemContext, evidence: Evidence) -> tuple[str, ...]:
        if self._forbids_others:
            if self._mapping.evidence_level == "turn":
                return tuple(turn for turn in context.session_of if turn not in evidence.turns)
            sessions = (session.id for session in context.sessions)
            return tuple(session for session in sessions if session not in evidence.sessions)
        if self._forbidden_ids is None:
            return ()
        found = resolve(
            self._forbidden_ids.read(part), context, self._mapping.evidence_level, self._mapping.evidence_format
        )
        self._quirks["unforbidden"] += len(found.dropped) + len(found.ambiguous)
        return found.turns if self._mapping.evidence_level == "turn" else found.sessions

    def _question_and_gold(self, part: Document, optional: bool) -> tuple[str, tuple[str, ...], Choices | None]:
        path = self._paths.question
        text = only(path, part.value, part.where)
        if not isinstance(text, str) or not text.strip():
            raise _missing("question", path, part, self._key("question"))
        answer = self._paths.answer
        if answer is None:
            return text, (), None
        where = _place(answer, part)
        matches = _unnest(answer.all(part.value))
        values = [value for value in matches if not is_blank(value)]
        self._quirks["blank"] += len(matches) - len(values) if values else 0
        if not values and not optional:
            raise self._no_answer(answer, part)
        offered = self._offered(part)
        if offered is None:
            answers = [self._answer(value, where) for value in values]
            # a rubric may have an item twice, so that it weighs more
            return text, tuple(answers if self._gold.answers_are_rubric else dict.fromkeys(answers)), None
        read = read_choices(offered, part.where, self._key("choices"))
        right = (answer for value in values for answer in read.right(value, self._mapping.choice_index, where))
        return text, tuple(dict.fromkeys(right)), read

    def _no_answer(self, answer: Path, part: Document) -> BadInput:
        error = _missing("answer", answer, part, self._key("answer"))
        kind = self._paths.kind.first(part.value) if self._paths.kind else None
        if isinstance(kind, str | int):
            name = self._config.categories.get(str(kind), str(kind))
            rule = f"schema.abstention.categories: [{preview(name)}]"
            error = BadInput(
                error.where,
                error.problem,
                expected=error.expected,
                remedy=f"{error.remedy}; if it cannot be answered, {rule}",
            )
        return error

    def _offered(self, part: Document) -> Any:
        """Return the choices: what a path leads to, or a list of its matches."""
        if self._paths.choices is None or self._paths.choices.singular:
            return self._paths.choices and self._paths.choices.first(part.value)
        return list(_unnest(self._paths.choices.all(part.value))) or None

    def _answer(self, value: Any, where: Callable[[], str]) -> str:
        if isinstance(value, dict | list):
            raise BadInput(
                where(), f"invalid answer {preview(value)}", expected="a text", remedy="correct schema.answer"
            )
        if isinstance(value, bool):
            return "yes" if value else "no"
        self._quirks["numbers"] += not isinstance(value, str)
        # 10.0 would lose its point when answers are compared, and become 100
        return str(int(value) if isinstance(value, float) and value.is_integer() else value)

    def _evidence(self, part: Document, context: ItemContext) -> Evidence:
        if self._citations is None:
            sessions = dict.fromkeys(turn.session for turn in context.marked.values())
            return Evidence(tuple(sessions), tuple(context.marked))
        evidence = resolve(
            self._citations.read(part), context, self._mapping.evidence_level, self._mapping.evidence_format
        )
        self._quirks["repaired"] += len(evidence.repaired)
        self._quirks["dropped"] += len(evidence.dropped)
        self._quirks["ambiguous"] += len(evidence.ambiguous)
        return evidence

    def _labels_of(
        self, item: Document, part: Document, kind: str, abstain: bool, evidence: Evidence, context: ItemContext
    ) -> dict[str, str]:
        labels = {"question_type": kind} if kind else {}
        for paths, document in ((self._labels, item), (self._question_labels, part)):
            for name, path in paths.items():
                value = only(path, document.value, document.where)
                if isinstance(value, dict | list):
                    self._quirks["labels"] += 1
                elif value is not None:
                    labels[name] = str(value)
                    self._unseen_labels.discard(name)
        official = self._mapping.official_retrieval
        if official is not None:
            labels[OFFICIAL] = COUNTED if _is_counted(official, abstain, evidence, context) else LEFT_OUT
        return labels


class _DuplicateId(BadInput):
    """Two items or questions have one id. No condition on one of them helps."""


class _RecentContexts(dict[str, ItemContext]):
    """The contexts of the last few histories: items that share one need not read it again."""

    def __setitem__(self, haystack: str, context: ItemContext) -> None:
        super().__setitem__(haystack, context)
        while len(self) > _CACHED_CONTEXTS:
            del self[next(iter(self))]


def _shared_join(config: BenchmarkConfig, mapping: SchemaMapping) -> str | None:
    """Return the name of the join that contains the whole context, so that items share their histories.

    A file that is joined to a file with one item is the history of that item alone.
    """
    context = mapping.context
    paths = [
        parse_path(text, "schema.context") for text in (context.field, context.id_field, context.date_field) if text
    ]
    if any("?" in path.text and "$" in path.text[1:] for path in paths):  # a filter by a value of the item
        return None
    firsts = {route.steps[0] if route.steps else None for path in paths for route in path.routes}
    name = next(iter(firsts)) if len(firsts) == 1 else None
    join = config.data.join.get(str(name))
    return None if join is None or (join.file is not None and config.data.items == "$") else str(name)


def _parent_place(item: Document, place: Place) -> Place:
    """Return the place of the nearest object around a place."""
    ends = (place[:depth] for depth in range(len(place) - 1, -1, -1))
    return next(end for end in ends if isinstance(item.at(*end).value, dict))


def _unnest(matches: Sequence[Any]) -> Sequence[Any]:
    """Return the members of the list if a path matched one list, else the matches."""
    return matches[0] if len(matches) == 1 and isinstance(matches[0], list) else matches


def _place(path: Path, part: Document) -> Callable[[], str]:
    """Return a function that locates the path for an error message."""
    return lambda: part.where(*(place_of(path, part.value) or ()))


def _id_text(path: Path, part: Document, key: str) -> str:
    id = only(path, part.value, part.where)
    if id is None or isinstance(id, dict | list | bool) or not str(id).strip():
        raise _missing("id", path, part, key)
    return str(id)


def _missing(what: str, path: Path, part: Document, key: str) -> BadInput:
    """Return the error for a field that a question or an item does not have, or that is empty."""
    fields = list(part.value) if isinstance(part.value, dict) else []
    expected = "a text or a number" if what == "id" else "a text"
    if path.text in fields:
        return BadInput(_place(path, part)(), f"the {what} is empty", expected=expected, remedy="write it")
    close = suggestion(path.text, fields)
    remedy = f"{close} correct {key}" if close else f"write it, or correct {key}"
    return BadInput(_place(path, part)(), f"no {what} here", expected=expected, remedy=remedy)


def _is_counted(official: OfficialRetrieval, abstain: bool, evidence: Evidence, context: ItemContext) -> bool:
    if abstain and not official.abstention:
        return False
    if official.gold_turn_role is None:
        return bool(evidence.sessions or evidence.turns)
    if all(turn in context.marked for turn in evidence.turns):  # so that no session need be made
        return any(context.marked[turn].role == official.gold_turn_role for turn in evidence.turns)
    roles = {turn.id: turn.role for session in context.sessions for turn in session.turns}
    return any(roles[turn] == official.gold_turn_role for turn in evidence.turns)
