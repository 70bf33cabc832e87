"""A judge decides whether one note says all that another says, and whether the user said a fact.

Each reply is parsed as strictly as any verdict and recorded as a step, so the same question is paid for once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from memorybench.core.errors import Unreadable
from memorybench.core.plans import Steps
from memorybench.core.questions import Question
from memorybench.files.prompts import load_prompt
from memorybench.files.templates import Template

from .asking import all_of
from .canaries import PAIRS, RIGHT, Canary, take_turns
from .facts import MemoryFact
from .judge import Judge
from .matching import Comparison, Grid, Matching, Pair, match
from .prompts import JudgePrompt

STEP, COVERAGE, SUPPORT = "entail", "cover", "support"


def _prompt(name: str) -> JudgePrompt:
    text = load_prompt(f"judge-{name}")
    return JudgePrompt(name, Template.parse(text, ("answer", "response"), f"{name} prompt"), "entailment")


PROMPT, SUPPORT_PROMPT = _prompt("entailment"), _prompt("support")


def _question(answer: str) -> Question:
    return Question(id="", haystack="", question="", answers=(answer,))


def _pairs(*kinds: str) -> list[Canary]:
    return take_turns(*([Canary(PROMPT, kind, _question(one), two) for one, two in PAIRS[kind]] for kind in kinds))


CANARIES = take_turns(
    _pairs(*reversed(RIGHT)),
    _pairs("vague", "negated", "swapped roles", "near miss", "other unit", "stale", "other category"),
)
"""Pairs of notes, each with its kind. Pairs whose first note says all of the second alternate with other pairs."""


class EntailmentJudge(Struct, frozen=True):
    """Decides with a judge. What depends on a reply that cannot be read stays undecided."""

    judge: Judge
    unread: list[str] = field(default_factory=list)
    """Why replies could not be read, one message for each question without a verdict."""
    verdicts: dict[tuple[str, str, str], bool | None] = field(default_factory=dict)
    """By question (prompt and both texts): its verdict, so that no question is asked twice.

    If one side has a single fact, the question about all its facts is that about a pair.
    """

    def of_one_trial(self) -> EntailmentJudge:
        """Return the same judge with empty `unread` and `verdicts`."""
        return EntailmentJudge(self.judge)

    async def says(self, steps: Steps, first: str, second: str, step: str = STEP) -> bool | None:
        """Whether the first note says all that the second says; None if the reply cannot be read."""
        return await self._ask(steps, step, PROMPT, first, second)

    async def supports(self, steps: Steps, conversation: str, fact: MemoryFact) -> bool | None:
        """Whether the user said a fact in the conversation; None if the reply cannot be read."""
        return await self._ask(steps, SUPPORT, SUPPORT_PROMPT, conversation, fact.with_path)

    async def _ask(self, steps: Steps, step: str, prompt: JudgePrompt, answer: str, response: str) -> bool | None:
        question = (prompt.name, answer, response)
        if question in self.verdicts:
            return self.verdicts[question]
        verdict = None
        try:
            verdict = (await self.judge.ask(steps, step, prompt, _question(answer), response, shared=True)).correct
        except Unreadable as error:
            self.unread.append(str(error))
        self.verdicts[question] = verdict
        return verdict

    async def decide(self, steps: Steps, matching: Matching) -> Matching:
        """Let the judge decide every open pair, and which facts were split or merged; return the new matching.

        A pair in categories that do not fit is left out if both facts are matched.
        A pair stays undecided if one of its replies cannot be read. So do the facts that may be split or merged with a
        fact of such a pair: the judge is not asked about them, because the question depends on what is undecided.
        """
        judged = await self._compare_all(steps, matching.grid, matching.open_pairs)
        decided = match(replace(matching.grid, judged=judged))
        expected = {f for g, f in decided.pairs.items() if g not in matching.grid.to_remove}
        elsewhere = [(g, f) for g, f in matching.open_elsewhere if g not in decided.pairs or f not in expected]
        judged |= await self._compare_all(steps, matching.grid, elsewhere)
        if not judged:
            return matching
        grid = replace(matching.grid, judged=judged)
        decided = match(grid)
        gold_open, found_open = decided.open_gold, decided.open_found
        split = {g: tuple(f for f in found_open if grid.compare((g, f)).said and grid.fits((g, f))) for g in gold_open}
        merged = {f: tuple(g for g in gold_open if grid.compare((g, f)).says and grid.fits((g, f))) for f in found_open}
        unsure_gold, unsure_found = _reach(decided.open_pairs, split, merged)
        is_split = await self._say_together(steps, split, grid.found, grid.gold, unsure_gold)
        is_merged = await self._say_together(steps, merged, grid.gold, grid.found, unsure_found)
        judged |= {(g, f): Comparison(says=None, said=True) for g in _unknown(is_split) for f in split[g]}
        judged |= {(g, f): Comparison(says=True, said=None) for f in _unknown(is_merged) for g in merged[f]}
        grid = replace(grid, judged=judged, split=_chosen(is_split, split), merged=_chosen(is_merged, merged))
        return match(grid) if is_split or is_merged else decided

    async def decide_coverage(self, steps: Steps, matching: Matching) -> Matching:
        """Let the judge decide which facts that are not matched all facts of the other side together say.

        Return the new matching. Facts that repeat each other are one question. Left out are facts to remove, facts of
        which pairs decide it, and facts of a pair that is undecided: a resumed run asks about the pair again first.
        """
        grid = matching.grid
        undecided = [*matching.open_pairs, *matching.open_elsewhere]
        open_gold, open_found = {g for g, _ in undecided}, {f for _, f in undecided}
        gold = [g for g in grid.valid if matching.covered(g) is None and g not in open_gold]
        unmatched = set(range(len(grid.found))).difference(matching.pairs.values())
        found = {matching.twins.get(f, f) for f in unmatched if matching.supported(f) is None} - open_found
        output, expected = _joined(grid.found), _joined([grid.gold[g] for g in grid.valid])
        covered, supported = await all_of(
            self._say(steps, dict.fromkeys(gold, output), grid.gold, COVERAGE),
            self._say(steps, dict.fromkeys(sorted(found), expected), grid.found, COVERAGE),
        )
        return replace(matching, grid=replace(grid, covered=covered, supported=supported))

    async def _compare_all(self, steps: Steps, grid: Grid, pairs: Collection[Pair]) -> dict[Pair, Comparison]:
        verdicts = await all_of(*(self._compare(steps, grid, pair) for pair in pairs))
        return dict(zip(pairs, verdicts, strict=True))

    async def _compare(self, steps: Steps, grid: Grid, pair: Pair) -> Comparison:
        gold, found = grid.gold[pair[0]].with_path, grid.found[pair[1]].with_path
        says = await self.says(steps, found, gold)
        return Comparison(says, None if says is None else await self.says(steps, gold, found))

    async def _say_together(
        self,
        steps: Steps,
        parts: Mapping[int, tuple[int, ...]],
        part_facts: Sequence[MemoryFact],
        whole_facts: Sequence[MemoryFact],
        unsure: Collection[int],
    ) -> dict[int, bool | None]:
        """Return, by index of a whole fact, whether the facts in `parts` together say it; None if that is undecided.

        A key of `parts` is the index of a whole fact, the value the indexes of its possible parts. One part is never
        enough. Whole facts in `unsure` are undecided without asking.
        """
        several = {
            whole: _joined([part_facts[place] for place in places])
            for whole, places in parts.items()
            if len(places) > 1 and whole not in unsure
        }
        return {**dict.fromkeys(unsure), **await self._say(steps, several, whole_facts)}

    async def _say(
        self, steps: Steps, texts: Mapping[int, str], facts: Sequence[MemoryFact], step: str = STEP
    ) -> dict[int, bool | None]:
        """Return, by index of a fact, whether its text in `texts` says it; None if the reply cannot be read."""
        verdicts = await all_of(*(self.says(steps, text, facts[n].with_path, step) for n, text in texts.items()))
        return dict(zip(texts, verdicts, strict=True))


def _joined(facts: Iterable[MemoryFact]) -> str:
    return "\n".join(fact.with_path for fact in facts)


def _reach(
    open_pairs: Collection[Pair], split: Mapping[int, tuple[int, ...]], merged: Mapping[int, tuple[int, ...]]
) -> tuple[set[int], set[int]]:
    """Return the gold and the found facts of open pairs, and all that may be split or merged with one of them."""
    gold, found = {g for g, _ in open_pairs}, {f for _, f in open_pairs}
    size = 0
    while open_pairs and size < len(gold) + len(found):
        size = len(gold) + len(found)
        for g, pieces in split.items():
            if g in gold or (len(pieces) > 1 and found.intersection(pieces)):
                gold.add(g)
                found.update(pieces)
        for f, parts in merged.items():
            if f in found or (len(parts) > 1 and gold.intersection(parts)):
                found.add(f)
                gold.update(parts)
    return gold, found


def _chosen(verdicts: Mapping[int, bool | None], parts: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    return {whole: parts[whole] for whole, yes in verdicts.items() if yes}


def _unknown(verdicts: Mapping[int, bool | None]) -> list[int]:
    return [whole for whole, yes in verdicts.items() if yes is None]
