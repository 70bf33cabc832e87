"""The part of a provider config that speaks of HTTP: requests, what is waited for, how results are read.

Field docstrings are the user's documentation: they stand in docs/config-keys.md and in the JSON Schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from memorybench.core.records import Record

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class Section(Record):
    """A mapping in a config file."""

    model_config = ConfigDict(use_attribute_docstrings=True, defer_build=True)


class Call(Section):
    """One HTTP request, in templates: `${name}` inside text, `$.name` for a whole value that keeps its type."""

    method: Method
    """The HTTP method."""
    path: str
    """What follows the base URL; begins with `/`. Values filled in are URL-encoded."""
    query: Mapping[str, Any] = Field(default_factory=dict)
    """The query string; a key whose value is null is left out."""
    headers: Mapping[str, str] = Field(default_factory=dict)
    """Headers beside the one that `auth` sends."""
    body: Any = None
    """The JSON body; with GET it is sent as the query string. A key whose variable has no value, such as the `date` of
    an undated session, is left out."""
    accept: tuple[Annotated[int, Field(ge=400, le=499)], ...] = ()
    """HTTP statuses that are no failure: 409 where something is there already, 404 where it is gone already. Nothing is
    read from such a reply; to a search it means that nothing was found, to a `wait` that it is over."""


class Poll(Call):
    """Asks again and again how far the system is with what it accepted."""

    mode: Literal["poll"] = "poll"
    """`poll` asks for a status."""
    id: str | None = None
    """JSONPath in the reply to the request before: each value found becomes `pollId` and is asked about. Without it,
    one question for each document, which is known by `documentId`."""
    status: str | None = None
    """JSONPath to the status in the reply; where it finds several, all must be done. Without it, `accept` tells."""
    done: tuple[str, ...] = ()
    """Values of the status that mean searchable."""
    failed: tuple[str, ...] = ()
    """Values of the status that mean it never will be: the haystack fails."""
    interval: int = Field(default=1000, ge=1)
    """Milliseconds between two questions."""
    timeout: int = Field(default=300_000, ge=1)
    """Milliseconds until waiting is given up: the haystack fails, it is never scored."""


class Probe(Section):
    """For systems without a status: a planted marker is searched for until it is found."""

    mode: Literal["probe"]
    """`probe` adds a marker to the scope, searches for it, and goes on when it is found."""
    interval: int = Field(default=2000, ge=1)
    """Milliseconds between two searches."""
    timeout: int = Field(default=300_000, ge=1)
    """Milliseconds until waiting is given up: the haystack fails, it is never scored."""


def _probe(written: Any) -> Any:
    return {"mode": "probe"} if written == "probe" else written


Wait = Annotated[Poll | Probe, BeforeValidator(_probe, json_schema_input_type=Poll | Probe | Literal["probe"])]


class Request(Call):
    """A request whose reply may hold something that later requests need."""

    captures: Mapping[str, str] = Field(default_factory=dict)
    """Variable → JSONPath in the reply; a path that finds nothing is an error. What `setup` captures is known to every
    request that follows it, what others capture to their own `wait`."""


class Housekeeping(Request):
    """Opens a scope, or closes it."""

    repeatable: bool = False
    """Sent again, it finds what it made the first time (`get_or_create`, a lookup): so a scope can be searched whose
    ids this process has not captured. Without it, that is an error."""
    wait: Poll | None = None
    """How to tell that the system is done; without it, the reply says so."""


class Storing(Request):
    """Hands documents over."""

    stored_as: str | None = None
    """JSONPath in the reply to the ids that the system gave to what it stored (one for each message or document, or
    one for all), where results name their sources by them."""
    wait: Wait | None = None
    """How to tell that what was added is searchable; without it, the reply says so. `probe` is short for
    `mode: probe`."""


class Add(Storing):
    """Stores one document."""

    unit: Literal["session", "message"] = "session"
    """What a document is: a whole session, or one message of it."""
    message: Any = None
    """The template of one message in `$.messages`, from `role`, `speaker`, `content`, `date`, `epoch` and `turnId`;
    without it, `role`, `content` and `at`."""


class BatchAdd(Storing):
    """Stores many documents at once. Used where the provider is `unordered`."""

    document: Any
    """The template of one document, with the variables of `add`. `$.documents` in the body is the list of them,
    `$.documents[*].id` a list of one field."""


class Zip(Section):
    """Parallel arrays: the n-th of each belong together."""

    content: str
    """JSONPath to the array of contents."""
    score: str | None = None
    """JSONPath to the array of scores."""
    id: str | None = None
    """JSONPath to the array of ids."""
    sources: str | None = None
    """JSONPath to the array of sources."""
    date: str | None = None
    """JSONPath to the array of dates."""


class Response(Section):
    """How memories are read from a reply. Paths may name fallbacks: `$.memory | $.chunk`."""

    results: str | None = None
    """JSONPath to the array of results. An empty array is an answer, a missing one an error."""
    content_field: str | None = None
    """JSONPath to the content, within one result."""
    score_field: str | None = None
    """JSONPath to the score, within one result. No score is none, not 0."""
    id_field: str | None = None
    """JSONPath to the memory's id, within one result."""
    sources_field: str | None = None
    """JSONPath to the ids of the sessions or messages that the result came from, usually our `metadata` coming
    back. Without it, there are no retrieval figures."""
    date_field: str | None = None
    """JSONPath to when it was said or became true; put in front of the content."""
    chunks_field: str | None = None
    """JSONPath to chunks of the source. They are shown to the answering model where the benchmark has
    `includeChunks`."""
    zip: Zip | None = None
    """In the place of `results`: arrays beside each other."""
    score_direction: Literal["higher", "lower", "none"] = "higher"
    """Which scores are better; with `none`, the order of the reply is the ranking."""


class Search(Call):
    response: Response
    """How memories are read from the reply."""
    token_budget: int = Field(default=4096, ge=1)
    """What `tokenBudget` is where the run counts by k, for systems that count by tokens."""


class ListAll(Call):
    response: Response
    """How memories are read from the reply."""


class Endpoints(Section):
    add: Add
    """Stores one document."""
    batch_add: BatchAdd | None = None
    """Stores `limits.batchSize` documents at once."""
    search: Search
    """Finds memories."""
    clear: Housekeeping | None = None
    """Forgets a scope when its last question is settled. Failure is reported as a leaked scope."""
    list: ListAll | None = None
    """Gives all that a scope holds."""
