"""Corrections of an answer key: `--errata FILE`.

Two formats are read: memorybench's own, `{question id: {"answer": …, "evidence": […]}}` with at least one of the two
keys; and that of the LoCoMo audit (errors.json), whose ids count conversations and questions from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from memorybench.core.errors import BadInput
from memorybench.core.questions import Dataset, Question
from memorybench.core.records import Record
from memorybench.files.loading import load
from memorybench.files.located import Document
from memorybench.text.sanitize import preview
from memorybench.text.spelling import suggestion

from .choices import choices_of
from .evidence import Evidence
from .gold import answer_text, is_blank

_AUDIT_ID = re.compile(r"locomo_(\d+)_qa(\d+)")
_CITATION = "WRONG_CITATION"
"""The LoCoMo audit's error type for a right answer with wrong evidence. The `answer` of such an entry is ignored,
because it may be a comment."""
_KEYS = frozenset({"answer", "evidence"})


@runtime_checkable
class Citing(Dataset, Protocol):
    """A dataset that can resolve evidence ids to the turns and sessions of a haystack."""

    def resolve_evidence(self, question: Question, ids: Sequence[str]) -> Evidence: ...


class Erratum(Record):
    """The correction of one question."""

    wrong: Literal["answer", "evidence"]
    """What is corrected. `answer`: the gold answer, and possibly its evidence; `evidence`: only the evidence."""
    corrected: Question


def load_errata(file: Path, dataset: Citing) -> Mapping[str, Erratum]:
    """Return the corrections by question id; raise BadInput for an id that the dataset does not have."""
    document = load(file)
    errata: dict[str, Erratum] = {}
    for question, changes, part in _corrections(document, dataset):
        if question.id in errata:
            raise BadInput(
                part.where(),
                f"the question {preview(question.id)} is corrected twice",
                remedy="remove one of the corrections",
            )
        errata[question.id] = _erratum(question, changes, part, dataset)
    if not errata:
        raise BadInput(document.where(), "the file has no corrections", expected="at least one")
    return errata


def _corrections(document: Document, dataset: Citing) -> Iterator[tuple[Question, Mapping[str, Any], Document]]:
    """Yield each question, its changes as in memorybench's own format, and their place in the file."""
    by_id = {question.id: question for question in dataset.questions}
    if isinstance(document.value, dict):
        for id in document.value:
            part = document.at(id)
            if id not in by_id:
                raise BadInput(
                    part.where(), f"the dataset has no question {preview(id)}", remedy=suggestion(id, list(by_id))
                )
            changes = part.value
            if not isinstance(changes, dict) or not changes or not changes.keys() <= _KEYS:
                raise BadInput(
                    part.where(),
                    f"invalid correction {preview(changes)}",
                    expected='{"answer": …, "evidence": […]} or one of the two',
                )
            yield by_id[id], changes, part
    elif isinstance(document.value, list):
        by_haystack: dict[str, list[Question]] = {}
        for question in dataset.questions:
            by_haystack.setdefault(question.haystack, []).append(question)
        conversations = list(by_haystack.values())
        for index in range(len(document.value)):
            part = document.at(index)
            question = _audited_question(part, conversations)
            audit_changes = {"evidence": part.value.get("correct_evidence", [])}
            if part.value.get("error_type") != _CITATION:
                audit_changes["answer"] = part.value.get("correct_answer")
            yield question, audit_changes, part
    else:
        raise BadInput(
            document.where(),
            "not an errata file",
            expected="an object with question ids as keys, or the list of errors of the LoCoMo audit",
        )


def _audited_question(part: Document, conversations: Sequence[Sequence[Question]]) -> Question:
    id = part.value.get("question_id") if isinstance(part.value, dict) else None
    match = _AUDIT_ID.fullmatch(id) if isinstance(id, str) else None
    if match is None:
        raise BadInput(part.where("question_id"), f"invalid id {preview(id)}", expected="an id such as locomo_0_qa12")
    haystack, place = int(match[1]), int(match[2])
    if haystack >= len(conversations) or place >= len(conversations[haystack]):
        raise BadInput(
            part.where("question_id"), f"the dataset has no question {preview(id)}", remedy="use errata of this dataset"
        )
    question = conversations[haystack][place]
    if part.value.get("question") not in (None, question.question):
        raise BadInput(
            part.where("question"),
            f"{preview(part.value['question'])} is not the text of question {question.id}",
            remedy="use errata of this dataset",
        )
    return question


def _erratum(question: Question, changes: Mapping[str, Any], part: Document, dataset: Citing) -> Erratum:
    update: dict[str, Any] = {}
    if "answer" in changes:
        update["answers"] = _answers(question, changes["answer"], part)
    if "evidence" in changes:
        ids = changes["evidence"]
        if not isinstance(ids, list):
            raise BadInput(
                part.where("evidence"), f"{preview(ids)} is not a list of ids", expected='a list such as ["D1:3"]'
            )
        evidence = dataset.resolve_evidence(question, [str(id) for id in ids])
        if evidence.dropped:
            raise BadInput(
                part.where("evidence"),
                f"the history {question.haystack} has no turn {preview(evidence.dropped[0])}",
                remedy="correct the id or the text",
            )
        if evidence.ambiguous:
            raise BadInput(
                part.where("evidence"),
                f"several turns of {question.haystack} have the text {preview(evidence.ambiguous[0])}",
                remedy="write more of the text of the turn",
            )
        update |= {"gold_sessions": evidence.sessions, "gold_turns": evidence.turns}
    wrong: Literal["answer", "evidence"] = "answer" if "answer" in changes else "evidence"
    return Erratum(wrong=wrong, corrected=question.model_copy(update=update))


def _answers(question: Question, answer: Any, part: Document) -> tuple[str, ...]:
    """Return the right answers of a correction. Of a question with choices, they are spellings of the right choices."""
    where = part.where("answer")
    answers = answer if isinstance(answer, list) else [answer]
    if not answers or any(is_blank(one) or isinstance(one, dict | list) for one in answers):
        raise BadInput(where, f"{preview(answer)} is not an answer", expected="a text")
    if question.rubric or (question.must_contain and not question.choices):
        rule = "a rubric" if question.rubric else "texts that an answer must contain"
        raise BadInput(
            where,
            f"the question {preview(question.id)} is scored by {rule}, not by an answer",
            expected="only evidence",
            remedy=f"remove answer, and correct {rule} in the data",
        )
    if not question.choices:
        return tuple(map(answer_text, answers))
    choices = choices_of(question)
    for one in answers:
        if choices.is_label_or_text(one, None):
            raise BadInput(
                where,
                f"{preview(one)} is the label of one choice and the text of another",
                expected=f"the whole choice, such as {preview(choices.lines[0])}",
            )
    right = (text for one in answers for text in choices.right(one, None, lambda: where))
    return tuple(dict.fromkeys(right))
