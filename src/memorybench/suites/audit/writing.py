"""Lets a model write probes from facts and turns, where code cannot make a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from memorybench.core.errors import Lacking, Unreadable
from memorybench.core.plans import Steps
from memorybench.core.records import Record
from memorybench.datasets.audit import AuditConversation, AuditDataset, AuditFact
from memorybench.text.sanitize import preview

from .changes import FLAG_REQUEST
from .events import asked_order, both_orders, option_text, order_questions
from .evidence import IndexedConversation
from .generation import NOT_TOLD, absent_probes
from .history import UNDATED, history
from .probes import Policy, Probe, Probes, ProbeType, Question, probe
from .recall import ASKED_ALREADY
from .verification import ProbeModel, read_object, shown_turns

STEP = "probe"
_MOST_ABSENT = 4
"""The most probes about absent facts that a model writes for one conversation."""


_UNWRITTEN = Question("", "", "model")


class Written(Record):
    """A model's reply: a question with its answers, the newest last; or several questions about absent facts."""

    question: str | None = None
    answers: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


def drafts(
    dataset: AuditDataset,
    generated: Probes,
    types: Sequence[ProbeType],
    policy: Policy,
    dropped: Counter[str],
) -> Iterator[Probe]:
    """Yield draft probes for facts that have no probe of that type in `generated`. A model writes most questions.

    `dropped` counts, by reason, the absent facts, past values and events that cannot be asked about.
    """
    made = generated.probes
    told_again = {(one.conversation, one.fact) for one in generated.skipped if one.reason == ASKED_ALREADY}
    asked = {(one.conversation, one.type, one.related_facts[-1]) for one in made if one.related_facts}
    made_ids = {one.id for one in made}
    as_of = Counter((one.conversation, one.related_facts) for one in made if one.kind == "as of")
    recalled: dict[str, list[str]] = {}
    for one in made:
        if one.type in ("recall", "conflict"):
            recalled.setdefault(one.conversation, []).append(one.id)
    for conversation in dataset.conversations:
        indexed = IndexedConversation(conversation)
        past = history(indexed)
        name = conversation.id
        unasked = (
            fact
            for fact in past.current
            if (name, fact.id) not in told_again
            and not asked & {(name, kind, fact.id) for kind in ("recall", "conflict")}
        )
        recalls = [_recall(indexed, fact) for fact in unasked]
        yield from recalls if "recall" in types else ()
        if "conflict" in types:
            current = (chain for chain in past.chains if chain[-1] in past.current)
            chains = (chain for chain in current if (name, "conflict", chain[-1].id) not in asked)
            yield from (_conflict(indexed, chain, policy) for chain in chains)
        if "temporal" in types:
            events = [fact for fact in past.current if fact.category == "event"]
            yield from _orders(indexed, events, dropped)
            for chain in past.chains:
                reason = "no past form" if all(map(indexed.told, chain)) else UNDATED
                dropped[reason] += len(chain) - 1 - as_of[name, tuple(fact.id for fact in chain)]
        if "hallucination" in types:
            ids = [*recalled.get(name, ()), *(one.id for one in recalls)]
            twins = ids if "recall" in types else [None] * len(ids)
            declared = list(absent_probes(indexed, twins, dropped))
            yield from (one for one in declared if one.id not in made_ids)
            yield from _absent(indexed, past.current, "recall" in types) if not declared else ()


def _places(indexed: IndexedConversation, *facts: AuditFact) -> list[int]:
    found = (indexed.place(fact.turn) for fact in facts)
    return sorted({place for place in found if place is not None})


def _recall(indexed: IndexedConversation, fact: AuditFact) -> Probe:
    return probe(
        indexed, f"recall/{fact.id}", "recall", "recall", _UNWRITTEN, places=_places(indexed, fact),
        related_facts=(fact.id,), category=fact.category,
    )  # fmt: skip


def _conflict(indexed: IndexedConversation, chain: Sequence[AuditFact], policy: Policy) -> Probe:
    return probe(
        indexed, f"conflict/{chain[-1].id}", "conflict", policy, _UNWRITTEN, category=chain[-1].category,
        places=_places(indexed, chain[-1]), related_facts=[fact.id for fact in chain], flags=policy == "flag",
        stale_context=indexed.turns(_places(indexed, *chain[:-1])),
    )  # fmt: skip


