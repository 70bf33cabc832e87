"""The assertion that a memory contains no invented content."""

from __future__ import annotations

from typing import Literal

from memorybench.text.words import stems, words

from .assertions_base import BaseAssertion
from .evidence import Evidence


class NoNewWords(BaseAssertion):
    """Every word of every fact already occurred at an earlier moment in a fact of the same user.

    So a curator may merge facts, but may not invent content.

    Words are compared by their stems, without function words. With `in_one_fact`, all words of a fact must come from
    one earlier fact: a curator may not join the subject of one with the predicate of another.
    """

    kind: Literal["no_new_words"]
    moment: str = "fixture"
    in_one_fact: bool = False

    async def find_problem(self, evidence: Evidence) -> str:
        if self.moment not in evidence.activity.snapshots:
            return f'the moment "{self.moment}" was not reached'
        before = evidence.activity.snapshots[self.moment].facts
        for user, fact in evidence.facts_of(self.user):
            sources = [set(stems(words(old.content))) for old in before.get(user, ())]
            known = set().union(*sources)
            own = stems(words(fact.content))
            new = [stem for stem in own if stem not in known]
            if self.in_one_fact and not new and not any(source.issuperset(own) for source in sources):
                return f'"{fact.content}" joins words of several facts'
            if new:
                return f'"{fact.content}" has words that nobody said: {", ".join(dict.fromkeys(new))}'
        return ""
