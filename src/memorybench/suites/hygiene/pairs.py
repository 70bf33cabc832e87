"""Made-up facts in pairs: one fact is deleted, the other, its twin, is not.

Each fact has a made-up word as its value, so that a match is never a coincidence. A check that does not find the twin
proves nothing about the deleted fact: a store that returns nothing at all would pass it.
"""

from __future__ import annotations

from memorybench.core.records import Record

from .placeholders import generate_word


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


def make_pairs(seed: int) -> tuple[tuple[Pair, ...], MadeUpFact]:
    """Return pairs of facts of one user, one fact to delete and a twin to keep; and one fact of another user.

    The seed determines the made-up words.
    """

    def made_up(text: str, word: str, question: str, *, former: str = "", is_repeated: bool = False) -> MadeUpFact:
        value = generate_word(word, seed, "hygiene forget")
        earlier_value = generate_word(former, seed, "hygiene forget") if former else ""
        return MadeUpFact(
            text=text.format(value),
            value=value,
            question=question,
            earlier=text.format(earlier_value) if former else "",
            earlier_value=earlier_value,
            is_repeated=is_repeated,
        )

    told_once = Pair(
        name="told once",
        deleted=made_up("My neighbour's cat is called {}", "cat", "Which name did the neighbour give to the cat?"),
        twin=made_up("My sister's parrot is called {}", "parrot", "Which name did the sister give to the parrot?"),
    )
    dentist = "The dentist I go to is Doctor {}"
    landlord = "The landlord of my flat is Mister {}"
    corrected = Pair(
        name="corrected",
        deleted=made_up(dentist, "dentist", "Whom do I see as a dentist, which doctor?", former="former_dentist"),
        twin=made_up(landlord, "landlord", "Whose flat is it, who is the landlord?", former="former_landlord"),
    )
    cabin = "I spend the holidays in a cabin near {}"
    river = "I learned to swim in the river at {}"
    told_twice = Pair(
        name="told twice",
        deleted=made_up(cabin, "cabin", "Where is the cabin for the holidays?", is_repeated=True),
        twin=made_up(river, "river", "In which river did I learn to swim?", is_repeated=True),
    )
    witness = made_up("Our choir meets in the hall of {}", "choir", "In which hall does the choir meet?")
    return (told_once, corrected, told_twice), witness
