"""Probe files: one probe per line (JSONL), to be read, edited, kept unchanged and shared.

`verified` is a digest of the fields that the checks depend on. If a line was edited, the digest no longer matches; its
recorded checks do not count, and code checks it again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.core.packed import PackedSequence
from memorybench.core.records import Record, digest
from memorybench.datasets.audit import AuditDataset
from memorybench.datasets.audit_file import AbsentFact
from memorybench.datasets.items import read_items
from memorybench.files.located import Document
from memorybench.files.validation import validated
from memorybench.files.writing import replacing
from memorybench.suites.sampling import SIDE_BY_SIDE
from memorybench.text.sanitize import preview
from memorybench.text.spelling import camel, suggestion

from .answers import occurs
from .events import fits_dates
from .evidence import IndexedConversation
from .generation import check_absent
from .plan import Transcripts
from .probes import Check, Origin, Probe, Probes, ProbeType, Question, probe
from .verification import has_leak


class ProbeOnFile(Record):
    """A line of a probe file."""

    id: str
    type: ProbeType
    kind: str = ""
    conversation: str
    question: str
    expected_answer: str
    current: str = ""
    stale: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    """The ids of the turns that contain the answer."""
    stale_evidence: tuple[str, ...] = ()
    related_facts: tuple[str, ...] = ()
    twin: str | None = None
    origin: Origin = "edited"
    category: str | None = None
    checks: tuple[Check, ...] = ()
    verified: str = ""

    @property
    def digest(self) -> str:
        """The digest of the fields that the checks depend on."""
        parts = (self.type, self.kind, self.conversation, self.question, self.expected_answer, self.current)
        return digest([*parts, self.stale, self.options, self.evidence, self.stale_evidence])[:16]


def write_probes(path: Path, probes: Iterable[Probe]) -> None:
    with replacing(path) as file:
        for one in probes:
            file.write(json.dumps(probe_line(one), ensure_ascii=False) + "\n")


def probe_line(one: Probe) -> dict[str, Any]:
    """Return a probe as the JSON object of a line of a probe file."""
    row = ProbeOnFile(
        **{name: getattr(one, name) for name in ProbeOnFile.model_fields if name in Probe.model_fields},
        evidence=tuple(turn.id or "" for turn in one.gold_context),
        stale_evidence=tuple(turn.id or "" for turn in one.stale_context),
    )
    fields = {**row.model_dump(mode="json", exclude_defaults=True), "origin": row.origin, "verified": row.digest}
    return {camel(name): value for name, value in fields.items()}


def read_probes(path: Path, dataset: AuditDataset, *, verify: bool = True) -> Probes:
    """Read the probes of a file for a dataset. Edited ones must pass the checks that code can make.

    `verify=False` skips these checks, because a model verifies all probes later.
    """
    transcripts = Transcripts(dataset)
    dropped: Counter[str] = Counter()
    ids: set[str] = set()

    @lru_cache(maxsize=SIDE_BY_SIDE)
    def indexed(conversation: str) -> IndexedConversation:
        return IndexedConversation(transcripts.conversation(conversation))

    def probes() -> Iterator[Probe]:
        for item in read_items(path):
            part = item.document
            row = validated(part, ProbeOnFile)
            if row.conversation not in transcripts.ids:
                remedy = suggestion(row.conversation, transcripts.ids)
                raise BadInput(
                    part.where("conversation"),
                    f"unknown conversation {preview(row.conversation)}",
                    remedy=remedy or "use the dataset that the probes were made from",
                )
            one = _probe(row, part, indexed(row.conversation), ids)
            if one.id in ids:
                raise BadInput(
                    part.where("id"), f"duplicate id {preview(one.id)}", expected="a different id for each probe"
                )
            ids.add(one.id)
            is_unchanged = bool(row.checks) and row.verified == row.digest
            reason = None if is_unchanged or not verify else _reject(one, indexed(row.conversation))
            if reason is not None:
                dropped[reason] += 1
            else:
                yield one if is_unchanged else _edited(one)

    admitted = PackedSequence(probes())
    if not ids:
        raise BadInput(str(path), "the file contains no probes", expected="one probe per line")
    return Probes(admitted, (), {"made": len(admitted), **dict(sorted(dropped.items()))})


def _probe(row: ProbeOnFile, part: Document, indexed: IndexedConversation, earlier: Collection[str]) -> Probe:
    """Return the probe of a line. `earlier` are the ids of the probes before it."""
    places = {
        key: [_place(indexed, id, part, key) for id in getattr(row, key)] for key in ("evidence", "stale_evidence")
    }
    if not row.question.strip():
        raise BadInput(part.where("question"), "empty", expected="a question")
    if row.current not in row.expected_answer:  # `current` is part of it, or empty
        raise BadInput(
            part.where("current"),
            f"{preview(row.current)} is not in expectedAnswer",
            expected="the answer that is right now, in both",
            remedy="change both",
        )
    if row.options and (len(row.options) != 2 or row.expected_answer not in row.options):
        raise BadInput(
            part.where("options"), "invalid options", expected="two options, one of them equal to expected_answer"
        )
    kind = row.kind or {"conflict": "latest", "temporal": "order" if row.options else "as of"}.get(row.type, row.type)
    prefix = f"{indexed.conversation.id}/"  # a line may leave it out
    twin = None if row.twin is None else prefix + row.twin.removeprefix(prefix)
    made = probe(
        indexed, row.id.removeprefix(prefix), row.type, kind,
        Question(row.question, row.expected_answer, row.origin),
        places=places["evidence"], category=row.category, related_facts=row.related_facts,
        current=row.current, stale=row.stale, flags=kind == "flag", twin=twin, options=row.options,
        reversed=bool(row.options) and (row.id.endswith("/2") or twin in earlier), abstain=row.type == "hallucination",
        stale_context=indexed.turns(sorted(places["stale_evidence"])),
    )  # fmt: skip
    return made.model_copy(update={"checks": row.checks})


def _place(indexed: IndexedConversation, turn: str, part: Document, key: str) -> int:
    place = indexed.place(turn)
    if place is None:
        count = len(indexed.conversation.turns)
        raise BadInput(part.where(key), f"the conversation has no turn {preview(turn)}", expected=f"t1 to t{count}")
    return place


def _edited(one: Probe) -> Probe:
    names = ("no leak", "answer in evidence") if one.gold_context and not one.options else ("edited by a person",)
    return one.model_copy(update={"origin": "edited", "checks": tuple(Check(name=name, by="code") for name in names)})


def _reject(one: Probe, indexed: IndexedConversation) -> str | None:
    """Return the name of the check that an edited probe fails; None if it passes."""
    facts = indexed.conversation.facts
    if one.abstain:
        return check_absent(facts)(AbsentFact(id=one.id, question=one.question))
    if has_leak(one):
        return "leak"
    if one.options or one.kind == "duration":
        return None if fits_dates(one, facts) else "dates"
    value = one.current or one.expected_answer
    return None if any(occurs(value, turn.content) for turn in one.gold_context) else "unanswerable"
