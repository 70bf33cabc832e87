"""The steps of a scenario. Each is a JSON object whose `do` names the operation.

    {"do": "remember", "content": "The user prefers tabs", "category": "preference", "as": "tabs"}
    {"do": "recall", "query": "indentation", "limit": 5, "as": "found"}
    {"do": "update", "fact": "found", "content": "The user prefers spaces"}
    {"do": "forget", "fact": "tabs"}
    {"do": "list"}
    {"do": "get", "fact": "tabs"}
    {"do": "curate", "apply": false}
    {"do": "restart"}
    {"do": "mark", "as": "before the curation"}

`as` names the fact that a step wrote, or the best result of a recall; `fact` refers to that name. `user` on any step
says whose memory is used. `restart` closes the store and opens it again on the same folder: a new session. `mark`
takes a snapshot of the memory for `unchanged_since`; it is not recorded as a call. `"missing": true` on an update or a
deletion says that the fact was deleted before: an error is right, and an update must not be answered with success.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from memorybench.core.records import Record

USER = "user"
"""The default user."""


class _Step(Record):
    model_config = ConfigDict(populate_by_name=True)

    user: str = Field(default=USER, min_length=1)


class _NamingStep(_Step):
    name: str | None = Field(default=None, alias="as", min_length=1)


class Remember(_NamingStep):
    do: Literal["remember"]
    content: str = Field(min_length=1)
    category: str | None = None
    source: str | None = None


class Update(_NamingStep):
    do: Literal["update"]
    fact: str
    content: str = Field(min_length=1)
    missing: bool = False
    """An earlier step deleted the fact, so the store must answer with an error."""


class Forget(_Step):
    do: Literal["forget"]
    fact: str
    missing: bool = False
    """An earlier step deleted the fact, so the store may answer with an error."""


class Recall(_NamingStep):
    do: Literal["recall"]
    query: str = Field(min_length=1)
    limit: int = Field(default=5, ge=1, le=100)


class List(_Step):
    do: Literal["list"]


class Get(_Step):
    """Reads a fact by its id. For a fact of another user, an error or a refusal is correct."""

    do: Literal["get"]
    fact: str


class Curate(_Step):
    do: Literal["curate"]
    apply: bool = False


class Restart(_Step):
    do: Literal["restart"]


class Mark(_Step):
    do: Literal["mark"]
    name: str = Field(alias="as", min_length=1)


Operation = Remember | Update | Forget | Recall | List | Get | Curate
Step = Annotated[Operation | Restart | Mark, Field(discriminator="do")]
Script = Sequence[Step]


def names_given_by(script: Script) -> set[str]:
    """Return the fact names that the steps define with `as`."""
    return {step.name for step in script if isinstance(step, _NamingStep) and step.name is not None}
