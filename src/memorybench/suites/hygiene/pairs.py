"""Made-up facts in pairs: one is deleted, its twin is not.

Each fact has a made-up word as its value, so that a match is never a coincidence. A check that does not find the twin
proves nothing about the deleted fact: a store that returns nothing at all would pass it.
"""

from __future__ import annotations

from memorybench.core.records import Record

from .placeholders import fill_placeholders, generate_values, planted_names


class MadeUpFact(Record):
    text: str
    value: str
    """The made-up word in the text."""
    question: str
    """A question about the fact, in other words than its text."""
    earlier: str = ""
    """The text before a correction; "": the fact was never corrected."""
    earlier_value: str = ""
    is_repeated: bool = False
    """Whether the fact is stored twice."""

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.value, self.earlier_value)))


class Pair(Record):
    name: str
    deleted: MadeUpFact
    twin: MadeUpFact


_PAIRS = [
    {
        "name": "told once",
        "deleted": {
            "text": "My neighbour's cat is called ${word:cat}",
            "value": "${word:cat}",
            "question": "Which name did the neighbour give to the cat?",
        },
        "twin": {
            "text": "My sister's parrot is called ${word:parrot}",
            "value": "${word:parrot}",
            "question": "Which name did the sister give to the parrot?",
        },
    },
    {
        "name": "corrected",
        "deleted": {
            "text": "The dentist I go to is Doctor ${word:dentist}",
            "value": "${word:dentist}",
            "question": "Whom do I see as a dentist, which doctor?",
            "earlier": "The dentist I go to is Doctor ${word:former_dentist}",
            "earlier_value": "${word:former_dentist}",
        },
        "twin": {
            "text": "The landlord of my flat is Mister ${word:landlord}",
            "value": "${word:landlord}",
            "question": "Whose flat is it, who is the landlord?",
            "earlier": "The landlord of my flat is Mister ${word:former_landlord}",
            "earlier_value": "${word:former_landlord}",
        },
    },
    {
        "name": "told twice",
        "deleted": {
            "text": "I spend the holidays in a cabin near ${word:cabin}",
            "value": "${word:cabin}",
            "question": "Where is the cabin for the holidays?",
            "is_repeated": True,
        },
        "twin": {
            "text": "I learned to swim in the river at ${word:river}",
            "value": "${word:river}",
            "question": "In which river did I learn to swim?",
            "is_repeated": True,
        },
    },
]
_WITNESS = {
    "text": "Our choir meets in the hall of ${word:choir}",
    "value": "${word:choir}",
    "question": "In which hall does the choir meet?",
}


def make_pairs(seed: int) -> tuple[tuple[Pair, ...], MadeUpFact]:
    """Return pairs of one user's facts, one to delete and a twin to keep, and a fact of another user.

    The seed determines the made-up words.
    """
    words = generate_values(planted_names([*_PAIRS, _WITNESS]), seed, "hygiene forget")
    pairs = tuple(Pair.model_validate(pair) for pair in fill_placeholders(_PAIRS, words))
    return pairs, MadeUpFact.model_validate(fill_placeholders(_WITNESS, words))