def _orders(indexed: IndexedConversation, events: Sequence[AuditFact], dropped: Counter[str]) -> Iterator[Probe]:
    """Yield order probes for pairs of events. The expected answers are drafts: the model's dates decide."""
    if not indexed.is_english:  # the words around the options are English
        dropped["not English"] += len(events)
        return
    options: list[tuple[AuditFact, str]] = []
    for event in events:
        option = option_text(event)
        if option is None or not _places(indexed, event):
            dropped["option tells the time" if option is None else UNDATED] += 1
        else:
            options.append((event, option))
    apart = max(1, len(options) // 2)
    ask = order_questions(indexed.conversation.id)
    for (one, first), (other, second) in zip(options, options[apart:], strict=False):
        question = Question(next(ask), first, "model")
        yield from both_orders(indexed, (one, other), (first, second), question, _places(indexed, one, other))


def _absent(indexed: IndexedConversation, facts: Sequence[AuditFact], has_recalls: bool) -> Iterator[Probe]:
    for number, fact in enumerate(facts[:_MOST_ABSENT], 1):
        yield probe(
            indexed, f"absent/{number}", "hallucination", "written", Question("", NOT_TOLD, "model"), abstain=True,
            twin=f"{indexed.conversation.id}/recall/{fact.id}" if has_recalls else None,
        )  # fmt: skip


async def write(steps: Steps, writer: ProbeModel, draft: Probe, conversation: AuditConversation) -> Probe:
    """Return the draft with a question: its own, or one that the model writes; raise Lacking if it writes none."""
    if draft.question and not (draft.options and draft.origin == "model"):
        return draft
    try:
        if draft.options:
            return await _put_in_order(steps, writer, draft)
        if draft.abstain:
            return await _write_absent(steps, writer, draft, conversation)
        if draft.type == "conflict":
            return await _write_change(steps, writer, draft, conversation)
        return await _write_recall(steps, writer, draft, conversation)
    except Unreadable as error:
        raise Lacking(f"no question was written: {error}") from error


async def _put_in_order(steps: Steps, writer: ProbeModel, draft: Probe) -> Probe:
    """Return the probe. If the model dates the two events in the other order, the other option becomes the answer."""
    if await writer.find_order(steps, draft) != -asked_order(draft):
        return draft
    other = next(option for option in draft.options if option != draft.expected_answer)
    return draft.model_copy(update={"expected_answer": other})


def _statements(draft: Probe, conversation: AuditConversation) -> list[str]:
    by_id = {fact.id: fact for fact in conversation.facts}
    return [by_id[id].content for id in draft.related_facts]


async def _write_recall(steps: Steps, writer: ProbeModel, draft: Probe, conversation: AuditConversation) -> Probe:
    source = draft.gold_context or conversation.turns
    values = {"fact": _statements(draft, conversation)[0], "source": shown_turns(source)}
    written = await writer.ask(steps, STEP, "probe-write", values, _read_written, Written)
    evidence = tuple(turn for turn in source if turn.id in written.evidence) or draft.gold_context
    if not evidence:
        raise Lacking(
            f"no question was written: the model does not name the turn that answers {preview(written.question)}"
        )
    return draft.model_copy(
        update={"question": written.question, "expected_answer": written.answers[-1], "gold_context": evidence}
    )


async def _write_change(steps: Steps, writer: ProbeModel, draft: Probe, conversation: AuditConversation) -> Probe:
    facts = _statements(draft, conversation)
    if not draft.gold_context or not draft.stale_context:
        raise Lacking("no question was written: the dataset does not say which turns contain the facts")
    source = shown_turns((*draft.stale_context, *draft.gold_context))
    values = {"fact": "\n".join(f"- {fact}" for fact in facts), "source": source}
    written = await writer.ask(steps, STEP, "probe-write-change", values, _read_written, Written)
    if len(written.answers) != len(facts):
        raise Lacking(f"no question was written: the model gave {len(written.answers)} answers for {len(facts)} facts")
    *stale, current = written.answers
    question, expected = written.question or "", current
    if draft.flags:
        question, expected = question + FLAG_REQUEST, f"{current}; before that it was {' and '.join(stale)}"
    return draft.model_copy(
        update={"question": question, "expected_answer": expected, "current": current, "stale": tuple(stale)}
    )


async def _write_absent(steps: Steps, writer: ProbeModel, draft: Probe, conversation: AuditConversation) -> Probe:
    values = {"number": str(_MOST_ABSENT), "source": shown_turns(conversation.turns)}
    written = await writer.ask(steps, STEP, "probe-write-absent", values, _read_questions, Written)
    number = int(draft.id.rpartition("/")[2])
    questions = list(dict.fromkeys(written.questions))
    if number > len(questions):
        raise Lacking(f"no question was written: the model wrote {len(questions)} questions, fewer than needed")
    return draft.model_copy(update={"question": questions[number - 1]})


def _read_written(text: str) -> Written:
    fields = read_object(text)
    question = fields.get("question")
    if question is None and "question" in fields:
        raise Unreadable("the model replied that there is no question to ask")
    answers = fields["answers"] if isinstance(fields.get("answers"), list) else [fields.get("answer")]
    evidence = fields.get("evidence") or []
    if not isinstance(question, str) or not question.strip() or not _are_texts(answers) or not _are_texts(evidence):
        raise Unreadable(f"invalid reply of the probe model: {preview(text)}; expected the keys question and answer")
    return Written(question=question.strip(), answers=tuple(map(str, answers)), evidence=tuple(map(str, evidence)))


def _read_questions(text: str) -> Written:
    questions = read_object(text).get("questions")
    if questions is None or not _are_texts(questions):
        raise Unreadable(
            f"invalid reply of the probe model: {preview(text)}; expected the key questions with a list of texts"
        )
    return Written(questions=tuple(str(question).strip() for question in questions if str(question).strip()))


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str | int | float) for one in value)
