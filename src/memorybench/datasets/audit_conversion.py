"""Audit datasets out of LoCoMo and LongMemEval files, and any audit dataset as the text of a file.

Both benchmarks give facts in words, not by subject and attribute, and neither says which fact supersedes which: what
is made here feeds recall and hallucination probes, and no conflict probes. A value has at most six words, and is more
than yes or no: what is longer is an explanation rather than a value, and half of all guesses would be right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput
from memorybench.files.located import Document
from memorybench.files.validation import validated

from .audit import AuditConversation, AuditDataset, AuditFact
from .audit_file import turn_id
from .dates import read_date
from .items import read_items

_MOST_WORDS = 6
_YES_OR_NO = re.compile(r"(yes|no)\W*", re.IGNORECASE)
_SINGLE_HOP, _ADVERSARIAL = 4, 5
_SESSION = re.compile(r"session_(\d+)")
_DIALOG_ID = re.compile(r"D\d+:\d+")
_STATED = ("single-session-user", "single-session-assistant", "knowledge-update")
_ABSTAINS = "*_abs*"


def convert_locomo(path: Path | str) -> AuditDataset:
    """Facts are the observations, in free text, and the single-hop questions with their answers as values.

    Left out: the questions of several hops and on time and inference, whose answers no turn states; the adversarial
    ones, whose answers are false; the event summaries, which tell what the conversations were written from, not what
    is said in them. The first speaker becomes the user and the second the assistant, both under their names; a photo
    is told by its caption. The errata of the answer key are not applied.
    """
    items = read_items(Path(path))
    return _dataset(path, (_from_locomo(item.document) for item in items))


def convert_longmemeval(path: Path | str, limit: int | None = None) -> AuditDataset:
    """One conversation for each question whose short answer a turn states, and that answer as its one fact.

    Left out: questions that should be abstained from; multi-session and temporal ones, whose answers are counted or
    worked out; preferences, whose answers are rubrics. Sessions are put in the order of their dates. Their ids, which
    would tell where the evidence lies, are not kept. `limit`: this many conversations at most.
    """
    items = read_items(Path(path))
    made = (_from_longmemeval(item.document) for item in items)
    return _dataset(path, islice((one for one in made if one is not None), limit))


def written(dataset: AuditDataset, *, lines: bool = False) -> str:
    """JSON that `load_audit` reads as an equal dataset; with `lines`, a conversation a line, whose dataset is called as
    the file is."""
    if lines:
        each = (json.dumps(_written_conversation(one), ensure_ascii=False) for one in dataset.conversations)
        return "\n".join(each) + "\n"
    plain = {"id": dataset.id, "conversations": [_written_conversation(one) for one in dataset.conversations]}
    return json.dumps(plain, ensure_ascii=False, indent=1) + "\n"


def _dataset(path: Path | str, conversations: Iterator[AuditConversation]) -> AuditDataset:
    held = tuple(conversations)
    if not held:
        raise BadInput(str(path), "gives no conversations", remedy="check that it is the file of that benchmark")
    return AuditDataset(id=Path(path).name.partition(".")[0], conversations=held)


def _value(answer: str | int | None) -> str | None:
    """The answer as a value; None: it is not one."""
    text = "" if answer is None else str(answer).strip()
    return text if text and len(text.split()) <= _MOST_WORDS and not _YES_OR_NO.fullmatch(text) else None


class _Foreign(BaseModel):
    """What is read of a benchmark's own file; what else it holds is none of our business."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _LocomoSaid(_Foreign):
    speaker: str
    dia_id: str
    text: str = ""
    blip_caption: str | None = None


class _LocomoAsked(_Foreign):
    question: str
    category: int
    answer: str | int | None = None
    evidence: tuple[str, ...] = ()


class _LocomoItem(_Foreign):
    sample_id: str
    conversation: dict[str, tuple[_LocomoSaid, ...] | str]
    observation: dict[str, dict[str, tuple[tuple[str, str | tuple[str, ...]], ...]]]
    qa: tuple[_LocomoAsked, ...]


class _LongMemEvalSaid(_Foreign):
    role: Literal["user", "assistant"]
    content: str
    has_answer: bool = False


class _LongMemEvalItem(_Foreign):
    question_id: str
    question_type: str
    question: str
    answer: str | int
    haystack_dates: tuple[str, ...]
    haystack_sessions: tuple[tuple[_LongMemEvalSaid, ...], ...]


@dataclass(frozen=True, slots=True)
class _Talk:
    """The turns of a LoCoMo conversation, and which of them each dialog id is."""

    turns: tuple[Turn, ...]
    by_dialog_id: Mapping[str, Turn]

    def cited(self, evidence: str | Sequence[str]) -> Turn | None:
        """The first turn that `evidence` names."""
        ids = _DIALOG_ID.findall(evidence if isinstance(evidence, str) else " ".join(evidence))
        return next((self.by_dialog_id[id] for id in ids if id in self.by_dialog_id), None)


def _from_locomo(document: Document) -> AuditConversation:
    item = validated(document, _LocomoItem)
    talk = _talk(item, document)
    facts = (*_observations(item, talk), *_answered(item, talk))
    return AuditConversation(id=item.sample_id, turns=talk.turns, facts=facts)


