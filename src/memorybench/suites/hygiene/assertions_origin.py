"""The assertion that a memory contains nothing that nobody said."""

from __future__ import annotations

from typing import Literal

from memorybench.text.words import stems, words

from .assertions_base import BaseAssertion
from .evidence import Evidence


class NoNewWords(BaseAssertion):
    """Every word of every fact was in a fact of the same user at a moment: a curator may merge, but not invent.

    Words are compared by their stems, without function words.
    """

    kind: Literal["no_new_words"]
    moment: str = "fixture"

    async def find_problem(self, evidence: Evidence) -> str:
        if self.moment not in evidence.activity.snapshots:
            return f'the moment "{self.moment}" was not reached'
        before = evidence.activity.snapshots[self.moment].facts
        for user, fact in evidence.facts_of(self.user):
            known = {stem for old in before.get(user, ()) for stem in stems(words(old.content))}
            new = [stem for stem in stems(words(fact.content)) if stem not in known]
            if new:
                return f'"{fact.content}" has words that nobody said: {", ".join(dict.fromkeys(new))}'
        return ""
