"""Datasets described by a benchmark config: LoCoMo, LongMemEval and users' own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any

from memorybench.core.conversation import Haystack
from memorybench.core.errors import BadInput
from memorybench.core.questions import EvidenceLevel, Question
from memorybench.core.records import digest
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document, Place
from memorybench.text.sanitize import preview

from .choices import asked, gold, read_choices
from .config import BenchmarkConfig, OfficialRetrieval, SchemaMapping
from .context import ContextReader, Told, comparable, place_of
from .dates import read_date
from .evidence import Evidence, resolve
from .items import Item, read_items

OFFICIAL = "official_retrieval"
"""The label that says whether the authors include a question in their averages."""
COUNTED, LEFT_OUT = "counted by the authors", "left out by the authors"

_HELD = 16
"""Histories kept in memory: as many as a run processes concurrently."""
_TYPE, _DATE = ("questionType", "question_type"), ("questionDate", "question_date")

_NOTES = {
    "repeated": "histories that repeat a session id",
    "unsorted": "histories not in the order of their dates",
    "undated": "sessions without a date",
    "empty": "empty turns, left out",
    "later": "questions with sessions dated after them",
    "numbers": "gold answers that are numbers, taken as text",
    "mended": "evidence ids mended",
    "dropped": "evidence ids that lead nowhere, dropped",
    "unproven": "questions without evidence, and so without retrieval figures",
    "abstain": "questions that their history does not answer",
    "unnamed": "questions of a category without a name",
}
"""Irregularities of the data; a note is such a text and its count."""


class MappedDataset:
    """A Dataset that keeps its questions in memory and reads haystacks from the file on demand."""

    def __init__(
        self,
        config: BenchmarkConfig,
        fingerprint: str,
        questions: tuple[Question, ...],
        notes: tuple[str, ...],
        told: Mapping[str, Callable[[], Told]],
    ) -> None:
        assert config.mapping is not None
        self.name = config.name
        self.fingerprint = fingerprint
        self.evidence: EvidenceLevel = config.mapping.evidence_level
        self.questions = questions
        self.notes = notes
        """Counted irregularities of the data."""
        self._format = config.mapping.evidence_format
        self._told = lru_cache(maxsize=_HELD)(lambda id: told[id]())

    def haystack(self, id: str) -> Haystack:
        return Haystack(id=id, sessions=self._told(id).sessions)

    def cited(self, question: Question, ids: Sequence[str]) -> Evidence:
        """Resolves ids of the data to turns and sessions of the question's haystack."""
        return resolve(ids, self._told(question.haystack), self.evidence, self._format)


def open_mapped(config: BenchmarkConfig, file: FilePath, checksum: str) -> MappedDataset:
    """Reads the whole file once and raises BadInput at the first error. `checksum` is that of the file."""
    assert config.mapping is not None
    reader = _ItemReader(config, config.mapping)
    questions: list[Question] = []
    told: dict[str, Callable[[], Told]] = {}
    for item in read_items(file, config.data.format, config.data.items):
        haystack, found = reader.read(item.document)
        told[haystack] = reader.again(item)
        questions += found
    if not questions:
        raise BadInput(str(file), "holds no questions", expected="at least one item", remedy="check the file")
    described = config.model_dump(mode="json", include={"mapping", "categories"})
    preprocessing = config.ingestion.preprocessing.model_dump(mode="json")
    fingerprint = digest([checksum, described, preprocessing])
    return MappedDataset(config, fingerprint, tuple(questions), tuple(reader.notes()), told)


@dataclass(frozen=True, slots=True)
class _Paths:
    """The paths of a question's fields."""

    question: Path
    answer: Path
    evidence: Path | None
    kind: Path | None
    date: Path | None
    choices: Path | None
    id: Path | None


