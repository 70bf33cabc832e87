"""Finds what happened to the facts that a memory had before a trace, if no gold says what should be removed.

The judge lists the old facts that the user withdrew: corrected, replaced or asked to forget. Such a fact should be
removed, and every other one should be kept, in any wording.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memorybench.core.plans import Steps
from memorybench.judging.asking import all_of
from memorybench.judging.facts import MemoryFact, without_sole_owner
from memorybench.judging.matching import Grid, Matching, likeness, match, one_to_one
from memorybench.judging.matching_judge import EntailmentJudge

from .findings import Findings, Operation, Operations, Remark


class OldFacts(NamedTuple):
    """The facts of the memory before a trace, grouped by what happened to them."""

    kept: int = 0
    lost: tuple[MemoryFact, ...] = ()
    stale: tuple[MemoryFact, ...] = ()
    """Facts that the user withdrew, but that are still stored."""
    gone: tuple[MemoryFact, ...] = ()
    """Facts that the user withdrew and that are no longer stored."""
    undecided: tuple[MemoryFact, ...] = ()
    """Facts that may belong to any of the other groups, because a reply of the judge could not be read."""
    may_be_withdrawn: bool = False
    """Whether the user withdrew any fact, so that the undecided ones may be withdrawn."""

    def add_to(self, findings: Findings, matching: Matching) -> Findings:
        """Return the findings with these old facts counted in.

        `findings` and `matching` are about the facts that the user stated.
        """
        withdrawn, lost, stale, gone = len(self.gone) + len(self.stale), *map(len, (self.lost, self.stale, self.gone))
        unknown = len(self.undecided)
        may_be_withdrawn = unknown if self.may_be_withdrawn else 0
        unchanged = None if withdrawn or may_be_withdrawn else findings.unchanged  # None if a change was expected
        if unchanged is not None and self.lost:
            unchanged = False
        if unchanged and unknown:
            unchanged = None
        operations = self._operations(matching)
        return findings._replace(
            tp=findings.tp + gone,
            fp=findings.fp + lost,
            fn=findings.fn + stale,
            tp_open=findings.tp_open + may_be_withdrawn,
            fp_open=findings.fp_open + unknown,
            fn_open=findings.fn_open + may_be_withdrawn,
            undecided=findings.undecided + unknown,
            covered=findings.covered + gone,
            uncovered=findings.uncovered + stale,
            uncovered_open=findings.uncovered_open + may_be_withdrawn,
            supported=findings.supported + gone,
            unsupported=findings.unsupported + lost,
            unsupported_open=findings.unsupported_open + unknown,
            conflict_resolved=_is_resolved(operations) if withdrawn else None,
            unchanged=unchanged,
            operations=operations,
            remarks=(
                *findings.remarks,
                *[Remark("lost", fact.with_path) for fact in self.lost],
                *[Remark("stale", fact.with_path) for fact in self.stale],
                *[Remark("undecided", fact.with_path) for fact in self.undecided],
            ),
        )

    def _operations(self, matching: Matching) -> Operations:
        """Count the operations. A withdrawn fact and the stated fact that replaces it are one update."""
        withdrawn = (*self.gone, *self.stale)
        replaces = find_replacements(withdrawn, matching.grid.gold)
        to_add = [place for place in range(len(matching.grid.gold)) if place not in replaces]
        written = [old for new, old in replaces.items() if new in matching.pairs]
        maybe = [old for new, old in replaces.items() if matching.may_match(new)]
        deletions = [place for place in range(len(withdrawn)) if place not in replaces.values()]
        gone = range(len(self.gone))
        unknown = len(self.undecided)
        may_be_withdrawn = unknown if self.may_be_withdrawn else 0
        return Operations(
            add=Operation(sum(place in matching.pairs for place in to_add), len(to_add), matching.most(to_add)),
            update=Operation(sum(old in gone for old in written), len(replaces), sum(old in gone for old in maybe)),
            delete=Operation(
                sum(old in gone for old in deletions), len(deletions) + may_be_withdrawn, may_be_withdrawn
            ),
            keep=Operation(self.kept, self.kept + len(self.lost) + unknown, unknown),
        )


def _is_resolved(done: Operations) -> bool | None:
    """Whether every withdrawn fact is removed and its new value is stored; None if that is undecided."""
    if any(one.done + one.open < one.due for one in (done.delete, done.update)):
        return False
    return None if done.delete.open or done.update.open else True


async def follow_old_facts(
    steps: Steps,
    before: Sequence[MemoryFact],
    after: Sequence[MemoryFact],
    withdrawn: Sequence[MemoryFact],
    judge: EntailmentJudge,
) -> OldFacts:
    """Find what happened to the old facts after a conversation; `withdrawn` are those that the user withdrew.

    It is undecided what happened to a fact if a reply of the judge about it cannot be read.
    """
    before, after = without_sole_owner(before, after)
    pairs = Grid(before, after).same
    kept, found = {old for old, _ in pairs}, {new for _, new in pairs}
    same = [fact for place, fact in enumerate(before) if place in kept]
    changed = [fact for place, fact in enumerate(before) if place not in kept]
    new = "\n".join(fact.with_path for place, fact in enumerate(after) if place not in found)
    asked = [judge.says(steps, new, fact.with_path) for fact in changed if new]
    reworded = await all_of(*asked) or [False] * len(changed)
    stored = same + [fact for fact, yes in zip(changed, reworded, strict=True) if yes]
    missing = [fact for fact, yes in zip(changed, reworded, strict=True) if yes is False]
    unknown = [fact for fact, yes in zip(changed, reworded, strict=True) if yes is None]
    stale = match(Grid(withdrawn, stored, by_reference=True)).pairs
    others = [fact for n, fact in enumerate(withdrawn) if n not in stale]
    named = match(Grid(*without_sole_owner(others, missing)))
    decided = await judge.decide(steps, named)  # the judge may have listed them in other words
    gone, unclear = set(decided.pairs.values()), {place for _, place in decided.open_pairs}
    return OldFacts(
        kept=len(stored) - len(stale),
        lost=tuple(fact for place, fact in enumerate(missing) if place not in gone | unclear),
        stale=tuple(stored[place] for place in sorted(stale.values())),
        gone=tuple(missing[place] for place in sorted(gone)),
        undecided=(*unknown, *(missing[place] for place in sorted(unclear))),
        may_be_withdrawn=bool(withdrawn) and bool(unknown or unclear),
    )


def find_replacements(old_facts: Sequence[MemoryFact], stated: Sequence[MemoryFact]) -> dict[int, int]:
    """Return, by index of a stated fact, the index of the old fact that it replaces.

    Both have the same category. Each fact is used once, and the most similar pairs are chosen first.
    """
    ranked = sorted(
        (-likeness(new, old), n, place)
        for n, new in enumerate(stated)
        for place, old in enumerate(old_facts)
        if new.category and old.is_under(new.category)
    )
    return one_to_one((n, place) for _, n, place in ranked)
