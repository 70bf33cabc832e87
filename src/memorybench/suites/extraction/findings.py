"""What became of a memory: what an extractor changed, held against what it should have changed.

The unit is a change: a fact added, or a fact removed; an update is one of each. What should be kept and is kept is no
change and scores nothing, so a memory that was full before gives nobody points, and one that is emptied costs.

|                    | done                  | not done                        |
|---|---|---|
| a fact to add      | true positive         | false negative (missed)         |
| a fact to remove   | true positive         | false negative (stale)          |
| a fact to keep     | nothing               | false positive (lost)           |
| any other fact     | false positive (what it is, is its label)               | nothing |

A pair that nobody could decide counts neither way: it is counted as undecided, and what it could be at least and at
most is told beside the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

from memorybench.core.conversation import Turn
from memorybench.core.plans import Steps
from memorybench.judging.facts import MemoryFact, facts_of
from memorybench.judging.matching import compare, contained
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.judging.matching_pairs import Matching, grid_of, matched

from .cases import ExtractionCase
from .gold import Gold, stored

Label = Literal[
    "missed", "stale", "lost",
    "hallucinated", "duplicate", "unlisted", "contradiction", "piece", "misfiled", "undecided",
]  # fmt: skip
"""Of gold facts: missed, stale (should be gone), lost (should be kept). Of found ones, the first that holds: misfiled
(right, under a wrong category), duplicate (said already), undecided, piece (part of a fact), contradiction (of a fact
that holds, or the old value said again), unlisted (the user said so, the case does not list it), hallucinated."""

_EXPLAINING: tuple[Label, ...] = ("duplicate", "piece", "contradiction")
"""What a fact is by its relation to another, the first that holds."""


class Remark(NamedTuple):
    label: Label
    fact: str
    about: str = ""
    """The fact it contradicts, repeats or is part of."""

    def __str__(self) -> str:
        return f"{self.label}: {self.fact}" + (f" ({self.about})" if self.about else "")


class Operations(NamedTuple):
    """What was to be done, and how much of it was."""

    added: int = 0
    to_add: int = 0
    updated: int = 0
    to_update: int = 0
    deleted: int = 0
    to_delete: int = 0
    kept: int = 0
    to_keep: int = 0


class Findings(NamedTuple):
    tp: int = 0
    fp: int = 0
    fn: int = 0
    tp_open: int = 0
    """Changes that would be true positives if what is undecided were decided well."""
    fp_open: int = 0
    """And false positives and negatives, were it decided badly."""
    fn_open: int = 0
    undecided: int = 0
    """Pairs."""
    covered: int = 0
    uncovered: int = 0
    """Changes that should have been made, by what the output says in whatever form."""
    supported: int = 0
    unsupported: int = 0
    """Changes that were made, by whether the gold bears them out."""
    conflict_resolved: bool | None = None
    """Every old value gone and its new one there; None: nothing to resolve, or undecided."""
    unchanged: bool | None = None
    """Nothing changed where nothing was to change; None: something was, or undecided."""
    forbidden: int = 0
    """Texts that must not be stored."""
    violations: tuple[str, ...] = ()
    """Those that are."""
    operations: Operations = Operations()
    facts: int = 0
    """That the output holds."""
    added: tuple[MemoryFact, ...] = ()
    """What the output holds that was not in memory before."""
    remarks: tuple[Remark, ...] = ()

    @property
    def flawless(self) -> bool:
        """As far as is decided."""
        return not (self.fp or self.fn or self.violations or self.conflict_resolved is False)


class Examined(Protocol):
    """What an output is held against: an ExtractionCase, for one."""

    @property
    def gold(self) -> Gold: ...

    @property
    def conversation(self) -> Sequence[Turn]: ...

    @property
    def must_not_store(self) -> Sequence[str]: ...


async def examine(steps: Steps, case: ExtractionCase, output: Any, judge: EntailmentJudge | None = None) -> Findings:
    """Raises Malformed for an output that is no memory, Unreadable where the judge could not be read."""
    matching = compared(case, output)
    return findings_of(case, matching if judge is None else await judge.decide(steps, matching))


def compared(case: ExtractionCase, output: Any) -> Matching:
    """As far as code can tell."""
    gold = case.gold
    return matched(grid_of(gold.targets, facts_of(output), gold.categories))


def findings_of(case: Examined, matching: Matching) -> Findings:
    return _Examination(case, matching).findings()


class _Examination:
    """One output: its targets are the facts to keep, to add and to remove, in this order."""

    def __init__(self, case: Examined, matching: Matching) -> None:
        self._case = case
        self._gold: Gold = case.gold
        self._matching = matching
        kept, added, removed = len(self._gold.kept), len(self._gold.added), len(self._gold.removed)
        self._kept = range(kept)
        self._added = range(kept, kept + added)
        self._standing = range(kept + added)
        self._removed = range(kept + added, kept + added + removed)

    def findings(self) -> Findings:
        pairs, undecided, found = self._matching.pairs, self._matching.undecided, self._matching.grid.found
        fresh = [t for t in self._added if t in pairs]
        missed = [t for t in self._added if t not in pairs and t not in undecided]
        stayed = [t for t in self._kept if t in pairs]
        lost = [t for t in self._kept if t not in pairs and t not in undecided]
        stale = [t for t in self._removed if self._stands(t)]
        gone = [t for t in self._removed if not self._stands(t) and t not in undecided]
        open_added = len(self._added) - len(fresh) - len(missed)
        open_kept = len(self._kept) - len(stayed) - len(lost)
        open_removed = len(self._removed) - len(stale) - len(gone)
        partners = {f: t for t, f in pairs.items()}
        alone = [f for f in range(len(found)) if f not in partners]
        open_found = frozenset(undecided.values())
        left = [f for f in alone if f not in open_found]
        covered, uncovered, supported, unsupported = self._coverage(alone)
        fp = len(lost) + len(left)
        return Findings(
            tp=len(fresh) + len(gone),
            fp=fp,
            fn=len(missed) + len(stale),
            tp_open=open_added + open_removed,
            fp_open=open_added + 2 * open_kept + open_removed,  # a kept fact in other words: one lost, one invented
            fn_open=open_added + open_removed,
            undecided=len(undecided),
            covered=len(fresh) + covered + len(gone),
            uncovered=uncovered + len(stale),
            supported=len(fresh) + supported + len(gone),
            unsupported=unsupported,
            conflict_resolved=self._conflict_resolved(),
            unchanged=self._is_unchanged(fp),
            forbidden=len(self._case.must_not_store),
            violations=tuple([text for text in self._case.must_not_store if stored(text, found)]),
            operations=self._operations(fresh, gone, stayed),
            facts=len(found),
            added=tuple([fact for f, fact in enumerate(found) if f not in partners or partners[f] in self._added]),
            remarks=self._remarks(missed, lost, stale, left),
        )

    def _stands(self, target: int) -> bool:
        """Whether an old fact is still there, be it under another category."""
        return target in self._matching.pairs or target in self._matching.misfiled

    def _coverage(self, alone: list[int]) -> tuple[int, int, int, int]:
        """Of what has no partner: how much is covered and is not, and is supported and is not."""
        matching = self._matching
        said = [matching.covered(t) for t in self._added if t not in matching.pairs]
        borne_out = [matching.supported(f, self._standing) for f in alone]
        lost = [t for t in self._kept if matching.covered(t) is False]
        return said.count(True), said.count(False), borne_out.count(True), borne_out.count(False) + len(lost)

    def _conflict_resolved(self) -> bool | None:
        if not self._removed:
            return None
        new = [self._matching.covered(self._added[place]) for place in self._gold.replaces]
        old = [self._is_gone(t) for t in self._removed]
        told = (*new, *old)
        return False if False in told else None if None in told else True

    def _is_gone(self, target: int) -> bool | None:
        if self._stands(target):
            return False
        return None if self._matching.may_be_said(target) else True

    def _is_unchanged(self, fp: int) -> bool | None:
        if self._added or self._removed:
            return None
        return False if fp else None if self._matching.undecided else True

    def _operations(self, fresh: list[int], gone: list[int], stayed: list[int]) -> Operations:
        if not self._removed:
            return Operations(added=len(fresh), to_add=len(self._added), kept=len(stayed), to_keep=len(self._kept))
        replaces = {self._added[a]: self._removed[r] for a, r in self._gold.replaces.items()}
        updated = [a for a, r in replaces.items() if a in fresh and r in gone]
        deleted = [r for r in gone if r not in replaces.values()]
        return Operations(
            added=len([t for t in fresh if t not in replaces]),
            to_add=len(self._added) - len(replaces),
            updated=len(updated),
            to_update=len(replaces),
            deleted=len(deleted),
            to_delete=len(self._removed) - len(replaces),
            kept=len(stayed),
            to_keep=len(self._kept),
        )

    def _remarks(self, missed: list[int], lost: list[int], stale: list[int], left: list[int]) -> tuple[Remark, ...]:
        found, gold = self._matching.grid.found, self._matching.grid.gold
        remarks = [Remark("missed", str(gold[t])) for t in missed]
        remarks += [Remark("lost", str(gold[t])) for t in lost]
        remarks += [Remark("stale", str(gold[t])) for t in stale]
        remarks += [
            Remark("undecided", str(found[f]), about=str(gold[g])) for g, f in sorted(self._matching.undecided.items())
        ]
        remarks += [self._labelled(f, left[:place]) for place, f in enumerate(left)]
        return tuple(remarks)

    def _labelled(self, place: int, seen: list[int]) -> Remark:
        """`seen`: those that have been labelled before."""
        grid = self._matching.grid
        fact = grid.found[place]
        misfiled = [g for g, f in self._matching.misfiled.items() if f == place and g in self._standing]
        if misfiled:
            return Remark("misfiled", str(fact), about=str(grid.gold[misfiled[0]]))
        about: dict[Label, MemoryFact] = {}
        for target in self._standing:
            cell = grid.cells[target, place]
            if cell.relation == "same":
                about.setdefault("duplicate", grid.gold[target])
            elif cell.relation == "contradicts":
                about.setdefault("contradiction", grid.gold[target])
            if cell.held:
                about.setdefault("piece", grid.gold[target])
        for earlier in seen:
            if _alike(grid.found[earlier], fact):
                about.setdefault("duplicate", grid.found[earlier])
        for target in self._removed:
            if grid.cells[target, place].said:
                about.setdefault("contradiction", grid.gold[target])
        for label in _EXPLAINING:
            if label in about:
                return Remark(label, str(fact), about=str(about[label]))
        said = any(contained(fact, text) for text in self._said)
        return Remark("unlisted" if said else "hallucinated", str(fact))

    @cached_property
    def _said(self) -> list[str]:
        """What the user said: looked for only where nothing else explains a fact."""
        return [turn.content for turn in self._case.conversation if turn.role == "user"]


def _alike(one: MemoryFact, other: MemoryFact) -> bool:
    return compare(one, other).relation == "same"
