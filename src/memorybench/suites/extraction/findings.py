"""The changes that an extractor made to a memory, compared with those it should have made.

The unit is a change: a fact added or a fact removed; an update is one of each. A fact that should be kept and is kept
is not a change and scores nothing. So a large memory earns no points, and losing its facts costs points.

|                    | done                                        | not done                |
|---|---|---|
| a fact to add      | true positive                               | false negative (missed) |
| a fact to remove   | true positive                               | false negative (stale)  |
| a fact to keep     | nothing                                     | false positive (lost)   |
| any other fact     | false positive (its label says which kind)  | nothing                 |

Counts are the least that is certain; the same name with `_open` says how much undecided pairs could add. So each count
lies between `tp` and `tp + tp_open`, however the pairs are decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from memorybench.core.conversation import Turn
from memorybench.core.plans import Steps
from memorybench.core.trials import Failure
from memorybench.judging.asking import all_of
from memorybench.judging.facts import MemoryFact, without_sole_owner
from memorybench.judging.matching import Grid, Matching, match
from memorybench.judging.matching_judge import EntailmentJudge

from .cases import ExtractionCase
from .gold import Gold, find_stored, recorded_facts
from .transcripts import split_turns

Label = Literal[
    "missed", "stale", "lost",
    "hallucinated", "duplicate", "unlisted", "unexpected", "piece", "misfiled", "undecided",
]  # fmt: skip
"""Labels of gold facts: missed, stale (should have been removed), lost (should have been kept). Labels of facts in the
output, in this order of precedence: undecided, misfiled (correct, in a wrong category), duplicate (repeats a fact),
piece (part of a fact), stale (repeats a removed fact), unlisted (the user said it, but the case does not list it),
hallucinated (the user did not say it), unexpected (not expected, and no judge decided whether the user said it, such as
a fact that the gold facts say together)."""


class Remark(NamedTuple):
    label: Label
    fact: str
    about: str = ""
    """The other fact that this one contradicts, repeats or is part of; empty if there is none."""

    def __str__(self) -> str:
        return f"{self.label}: {self.fact}" + (f" ({self.about})" if self.about else "")


class Operation(NamedTuple):
    """How often an operation was done, how often it was due, and how often undecided pairs could add to `done`."""

    done: int = 0
    due: int = 0
    open: int = 0


class Operations(NamedTuple):
    add: Operation = Operation()
    update: Operation = Operation()
    delete: Operation = Operation()
    keep: Operation = Operation()


class Findings(NamedTuple):
    tp: int = 0
    fp: int = 0
    fn: int = 0
    tp_open: int = 0
    fp_open: int = 0
    fn_open: int = 0
    undecided: int = 0
    """The largest number of undecided pairs that could all be right at once."""
    covered: int = 0
    """The number of expected changes that the output as a whole makes, in any category."""
    uncovered: int = 0
    uncovered_open: int = 0
    supported: int = 0
    """The number of changes in the output that the gold facts as a whole ask for, in any category."""
    unsupported: int = 0
    unsupported_open: int = 0
    said: int = 0
    """The number of added facts that are expected or that the user said."""
    unsaid: int = 0
    """The number of added facts that the user did not say, or that repeat another fact."""
    unsaid_open: int = 0
    conflict_resolved: bool | None = None
    """True if every old value is removed and its new value is stored, else False.

    None if there is no old value, or if it is undecided.
    """
    unchanged: bool | None = None
    """True if the memory was left unchanged, as expected; False if it was changed.

    None if a change was expected, or if it is undecided.
    """
    forbidden: int = 0
    """The number of texts that must not be stored."""
    violations: tuple[str, ...] = ()
    """The texts that must not be stored, but are."""
    possible_violations: int = 0
    """The number of forbidden texts that are not in `violations`, but may be stored in other words."""
    operations: Operations = Operations()
    facts: int = 0
    """The number of facts in the output."""
    added: tuple[MemoryFact, ...] = ()
    """Facts in the output that were not in the memory before."""
    remarks: tuple[Remark, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Why replies of the judge could not be read, one message for each question without a verdict."""

    @property
    def flawless(self) -> bool:
        """Whether nothing is certainly wrong: no wrong or missing change, no forbidden text, no unresolved conflict.

        Undecided pairs may still turn out to be wrong.
        """
        return not (self.fp or self.fn or self.violations or self.conflict_resolved is False)

    @property
    def unread(self) -> Failure | None:
        """Why the trial is unscored, so that a resumed run asks the judge again; None if all replies were read.

        The trial has scores anyway. In them, what the judge should have decided is undecided.
        """
        if not self.unreadable:
            return None
        problem, number = min(self.unreadable), len(self.unreadable)
        message = problem if number == 1 else f"{number} questions to the judge have no verdict; one of them: {problem}"
        return Failure(kind="Unreadable", message=message)


