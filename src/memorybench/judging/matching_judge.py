"""A judge decides whether one note says all that another says, and whether the user said a fact.

Each reply is parsed as strictly as any verdict and recorded as a step, so the same question is paid for once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

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

STEP, SUPPORT = "entail", "support"


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
    judge: Judge

    async def says(self, steps: Steps, first: str, second: str) -> bool:
        """Whether the first note says all that the second says. Raises Unreadable if the reply cannot be read."""
        return await self._ask(steps, STEP, PROMPT, first, second)

    async def supports(self, steps: Steps, conversation: str, fact: MemoryFact) -> bool:
        """Whether the user said a fact in the conversation. Raises Unreadable if the reply cannot be read."""
        return await self._ask(steps, SUPPORT, SUPPORT_PROMPT, conversation, fact.with_path)

    async def _ask(self, steps: Steps, step: str, prompt: JudgePrompt, answer: str, response: str) -> bool:
        return (await self.judge.ask(steps, step, prompt, _question(answer), response, shared=True)).correct

    async def decide(self, steps: Steps, matching: Matching) -> Matching:
        """Let the judge decide every open pair, and which facts were split or merged; return the new matching."""
        grid, pairs = matching.grid, [*matching.open_pairs, *matching.equal_elsewhere]
        if not pairs:
            return matching
        verdicts = await all_of(*(self._compare(steps, grid, pair) for pair in pairs))
        grid = replace(grid, judged=dict(zip(pairs, verdicts, strict=True)))
        decided = match(grid)
        gold_open, found_open = decided.open_gold, decided.open_found
        split = {g: tuple(f for f in found_open if grid.compare((g, f)).said and grid.fits((g, f))) for g in gold_open}
        merged = {f: tuple(g for g in gold_open if grid.compare((g, f)).says and grid.fits((g, f))) for f in found_open}
        grid = replace(
            grid,
            split=await self._joined(steps, split, grid.found, grid.gold),
            merged=await self._joined(steps, merged, grid.gold, grid.found),
        )
        return match(grid) if grid.split or grid.merged else decided

    async def _compare(self, steps: Steps, grid: Grid, pair: Pair) -> Comparison:
        gold, found = grid.gold[pair[0]].with_path, grid.found[pair[1]].with_path
        says, said = await self.says(steps, found, gold), await self.says(steps, gold, found)
        return Comparison("same" if says and said else "different", says, said)

    async def _joined(
        self,
        steps: Steps,
        parts: Mapping[int, tuple[int, ...]],
        part_facts: Sequence[MemoryFact],
        whole_facts: Sequence[MemoryFact],
    ) -> dict[int, tuple[int, ...]]:
        """Return the entries of `parts` whose facts together say the whole fact, as the judge decides.

        A key of `parts` is the index of a whole fact, the value the indexes of its possible parts. One part is never
        enough.
        """
        several = {whole: places for whole, places in parts.items() if len(places) > 1}
        verdicts = await all_of(
            *(
                self.says(
                    steps, "\n".join(part_facts[place].with_path for place in places), whole_facts[whole].with_path
                )
                for whole, places in several.items()
            )
        )
        return {whole: places for (whole, places), yes in zip(several.items(), verdicts, strict=True) if yes}
