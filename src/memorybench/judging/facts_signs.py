"""Which words and marks a text has: tells at once of most patterns that they can not match it.

A fact is read by some forty patterns, of which two or three have anything to do. To ask a set whether the words that a
pattern needs are there at all takes a fiftieth of the time of looking for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

Signs = frozenset[str]

_SIGN = re.compile(r"[^\W_]+|[^\w ]")
_DOUBLES = str.maketrans("İıſ\N{KELVIN SIGN}", "iisk")
"""Letters that a pattern which ignores case takes for plain ones, though their lower case is another."""


class Rule(NamedTuple):
    needs: Signs
    """Where none of these is in a text, the pattern can not match it."""
    said: re.Pattern[str]
    meant: str

    def absent(self, signs: Signs) -> bool:
        return self.needs.isdisjoint(signs)


class Rules(NamedTuple):
    """To be applied one after the other."""

    needs: Signs
    """Where none of these is in a text, no rule has anything to do."""
    each: tuple[Rule, ...]
    called: Mapping[str, tuple[int, ...]]
    """Sign → places of the rules that need it."""


def rule(needs: str, said: str, meant: str) -> Rule:
    return Rule(frozenset(needs.split()), re.compile(said, re.IGNORECASE), meant)


def rules(*each: Rule) -> Rules:
    needs = frozenset[str]().union(*(one.needs for one in each))
    called = {sign: tuple(place for place, one in enumerate(each) if sign in one.needs) for sign in needs}
    return Rules(needs, each, called)


def signs_of(text: str) -> Signs:
    """Its words in lower case, and every other character but blanks."""
    plain = text if text.isascii() else text.translate(_DOUBLES)
    lowered = plain.lower()
    # of a text of nothing but words and blanks, they are known without looking for them
    return frozenset(lowered.split() if lowered.replace(" ", "").isalnum() else _SIGN.findall(lowered))


def rewritten(text: str, signs: Signs, rules: Rules, first: int = 0) -> tuple[str, Signs]:
    """The text after every rule, or every one from the first on, and its signs."""
    present = rules.needs & signs
    if not present:
        return text, signs
    for place in sorted({place for sign in present for place in rules.called[sign] if place >= first}):
        _, said, meant = rules.each[place]
        changed = said.sub(meant, text)
        if changed != text:  # what it has made may call for others of the rules that are left
            return rewritten(changed, signs_of(changed), rules, place + 1)
    return text, signs