async def examine(steps: Steps, case: ExtractionCase, output: Any, judge: EntailmentJudge | None = None) -> Findings:
    """Compare an output with a case; the judge decides what code cannot.

    What depends on a reply that cannot be read stays undecided. Raise Malformed if the output is not a memory.
    """
    matching = match_output(case, output)
    if judge is None or possibly_merged(matching):
        return findings_of(case.gold, matching, must_not_store=case.must_not_store)
    judge = judge.of_one_trial()
    matching = await judge.decide_coverage(steps, await judge.decide(steps, matching))
    support = await find_support(steps, judge, case.gold, case.conversation, matching)
    forbidden = await _find_forbidden(steps, judge, case, matching)
    findings = findings_of(case.gold, matching, support, case.must_not_store, forbidden)
    return findings._replace(unreadable=tuple(judge.unread))


def match_output(case: ExtractionCase, output: Any) -> Matching:
    """Match the facts of an output with those of the gold, by code alone."""
    gold = case.gold
    to_remove = range(gold.valid, len(gold.targets))
    targets, found = without_sole_owner(gold.targets, recorded_facts(output))
    return match(Grid(targets, found, gold.categories, to_remove))


async def find_support(
    steps: Steps, judge: EntailmentJudge, gold: Gold, conversation: Sequence[Turn], matching: Matching
) -> dict[int, bool]:
    """Ask the judge whether the user said the found facts that no gold fact says; return its answers by index.

    Facts that repeat another one are left out, those that may still match a gold fact, and those of which the reply
    cannot be read.
    """
    said = "\n".join(turn.content for turn in split_turns(conversation) if turn.role in ("user", ""))
    unmatched = set(matching.open_found).difference(found for _, found in matching.open_pairs)
    places = [place for place in sorted(unmatched) if matching.supported(place) is False]
    if not said:
        return dict.fromkeys(places, False)
    verdicts = await all_of(*(judge.supports(steps, said, matching.grid.found[place]) for place in places))
    return {place: is_said for place, is_said in zip(places, verdicts, strict=True) if is_said is not None}


async def _find_forbidden(
    steps: Steps, judge: EntailmentJudge, case: ExtractionCase, matching: Matching
) -> dict[str, bool | None]:
    """Ask the judge for each forbidden text whether the unmatched facts say it in other words.

    Return the verdicts by text, None if the reply cannot be read. Texts that code finds are not asked about.
    """
    found = matching.grid.found
    texts = [text for text in case.must_not_store if not find_stored(text, found)] if matching.open_found else []
    notes = "\n".join(found[place].with_path for place in matching.open_found)
    return dict(zip(texts, await all_of(*(judge.says(steps, notes, text) for text in texts)), strict=True))


def findings_of(
    gold: Gold,
    matching: Matching,
    support: Mapping[int, bool] | None = None,
    must_not_store: Sequence[str] = (),
    forbidden: Mapping[str, bool | None] | None = None,
) -> Findings:
    """Count and label the changes in a matching whose gold facts are `gold.targets`.

    `support` says, by index of an unexpected fact, whether the user said it. `forbidden` says, by text that must not be
    stored, whether it is stored in other words. Both come from a judge; without one, this is unknown.
    """
    examination = _Examination(gold, matching, support or {}, must_not_store, forbidden or {})
    unclear = possibly_merged(matching)
    return examination.undecided_findings(unclear) if unclear else examination.findings()


