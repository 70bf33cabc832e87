"""Generates probes from the structure of a dataset, without a model: the same for the same dataset, policy and seed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from sys import intern

from memorybench.core.packed import PackedSequence
from memorybench.core.records import digest
from memorybench.datasets.audit import AuditDataset, AuditFact
from memorybench.datasets.audit_file import AbsentFact

from .answers import MONTHS, content, tokens
from .changes import Change, as_of_probes, conflict_probes, find_changes
from .events import duration_probes
from .evidence import IndexedConversation
from .history import SUPERSEDED
from .probes import PROBE_TYPES, Policy, Probe, Probes, ProbeType, Question, Skipped, probe
from .recall import AskableFact, Material, choose_facts
from .templates import attribute_name, question_for, with_time
from .time_words import day_text

NOT_TOLD = "The conversation does not tell."
_OWNER = re.compile(r"['’]s\b")
_NAMING = frozenset(("name", "named", "called"))
_TIMES = content(" ".join(MONTHS))
"""The words of dates, in the form of `content`."""
_SERVES = 2
"""The most absent probes that one answerable probe is paired with."""


def generate(
    dataset: AuditDataset,
    kinds: Iterable[ProbeType],
    policy: Policy = "latest",
    limit: int | None = None,
    seed: int = 0,
    *,
    gaps: bool = True,
) -> Probes:
    """Return the probes of these kinds, in the order of the conversations. With `gaps=False`, no question has a gap.

    Each probe about an absent fact is paired with an answerable probe, its twin. So `hallucination` includes the recall
    and conflict probes that are twins. A limit takes kinds and conversations in turn and never splits a pair.
    """
    requested = set(kinds)
    types = [kind for kind in PROBE_TYPES if kind in requested]
    skipped: list[Skipped] = []
    dropped: Counter[str] = Counter()

    def all_probes() -> Iterator[Probe]:
        for conversation in dataset.conversations:
            material = Material.of(IndexedConversation(conversation), gaps=gaps)
            changes = find_changes(material)
            askable = choose_facts(material, {chain[-1].id for chain, asked in changes if not isinstance(asked, str)})
            probes = list(_generate_probes(material, askable, changes, types, policy))
            skipped.extend(_find_skipped(material, probes))
            dropped.update(_count_left_out(material, probes))
            yield from probes

    generated = PackedSequence(all_probes())
    selected = apply_limit(generated, types, limit, seed)
    left_out = len(generated) - len(selected)
    return Probes(selected, skipped, count_gates(len(selected), left_out, dropped))


def count_gates(made: int, left_out: int, dropped: Counter[str]) -> dict[str, int]:
    """Return the number of probes made, of those beyond the limit, and by reason that of everything not asked about."""
    return {"made": made, "beyond the limit": left_out, **dict(sorted((+dropped).items()))}


def _count_left_out(material: Material, probes: Sequence[Probe]) -> Counter[str]:
    """Return by reason the number of facts, past values and absent facts that are not asked about.

    A past value of a chain is not counted here: `as_of_probes` counts it in `material.dropped`.
    """
    asked = {id for one in probes if one.kind != "as of" for id in one.related_facts}
    asked |= {
        fact.id for chain in material.history.chains for fact in chain if material.left_out.get(fact.id) == SUPERSEDED
    }
    return material.dropped + Counter(reason for id, reason in material.left_out.items() if id not in asked)


def _find_skipped(material: Material, probes: Sequence[Probe]) -> list[Skipped]:
    """Return the facts without a probe, with the reason, in the order of the conversation."""
    probed = {id for one in probes for id in one.related_facts}
    conversation = material.indexed.conversation
    return [
        Skipped(intern(fact.id), conversation.id, material.left_out[fact.id])
        for fact in conversation.facts
        if fact.id in material.left_out and fact.id not in probed
    ]


def _generate_probes(
    material: Material,
    askable: Sequence[AskableFact],
    changes: Sequence[Change],
    types: Sequence[ProbeType],
    policy: Policy,
) -> Iterator[Probe]:
    recalled = [_recall(material, one) for one in askable]
    changed = list(conflict_probes(material, changes, policy))
    answerable = [one.id for one in (*recalled, *changed)]
    absent = list(absent_probes(material.indexed, answerable, material.dropped)) if "hallucination" in types else []
    twins = {one.twin for one in absent}
    yield from (one for one in recalled if "recall" in types or one.id in twins)
    yield from absent
    yield from (one for one in changed if "conflict" in types or one.id in twins)
    if "conflict" in types:
        unasked = ((chain, asked) for chain, asked in changes if isinstance(asked, str))
        material.left_out.update((fact.id, reason) for chain, reason in unasked for fact in chain[:-1])
    if "temporal" in types:
        yield from duration_probes(material, with_recall="recall" in types)
        yield from as_of_probes(material, changes)


def _recall(material: Material, one: AskableFact) -> Probe:
    return probe(
        material.indexed, f"recall/{one.fact.id}", "recall", "recall", one.question, places=one.places,
        related_facts=(one.fact.id,), category=one.fact.category,
        checks=("no leak", "answer in evidence", "one answer"),
    )  # fmt: skip


def absent_probes(indexed: IndexedConversation, twins: Sequence[str | None], dropped: Counter[str]) -> Iterator[Probe]:
    """Yield probes about facts that, as the dataset says, were never stated. Each is paired with one of `twins`.

    `twins` are ids of answerable probes. `dropped` counts the facts that cannot be asked about, by reason.
    """
    facts = indexed.conversation.facts
    last_day = max((turn.at.date() for turn in indexed.conversation.turns if turn.at is not None), default=None)
    reason_against = check_absent(facts) if indexed.conversation.absent else None
    for number, entry in enumerate(indexed.conversation.absent):
        question = entry.question or question_for(entry.subject, entry.attribute or "")
        if not entry.question and not indexed.is_english:
            dropped["not English"] += 1
        elif question is None:
            dropped["no question"] += 1
        elif reason_against is not None and (reason := reason_against(entry)) is not None:
            dropped[reason] += 1
        elif number >= _SERVES * len(twins):
            dropped["no twin"] += 1
        else:
            if last_day is not None and not entry.question:  # on an earlier day, it might only be told later
                question = with_time(question, f"as things stood on {day_text(last_day)}")
            asked = Question(question, NOT_TOLD, "given" if entry.question else "structured")
            yield probe(
                indexed, f"absent/{entry.id}", "hallucination", "declared", asked, abstain=True,
                twin=twins[number % len(twins)], checks=("declared absent",),
            )  # fmt: skip


def check_absent(facts: Sequence[AuditFact]) -> Callable[[AbsentFact], str | None]:
    """Return a function that returns why an absent fact cannot be asked about: a fact states it, or has all its words.

    It returns None if no fact does. The date in a question does not count as its words.
    """
    stated = set().union(*map(_topics, facts))
    statements = [_words(_statement(fact)) for fact in facts]

    def reason_against(entry: AbsentFact) -> str | None:
        if stated & _topics(entry):
            return "told"
        topics = [{word for word in _words(phrase) - _TIMES if not word.isdigit()} for phrase in _phrases(entry)]
        is_covered = any(topic and topic <= words for topic in topics for words in statements)
        return "may be told" if is_covered else None

    return reason_against


def _topics(one: AuditFact | AbsentFact) -> set[frozenset[str]]:
    """Return a set of words for each way to ask for the fact. Facts with a common set have the same question."""
    return {content(_OWNER.sub("", text)) for text in _phrases(one)} - {frozenset()}


def _phrases(one: AuditFact | AbsentFact) -> Iterator[str]:
    if one.question:
        yield one.question
    if one.attribute:
        yield f"{one.subject or 'user'} {attribute_name(one.attribute)}"


def _statement(fact: AuditFact) -> str:
    return " ".join(filter(None, (fact.subject, attribute_name(fact.attribute or ""), fact.content, fact.value)))


def _words(text: str) -> frozenset[str]:
    """Return the words that a fact must have to state this. `named` and `called` count as `name`."""
    words = tokens(_OWNER.sub("", text))
    return content(" ".join(words)) | ({"name"} if _NAMING.intersection(words) else set())


def apply_limit(
    generated: Sequence[Probe], types: Sequence[ProbeType], limit: int | None, seed: int
) -> Sequence[Probe]:
    """Return at most `limit` probes in their original order. Paired probes are kept or left out together."""
    if limit is None or limit >= len(generated):
        return generated
    # only what the choice depends on: the probes themselves would fill the memory
    twins = {one.id: one.twin for one in generated}
    kinds = [(one.conversation, one.type, one.id) for one in generated]
    # all kinds of one conversation, then the next conversation
    queues: dict[tuple[str, str], list[str]] = {
        (name, kind): [] for name in dict.fromkeys(name for name, _, _ in kinds) for kind in types
    }
    # sorted by a digest of the id, so that one more probe does not change the choice of the others
    for conversation, kind, id in sorted(kinds, key=lambda one: digest([seed, one[-1]])):
        if kind in types:
            queues[conversation, kind].append(id)
    taken: set[str] = set()
    while any(queues.values()) and len(taken) < limit:
        for queue in filter(None, queues.values()):
            id = queue.pop()
            twin = twins[id]
            pair = {id, twin} if twin in twins and twin is not None else {id}
            if len(taken | pair) <= limit:
                taken |= pair
    return PackedSequence(one for one in generated if one.id in taken)
