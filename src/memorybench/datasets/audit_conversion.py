"""Converts LoCoMo and LongMemEval files into audit datasets, and writes audit datasets as JSON.

Both benchmarks state facts as sentences, without subject and attribute, and neither says which fact supersedes which.
The converted datasets therefore support recall and hallucination probes, but no conflict probes. Answers of more than
six words are skipped, because they are explanations; so are "yes" and "no", because half of all guesses are right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from pydantic import BaseModel, ConfigDict

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput
from memorybench.files.located import Document
from memorybench.files.validation import validated

from .audit import AuditConversation, AuditDataset, AuditFact
from .audit_file import turn_id
from .dates import read_date
from .items import read_items

_MAX_VALUE_WORDS = 6
_YES_OR_NO = re.compile(r"(yes|no)\W*", re.IGNORECASE)
_SINGLE_HOP, _ADVERSARIAL = 4, 5
_SESSION = re.compile(r"session_(\d+)")
_DIALOG_ID = re.compile(r"D\d+:\d+")
_STATED_TYPES = ("single-session-user", "single-session-assistant", "knowledge-update")
_ABSTENTION_IDS = "*_abs*"
_KEYS = {"at": "timestamp", "valid_from": "validFrom", "valid_to": "validTo"}
"""Fields of turns and facts whose key in an audit file differs from the field's name: field → key."""


def convert_locomo(path: Path | str) -> AuditDataset:
    """Convert a LoCoMo file. Facts are the observations and the single-hop questions with their answers as values.

    Skipped: multi-hop, temporal and open-domain questions, because no turn states their answers; adversarial
    questions, because their answers are false; event summaries, because the conversations were written from them. The
    first speaker becomes the user and the second the assistant, with their names. A photo is replaced by its caption.
    The errata of the answer key are not applied.
    """
    items = read_items(Path(path))
    return _dataset(path, (_from_locomo(item.document) for item in items))


def convert_longmemeval(path: Path | str, limit: int | None = None) -> AuditDataset:
    """Convert a LongMemEval file: one conversation per question with a short answer, which is its only fact.

    Skipped: questions without an answer; multi-session and temporal questions, because no turn states their answers;
    preferences, because their answers are rubrics. Sessions are sorted by date. Their ids are dropped, because they
    reveal the evidence. `limit` is the maximum number of conversations; None: no limit.
    """
    items = read_items(Path(path))
    made = (_from_longmemeval(item.document) for item in items)
    return _dataset(path, islice((one for one in made if one is not None), limit))


def dataset_json(dataset: AuditDataset, *, lines: bool = False) -> str:
    """Return the dataset as JSON that `load_audit` reads; with `lines`, as one conversation per line.

    With `lines` the dataset's id is lost: `load_audit` takes it from the name of the file.
    """
    if lines:
        each = (json.dumps(_conversation_json(one), ensure_ascii=False) for one in dataset.conversations)
        return "\n".join(each) + "\n"
    plain = {"id": dataset.id, "conversations": [_conversation_json(one) for one in dataset.conversations]}
    return json.dumps(plain, ensure_ascii=False, indent=1) + "\n"


def _dataset(path: Path | str, conversations: Iterator[AuditConversation]) -> AuditDataset:
    converted = tuple(conversations)
    if not converted:
        raise BadInput(
            str(path), "no conversation can be converted", remedy="check that the file belongs to the benchmark"
        )
    return AuditDataset(id=Path(path).name.partition(".")[0], conversations=converted)


def _value(answer: str | int | None) -> str | None:
    """Return the answer as the value of a fact; None if it is empty, too long, "yes" or "no"."""
    text = "" if answer is None else str(answer).strip()
    return text if text and len(text.split()) <= _MAX_VALUE_WORDS and not _YES_OR_NO.fullmatch(text) else None