class _ItemReader:
    def __init__(self, config: BenchmarkConfig, mapping: SchemaMapping) -> None:
        where = f"{config.name}: schema"
        self._config = config
        self._mapping = mapping
        self._where = where
        self._context = ContextReader(
            mapping.context, config.ingestion.preprocessing, mapping.date_format, f"{where}.context"
        )
        self._id = Path.parse(mapping.item_id, where)
        metadata = {name: Path.parse(path, where) for name, path in mapping.metadata.items()}
        self._kind = next((metadata.pop(name) for name in _TYPE if name in metadata), None)
        self._date = next((metadata.pop(name) for name in _DATE if name in metadata), None)
        self._labels = metadata
        self._list, self._paths = self._parse_paths(mapping)
        self._ids: set[str] = set()
        self._items = 0
        self._quirks: Counter[str] = Counter()

    def _parse_paths(self, mapping: SchemaMapping) -> tuple[Path | None, _Paths]:
        def path(text: str | None) -> Path | None:
            return None if text is None else Path.parse(text, self._where)

        many = mapping.questions
        if many is None:
            assert mapping.question is not None
            assert mapping.answer is not None
            question, answer = Path.parse(mapping.question, self._where), Path.parse(mapping.answer, self._where)
            return None, _Paths(question, answer, path(mapping.evidence), None, None, path(mapping.choices), None)
        return path(many.field), _Paths(
            Path.parse(many.question_field, self._where),
            Path.parse(many.answer_field, self._where),
            path(many.evidence_field),
            path(many.category_field),
            path(many.date_field),
            path(many.choices_field),
            path(many.id_field),
        )

    def notes(self) -> Iterator[str]:
        return (f"{text}: {self._quirks[kind]:,}" for kind, text in _NOTES.items() if self._quirks[kind])

    def read(self, item: Document) -> tuple[str, list[Question]]:
        """Returns the id of the item's haystack and its questions."""
        self._items += 1
        id = self._id_at(self._id, item)
        told = self._context.read(item)
        self._quirks["repeated"] += told.repeats
        self._quirks["unsorted"] += told.dates != sorted(told.dates)
        self._quirks["undated"] += told.undated
        self._quirks["empty"] += told.empty_turns
        # an id that marks abstention would reveal it to providers
        haystack = id if self._mapping.abstention.id_pattern is None else f"h{self._items}"
        places = [()] if self._list is None else self._places(item, self._list)
        return haystack, [self._question(item, place, n, id, haystack, told) for n, place in enumerate(places)]

    def again(self, item: Item) -> Callable[[], Told]:
        fetch, reader = item.again, self._context
        return lambda: reader.read(fetch())

    def _places(self, item: Document, path: Path) -> list[Place]:
        place = place_of(path, item.value)
        found = path.first(item.value)
        if place is None or not isinstance(found, list):
            raise BadInput(
                item.where(*(place or ())),
                f"invalid list of questions {preview(found)}",
                expected=f"a list at {path.text}",
                remedy="correct schema.questions.field",
            )
        return [(*place, index) for index in range(len(found))]

    def _question(self, item: Document, place: Place, n: int, id: str, haystack: str, told: Told) -> Question:
        part = item.at(*place)
        if self._paths.id is not None:
            id = self._id_at(self._paths.id, part)
        elif self._list is not None:
            id = self._unique(f"{id}:q{n}", part.where)
        kind = self._kind_of(item, part)
        date = (self._paths.date.first(part.value) if self._paths.date else None) or self._item_date(item)
        asked_at = read_date(date, part.where, self._mapping.date_format)
        abstain = self._abstains(id, kind)
        text, answers = self._question_and_gold(part, abstain)
        evidence = self._evidence(part, told)
        self._quirks["abstain"] += abstain
        self._quirks["unproven"] += not (evidence.sessions or evidence.turns)
        self._quirks["later"] += asked_at is not None and any(at > comparable(asked_at) for at in told.dates)
        return Question(
            id=id,
            labels=self._labels_of(item, kind, abstain, evidence, told),
            haystack=haystack,
            question=text,
            answers=answers,
            asked_at=asked_at,
            gold_sessions=evidence.sessions,
            gold_turns=evidence.turns,
            abstain=abstain,
        )

    def _unique(self, id: str, where: Callable[[], str]) -> str:
        if id in self._ids:
            raise BadInput(where(), f"duplicate id {preview(id)}", remedy="give each its own id")
        self._ids.add(id)
        return id

    def _id_at(self, path: Path, part: Document) -> str:
        found, where = path.first(part.value), _place(path, part)
        if found is None or isinstance(found, dict | list | bool) or not str(found).strip():
            problem = f"id is missing at {path.text}"
            raise BadInput(where(), problem, expected="a text or a number", remedy="give it one")
        return self._unique(str(found), where)

    def _kind_of(self, item: Document, part: Document) -> str:
        found = self._paths.kind.first(part.value) if self._paths.kind else None
        if found is None and self._kind is not None:
            found = self._kind.first(item.value)
        if found is None:
            return ""
        named = self._config.categories.get(str(found))
        self._quirks["unnamed"] += bool(self._config.categories) and named is None
        return named or str(found)

    def _item_date(self, item: Document) -> Any:
        return self._date.first(item.value) if self._date else None

    def _abstains(self, id: str, kind: str) -> bool:
        told = self._mapping.abstention
        return kind in told.categories or (told.id_pattern is not None and fnmatchcase(id, told.id_pattern))

    def _question_and_gold(self, part: Document, abstain: bool) -> tuple[str, tuple[str, ...]]:
        path = self._paths.question
        text = path.first(part.value)
        if not isinstance(text, str) or not text.strip():
            where = _place(path, part)
            raise BadInput(where(), f"question is missing at {path.text}", expected="a text", remedy="write it")
        path = self._paths.answer
        where = _place(path, part)
        found = path.all(part.value)
        values = found[0] if len(found) == 1 and isinstance(found[0], list) else found
        values = [value for value in values if value is not None and value != ""]
        if not values and not abstain:
            raise BadInput(where(), f"answer is missing at {path.text}", expected="a text", remedy="write it")
        offered = self._paths.choices.first(part.value) if self._paths.choices else None
        if offered is None:
            return text, tuple(dict.fromkeys(self._answer(value, where) for value in values))
        choices = read_choices(offered, part.where)
        right = (name for value in values for name in gold(value, choices, where))
        return asked(text, choices), tuple(dict.fromkeys(right))

    def _answer(self, value: Any, where: Callable[[], str]) -> str:
        if isinstance(value, dict | list):
            raise BadInput(
                where(), f"invalid answer {preview(value)}", expected="a text", remedy="correct schema.answer"
            )
        if isinstance(value, bool):
            return "yes" if value else "no"
        self._quirks["numbers"] += not isinstance(value, str)
        return str(value)

    def _evidence(self, part: Document, told: Told) -> Evidence:
        if self._paths.evidence is None:
            sessions = dict.fromkeys(told.session_of[turn] for turn in told.marked)
            return Evidence(tuple(sessions), told.marked)
        found = self._paths.evidence.all(part.value)
        cited = found[0] if len(found) == 1 and isinstance(found[0], list) else found
        evidence = resolve(
            (id for id in cited if id is not None), told, self._mapping.evidence_level, self._mapping.evidence_format
        )
        self._quirks["mended"] += len(evidence.mended)
        self._quirks["dropped"] += len(evidence.dropped)
        return evidence

    def _labels_of(self, item: Document, kind: str, abstain: bool, evidence: Evidence, told: Told) -> dict[str, str]:
        labels = {"question_type": kind} if kind else {}
        for name, path in self._labels.items():
            value = path.first(item.value)
            if value is not None and not isinstance(value, dict | list):
                labels[name] = str(value)
        official = self._mapping.official_retrieval
        if official is not None:
            labels[OFFICIAL] = COUNTED if _counts(official, abstain, evidence, told) else LEFT_OUT
        return labels


def _place(path: Path, part: Document) -> Callable[[], str]:
    """Returns a function that locates the path for an error message."""
    return lambda: part.where(*(place_of(path, part.value) or ()))


def _counts(official: OfficialRetrieval, abstain: bool, evidence: Evidence, told: Told) -> bool:
    if abstain and not official.abstention:
        return False
    if official.gold_turn_role is None:
        return bool(evidence.sessions or evidence.turns)
    roles = {turn.id: turn.role for session in told.sessions for turn in session.turns}
    return any(roles[turn] == official.gold_turn_role for turn in evidence.turns)
