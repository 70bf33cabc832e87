"""Reads items: their histories and questions, and counts irregularities of the data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from memorybench.core.errors import BadInput
from memorybench.core.questions import Question
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document, Place
from memorybench.text.sanitize import preview

from .config import BenchmarkConfig, SchemaMapping
from .context import ContextReader
from .ids import DuplicateId, id_text, locate, unique_id
from .item_context import ItemContext
from .joins import ItemStream
from .parsing import TextParser
from .paths import flatten, only, parse_path, place_of
from .question_paths import ROWS
from .question_reader import QuestionReader
from .survey import Survey

_CACHED_CONTEXTS = 8
"""Number of contexts that are kept in memory while the questions are read."""
_NOTES = {
    "repeated": "histories that repeat a session id",
    "unsorted": "histories not in the order of their dates",
    "undated": "sessions without a date",
    "empty": "empty turns, skipped",
    "empty_sessions": "sessions without turns, skipped",
    "images": "pictures, not read",
    "speakerless": "turns that begin without a speaker and schema.context.speakerSeparator",
    "beyond": "sessions or turns after the last question about their history, not read",
    "filtered_history": "sessions or turns left out by filters in schema.context",
    "continued": "lines that do not fit linePattern, read as part of the message before them",
    "stray_dates": "dates of sessions that are not there",
    "labels": "labels that are lists or objects, left out",
    "first": "questions with no part of the history before them, left out",
    "own_turns": "questions that are turns of their own history; answers may be, too (prefixField: @before)",
    "later": "questions with sessions dated after them",
    "numbers": "gold answers that are numbers, read as text",
    "label_or_text": "gold answers that are the label of a choice and the text of another, read as the label",
    "several": "questions with several answers, of which any is right (answerMode)",
    "blank": "empty answers, rubric items and texts in lists, skipped",
    "repeated_answers": "gold answers that repeat another of their question, read once",
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
"""The text for each kind of irregularity in the data. A note is one of these texts and a count."""


class Part(NamedTuple):
    """A part of the history of an item, and the questions about it, each with its number within the item."""

    haystack: str
    upto: int | None
    """Number of sessions or turns of the history that are in this part; None: all."""
    cuts: Sequence[int]
    """The numbers of sessions or turns at which the parts of this history end."""
    questions: Sequence[tuple[int, Question]]


class ItemReader:
    """Reads the questions of items by the paths of a config, and counts irregularities."""

    def __init__(
        self, config: BenchmarkConfig, mapping: SchemaMapping, stream: ItemStream | None, survey: Survey | None
    ) -> None:
        where = f"{config.name}: schema"
        self._config, self._mapping = config, mapping
        self._stream, self._survey = stream, survey
        self._shared = _shared_join(config, mapping)
        self._cuts: dict[str, set[int]] = {}
        self._parser = TextParser(mapping.parse, f"{where}.parse")
        self._context = ContextReader(
            mapping.context, config.ingestion.preprocessing, mapping.date_format, f"{where}.context"
        )
        self._quirks: Counter[str] = Counter()
        self._questions = QuestionReader(config, mapping, self._parser, self._context, survey, self._quirks)
        self._id_paths = [parse_path(text, where) for text in mapping.item_id_paths]
        self._item_ids: set[str] = set()
        self._known: dict[str, ItemContext] = {}
        """The contexts of the last few histories, so that items that share a history do not read it again."""
        self._items = 0
        self._histories: dict[str, Counter[str]] = {}
        """The counts of irregularities, by history."""
        self._has_session_ids = False
        self._lengths: dict[str, tuple[int, int]] = {}
        """By history: the number of turns that were read, and minus the number of sessions or turns that were not read.
        The greater pair is that of the longer part."""
        self._surveyed: Counter[str] = Counter()
        """Number of turns whose fields have been added to the survey, by history."""

    def notes(self) -> Iterator[str]:
        quirks = self._quirks.copy()
        for counts in self._histories.values():
            quirks.update(counts)
        for kind, text in _NOTES.items():
            if quirks[kind]:
                yield f"{text}: {quirks[kind]:,}"
        id_path = self._mapping.context.session_schema.id
        if id_path is not None and not self._has_session_ids:
            yield f"no session has a value at {preview(id_path)} (schema.context.sessionSchema.id)"
        yield from self._questions.notes()
        if self._stream is not None:
            yield from self._stream.notes()
        if self._questions.first_unknown_evidence:
            yield f"first unknown evidence id: {self._questions.first_unknown_evidence}"

    def check_used(self, file: str, *, has_answers: bool) -> None:
        """Raise BadInput if no evidence of the data can be resolved, or if a path of `schema.parse` matches nothing."""
        if has_answers:
            self._questions.check_evidence(file)
        self._parser.raise_if_unused(file)

    def find_cuts(self) -> None:
        """Find the places in each shared history at which questions are asked. Must be called before `read`."""
        if self._shared is None or self._stream is None:
            return
        if self._mapping.context.prefix is None and self._questions.paths.prefix is None:
            return
        for item in self._stream:
            document = self._parser.parse(item.document)
            cuts = self._cuts.setdefault(self._shared_key(document), set())
            cuts.update(upto for upto in self._places_by_prefix(document) if upto is not None)
        self._quirks.clear()  # questions are counted when they are read

    def _shared_key(self, item: Document) -> str:
        """Return the name of the history that an item may share with others; empty if it has its own."""
        return "" if self._shared is None or self._stream is None else self._stream.key_of(self._shared, item)

    def _read_context(self, item: Document, upto: int | None, cuts: Sequence[int]) -> ItemContext:
        if self._cuts:
            cuts = sorted(self._cuts.get(self._shared_key(item), ()))
        return self._context.read(item, cuts, upto)

    def read(self, item: Document) -> list[Part]:
        """Return each part of the item's history that questions are about, with these questions."""
        self._items += 1
        item = self._parser.parse(item)
        id = ":".join(id_text(path, item, "schema.itemId") for path in self._id_paths)
        unique_id(id, locate(self._id_paths[0], item), self._item_ids, "schema.itemId")
        # an id that marks abstention would reveal it to providers
        own = id if self._mapping.abstention.id_pattern is None else f"h{self._items}"
        memory = self._shared_key(item) or own
        if self._survey is not None:
            self._survey.add_item(item.value)
        paths = self._questions.paths
        whole = self._with_rows(item) if paths.columns else item
        places = self._places_by_prefix(item)
        cuts = sorted(upto for upto in places if upto is not None) if paths.prefix is not None else ()
        parts: dict[int | None, Part] = {}
        for upto in places or {self._context.prefix_of(item): []}:
            context, haystack = self._part_of(item, memory, upto, cuts)
            history = memory if haystack != memory else ""
            questions = [
                (n, self._questions.read(whole, place, n, id, haystack, history, upto or 0, context))
                for n, place in places.get(upto, ())
            ]
            parts[upto] = Part(haystack, upto, cuts, questions)
        return list(parts.values())

    def _places_by_prefix(self, item: Document) -> dict[int | None, list[tuple[int, Place]]]:
        """Return the number and place of each question of the item, grouped by how much of the history it is about.

        The key is the number of sessions or turns of the history; None: all.
        """
        paths = self._questions.paths
        whole = self._with_rows(item) if paths.columns else item
        places: dict[int | None, list[tuple[int, Place]]] = {}
        for n, place in enumerate([()] if paths.questions is None else self._places(whole, paths.questions)):
            upto = self._questions.prefix_of(whole, place, n)
            if upto == 0 and paths.prefix is not None and "@before" in paths.prefix.text:
                self._quirks["first"] += 1
                continue
            places.setdefault(upto, []).append((n, place))
        return places

    def _part_of(self, item: Document, memory: str, upto: int | None, cuts: Sequence[int]) -> tuple[ItemContext, str]:
        """Return the first `upto` sessions or turns of a history (None: all), and the name of this haystack."""
        is_shared = self._shared is not None or self._questions.paths.prefix is not None
        haystack = f"{memory}@{upto}" if is_shared and upto is not None else memory
        context = self._known.get(haystack)
        if context is None:
            context = self._read_context(item, upto, cuts)
            self._count(memory, context)
            if self._shared is not None:
                self._known[haystack] = context
                if len(self._known) > _CACHED_CONTEXTS:
                    del self._known[next(iter(self._known))]
        return context, haystack

    def _with_rows(self, item: Document) -> Document:
        """Return the item with its questions as a list of objects; the nth has the nth value of each column."""
        columns = {
            name: only(path, item.value, item.where) or [] for name, path in self._questions.paths.columns.items()
        }
        for name, column in columns.items():
            if not isinstance(column, list):
                where = locate(self._questions.paths.columns[name], item)()
                raise BadInput(
                    where,
                    f"{preview(column)} is not a list",
                    expected="one value per question",
                    remedy="correct it or schema.questions.columns",
                )
        lengths = {name: len(column) for name, column in columns.items() if column}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{preview(name)} has {length:,}" for name, length in lengths.items())
            raise BadInput(
                item.where(),
                f"the columns of questions have different lengths: {found}",
                remedy="correct the columns or schema.questions.columns",
            )
        rows = [
            {name: column[n] for name, column in columns.items() if column}
            for n in range(max(lengths.values(), default=0))
        ]
        value = item.value.copy()
        value[ROWS] = rows
        return replace(item, value=value)

    def broken_item(self, error: BadInput, item: Document, others: int) -> BadInput:
        """Return the error of an item, with a `data.where` condition as remedy that leaves the item out.

        `others` is the number of other items with errors.
        """
        more = "" if not others else f" ({others:,} other item{' has' if others == 1 else 's have'} errors)"
        remedy = error.remedy
        if not isinstance(error, DuplicateId):
            remedy = f"{remedy or 'correct it'}, or leave the item out: data.where: {self._condition_without(item)}"
        return BadInput(error.where, f"{error.problem}{more}", expected=error.expected, remedy=remedy)

    def _condition_without(self, item: Document) -> str:
        """Return a value of `data.where` that leaves an item out by its id, or an example if the id cannot be used."""
        path, *others = self._id_paths
        id = path.first(item.value)
        is_plain = re.fullmatch(r"[A-Za-z_]\w*", path.name or "") and re.fullmatch(r"[\w .:/@-]+", str(id))
        condition = f"@.{path.name} != {id if isinstance(id, int | float) else repr(id)}"
        condition = condition if is_plain and not others else "@.FIELD != 'VALUE'"
        earlier = self._config.data.where
        return f'"{condition}"' if earlier is None else f'"({earlier}) && {condition}"'

    def _count(self, memory: str, context: ItemContext) -> None:
        """Count the irregularities of a history. If it is read in several parts, only the longest one counts."""
        self._has_session_ids = self._has_session_ids or bool(context.sessions_named)
        length = context.turn_count, -context.irregularities["beyond"]
        if memory in self._lengths and self._lengths[memory] >= length:
            return
        self._lengths[memory] = length
        self._histories[memory] = context.irregularities + Counter(
            repeated=any(len(ids) > 1 for ids in context.sessions_named.values()),
            unsorted=list(context.dates) != sorted(context.dates),
            undated=len(context.kept) - len(context.dates),
            speakerless=context.speakers[None],
        )
        if self._survey is not None:
            self._survey.history_keys |= dict.fromkeys(context.unknown_keys)
            self._survey.session_fields |= context.session_fields
            self._survey.speakers |= dict.fromkeys(name for name in context.speakers if name is not None)
            self._survey.add_history(memory, context)
            # a part that was counted before is the beginning of this one
            for fields in islice(context.raw_turns(), self._surveyed[memory], None):
                self._survey.add_turn(fields)
            self._surveyed[memory] = context.raw_turn_count

    def again(self, read_item: Callable[[], Document], part: Part | None = None) -> Callable[[], ItemContext]:
        upto, cuts = (part.upto, part.cuts) if part is not None else (None, ())
        return lambda: self._read_context(self._parser.parse(read_item()), upto, cuts)

    def _places(self, item: Document, path: Path) -> list[Place]:
        """Return the place of each question that the path matches, alone or as a member of a list."""
        matches = path.located(item.value)
        self._quirks["filtered"] += path.left_out(item.value)
        if path.singular and not (matches and isinstance(matches[0][1], list)):
            place, questions = matches[0] if matches else (place_of(path, item.value) or (), None)
            is_object = isinstance(questions, dict)
            raise BadInput(
                item.where(*place),
                f"{preview(questions)} is not a list of questions",
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


def _shared_join(config: BenchmarkConfig, mapping: SchemaMapping) -> str | None:
    """Return the name of the join that contains the whole context, so that several items may share a history.

    None if there is no such join, or if the join adds one file to each data file and a data file has one item.
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