class _SourceRecord(BaseModel):
    """Base class of records in a benchmark's file; other keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _LocomoTurn(_SourceRecord):
    speaker: str
    dia_id: str
    text: str = ""
    blip_caption: str | None = None


class _LocomoQuestion(_SourceRecord):
    question: str
    category: int
    answer: str | int | None = None
    evidence: tuple[str, ...] = ()


class _LocomoItem(_SourceRecord):
    sample_id: str
    conversation: dict[str, tuple[_LocomoTurn, ...] | str]
    observation: dict[str, dict[str, tuple[tuple[str, str | tuple[str, ...]], ...]]]
    qa: tuple[_LocomoQuestion, ...]


class _LongMemEvalTurn(_SourceRecord):
    role: Literal["user", "assistant"]
    content: str
    has_answer: bool = False


class _LongMemEvalItem(_SourceRecord):
    question_id: str
    question_type: str
    question: str
    answer: str | int
    haystack_dates: tuple[str, ...]
    haystack_sessions: tuple[tuple[_LongMemEvalTurn, ...], ...]


class _Talk(Struct, frozen=True):
    """The turns of a LoCoMo conversation, also by dialog id."""

    turns: tuple[Turn, ...]
    by_dialog_id: Mapping[str, Turn]

    def cited_turn(self, evidence: str | Sequence[str]) -> Turn | None:
        """Return the turn of the first known dialog id in `evidence`; None if there is none."""
        ids = _DIALOG_ID.findall(evidence if isinstance(evidence, str) else " ".join(evidence))
        return next((self.by_dialog_id[id] for id in ids if id in self.by_dialog_id), None)


def _from_locomo(document: Document) -> AuditConversation:
    item = validated(document, _LocomoItem, spell=str)
    talk = _talk(item, document)
    facts = (*_observations(item, talk), *_answers(item, talk))
    return AuditConversation(id=item.sample_id, turns=talk.turns, facts=facts)


def _talk(item: _LocomoItem, document: Document) -> _Talk:
    turns: list[Turn] = []
    by_dialog_id: dict[str, Turn] = {}
    first = item.conversation.get("speaker_a")
    for key, session in _sessions(item):
        date = f"{key}_date_time"
        at = read_date(item.conversation.get(date), partial(document.where, "conversation", date))
        for source in session:
            photo = f"[shares a photo: {source.blip_caption}]" if source.blip_caption else ""
            content = f"{source.text} {photo}".strip()
            if content:
                role = "user" if source.speaker == first else "assistant"
                turn = Turn(role=role, content=content, speaker=source.speaker, at=at, id=turn_id(len(turns) + 1))
                turns.append(turn)
                by_dialog_id[source.dia_id] = turn
    return _Talk(tuple(turns), by_dialog_id)


def _sessions(item: _LocomoItem) -> list[tuple[str, tuple[_LocomoTurn, ...]]]:
    """Return the sessions sorted by number."""
    numbered = [(match, turns) for key, turns in item.conversation.items() if (match := _SESSION.fullmatch(key))]
    in_order = sorted(numbered, key=lambda session: int(session[0][1]))
    return [(match[0], turns) for match, turns in in_order if isinstance(turns, tuple)]


def _observations(item: _LocomoItem, talk: _Talk) -> Iterator[AuditFact]:
    observations = (note for speakers in item.observation.values() for notes in speakers.values() for note in notes)
    for number, (content, evidence) in enumerate(observations, 1):
        turn = talk.cited_turn(evidence)
        if turn is not None:
            yield AuditFact(id=f"o{number}", content=content, at=turn.at, turn=turn.id)


def _answers(item: _LocomoItem, talk: _Talk) -> Iterator[AuditFact]:
    # one question occurs both as single-hop and as adversarial: neither is reliable
    adversarial = {question.question for question in item.qa if question.category == _ADVERSARIAL}
    for number, question in enumerate(item.qa):
        turn, value = talk.cited_turn(question.evidence), _value(question.answer)
        usable = question.category == _SINGLE_HOP and question.question not in adversarial
        if usable and turn is not None and value is not None:
            yield _fact(f"q{number}", question.question, value, turn)


def _from_longmemeval(document: Document) -> AuditConversation | None:
    item = validated(document, _LongMemEvalItem, spell=str)
    value = _value(item.answer)
    if value is None or fnmatchcase(item.question_id, _ABSTENTION_IDS) or item.question_type not in _STATED_TYPES:
        return None
    turns, evidence = _chat(item, document)
    # where knowledge is updated, earlier evidence states the old value
    verbatim = [turn for turn in evidence if value.casefold().rstrip(".") in turn.content.casefold()]
    turn = next(reversed(verbatim or evidence), None)
    if turn is None:
        return None
    return AuditConversation(id=item.question_id, turns=turns, facts=(_fact("q1", item.question, value, turn),))


def _chat(item: _LongMemEvalItem, document: Document) -> tuple[tuple[Turn, ...], list[Turn]]:
    """Return all turns sorted by date, and those that are marked as evidence."""
    dates = [_session_date(date, document, index) for index, date in enumerate(item.haystack_dates)]
    if len(dates) != len(item.haystack_sessions):
        raise BadInput(
            document.where("haystack_dates"),
            f"{len(dates)} dates for {len(item.haystack_sessions)} sessions",
            expected="one date per session",
            remedy="download the file again",
        )
    turns: list[Turn] = []
    evidence: list[Turn] = []
    for at, session in sorted(zip(dates, item.haystack_sessions, strict=True), key=lambda pair: pair[0]):
        for source in session:
            if source.content.strip():
                turns.append(Turn(role=source.role, content=source.content, at=at, id=turn_id(len(turns) + 1)))
                evidence += turns[-1:] if source.has_answer else []
    return tuple(turns), evidence


def _session_date(date: str, document: Document, index: int) -> datetime:
    where = partial(document.where, "haystack_dates", index)
    at = read_date(date, where)
    if at is None:
        raise BadInput(where(), "the date is empty", expected="a date", remedy="download the file again")
    return at


def _fact(id: str, question: str, value: str, turn: Turn) -> AuditFact:
    return AuditFact(id=id, content=f"{question} {value}", at=turn.at, value=value, question=question, turn=turn.id)


def _conversation_json(conversation: AuditConversation) -> dict[str, Any]:
    absent = [entry.model_dump(exclude_none=True) for entry in conversation.absent]
    return {
        "id": conversation.id,
        "turns": [_values(turn, ("role", "speaker", "content", "at")) for turn in conversation.turns],
        "facts": [_values(fact, AuditFact.__slots__) for fact in conversation.facts],
        **({"absent": absent} if absent else {}),
    }


def _values(part: Turn | AuditFact, fields: Iterable[str]) -> dict[str, Any]:
    """Return the values of these fields that are not None, as JSON data under the keys of an audit file."""
    values = {_KEYS.get(name, name): getattr(part, name) for name in fields}
    return {
        key: value.isoformat() if isinstance(value, datetime) else value
        for key, value in values.items()
        if value is not None
    }
