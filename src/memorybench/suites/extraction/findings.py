"""The changes that an extractor made to a memory, compared with those it should have made.

The unit is a change: a fact added or a fact removed; an update is one of each. A fact that should be kept and is kept
is not a change and scores nothing. So a large memory earns no points, and losing its facts costs points.

|                    | done                                        | not done                |
|---|---|---|
| a fact to add      | true positive                               | false negative (missed) |
| a fact to remove   | true positive                               | false negative (stale)  |
| a fact to keep     | nothing                                     | false positive (lost)   |
| any other fact     | false positive (its label says which kind)  | nothing                 |

An undecided pair counts as none of these; `tp_open`, `fp_open` and `fn_open` say what it could count as at most.
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
from .gold import Gold, find_stored

Label = Literal[
    "missed", "stale", "lost",
    "hallucinated", "duplicate", "unlisted", "contradiction", "piece", "misfiled", "undecided",
]  # fmt: skip
"""Labels of gold facts: missed, stale (should have been removed), lost (should have been kept). Labels of facts in the
output, in this order of precedence: misfiled (correct, in a wrong category), undecided, duplicate (repeats a fact),
piece (part of a fact), contradiction (of a valid fact, or repeats a removed one), unlisted (the user said it, but the
case does not list it), hallucinated."""


class Remark(NamedTuple):
    label: Label
    fact: str
    about: str = ""
    """The fact that it contradicts, repeats or is part of."""

    def __str__(self) -> str:
        return f"{self.label}: {self.fact}" + (f" ({self.about})" if self.about else "")


class Operations(NamedTuple):
    """How often each operation was done, and how often it was due."""

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
    """True positives if every undecided pair matched."""
    fp_open: int = 0
    """False positives if no undecided pair matched."""
    fn_open: int = 0
    """False negatives if no undecided pair matched."""
    undecided: int = 0
    """Number of undecided pairs."""
    covered: int = 0
    """Expected changes that the output makes, in any wording, split or category."""
    uncovered: int = 0
    supported: int = 0
    """Changes in the output that the gold supports."""
    unsupported: int = 0
    conflict_resolved: bool | None = None
    """Every old value is gone and its new value is stored. None: nothing to resolve, or undecided."""
    unchanged: bool | None = None
    """Nothing changed where no change was expected. None: a change was expected, or undecided."""
    forbidden: int = 0
    """Number of texts that must not be stored."""
    violations: tuple[str, ...] = ()
    """The texts that must not be stored but are."""
    operations: Operations = Operations()
    facts: int = 0
    """Number of facts in the output."""
    added: tuple[MemoryFact, ...] = ()
    """Facts in the output that were not in the memory before."""
    remarks: tuple[Remark, ...] = ()

    @property
    def flawless(self) -> bool:
        """Whether no decided pair is wrong."""
        return not (self.fp or self.fn or self.violations or self.conflict_resolved is False)


class Expectation(Protocol):
    """What an output is compared with, such as an ExtractionCase."""

    @property
    def gold(self) -> Gold: ...

    @property
    def conversation(self) -> Sequence[Turn]: ...

    @property
    def must_not_store(self) -> Sequence[str]: ...


async def examine(steps: Steps, case: ExtractionCase, output: Any, judge: EntailmentJudge | None = None) -> Findings:
    """Compares an output with a case; the judge decides pairs that code cannot.

    Raises Malformed if the output is not a memory and Unreadable if the judge's reply cannot be read.
    """
    matching = match_output(case, output)
    return findings_of(case, matching if judge is None else await judge.decide(steps, matching))


def match_output(case: ExtractionCase, output: Any) -> Matching:
    """Matches the facts of an output with those of the gold, by code alone."""
    gold = case.gold
    return matched(grid_of(gold.targets, facts_of(output), gold.categories))


def findings_of(case: Expectation, matching: Matching) -> Findings:
    """Counts and labels a matching whose gold side is `case.gold.targets`."""
    return _Examination(case, matching).findings()


class _Examination:
    """One output. Targets are indexes into the gold facts: those to keep, then those to add, then those to remove."""

    def __init__(self, case: Expectation, matching: Matching) -> None:
        self._case = case
        self._gold: Gold = case.gold
        self._matching = matching
        kept, added, removed = len(self._gold.kept), len(self._gold.added), len(self._gold.removed)
        self._kept = range(kept)
        self._added = range(kept, kept + added)
        self._valid = range(kept + added)
        self._removed = range(kept + added, kept + added + removed)

    def findings(self) -> Findings:
        pairs, undecided, output = self._matching.pairs, self._matching.undecided, self._matching.grid.found
        added = [t for t in self._added if t in pairs]
        missed = [t for t in self._added if t not in pairs and t not in undecided]
        kept = [t for t in self._kept if t in pairs]
        lost = [t for t in self._kept if t not in pairs and t not in undecided]
        stale = [t for t in self._removed if self._is_stored(t)]
        gone = [t for t in self._removed if t not in stale and t not in undecided]
        open_added = len(self._added) - len(added) - len(missed)
        open_kept = len(self._kept) - len(kept) - len(lost)
        open_removed = len(self._removed) - len(stale) - len(gone)
        partners = {f: t for t, f in pairs.items()}
        unmatched = [f for f in range(len(output)) if f not in partners]
        undecided_found = frozenset(undecided.values())
        wrong = [f for f in unmatched if f not in undecided_found]
        coverage = [self._matching.covered(t) for t in self._added if t not in pairs]
        support = [self._matching.supported(f, self._valid) for f in unmatched]
        uncovered_kept = sum(self._matching.covered(t) is False for t in self._kept)
        fp = len(lost) + len(wrong)
        unchanged = None if self._added or self._removed else False if fp else None if undecided else True
        return Findings(
            tp=len(added) + len(gone),
            fp=fp,
            fn=len(missed) + len(stale),
            tp_open=open_added + open_removed,
            fp_open=open_added + 2 * open_kept + open_removed,  # a kept fact in other words: one lost, one invented
            fn_open=open_added + open_removed,
            undecided=len(undecided),
            covered=len(added) + coverage.count(True) + len(gone),
            uncovered=coverage.count(False) + len(stale),
            supported=len(added) + support.count(True) + len(gone),
            unsupported=support.count(False) + uncovered_kept,
            conflict_resolved=self._conflict_resolved(),
            unchanged=unchanged,
            forbidden=len(self._case.must_not_store),
            violations=tuple([text for text in self._case.must_not_store if find_stored(text, output)]),
            operations=self._operations(added, gone, kept),
            facts=len(output),
            added=tuple([fact for f, fact in enumerate(output) if f not in partners or partners[f] in self._added]),
            remarks=self._remarks(missed, lost, stale, wrong),
        )

    def _is_stored(self, target: int) -> bool:
        """Whether a gold fact is in the output, in any category."""
        return target in self._matching.pairs or target in self._matching.misfiled

    def _conflict_resolved(self) -> bool | None:
        if not self._removed:
            return None
        checks = [self._matching.covered(self._added[index]) for index in self._gold.replaces]
        for target in self._removed:
            checks.append(False if self._is_stored(target) else None if self._matching.may_be_said(target) else True)
        return False if False in checks else None if None in checks else True

    def _operations(self, added: list[int], gone: list[int], kept: list[int]) -> Operations:
        replaces = {self._added[a]: self._removed[r] for a, r in self._gold.replaces.items()}
        return Operations(
            added=sum(t not in replaces for t in added),
            to_add=len(self._added) - len(replaces),
            updated=sum(a in added and r in gone for a, r in replaces.items()),
            to_update=len(replaces),
            deleted=sum(r not in replaces.values() for r in gone),
            to_delete=len(self._removed) - len(replaces),
            kept=len(kept),
            to_keep=len(self._kept),
        )

    def _remarks(self, missed: list[int], lost: list[int], stale: list[int], wrong: list[int]) -> tuple[Remark, ...]:
        output, gold = self._matching.grid.found, self._matching.grid.gold
        remarks = [Remark("missed", str(gold[t])) for t in missed]
        remarks += [Remark("lost", str(gold[t])) for t in lost]
        remarks += [Remark("stale", str(gold[t])) for t in stale]
        remarks += [
            Remark("undecided", str(output[f]), about=str(gold[g])) for g, f in sorted(self._matching.undecided.items())
        ]
        remarks += [self._remark_on(f, wrong[:index]) for index, f in enumerate(wrong)]
        return tuple(remarks)

    def _remark_on(self, place: int, earlier: list[int]) -> Remark:
        """Labels one wrong fact; `earlier` are the wrong facts before it, which it may repeat."""
        grid = self._matching.grid
        fact = grid.found[place]
        misfiled = [g for g, f in self._matching.misfiled.items() if f == place and g in self._valid]
        if misfiled:
            return Remark("misfiled", str(fact), about=str(grid.gold[misfiled[0]]))
        related: dict[Label, MemoryFact] = {}
        for target in self._valid:
            cell = grid.cells[target, place]
            if cell.relation == "same":
                related.setdefault("duplicate", grid.gold[target])
            elif cell.relation == "contradicts":
                related.setdefault("contradiction", grid.gold[target])
            if cell.held:
                related.setdefault("piece", grid.gold[target])
        for other in earlier:
            if compare(grid.found[other], fact).relation == "same":
                related.setdefault("duplicate", grid.found[other])
        for target in self._removed:
            if grid.cells[target, place].said:
                related.setdefault("contradiction", grid.gold[target])
        labels: tuple[Label, ...] = ("duplicate", "piece", "contradiction")
        for label in labels:
            if label in related:
                return Remark(label, str(fact), about=str(related[label]))
        said_by_user = any(contained(fact, text) for text in self._user_texts)
        return Remark("unlisted" if said_by_user else "hallucinated", str(fact))

    @cached_property
    def _user_texts(self) -> list[str]:
        return [turn.content for turn in self._case.conversation if turn.role == "user"]
