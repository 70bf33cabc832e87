"""The steps of a scenario. Each is a JSON object whose `do` names the operation.

    {"do": "remember", "content": "The user prefers tabs", "category": "preference", "as": "tabs"}
    {"do": "recall", "query": "indentation", "limit": 5, "as": "found"}
    {"do": "update", "fact": "found", "content": "The user prefers spaces"}
    {"do": "forget", "fact": "tabs"}
    {"do": "list"}
    {"do": "curate", "apply": false}
    {"do": "restart"}
    {"do": "mark", "as": "before the curation"}

`as` names what a step wrote, or the best that a recall found; `fact` refers to it. `user` on any step says who is
served. `restart` closes the store and opens it again on the same folder: a new session. `mark` keeps a picture of the
memory for `unchanged_since`; it is no call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from memorybench.core.records import Record
from memorybench.core.stores import Capability

USER = "user"
"""Who is served where a scenario names nobody."""


class _Step(Record):
    model_config = ConfigDict(populate_by_name=True)

    user: str = Field(default=USER, min_length=1)


class _Naming(_Step):
    name: str | None = Field(default=None, alias="as", min_length=1)


class Remember(_Naming):
    do: Literal["remember"]
    content: str = Field(min_length=1)
    category: str | None = None
    source: str | None = None


class Update(_Naming):
    do: Literal["update"]
    fact: str
    content: str = Field(min_length=1)


class Forget(_Step):
    do: Literal["forget"]
    fact: str


class Recall(_Naming):
    do: Literal["recall"]
    query: str = Field(min_length=1)
    limit: int = Field(default=5, ge=1, le=100)


class List(_Step):
    do: Literal["list"]


class Curate(_Step):
    do: Literal["curate"]
    apply: bool = False


class Restart(_Step):
    do: Literal["restart"]


class Mark(_Step):
    do: Literal["mark"]
    name: str = Field(alias="as", min_length=1)


Operation = Remember | Update | Forget | Recall | List | Curate
Step = Annotated[Operation | Restart | Mark, Field(discriminator="do")]
Script = Sequence[Step]

DOABLE = ("remember", "update", "forget", "recall", "list", "curate", "restart", "mark")

_NEEDS: dict[str, Capability] = {
    "update": "update",
    "forget": "forget",
    "recall": "recall",
    "list": "list",
    "mark": "list",
    "curate": "curate",
}


def needed(script: Script) -> Iterator[Capability]:
    """What a store must be able to do for this script to be played on it, in order of appearance."""
    yield from dict.fromkeys(_NEEDS[step.do] for step in script if step.do in _NEEDS)


def bound(script: Script) -> set[str]:
    """The names that the script gives to facts."""
    return {step.name for step in script if isinstance(step, _Naming) and step.name is not None}


def sessions(script: Script) -> int:
    return 1 + sum(isinstance(step, Restart) for step in script)


def marked(script: Script) -> set[str]:
    """The moments it remembers."""
    return {step.name for step in script if isinstance(step, Mark)}
