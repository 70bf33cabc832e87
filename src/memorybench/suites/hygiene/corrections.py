"""Tests what a store returns after contradictory statements (`hygiene corrections`).

In each cell of the matrix, an old and a new statement are stored in one of five orders. Then the store is searched and
its facts are listed; a model, if one is named, answers a question. The values in the statements are made-up words that
show which statement was returned, so no judge is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from memorybench.core.errors import Lacking, Refused, ServiceError
from memorybench.core.records import Record
from memorybench.core.stores import MemoryStore, NewFact
from memorybench.processes.programs import temporary_folder
from memorybench.secrets.canaries import find_text
from memorybench.text.words import is_negated, words

from .evidence import OpenStore
from .placeholders import generate_word
from .script import USER

LIMIT = 10
"""The number of results per search."""
Way = Literal["told", "operations"]
COLUMNS = {
    "only-old": "only the old statement was told",
    "new-after-old": "the new statement was told after the old one",
    "old-repeated": "the old statement was repeated after the new one",
    "two-sources": "the two statements have different sources",
    "new-retracted": "the new statement was retracted",
}
CURRENT = {"only-old": "old", "new-after-old": "new", "new-retracted": "old"}
"""By column: the statement that is true at the end. In the other columns, neither statement is right or wrong."""
WAYS: dict[str, tuple[Way, ...]] = {
    "only-old": ("told",),
    "new-after-old": ("told", "operations"),
    "old-repeated": ("told", "operations"),
    "two-sources": ("told",),
    "new-retracted": ("told", "operations"),
}
"""By column: the ways in which statements are sent.

`told`: each statement, also the retraction, is stored as a new fact. `operations`: the new statement updates the old
one, and a retraction deletes the new one.
"""


class Topic(Record):
    """Two statements that contradict each other, and a question about them."""

    name: str
    old: str
    new: str
    old_value: str
    new_value: str
    question: str

    @property
    def retraction(self) -> str:
        return f"It is not true that {self.new[0].lower()}{self.new[1:]}"


_TOPICS = {
    "town": (
        "My brother lives in the town of {}",
        "My brother now lives in the town of {}",
        "In which town does my brother live?",
    ),
    "doctor": (
        "The doctor of my daughter is called {}",
        "The doctor of my daughter is now called {}",
        "What is the doctor of my daughter called?",
    ),
    "project": (
        "The code name of our project is {}",
        "The code name of our project is now {}",
        "What is the code name of our project?",
    ),
}
"""By name: the old statement and the new one, without their values, and the question."""
TOPIC_NAMES = tuple(_TOPICS)


def make_topics(seed: int) -> dict[str, Topic]:
    """Return the topics by name. The seed determines their made-up words."""
    topics = {}
    for name, (old, new, question) in _TOPICS.items():
        old_value, new_value = (generate_word(f"{age}_{name}", seed, "hygiene corrections") for age in ("old", "new"))
        topics[name] = Topic(
            name=name,
            old=old.format(old_value),
            new=new.format(new_value),
            old_value=old_value,
            new_value=new_value,
            question=question,
        )
    return topics


class Found(Record):
    """For the old and the new statement: the rank in a search result, or the number of listed facts that contain it."""

    old: int | None
    """The rank of the old statement, or the number of facts with it; None if it was not returned."""
    new: int | None

    @property
    def order(self) -> str:
        """The order in a search result, such as `new before old` or `only new`."""
        if self.old is None or self.new is None:
            return self.presence
        return "new before old" if self.new < self.old else "old before new"

    @property
    def presence(self) -> str:
        """Which statements were returned: `both`, `only old`, `only new` or `neither`."""
        names = {(True, True): "both", (True, False): "only old", (False, True): "only new", (False, False): "neither"}
        return names[self.old is not None, self.new is not None]


class Cell(Record):
    """What the store's search and list returned at the end of one cell; None if the store lacks the operation."""

    search: Found | None
    list: Found | None
    texts: tuple[str, ...] = ()
    """The results of the search, best first."""


async def play_cell(open_store: OpenStore, topic: Topic, column: str, way: Way, *, curate: bool) -> Cell:
    """Send the statements of one cell to the store and return what its search and list return.

    Raise Lacking if the store lacks an operation that the cell needs.
    """
    with temporary_folder("memorybench-corrections-") as folder:
        async with open_store(folder) as store:
            if not {"recall", "list"} & store.capabilities:
                raise Lacking("the store supports neither search nor list")
            try:
                await _tell(store, topic, column, way)
            except Refused as error:
                raise ServiceError(f"the store refused a harmless statement: {error}") from error
            if curate:
                _require(store, "curate")
                await store.curate(USER, apply=True)
            search, listing, texts = None, None, []
            if "list" in store.capabilities:
                listing = _found([fact.content for fact in await store.list(USER)], topic, ranks=False)
            if "recall" in store.capabilities:
                texts = [fact.content for fact in await store.recall(USER, topic.question, LIMIT)]
                search = _found(texts, topic, ranks=True)
    return Cell(search=search, list=listing, texts=tuple(texts))


async def _tell(store: MemoryStore, topic: Topic, column: str, way: Way) -> None:
    sources = ("my notes", "a colleague") if column == "two-sources" else (None, None)
    old_id = await store.remember(USER, NewFact(content=topic.old, source=sources[0]))
    if column == "only-old":
        return
    if way == "operations" and column != "new-retracted":
        _require(store, "update")
        await store.update(USER, old_id, topic.new)
    else:
        new_id = await store.remember(USER, NewFact(content=topic.new, source=sources[1]))
    if column == "old-repeated":
        await store.remember(USER, NewFact(content=topic.old))
    elif column == "new-retracted" and way == "operations":
        _require(store, "forget")
        await store.forget(USER, new_id)
    elif column == "new-retracted":
        await store.remember(USER, NewFact(content=topic.retraction))


def _require(store: MemoryStore, operation: Literal["update", "forget", "curate"]) -> None:
    if operation not in store.capabilities:
        raise Lacking(f"the store does not support {operation}")


def _found(texts: Sequence[str], topic: Topic, *, ranks: bool) -> Found:
    """Return for each statement its best rank or, without `ranks`, the number of texts with it.

    A retraction of a statement does not count as the statement.
    """
    places: dict[str, list[int]] = {"old": [], "new": []}
    for rank, text in enumerate(texts, 1):
        for name, value in (("old", topic.old_value), ("new", topic.new_value)):
            if find_text(value, {"": text}) and not is_negated(words(text)):
                places[name].append(rank)
    numbers = {name: (own[0] if ranks else len(own)) if own else None for name, own in places.items()}
    return Found(old=numbers["old"], new=numbers["new"])


def answered(text: str, topic: Topic) -> str:
    """Return which value the answer contains: `both`, `only old`, `only new` or `neither`."""
    has_old, has_new = (bool(find_text(value, {"": text})) for value in (topic.old_value, topic.new_value))
    return Found(old=1 if has_old else None, new=1 if has_new else None).presence
