"""Reads one question of an item: its text, gold answer, choices, evidence and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from msgspec.structs import replace

from memorybench.core.errors import BadInput
from memorybench.core.questions import Question, RubricItem
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document, Place
from memorybench.files.templates import Template
from memorybench.text.sanitize import preview

from .choices import Choices, has_other_labels, read_choices
from .config import BenchmarkConfig, OfficialRetrieval, SchemaMapping
from .context import ContextReader, read_prefix
from .dates import read_date
from .evidence import CitationReader, Evidence, EvidenceCheck, resolve
from .gold import GoldReader, answer_text, is_blank
from .ids import id_text, locate, missing_field, unique_id
from .item_context import ItemContext, comparable
from .parsing import TextParser
from .paths import Marked, only, optional_path, parse_path
from .question_paths import parse_question_paths
from .scoring_checks import RUBRIC_VARIABLES
from .survey import Survey, list_names

OFFICIAL = "official_retrieval"
"""Name of the label that says whether the authors include a question in their averages."""
COUNTED, LEFT_OUT = "counted by the authors", "left out by the authors"

_TYPE, _DATE = ("questionType", "question_type"), ("questionDate", "question_date")


class QuestionReader:
    """Reads the questions of items by the paths of a config."""

    def __init__(
        self,
        config: BenchmarkConfig,
        mapping: SchemaMapping,
        parser: TextParser,
        context: ContextReader,
        survey: Survey | None,
        quirks: Counter[str],
    ) -> None:
        """Parse the paths of the config. `quirks` counts irregularities."""
        where = f"{config.name}: schema"
        self._config, self._mapping = config, mapping
        self._parser, self._context, self._survey, self._quirks = parser, context, survey, quirks
        self.paths = paths = parse_question_paths(mapping, where)
        self._uses_marks = paths.uses_marks
        self._cluster = optional_path(mapping.cluster, where)
        self._clusters: dict[str, str] = {}
        """By history: the cluster of the questions about it."""
        metadata = {name: parse_path(path, where) for name, path in mapping.metadata.items()}
        self._kind = next((metadata.pop(name) for name in _TYPE if name in metadata), None)
        self._date = next((metadata.pop(name) for name in _DATE if name in metadata), None)
        self._labels = metadata
        self._gold = GoldReader(mapping, paths, where)
        self._rubrics = {
            one.name: [Template.parse(text, RUBRIC_VARIABLES, f"{config.name}: questionTypes") for text in one.rubric]
            for one in config.question_types
            if one.rubric
        }
        of_items = {"questionType": self._kind, "questionDate": self._date, **self._labels}
        self._unmatched = {self._key(name): path for name, path in paths.optional().items()}
        """Paths that have matched nothing so far, by their config keys."""
        self._unmatched |= {f"schema.metadata.{name}": path for name, path in of_items.items() if path is not None}
        self._unmatched |= {f"schema.questions.labels.{name}": path for name, path in paths.labels.items()}
        self._types = _types_of(config)
        self._seen_types: set[str] = set()
        self._unseen_categories = dict.fromkeys(config.categories)
        self._matches_id_pattern = False
        self._ids: set[str] = set()
        """The ids of the questions that were read so far, to detect duplicates; only for items with several
        questions."""
        cited, format = paths.evidence, mapping.evidence_format
        key = self._key("evidence") if cited is not None else "schema.context.itemSchema.evidence"
        self._citations = None if cited is None else CitationReader(cited, format, key)
        self._forbidden_ids = (
            None if paths.forbidden is None else CitationReader(paths.forbidden, format, self._key("forbidden"))
        )
        is_plain_text = mapping.context.type == "string" and mapping.context.line_pattern is None
        self._check = EvidenceCheck(cited, mapping.evidence_level, key, format, names_turns=not is_plain_text)

    def _key(self, name: str) -> str:
        """Return the config key that contains the path to a field of a question."""
        if self._mapping.questions is not None:
            return f"schema.questions.{name}Field"
        return "schema.itemId" if name == "id" else f"schema.{name}"

    def _note_matches(self, item: Document, part: Document) -> None:
        for key, path in list(self._unmatched.items()):
            value = item.value if key.startswith("schema.metadata") else part.value
            if any(match is not None for match in path.all(value)):
                del self._unmatched[key]

    def notes(self) -> Iterator[str]:
        """Yield a note for each path, type and category of the config that no question has."""
        for key, path in self._unmatched.items():
            yield f"no question has a value at {preview(path.text)} ({key})"
        for kind, key in self._types.items():
            if kind not in self._seen_types:
                yield f"no question has the type {preview(kind)} ({key})"
        if self._unseen_categories:
            yield f"values that no question has as its category (categories): {list_names([*self._unseen_categories])}"
        pattern = self._mapping.abstention.id_pattern
        if pattern is not None and not self._matches_id_pattern:
            yield f"no question has an id that matches {preview(pattern)} (schema.abstention.idPattern)"

    @property
    def first_unknown_evidence(self) -> str:
        return self._check.first_unknown

    def check_evidence(self, file: str) -> None:
        """Raise BadInput if the config describes evidence, but that of no question can be resolved."""
        if self.paths.evidence is not None or self._mapping.context.item_schema.evidence is not None:
            self._check.raise_if_useless(file)

    def prefix_of(self, item: Document, place: Place, n: int) -> int | None:
        """Return how many sessions or turns of the history a question is about; None: all."""
        if self.paths.prefix is None:
            return self._context.prefix_of(item)
        part = self._part(item, place, n)
        is_member = self._context.member_number(item, place) is not None
        if "@before" in self.paths.prefix.text and not is_member:
            raise BadInput(
                part.where(),
                "@before counts what precedes the question in the history, but the question is not within it",
                expected="questions within schema.context.field",
                remedy="correct schema.questions.prefixField",
            )
        if "@parentIndex" in self.paths.prefix.text and not is_member:
            lists = sum(isinstance(step, int) for step in _parent_place(item, place))
            if lists > 1:
                raise BadInput(
                    part.where(),
                    f"@parentIndex is not the number of a session: the object with the question is in {lists} lists",
                    expected="questions within schema.context.field, or in one list",
                    remedy="correct schema.questions.prefixField",
                )
        return read_prefix(self.paths.prefix, part, "schema.questions.prefixField")

    def read(
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
        """Read the question with the index `n`, which is at `place` in the item.

        `history` is the whole history if `haystack` is a part of it, otherwise empty; `asked_after` is the number of
        sessions or turns in the part.
        """
        part = self._part(item, place, n)
        if self._survey is not None:
            self._survey.add_question(part.value)
        self._note_matches(item, part)
        if self.paths.id is not None:
            key = self._key("id")
            id = unique_id(id_text(self.paths.id, part, key), locate(self.paths.id, part), self._ids, key)
        elif self.paths.questions is not None:
            id = unique_id(f"{id}:q{n}", part.where, self._ids, "")
        kind = self._kind_of(item, part)
        self._seen_types.add(kind)
        date = only(self.paths.date, part.value, part.where) if self.paths.date else None
        if not date:
            date = only(self._date, item.value, item.where) if self._date else None
        asked_at = read_date(date, part.where, self._mapping.date_format)
        abstain = self._abstains(id, kind)
        gold = self._gold.read(part)
        text, answers, choices = self._question_and_gold(part, abstain or gold.is_enough)
        shown = "\n".join((text, *choices.lines)) if choices else text
        if self._gold.answers_are_rubric:
            gold, answers = replace(gold, rubric=tuple(map(RubricItem, answers))), ()
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
        self._quirks["own_turns"] += self._is_turn(item, place, context)
        if asked_at is not None and context.newest_date is not None:
            self._quirks["later"] += context.newest_date > comparable(asked_at)
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
        """Return the question at `place`, with names such as `@key` that describe its place if a path uses them."""
        part = item.at(*place)
        if self.paths.questions is None:
            return part
        part = self._parser.parse(part)
        if not self._uses_marks:
            return part
        around = _parent_place(item, place)
        parent = item.at(*around).value
        names = [step for step in place if isinstance(step, str)]
        key = names[-1] if names else ""
        marks = {"@value": part.value, "@index": n + 1, "@key": key, "@item": item.value, "@parent": parent}
        number = self._parent_index(item, around)
        if number is not None:
            marks["@parentIndex"] = number
        member = self._context.member_number(item, place)
        if member is not None:
            marks["@before"] = member - 1
        marks |= _neighbours(item, place)
        return replace(part, value=Marked(part.value if isinstance(part.value, dict) else {}, marks))

    def _is_turn(self, item: Document, place: Place, context: ItemContext) -> bool:
        """Return whether a question is a turn of the history that it is asked about."""
        if self.paths.questions is None or self._context.member_number(item, place) is None:
            return False
        value = item.at(*place).value
        return isinstance(value, dict | str) and any(turn is value for turn in context.raw_turns())

    def _parent_index(self, item: Document, parent: Place) -> int | None:
        """Return the number, from 1, of the object at `parent`: of its session or turn if it is within the history.

        Otherwise, it is its number in the list that contains it; None if no list does.
        """
        positions = [step + 1 for step in parent if isinstance(step, int)]
        return self._context.member_number(item, parent) or (positions[-1] if positions else None)

    def _cluster_of(self, item: Document, memory: str) -> str:
        if self._cluster is None:
            return ""
        value = only(self._cluster, item.value, item.where)
        if value is None or isinstance(value, dict | list) or not str(value).strip():
            raise missing_field("cluster", self._cluster, item, "schema.cluster")
        if self._clusters.setdefault(memory, str(value)) != str(value):
            raise BadInput(
                locate(self._cluster, item)(),
                f"questions about one history have the clusters {preview(self._clusters[memory])} and {preview(value)}",
                expected="one cluster for each history",
                remedy="correct schema.cluster",
            )
        return str(value)

    def _kind_of(self, item: Document, part: Document) -> str:
        kind = only(self.paths.category, part.value, part.where) if self.paths.category else None
        if kind is None and self._kind is not None:
            kind = only(self._kind, item.value, item.where)
        if kind is None:
            return ""
        name = self._config.categories.get(str(kind))
        self._unseen_categories.pop(str(kind), None)
        self._quirks["unnamed"] += bool(self._config.categories) and name is None
        return name or str(kind)

    def _abstains(self, id: str, kind: str) -> bool:
        rules = self._mapping.abstention
        matches = rules.id_pattern is not None and fnmatchcase(id, rules.id_pattern)
        self._matches_id_pattern = self._matches_id_pattern or matches
        return kind in rules.categories or matches

    def _forbidden(self, part: Document, context: ItemContext, evidence: Evidence) -> tuple[str, ...]:
        if self.paths.forbids_others:
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
        path = self.paths.question
        text = only(path, part.value, part.where)
        if not isinstance(text, str) or not text.strip():
            raise missing_field("question", path, part, self._key("question"))
        answer = self.paths.answer
        if answer is None:
            return text, (), None
        where = locate(answer, part)
        matches = _unnest(answer.all(part.value))
        values = [value for value in matches if not is_blank(value)]
        self._quirks["blank"] += len(matches) - len(values) if values else 0
        if not values and not optional:
            raise self._no_answer(answer, part)
        offered = self._offered(part)
        if offered is None or self.paths.choices is None:
            answers = [self._answer(value, where) for value in values]
            if self._gold.answers_are_rubric:  # which may have an item twice, so that it weighs more
                return text, tuple(answers), None
            self._quirks["repeated_answers"] += len(answers) - len(set(answers))
            return text, tuple(dict.fromkeys(answers)), None
        other = not self.paths.choices.singular and has_other_labels(self.paths.choices.located(part.value), part.value)
        read = read_choices(offered, part.where, self._key("choices"), have_other_labels=other)
        self._quirks["label_or_text"] += sum(
            read.is_label_or_text(value, self._mapping.choice_index) for value in values
        )
        right = (answer for value in values for answer in read.right(value, self._mapping.choice_index, where))
        return text, tuple(dict.fromkeys(right)), read

    def _no_answer(self, answer: Path, part: Document) -> BadInput:
        error = missing_field("answer", answer, part, self._key("answer"))
        kind = self.paths.category.first(part.value) if self.paths.category else None
        if isinstance(kind, str | int):
            name = self._config.categories.get(str(kind), str(kind))
            rule = f"schema.abstention.categories: [{preview(name)}]"
            error = BadInput(
                error.where,
                error.problem,
                expected=error.expected,
                remedy=f"{error.remedy}; if the question is meant to have no answer, set {rule}",
            )
        return error

    def _offered(self, part: Document) -> Any:
        """Return the choices as they are in the data: the match of the path or, if it has several, the list of them."""
        if self.paths.choices is None or self.paths.choices.singular:
            return self.paths.choices and self.paths.choices.first(part.value)
        return list(_unnest(self.paths.choices.all(part.value))) or None

    def _answer(self, value: Any, where: Callable[[], str]) -> str:
        if isinstance(value, dict | list):
            raise BadInput(
                where(), f"invalid answer {preview(value)}", expected="a text", remedy="correct schema.answer"
            )
        self._quirks["numbers"] += not isinstance(value, str | bool)
        return answer_text(value)

    def _evidence(self, part: Document, context: ItemContext) -> Evidence:
        if self._citations is None:
            sessions = dict.fromkeys(turn.session for turn in context.marked.values())
            return Evidence(tuple(sessions), tuple(context.marked))
        self._check_numbers(part, context)
        evidence = resolve(
            self._citations.read(part), context, self._mapping.evidence_level, self._mapping.evidence_format
        )
        self._quirks["repaired"] += len(evidence.repaired)
        self._quirks["dropped"] += len(evidence.dropped)
        self._quirks["ambiguous"] += len(evidence.ambiguous)
        return evidence

    def _check_numbers(self, part: Document, context: ItemContext) -> None:
        """Raise BadInput if evidence is numbered from 0 and the keys of sessions are not, or the other way round."""
        format, first = self._mapping.evidence_format, context.first_key
        if first is None or self._mapping.evidence_level != "session" or not format.startswith(("numbers", "ranges")):
            return
        if (first == 0) != format.endswith("0"):
            raise BadInput(
                part.where(),
                f"the keys of sessions begin at {first}, but evidence is numbered from {format[-1]}",
                expected="the same numbers as in the keys",
                remedy=f"set schema.evidenceFormat: {format[:-1]}{min(first, 1)}",
            )

    def _labels_of(
        self, item: Document, part: Document, kind: str, abstain: bool, evidence: Evidence, context: ItemContext
    ) -> dict[str, str]:
        labels = {"question_type": kind} if kind else {}
        for paths, document in ((self._labels, item), (self.paths.labels, part)):
            for name, path in paths.items():
                value = only(path, document.value, document.where)
                if isinstance(value, dict | list):
                    self._quirks["labels"] += 1
                elif value is not None:
                    labels[name] = str(value)
        official = self._mapping.official_retrieval
        if official is not None:
            labels[OFFICIAL] = COUNTED if _is_counted(official, abstain, evidence, context) else LEFT_OUT
        return labels


def _types_of(config: BenchmarkConfig) -> dict[str, str]:
    """Return the question types that a config names, each with the first config key that names it."""
    evaluation = config.evaluation
    keyed = {
        "schema.abstention.categories": config.mapping.abstention.categories if config.mapping else (),
        "questionTypes": [kind.name for kind in config.question_types],
        "evaluation.answerPrompt.byQuestionType": evaluation.answer_prompt.by_question_type,
        "evaluation.judgePrompts.byQuestionType": evaluation.judge_prompts.by_question_type,
    }
    types: dict[str, str] = {}
    for key, names in keyed.items():
        for name in names:
            types.setdefault(name, key)
    return types


def _neighbours(item: Document, place: Place) -> dict[str, Any]:
    """Return the members after and before a place in its list, as `@next` and `@previous`."""
    *around, index = place
    if not isinstance(index, int):
        return {}
    members = item.at(*around).value
    near = {"@next": index + 1, "@previous": index - 1}
    return {name: members[other] for name, other in near.items() if 0 <= other < len(members)}


def _parent_place(item: Document, place: Place) -> Place:
    """Return the place of the nearest object around a place."""
    ends = (place[:depth] for depth in range(len(place) - 1, -1, -1))
    return next(end for end in ends if isinstance(item.at(*end).value, dict))


def _unnest(matches: Sequence[Any]) -> Sequence[Any]:
    """Return the members of the list if a path matched one list, else the matches."""
    return matches[0] if len(matches) == 1 and isinstance(matches[0], list) else matches


def _is_counted(official: OfficialRetrieval, abstain: bool, evidence: Evidence, context: ItemContext) -> bool:
    if abstain and not official.abstention:
        return False
    if official.gold_turn_role is None:
        return bool(evidence.sessions or evidence.turns)
    if all(turn in context.marked for turn in evidence.turns):  # so that no session need be made
        return any(context.marked[turn].role == official.gold_turn_role for turn in evidence.turns)
    roles = {turn.id: turn.role for session in context.sessions for turn in session.turns}
    return any(roles[turn] == official.gold_turn_role for turn in evidence.turns)
