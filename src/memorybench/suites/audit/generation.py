"""Probes of a dataset: pure, and the same for the same dataset, policy and seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memorybench.core.records import digest
from memorybench.datasets.audit import AuditDataset

from .absent import absent_probes
from .choosing import Study, Told, study
from .conflict import as_of_probes, conflict_probes
from .evidence import Heard
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
    """Probes of these kinds, by conversation.

    What is absent is asked beside its answerable twin: with `hallucination`, the recall probes that are twins come
    along. A limit takes turns among kinds and conversations, and never parts a pair.
    """
    asked = set(kinds)
    wanted = [kind for kind in PROBE_TYPES if kind in asked]
    heard = [Heard(conversation) for conversation in dataset.conversations]
    made: list[Probe] = []
    skipped: list[Skipped] = []
    dropped: Counter[str] = Counter()
    for place, one in enumerate(heard):
        examined = study(one)
        told, left_out = _told(examined)
        others = heard[:place] + heard[place + 1 :]
        probes = list(_probes(examined, told, others, wanted, policy, seed))
        made += probes
        skipped += _skipped(examined, left_out, probes)
        dropped += examined.dropped
    kept = _limited(made, wanted, limit, seed)
    return Probes(
        probes=tuple(kept), skipped=tuple(skipped),
        gates={"made": len(kept), "beyond the limit": len(made) - len(kept), **dict(sorted(dropped.items()))},
    )  # fmt: skip


def _told(examined: Study) -> tuple[list[Told], dict[str, str]]:
    """Facts that can be asked about, and why the others can not."""
    told: list[Told] = []
    left_out: dict[str, str] = {}
    asked: set[str] = set()
    for fact in examined.history.current:
        found: Told | str = examined.choose(fact)
        if isinstance(found, Told) and found.askable.question in asked:
            found = "asked already"
            examined.dropped[found] += 1
        if isinstance(found, Told):
            told.append(found)
            asked.add(found.askable.question)
        else:
            left_out[fact.id] = found
    return told, left_out


def _skipped(examined: Study, left_out: Mapping[str, str], probes: Sequence[Probe]) -> list[Skipped]:
    """Facts that none of the probes is about, in their order."""
    probed = {id for one in probes for id in one.related_facts}
    reasons = {**left_out, **{fact.id: reason for fact, reason in examined.history.past}}
    conversation = examined.heard.conversation
    return [
        Skipped(fact=fact.id, conversation=conversation.id, reason=reasons[fact.id])
        for fact in conversation.facts
        if fact.id in reasons and fact.id not in probed
    ]


def _probes(
    examined: Study,
    told: Sequence[Told],
    others: Sequence[Heard],
    wanted: Sequence[ProbeType],
    policy: Policy,
    seed: int,
) -> Iterator[Probe]:
    absent = list(absent_probes(examined, told, others, seed)) if "hallucination" in wanted else []
    twins = {one.twin for one in absent}
    for one in told:
        recalled = _recall(examined, one)
        if "recall" in wanted or recalled.id in twins:
            yield recalled
    yield from absent
    if "conflict" in wanted:
        yield from conflict_probes(examined, policy)
    if "temporal" in wanted:
        yield from temporal_probes(examined, told)
        yield from as_of_probes(examined)


def _recall(examined: Study, one: Told) -> Probe:
    return probe(
        examined.heard, f"recall/{one.fact.id}", "recall", "recall", one.askable.question, one.askable.value,
        origin=one.askable.origin, places=one.places, related_facts=(one.fact.id,), category=one.fact.category,
    )  # fmt: skip


def _limited(made: Sequence[Probe], wanted: Sequence[ProbeType], limit: int | None, seed: int) -> list[Probe]:
    """In the order they were made; pairs whole."""
    if limit is None or limit >= len(made):
        return list(made)
    by_id = {one.id: one for one in made}
    conversations = dict.fromkeys(one.conversation for one in made)
    # one conversation in every kind, then the next
    queues: dict[tuple[str, str], list[Probe]] = {(name, kind): [] for name in conversations for kind in wanted}
    # by its own id: another probe more or less does not change which others are taken
    for one in sorted(made, key=lambda one: digest([seed, one.id])):
        if one.type in wanted:
            queues[one.conversation, one.type].append(one)
    taken: set[str] = set()
    while any(queues.values()) and len(taken) < limit:
        for queue in filter(None, queues.values()):
            pair = {one.id for one in _with_twin(queue.pop(), by_id)}
            if len(taken | pair) <= limit:
                taken |= pair
    return [one for one in made if one.id in taken]


def _with_twin(one: Probe, by_id: dict[str, Probe]) -> list[Probe]:
    return [one, *([by_id[one.twin]] if one.twin in by_id else [])]