def possibly_merged(matching: Matching) -> list[MemoryFact]:
    """Return the unmatched facts, of both sides, whose text may contain several facts.

    It is unknown how many they are, so precision and recall are unknown, too.
    """
    gold, found = matching.grid.gold, matching.grid.found
    unmatched = [fact for place, fact in enumerate(gold) if place not in matching.pairs]
    unmatched += [fact for place, fact in enumerate(found) if place not in matching.pairs.values()]
    return [fact for fact in unmatched if fact.most_parts > 1]


class _Examination:
    """Examines one output. Targets are indexes of the gold facts: first those to keep, then to add, then to remove."""

    def __init__(
        self,
        gold: Gold,
        matching: Matching,
        support: Mapping[int, bool],
        must_not_store: Sequence[str],
        forbidden: Mapping[str, bool | None],
    ) -> None:
        self._gold = gold
        self._matching = matching
        self._support = support
        self._kept = range(len(gold.kept))
        self._added = range(len(gold.kept), gold.valid)
        self._removed = range(gold.valid, len(gold.targets))
        self._may_be_other = {f for t, f in matching.open_pairs if t not in self._added}
        """The found facts that may be facts to keep or to remove, which are not changes."""
        self._forbidden = len(must_not_store)
        found = matching.grid.found
        self._violations = tuple([t for t in must_not_store if forbidden.get(t) or find_stored(t, found)])
        unknown = [t for t in must_not_store if forbidden.get(t) is None and t not in self._violations]
        self._possible_violations = len(unknown) if matching.open_found else 0

    def findings(self) -> Findings:
        matching = self._matching
        pairs, output = matching.pairs, matching.grid.found
        added = [t for t in self._added if t in pairs]
        stale = [t for t in self._removed if t in pairs]
        lost = [t for t in self._kept if t not in pairs]
        partners = {f: t for t, f in pairs.items()}
        unmatched = [f for f in range(len(output)) if f not in partners]
        open_added, open_kept, open_removed = map(matching.most, (self._added, self._kept, self._removed))
        open_all = matching.most(range(len(matching.grid.gold)))
        gone = len(self._removed) - len(stale) - open_removed
        coverage = [matching.covered(t) for t in self._added if t not in pairs]
        supported = {f: self._is_supported(f) for f in unmatched}
        support = list(supported.values())
        unsaid = [f for f in unmatched if f in matching.twins or self._support.get(f) is False]
        said = [f for f in unmatched if f not in unsaid and (supported[f] or self._support.get(f))]
        kept_coverage = [matching.covered(t) for t in lost]
        fp = len(lost) - open_kept + len(unmatched) - open_all
        changes = len(self._added) + len(self._removed)
        return Findings(
            tp=len(added) + gone,
            fp=fp,
            fn=len(self._added) - len(added) - open_added + len(stale),
            tp_open=open_added + open_removed,
            fp_open=open_kept + open_all,
            fn_open=open_added + open_removed,
            undecided=len(matching.undecided),
            covered=len(added) + coverage.count(True) + gone,
            uncovered=coverage.count(False) + len(stale),
            uncovered_open=coverage.count(None) + open_removed,
            supported=len(added) + support.count(True) + gone,
            unsupported=support.count(False) + kept_coverage.count(False),
            unsupported_open=support.count(None) + kept_coverage.count(None) + open_removed,
            said=len(added) + len(said),
            unsaid=len(unsaid),
            unsaid_open=len(unmatched) - len(said) - len(unsaid),
            conflict_resolved=self._conflict_resolved(),
            unchanged=None if changes else False if fp else None if open_all else True,
            forbidden=self._forbidden,
            violations=self._violations,
            possible_violations=self._possible_violations,
            operations=self._operations(),
            facts=len(output),
            added=tuple([fact for f, fact in enumerate(output) if f not in partners or partners[f] in self._added]),
            remarks=self._remarks(lost, stale, unmatched),
        )

    def undecided_findings(self, unclear: Sequence[MemoryFact]) -> Findings:
        """Return findings with the widest bounds: nothing is certain, and everything is possible."""
        gold, output = self._matching.grid.gold, self._matching.grid.found
        due = sum(gold[t].most_parts for t in (*self._added, *self._removed))
        written = sum(fact.most_parts for fact in output)
        wrong = written + sum(gold[t].most_parts for t in self._kept)
        return Findings(
            tp_open=due,
            fp_open=wrong,
            fn_open=due,
            undecided=len(unclear),
            uncovered_open=due,
            unsupported_open=wrong + len(self._removed),
            unsaid_open=written,
            forbidden=self._forbidden,
            violations=self._violations,
            possible_violations=self._forbidden - len(self._violations),
            operations=Operations(*(Operation(due=one.due, open=one.due) for one in self._operations())),
            facts=len(output),
            remarks=tuple(Remark("undecided", fact.with_path) for fact in unclear),
        )

    def _is_supported(self, place: int) -> bool | None:
        """Whether the gold facts say an unmatched fact; None if that is undecided, or if it may be no change."""
        return None if place in self._may_be_other else self._matching.supported(place)

    def _is_gone(self, target: int) -> bool | None:
        """Whether a fact to remove is no longer stored; None if that is undecided."""
        return False if target in self._matching.pairs else None if self._matching.may_match(target) else True

    def _conflict_resolved(self) -> bool | None:
        if not self._removed:
            return None
        checks = [self._matching.covered(self._added[index]) for index in self._gold.replaces]
        checks += [self._is_gone(target) for target in self._removed]
        return False if False in checks else None if None in checks else True

    def _operations(self) -> Operations:
        pairs, most = self._matching.pairs, self._matching.most
        replaces = {self._added[a]: self._removed[r] for a, r in self._gold.replaces.items()}
        to_add = [t for t in self._added if t not in replaces]
        gone = [self._is_gone(t) for t in self._removed if t not in replaces.values()]
        updates = [
            (a in pairs or (None if self._matching.may_match(a) else False), self._is_gone(r))
            for a, r in replaces.items()
        ]
        updated, possible = updates.count((True, True)), sum(False not in update for update in updates)
        return Operations(
            add=Operation(sum(t in pairs for t in to_add), len(to_add), most(to_add)),
            update=Operation(updated, len(replaces), possible - updated),
            delete=Operation(gone.count(True), len(gone), gone.count(None)),
            keep=Operation(sum(t in pairs for t in self._kept), len(self._kept), most(self._kept)),
        )

    def _remarks(self, lost: Sequence[int], stale: Sequence[int], unmatched: Sequence[int]) -> tuple[Remark, ...]:
        output, gold = self._matching.grid.found, self._matching.grid.gold
        pairs, undecided = self._matching.pairs, self._matching.undecided
        missed = [t for t in self._added if t not in pairs and t not in undecided]
        remarks = [Remark("missed", gold[t].with_path) for t in missed]
        remarks += [Remark("lost", gold[t].with_path) for t in lost if t not in undecided]
        remarks += [Remark("stale", gold[t].with_path) for t in stale]
        remarks += [
            Remark("undecided", output[f].with_path, about=gold[g].with_path) for g, f in sorted(undecided.items())
        ]
        wrong = [f for f in unmatched if f not in undecided.values()]
        remarks += [self._remark_on(f) for f in wrong]
        return tuple(remarks)

    def _remark_on(self, place: int) -> Remark:
        """Return a remark with the label of one wrong fact."""
        grid = self._matching.grid
        fact = grid.found[place]
        for target, found in self._matching.misfiled.items():
            if found == place:
                return Remark("misfiled", fact.with_path, about=grid.gold[target].with_path)
        if place in self._matching.twins:
            repeated = grid.found[self._matching.twins[place]]
            return Remark("duplicate", fact.with_path, about=repeated.with_path)
        for target in range(len(grid.gold)):
            cell = grid.compare((target, place))
            if cell.said:
                whole = cell.says and target in self._matching.pairs
                label: Label = "stale" if target in self._removed else "duplicate" if whole else "piece"
                return Remark(label, fact.with_path, about=grid.gold[target].with_path)
        if place in self._support:
            return Remark("unlisted" if self._support[place] else "hallucinated", fact.with_path)
        for target in grid.merged.get(place, ()):
            if target in self._matching.pairs:  # it joins gold facts, one of which another fact says
                return Remark("duplicate", fact.with_path, about=grid.gold[target].with_path)
        return Remark("unexpected", fact.with_path)