def _talk(item: _LocomoItem, document: Document) -> _Talk:
    turns: list[Turn] = []
    named: dict[str, Turn] = {}
    first = item.conversation.get("speaker_a")
    for key, session in _sessions(item):
        date = f"{key}_date_time"
        at = read_date(item.conversation.get(date), partial(document.where, "conversation", date))
        for said in session:
            content = _with_photo(said)
            if content:
                role = "user" if said.speaker == first else "assistant"
                turn = Turn(role=role, content=content, speaker=said.speaker, at=at, id=turn_id(len(turns) + 1))
                turns.append(turn)
                named[said.dia_id] = turn
    return _Talk(tuple(turns), named)


def _sessions(item: _LocomoItem) -> list[tuple[str, tuple[_LocomoSaid, ...]]]:
    """In the order of their numbers; there are more dates than sessions."""
    numbered = [(match, said) for key, said in item.conversation.items() if (match := _SESSION.fullmatch(key))]
    in_order = sorted(numbered, key=lambda session: int(session[0][1]))
    return [(match[0], said) for match, said in in_order if isinstance(said, tuple)]


def _with_photo(said: _LocomoSaid) -> str:
    photo = f"[shares a photo: {said.blip_caption}]" if said.blip_caption else ""
    return f"{said.text} {photo}".strip()


def _observations(item: _LocomoItem, talk: _Talk) -> Iterator[AuditFact]:
    noted = (note for speakers in item.observation.values() for notes in speakers.values() for note in notes)
    for number, (content, evidence) in enumerate(noted, 1):
        turn = talk.cited(evidence)
        if turn is not None:
            yield AuditFact(id=f"o{number}", content=content, at=turn.at, turn=turn.id)


def _answered(item: _LocomoItem, talk: _Talk) -> Iterator[AuditFact]:
    # one question stands in the file both as answered and as not to be answered: who would trust either?
    doubtful = {asked.question for asked in item.qa if asked.category == _ADVERSARIAL}
    for number, asked in enumerate(item.qa):
        turn, value = talk.cited(asked.evidence), _value(asked.answer)
        asked_for = asked.category == _SINGLE_HOP and asked.question not in doubtful
        if asked_for and turn is not None and value is not None:
            yield _fact(f"q{number}", asked.question, value, turn)


def _from_longmemeval(document: Document) -> AuditConversation | None:
    item = validated(document, _LongMemEvalItem)
    value = _value(item.answer)
    if value is None or fnmatchcase(item.question_id, _ABSTAINS) or item.question_type not in _STATED:
        return None
    turns, evidence = _chat(item, document)
    turn = _stating(evidence, value)
    if turn is None:
        return None
    return AuditConversation(id=item.question_id, turns=turns, facts=(_fact("q1", item.question, value, turn),))


def _chat(item: _LongMemEvalItem, document: Document) -> tuple[tuple[Turn, ...], list[Turn]]:
    """All turns in the order of their dates, and those among them that are marked as evidence."""
    dates = [_dated(date, document, index) for index, date in enumerate(item.haystack_dates)]
    if len(dates) != len(item.haystack_sessions):
        problem = f"has {len(dates)} dates for {len(item.haystack_sessions)} sessions"
        raise BadInput(document.where("haystack_dates"), problem, expected="one each", remedy="fetch the file again")
    turns: list[Turn] = []
    evidence: list[Turn] = []
    for at, session in sorted(zip(dates, item.haystack_sessions, strict=True), key=lambda pair: pair[0]):
        for said in session:
            if said.content.strip():
                turns.append(Turn(role=said.role, content=said.content, at=at, id=turn_id(len(turns) + 1)))
                evidence += turns[-1:] if said.has_answer else []
    return tuple(turns), evidence


def _dated(date: str, document: Document, index: int) -> datetime:
    where = partial(document.where, "haystack_dates", index)
    at = read_date(date, where)
    if at is None:
        raise BadInput(where(), "is empty", expected="a date", remedy="fetch the file again")
    return at


def _stating(evidence: Sequence[Turn], value: str) -> Turn | None:
    """The last piece of evidence that has the value word for word, else the last: where knowledge is updated, an
    earlier one states what was so before."""
    verbatim = [turn for turn in evidence if value.casefold().rstrip(".") in turn.content.casefold()]
    return next(reversed(verbatim or evidence), None)


def _fact(id: str, question: str, value: str, turn: Turn) -> AuditFact:
    return AuditFact(id=id, content=f"{question} {value}", at=turn.at, value=value, question=question, turn=turn.id)


def _written_conversation(conversation: AuditConversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "turns": [_written_turn(turn) for turn in conversation.turns],
        "facts": [_written_fact(fact) for fact in conversation.facts],
    }


def _written_turn(turn: Turn) -> dict[str, Any]:
    said = {"role": turn.role, "speaker": turn.speaker, "content": turn.content, "timestamp": _iso(turn.at)}
    return {key: value for key, value in said.items() if value is not None}


def _written_fact(fact: AuditFact) -> dict[str, Any]:
    stated = {
        "id": fact.id,
        "content": fact.content,
        "timestamp": _iso(fact.at),
        "supersedes": fact.supersedes,
        "category": fact.category,
        "subject": fact.subject,
        "attribute": fact.attribute,
        "value": fact.value,
        "validFrom": _iso(fact.valid_from),
        "validTo": _iso(fact.valid_to),
        "question": fact.question,
        "turn": fact.turn,
    }
    return {key: value for key, value in stated.items() if value is not None}


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
