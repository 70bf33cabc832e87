"""Chooses the cases of a run: a sample spread over histories and types, cases by id, and cases that failed before."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from memorybench.core.errors import BadInput
from memorybench.core.records import digest
from memorybench.core.trials import Case
from memorybench.files.names import safe_run_id
from memorybench.journal.places import journal_of
from memorybench.journal.run_reader import RunReader, no_journal
from memorybench.text.spelling import suggestion

from .report_parts import is_failure

SIDE_BY_SIDE = 16
"""The number of haystacks whose questions alternate. Constant, so that the order does not depend on the concurrency."""

T = TypeVar("T")


def mixed(groups: Sequence[Sequence[T]], width: int) -> Iterator[T]:
    """Yield the members of all groups, `width` groups at a time: the first of each, the second of each, and so on."""
    for start in range(0, len(groups), width):
        rows = zip_longest(*([(member,) for member in group] for group in groups[start : start + width]))
        for row in rows:
            yield from (place[0] for place in row if place is not None)


CaseT = TypeVar("CaseT", bound=Case)


def sample(
    cases: Sequence[CaseT],
    limit: int | None,
    seed: int,
    *,
    cluster: Callable[[CaseT], str],
    kind: Callable[[CaseT], str],
) -> list[CaseT]:
    """Return `limit` cases in their order, in proportion to the cases of each kind and, within that, of each cluster.

    None: return all cases. The sample depends on the ids and the seed only. The sample of a smaller limit is contained
    in that of a larger one, so that --reuse saves calls. Kinds and clusters take turns as in systematic sampling with a
    random start (Madow and Madow, "On the theory of systematic sampling", Annals of Mathematical Statistics 15, 1944).
    """
    if limit is None or limit >= len(cases):
        return list(cases)
    chosen = {case.id for case, _ in zip(_spread(cases, seed, cluster, kind), range(limit), strict=False)}
    return [case for case in cases if case.id in chosen]


def _spread(
    cases: Sequence[CaseT], seed: int, cluster: Callable[[CaseT], str], kind: Callable[[CaseT], str]
) -> Iterator[CaseT]:
    """Yield all cases in an order in which the first n, for any n, have kinds and clusters in proportion."""
    cells: dict[tuple[str, str], list[CaseT]] = defaultdict(list)
    for case in sorted(cases, key=lambda case: digest([seed, case.id])):
        cells[kind(case), cluster(case)].append(case)
    sizes = Counter(map(cluster, cases))
    starts = {name: _start(seed, "cluster", name) for name in sizes}
    taken: Counter[str] = Counter()

    def due(name: str) -> float:
        return (taken[name] + starts[name]) / sizes[name]

    queues: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for of_kind, name in cells:
        queues[of_kind].append((due(name), name))
    for queue in queues.values():
        heapify(queue)
    turns: list[tuple[float, str]] = []
    for name, n in Counter(map(kind, cases)).items():
        start = _start(seed, "kind", name)
        turns += (((place + start) / n, name) for place in range(n))
    for _, of_kind in sorted(turns):
        queue = queues[of_kind]
        while (now := due(queue[0][1])) > queue[0][0]:  # its cluster was chosen for another kind meanwhile
            heapreplace(queue, (now, queue[0][1]))
        name = queue[0][1]
        taken[name] += 1
        yield cells[of_kind, name].pop()
        if not cells[of_kind, name]:
            heappop(queue)


def _start(seed: int, what: str, name: str) -> float:
    """Return a number from 0 to 1 that looks random, but depends on the arguments only."""
    return int(digest([seed, what, name])[:13], 16) / 16**13


def describe_sample(cases: Sequence[CaseT], of: Sequence[CaseT], cluster: Callable[[CaseT], str]) -> dict[str, int]:
    """Count the chosen `cases` and the cases `of` which they were chosen, and their clusters, as a run saves them."""
    return {
        "cases": len(cases),
        "clusters": len(set(map(cluster, cases))),
        "cases_available": len(of),
        "clusters_available": len(set(map(cluster, of))),
    }


def sample_text(sample: Mapping[str, int]) -> str:
    """Return a text such as `50 of 360 questions, 12 of 12 histories`; without histories if they are not recorded."""
    cases, available = sample["cases"], sample.get("cases_available", sample["cases"])
    is_part = cases < available
    text = f"{cases}{f' of {available}' if is_part else ''} question{'' if available == 1 else 's'}"
    if "clusters" not in sample:
        return text
    histories = sample["clusters_available"]
    of = f" of {histories}" if is_part else ""
    return f"{text}, {sample['clusters']}{of} {'history' if histories == 1 else 'histories'}"


def cases_by_id(cases: Sequence[CaseT], ids: Collection[str], flag: str, where: str) -> list[CaseT]:
    """Return the cases with these ids, in their order. Raise BadInput for an id that none of them has."""
    known = {case.id for case in cases}
    for id in ids:
        if id not in known:
            raise BadInput(flag, f'no case of {where} has the id "{id}"', remedy=suggestion(id, known))
    wanted = set(ids)
    return [case for case in cases if case.id in wanted]


def failed_cases(results: Path, run_id: str, subjects: Collection[str]) -> dict[str, set[str]]:
    """Return, by benchmark, the ids of cases that were wrong, failed or unscored in a run.

    Only the results of `subjects` count, if the run has any of them; otherwise those of all subjects. Baselines count
    only if the run has nothing else: `none` misses every question.
    """
    safe_run_id(run_id, "--failed-in")
    if not journal_of(results).exists():
        raise no_journal(results, run_id, "--failed-in")
    with RunReader.open(results) as run_reader:
        run_reader.run(run_id, "--failed-in")  # raises for an unknown run, naming the nearest
        outcomes = list(run_reader.outcomes(run_id))
    roles = {outcome.trial.subject.name: outcome.trial.subject.role for outcome in outcomes}
    counted = {name for name, role in roles.items() if role != "baseline"} or set(roles)
    counted = counted & set(subjects) or counted
    failed: dict[str, set[str]] = defaultdict(set)
    for outcome in outcomes:
        if outcome.trial.subject.name in counted and is_failure(outcome):
            failed[outcome.trial.benchmark].add(outcome.trial.case_id)
    return failed
