"""Generates the probes of a dataset, always the same for the same dataset, policy and seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from memorybench.core.records import digest
from memorybench.datasets.audit import AuditDataset

from .absent import absent_probes, spoken_topics
from .choosing import AskableFact, Study, study
from .conflict import as_of_probes, conflict_probes
from .evidence import IndexedConversation
from .probes import PROBE_TYPES, Policy, Probe, Probes, ProbeType, Skipped, probe
from .rewordings import admit
from .temporal import temporal_probes

__all__ = ["Probes", "admit", "generate"]


def generate(
    dataset: AuditDataset,
    kinds: Iterable[ProbeType],
    policy: Policy = "latest",
    limit: int | None = None,
    seed: int = 0,
) -> Probes:
    """Return the probes of these kinds, in the order of the conversations.

    An absent fact has an answerable twin: `hallucination` includes the recall probes that are twins. A limit alternates
    between kinds and conversations and never splits a pair.
    """
    requested = set(kinds)
    types = [kind for kind in PROBE_TYPES if kind in requested]
    conversations = [IndexedConversation(conversation) for conversation in dataset.conversations]
    # found once per conversation: each looks at the topics of all others
    spoken = [spoken_topics(indexed) if "hallucination" in types else Counter() for indexed in conversations]
    spoken_anywhere = sum(spoken, Counter[str]())
    generated: list[Probe] = []
    skipped: list[Skipped] = []
    dropped: Counter[str] = Counter()
    for indexed, topics in zip(conversations, spoken, strict=True):
        examined = study(indexed)
        askable, reasons = _choose_facts(examined)
        probes = list(_generate_probes(examined, askable, spoken_anywhere - topics, types, policy, seed))
        generated += probes
        skipped += _find_skipped(examined, reasons, probes)
        dropped += examined.dropped
    selected = _apply_limit(generated, types, limit, seed)
    return Probes(
        probes=tuple(selected), skipped=tuple(skipped),
        gates={
            "made": len(selected), "beyond the limit": len(generated) - len(selected), **dict(sorted(dropped.items()))
        },
    )  # fmt: skip


def _choose_facts(examined: Study) -> tuple[list[AskableFact], dict[str, str]]:
    """Return the current facts that have a question, and the reasons for the others by id."""
    askable: list[AskableFact] = []
    reasons: dict[str, str] = {}
    questions: set[str] = set()
    for fact in examined.history.current:
        choice: AskableFact | str = examined.choose(fact)
        if isinstance(choice, AskableFact) and choice.askable.question in questions:
            choice = "asked already"
            examined.dropped[choice] += 1
        if isinstance(choice, AskableFact):
            askable.append(choice)
            questions.add(choice.askable.question)
        else:
            reasons[fact.id] = choice
    return askable, reasons


def _find_skipped(examined: Study, left_out: Mapping[str, str], probes: Sequence[Probe]) -> list[Skipped]:
    """Return the facts without a probe, in their order."""
    probed = {id for one in probes for id in one.related_facts}
    reasons = {**left_out, **{fact.id: reason for fact, reason in examined.history.past}}
    conversation = examined.indexed.conversation
    return [
        Skipped(fact=fact.id, conversation=conversation.id, reason=reasons[fact.id])
        for fact in conversation.facts
        if fact.id in reasons and fact.id not in probed
    ]


def _generate_probes(
    examined: Study,
    askable: Sequence[AskableFact],
    elsewhere: Collection[str],
    types: Sequence[ProbeType],
    policy: Policy,
    seed: int,
) -> Iterator[Probe]:
    absent = list(absent_probes(examined, askable, elsewhere, seed)) if "hallucination" in types else []
    twins = {one.twin for one in absent}
    for one in askable:
        recall = probe(
            examined.indexed, f"recall/{one.fact.id}", "recall", "recall", one.askable.question, one.askable.value,
            origin=one.askable.origin, places=one.places, related_facts=(one.fact.id,), category=one.fact.category,
        )  # fmt: skip
        if "recall" in types or recall.id in twins:
            yield recall
    yield from absent
    if "conflict" in types:
        yield from conflict_probes(examined, policy)
    if "temporal" in types:
        yield from temporal_probes(examined, askable)
        yield from as_of_probes(examined)


def _apply_limit(generated: Sequence[Probe], types: Sequence[ProbeType], limit: int | None, seed: int) -> list[Probe]:
    """Return at most `limit` probes in their original order; pairs are not split."""
    if limit is None or limit >= len(generated):
        return list(generated)
    by_id = {one.id: one for one in generated}
    conversations = dict.fromkeys(one.conversation for one in generated)
    # all kinds of one conversation, then the next conversation
    queues: dict[tuple[str, str], list[Probe]] = {(name, kind): [] for name in conversations for kind in types}
    # sorted by a digest of the id, so that one more probe does not change the choice of the others
    for one in sorted(generated, key=lambda one: digest([seed, one.id])):
        if one.type in types:
            queues[one.conversation, one.type].append(one)
    taken: set[str | None] = set()
    while any(queues.values()) and len(taken) < limit:
        for queue in filter(None, queues.values()):
            one = queue.pop()
            pair = {one.id, one.twin} if one.twin in by_id else {one.id}
            if len(taken | pair) <= limit:
                taken |= pair
    return [one for one in generated if one.id in taken]
