"""Which facts a memory lost in a trace, where no gold says what should be removed.

A removed fact counts as lost unless the user withdrew it. That is certain if the user stated a fact that contradicts
it, and undecided if the user mentioned it or stated a fact of its category that could replace it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memorybench.core.conversation import Turn
from memorybench.core.plans import Steps
from memorybench.judging.facts import MemoryFact
from memorybench.judging.facts_reading import reading_of
from memorybench.judging.matching import compare_understood, likeness, read, understood
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.judging.matching_pairs import grid_of, matched, quick_grid_of

from .findings import Findings, Remark
from .transcripts import split_turns


class Losses(NamedTuple):
    kept: int = 0
    lost: tuple[MemoryFact, ...] = ()
    open: tuple[MemoryFact, ...] = ()
    """Facts of which it is undecided whether they are lost, reworded or withdrawn."""

    def add_to(self, findings: Findings) -> Findings:
        """Adds the losses to findings; as in a case, a lost fact is a false positive."""
        if not (self.kept or self.lost or self.open):
            return findings
        unchanged = findings.unchanged  # None if a change was expected
        if unchanged is not None and (self.lost or self.open):
            unchanged = False if self.lost or not unchanged else None
        return findings._replace(
            fp=findings.fp + len(self.lost),
            fp_open=findings.fp_open + len(self.open),
            undecided=findings.undecided + len(self.open),
            unsupported=findings.unsupported + len(self.lost),
            unchanged=unchanged,
            operations=findings.operations._replace(kept=self.kept, to_keep=self.kept + len(self.lost)),
            remarks=(
                *findings.remarks,
                *[Remark("lost", str(fact)) for fact in self.lost],
                *[Remark("undecided", str(fact), about="no longer in memory") for fact in self.open],
            ),
        )


async def find_losses(
    steps: Steps,
    before: Sequence[MemoryFact],
    after: Sequence[MemoryFact],
    stated: Sequence[MemoryFact],
    conversation: Sequence[Turn],
    judge: EntailmentJudge | None = None,
) -> Losses:
    """Compares the facts before and after a conversation in which the user stated facts.

    Raises Unreadable if the judge's reply cannot be read.
    """
    verbatim = {fact.text for fact in after}
    changed = [fact for fact in before if fact.text not in verbatim]
    if not changed:
        return Losses(kept=len(before))
    matching = matched(quick_grid_of(changed, after))
    reworded: list[MemoryFact] = []
    gone: list[MemoryFact] = []
    for place, fact in enumerate(changed):
        covered = matching.covered(place)
        if covered is None and judge is not None:
            # Only the likeliest pair is judged. Two old facts may share one new fact, so each is judged alone.
            pair = matched(grid_of([fact], [matching.grid.found[matching.likeliest(place)]]))
            covered = (await judge.decide(steps, pair)).covered(0)
        if covered is None:
            reworded.append(fact)
        elif not covered:
            gone.append(fact)
    statements = [understood(new) for new in stated]
    unexplained = [
        old
        for old in gone
        if not any(compare_understood(new, understood(old)).relation == "contradicts" for new in statements)
    ]
    withdrawn = _replaceable(unexplained, stated)
    if len(withdrawn) < len(unexplained):  # reading a conversation is the slowest part
        withdrawn |= _mentioned(unexplained, conversation)
    return Losses(
        kept=len(before) - len(gone) - len(reworded),
        lost=tuple(fact for place, fact in enumerate(unexplained) if place not in withdrawn),
        open=(*reworded, *(unexplained[place] for place in sorted(withdrawn))),
    )


def _mentioned(gone: Sequence[MemoryFact], conversation: Sequence[Turn]) -> set[int]:
    """Returns the indexes of facts that share a word or a quantity with the user's turns."""
    user_texts = [turn.content for turn in split_turns(conversation) if turn.role in ("user", "")]
    spoken = reading_of("\n".join(user_texts))
    return {
        place
        for place, reading in enumerate(map(read, gone))
        if not reading.stems.isdisjoint(spoken.stems) or not reading.quantities.isdisjoint(spoken.quantities)
    }


def _replaceable(gone: Sequence[MemoryFact], stated: Sequence[MemoryFact]) -> set[int]:
    """Returns the indexes of facts that a stated fact of the same category could replace.

    Each stated fact replaces at most one; the most similar pairs come first.
    """
    candidates = [
        (n, place)
        for n, new in enumerate(stated)
        for place, old in enumerate(gone)
        if new.category and new.category in old.categories
    ]
    if len(candidates) > 1:
        candidates.sort(key=lambda pair: (-likeness(stated[pair[0]], gone[pair[1]]), *pair))
    chosen: dict[int, int] = {}
    for n, place in candidates:
        if n not in chosen and place not in chosen.values():
            chosen[n] = place
    return set(chosen.values())
