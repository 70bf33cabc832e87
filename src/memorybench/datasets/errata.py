"""Corrections of an answer key, laid over a dataset: `--errata FILE`.

Two formats are read: our own, `{question id: {"answer": …, "evidence": […]}}` with either key left out where nothing
changes; and that of the LoCoMo audit (errors.json), whose ids count conversations and questions from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from memorybench.core.errors import BadInput
from memorybench.core.questions import Dataset, Question
from memorybench.core.records import Record
from memorybench.files.loading import load
from memorybench.files.located import Document
from memorybench.text.sanitize import preview
from memorybench.text.spelling import suggestion

from .evidence import Evidence

_AUDIT_ID = re.compile(r"locomo_(\d+)_qa(\d+)")
_CITATION = "WRONG_CITATION"
"""The audit's name for a right answer with wrong evidence; its text of the answer is then a remark at times."""
_KEYS = frozenset({"answer", "evidence"})


class Citing(Dataset, Protocol):
    """A dataset that knows what the data's own ids stand for."""

    def cited(self, question: Question, ids: Sequence[str]) -> Evidence: ...


class Erratum(Record):
    """What is wrong about one question, and the question as it should be."""

    wrong: Literal["answer", "evidence"]
    """`answer`: the gold answer, and its evidence with it where told; `evidence`: the citation alone."""
    corrected: Question


def load_errata(file: Path, dataset: Citing) -> Mapping[str, Erratum]:
    """By question id. Ids that the dataset does not have are refused: the file belongs to another."""
    document = load(file)
    found = {}
    for question, told, part in _told(document, dataset):
        if question.id in found:
            raise BadInput(part.where(), f"{preview(question.id)} is corrected twice", remedy="keep one")
        found[question.id] = _erratum(question, told, part, dataset)
    if not found:
        raise BadInput(document.where(), "corrects nothing", expected="at least one question")
    return found


def _told(document: Document, dataset: Citing) -> Iterator[tuple[Question, Mapping[str, Any], Document]]:
    """Each question, what is said of it in our own terms, and where."""
    by_id = {question.id: question for question in dataset.questions}
    if isinstance(document.value, dict):
        for id in document.value:
            yield _known(id, by_id, document.at(id)), _own(document.at(id)), document.at(id)
    elif isinstance(document.value, list):
        counted = _counted(dataset.questions)
        for index in range(len(document.value)):
            part = document.at(index)
            yield _audited(part, counted), _audit(part), part
    else:
        raise BadInput(document.where(), "is no errata file", expected="an object of question ids, or the audit's list")


def _counted(questions: Sequence[Question]) -> list[list[Question]]:
    """Questions by haystack, both in the order of the file."""
    grouped: dict[str, list[Question]] = {}
    for question in questions:
        grouped.setdefault(question.haystack, []).append(question)
    return list(grouped.values())


def _known(id: str, by_id: Mapping[str, Question], part: Document) -> Question:
    if id not in by_id:
        raise BadInput(part.where(), f"there is no question {preview(id)}", remedy=suggestion(id, list(by_id)))
    return by_id[id]


def _own(part: Document) -> Mapping[str, Any]:
    told = part.value
    if not isinstance(told, dict) or not told or not told.keys() <= _KEYS:
        raise BadInput(part.where(), f"is {preview(told)}", expected='{"answer": …, "evidence": […]} or one of the two')
    return told


def _audited(part: Document, counted: Sequence[Sequence[Question]]) -> Question:
    id = part.value.get("question_id") if isinstance(part.value, dict) else None
    match = _AUDIT_ID.fullmatch(id) if isinstance(id, str) else None
    if match is None:
        raise BadInput(part.where("question_id"), f"{preview(id)} is no id of the audit", expected="locomo_0_qa12")
    haystack, place = int(match[1]), int(match[2])
    if haystack >= len(counted) or place >= len(counted[haystack]):
        raise BadInput(part.where("question_id"), f"there is no question {preview(id)}", expected="errata of this data")
    question = counted[haystack][place]
    if part.value.get("question") not in (None, question.question):
        problem = f"{preview(part.value['question'])} is not what {question.id} asks"
        raise BadInput(part.where("question"), problem, expected="errata of this data")
    return question


def _audit(part: Document) -> Mapping[str, Any]:
    told = {"evidence": part.value.get("correct_evidence", [])}
    if part.value.get("error_type") != _CITATION:
        told["answer"] = part.value.get("correct_answer")
    return told


def _erratum(question: Question, told: Mapping[str, Any], part: Document, dataset: Citing) -> Erratum:
    changed: dict[str, Any] = {}
    if "answer" in told:
        answers = told["answer"] if isinstance(told["answer"], list) else [told["answer"]]
        if not answers or any(answer in (None, "") or isinstance(answer, dict | list) for answer in answers):
            raise BadInput(part.where("answer"), f"{preview(told['answer'])} is no answer", expected="a text")
        changed["answers"] = tuple(map(str, answers))
    if "evidence" in told:
        ids = told["evidence"]
        if not isinstance(ids, list):
            raise BadInput(part.where("evidence"), f"{preview(ids)} is no list of ids", expected='["D1:3"]')
        evidence = dataset.cited(question, [str(id) for id in ids])
        if evidence.dropped:
            raise BadInput(part.where("evidence"), f"{preview(evidence.dropped[0])} is not in {question.haystack}")
        changed |= {"gold_sessions": evidence.sessions, "gold_turns": evidence.turns}
    wrong: Literal["answer", "evidence"] = "answer" if "answer" in told else "evidence"
    return Erratum(wrong=wrong, corrected=question.model_copy(update=changed))
