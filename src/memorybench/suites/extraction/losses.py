"""What a memory that was written elsewhere no longer says, and whether it had to go.

There is no gold that tells what should be removed. So a fact that is gone is lost, unless the user took it back: surely
where something else was stated that can not hold beside it, perhaps where the user spoke of it or stated something
that could stand in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memorybench.core.conversation import Turn
from memorybench.core.plans import Steps
from memorybench.judging.facts import MemoryFact
from memorybench.judging.facts_reading import reading_of
from memorybench.judging.matching import Understood, compare_understood, likeness, read, understood
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.judging.matching_pairs import Matching, grid_of, matched, quick_grid_of

from .findings import Findings, Remark
from .transcripts import turns_of


class Losses(NamedTuple):
    kept: int = 0
    lost: tuple[MemoryFact, ...] = ()
    open: tuple[MemoryFact, ...] = ()
    """Gone in these words, and nobody can tell whether they are lost, said otherwise or taken back."""

    def counted_in(self, found: Findings) -> Findings:
        """As offline: a fact that should be there and is not is a false positive."""
        if not (self.kept or self.lost or self.open):
            return found
        remarks = (
            *[Remark("lost", str(fact)) for fact in self.lost],
            *[Remark("undecided", str(fact), about="no longer in memory") for fact in self.open],
        )
        return found._replace(
            fp=found.fp + len(self.lost),
            fp_open=found.fp_open + len(self.open),
            undecided=found.undecided + len(self.open),
            unsupported=found.unsupported + len(self.lost),
            unchanged=self._unchanged(found.unchanged),
            operations=found.operations._replace(kept=self.kept, to_keep=self.kept + len(self.lost)),
            remarks=(*found.remarks, *remarks),
        )

    def _unchanged(self, otherwise: bool | None) -> bool | None:
        """None stays: something was to change, so that to change nothing is no virtue."""
        if otherwise is None or not (self.lost or self.open):
            return otherwise
        return False if self.lost or not otherwise else None


async def losses_of(
    steps: Steps,
    before: Sequence[MemoryFact],
    after: Sequence[MemoryFact],
    stated: Sequence[MemoryFact],
    conversation: Sequence[Turn],
    judge: EntailmentJudge | None = None,
) -> Losses:
    """Of what a memory said before and after. Raises Unreadable where the judge could not be read."""
    verbatim = {fact.text for fact in after}
    changed = [fact for fact in before if fact.text not in verbatim]
    if not changed:
        return Losses(kept=len(before))
    matching = matched(quick_grid_of(changed, after))
    said = [matching.covered(place) for place in range(len(changed))]
    if judge is not None:
        said = await _decided(steps, matching, said, judge)
    gone = [fact for fact, still in zip(changed, said, strict=True) if still is False]
    lost, doubtful = _sorted_out(gone, stated, conversation)
    reworded = [fact for fact, still in zip(changed, said, strict=True) if still is None]
    return Losses(kept=len(before) - len(gone) - len(reworded), lost=tuple(lost), open=(*reworded, *doubtful))


async def _decided(
    steps: Steps, matching: Matching, said: Sequence[bool | None], judge: EntailmentJudge
) -> list[bool | None]:
    """Asked only where code holds that it may be the same fact in other words, and of the likeliest only: not each old
    fact with each new one. Two old facts may have become one new: both are asked about."""
    grid = matching.grid
    told = list(said)
    for place, still in enumerate(said):
        if still is None:
            pair = matched(grid_of([grid.gold[place]], [grid.found[matching.likeliest(place)]]))
            told[place] = (await judge.decide(steps, pair)).covered(0)
    return told


def _sorted_out(
    gone: Sequence[MemoryFact], stated: Sequence[MemoryFact], conversation: Sequence[Turn]
) -> tuple[list[MemoryFact], list[MemoryFact]]:
    """Those that are lost, and those of which it can not be told. What the user contradicted is neither."""
    news = [understood(new) for new in stated]
    remaining = [old for old in gone if not _contradicted(understood(old), news)]
    doubted = _replaceable(remaining, stated)
    if len(doubted) < len(remaining):  # to read a conversation takes longer than all else
        doubted |= _mentioned(remaining, conversation)
    lost = [old for place, old in enumerate(remaining) if place not in doubted]
    return lost, [remaining[place] for place in sorted(doubted)]


def _contradicted(old: Understood, news: Iterable[Understood]) -> bool:
    return any(compare_understood(new, old).relation == "contradicts" for new in news)


def _mentioned(gone: Sequence[MemoryFact], conversation: Sequence[Turn]) -> set[int]:
    """Places of facts that share a word or a quantity with what the user said."""
    spoken = reading_of("\n".join(_said_by_user(conversation)))
    told = [read(old) for old in gone]
    return {
        place
        for place, reading in enumerate(told)
        if not reading.stems.isdisjoint(spoken.stems) or not reading.quantities.isdisjoint(spoken.quantities)
    }


def _replaceable(gone: Sequence[MemoryFact], stated: Sequence[MemoryFact]) -> set[int]:
    """Places of facts that a stated one could stand for: of its category, and one for each, the most alike first."""
    able = [
        (n, place)
        for n, new in enumerate(stated)
        for place, old in enumerate(gone)
        if (category := new.category) and category in old.categories
    ]
    if len(able) > 1:
        able.sort(key=lambda pair: (-likeness(stated[pair[0]], gone[pair[1]]), *pair))
    chosen: dict[int, int] = {}
    for n, place in able:
        if n not in chosen and place not in chosen.values():
            chosen[n] = place
    return set(chosen.values())


def _said_by_user(conversation: Sequence[Turn]) -> list[str]:
    """A text that tells by itself who speaks, and does not, may all be the user's."""
    told = (one for turn in conversation for one in ((turn,) if turn.role else turns_of(turn.content) or (turn,)))
    return [turn.content for turn in told if turn.role in ("user", "")]
