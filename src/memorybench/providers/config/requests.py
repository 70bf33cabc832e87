"""The keys of a provider config for HTTP: requests, waiting, and how results are read.

Field docstrings are the user's documentation: docs/config-keys.md and the JSON Schema are generated from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from memorybench.core.records import Record
from memorybench.http.config import Headers

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
Scalars = Scalar | Annotated[tuple[Scalar, ...], Field(min_length=1)]


class FailedIf(Record):
    """How a reply with a status of success says that the request failed."""

    path: str
    """JSONPath in the reply. Without `equals` and `notEquals`, any value there is a failure, except null, false, 0 and
    an empty text, list or object."""
    equals: Scalars | None = None
    """The value that means failure, or a list of them. If the path has several matches, one is enough."""
    not_equals: Scalars | None = None
    """Instead of `equals`: the value that means success, or a list of them. Any other value is a failure, and so is a
    missing one."""
    message: str | None = None
    """JSONPath to the error message in the reply. Without it, the error shows the beginning of the reply."""


class Call(Record):
    """One HTTP request. `${name}` inserts a variable as text, `$.name` alone inserts its value with its type."""

    method: Method
    """The HTTP method."""
    path: str
    """Path after the base URL; must begin with `/`. Variables are URL-encoded."""
    query: Mapping[str, Any] = Field(default_factory=dict)
    """The query string; a key whose value is null is left out."""
    headers: Headers = Field(default_factory=dict)
    """Headers in addition to the one of `auth`."""
    body: Any = None
    """The JSON body; with GET, it is sent as the query string. A key whose variable has no value, such as the `date`
    of a session without a date, is left out."""
    accept: tuple[Annotated[int, Field(ge=400, le=499)], ...] = ()
    """HTTP error statuses that are accepted, such as 409 (exists already) or 404 (deleted already). Such a reply is not
    read: a search then has no results, and a `wait` is over."""
    failed_if: FailedIf | None = None
    """How the body of a reply with a status of success says that the request failed. Such a request is retried, like
    one with status 500; a `wait` polls again until its timeout. Without this key, only the HTTP status decides."""


class Poll(Call):
    """Polls the status of an accepted request."""

    mode: Literal["poll"] = "poll"
    """`poll` repeats a request for the status until it is done or failed."""
    id: str | None = None
    """JSONPath in the reply to the previous request: each value becomes `pollId` and is polled. Without it, each
    document is polled by its `documentId`."""
    status: str | None = None
    """JSONPath to the status in the reply; if it matches several values, all must be done. Without this key, the wait
    ends with the first reply whose HTTP status is in `accept`."""
    done: tuple[str, ...] = ()
    """Values of the status that mean that the documents are searchable."""
    failed: tuple[str, ...] = ()
    """Values of the status that mean failure; the haystack then fails and is not scored."""
    interval: int = Field(default=1000, ge=1)
    """Delay between two polls in milliseconds."""
    timeout: int = Field(default=300_000, ge=1)
    """Timeout in milliseconds; after it, the haystack fails and is not scored."""
    per_document: bool | None = None
    """Whether the reply to a `batchAdd` has one `id` per document, in the order of the documents. If true, any other
    number of ids, or an id that occurs twice, is an error, and each poll has the `documentId` of its document.
    Otherwise, an id that occurs twice is polled once."""


class Probe(Record):
    """For systems without a status: memorybench adds a marker document and searches until it is found."""

    mode: Literal["probe"]
    """`probe` adds a marker document to the scope and searches until it is found."""
    interval: int = Field(default=2000, ge=1)
    """Delay between two searches in milliseconds."""
    timeout: int = Field(default=300_000, ge=1)
    """Timeout in milliseconds; after it, the haystack fails and is not scored."""


def _expand_probe(value: Any) -> Any:
    return {"mode": "probe"} if value == "probe" else value


Wait = Annotated[Poll | Probe, BeforeValidator(_expand_probe, json_schema_input_type=Poll | Probe | Literal["probe"])]


class Capture(Record):
    """A value that is read from a reply: where it is, whether it is a credential, and how long it is valid."""

    path: str
    """JSONPath in the reply."""
    secret: bool = True
    """Whether a value that `setup` captures is a credential, such as a session handle. It is then redacted everywhere
    and not stored: a resumed run sends the request again."""
    expires_in: str | Annotated[float, Field(gt=0)] | None = None
    """How many seconds the value is valid: a number, or a JSONPath in the reply. The `setup` request is sent again
    before that, and whenever a request that uses the value gets status 401."""
    expires_at: str | None = None
    """Instead of `expiresIn`: JSONPath to the time at which the value expires, an ISO 8601 date or Unix time."""


class Request(Call):
    """A request whose reply may contain values for later requests."""

    captures: Mapping[str, str | Capture] = Field(default_factory=dict)
    """Variable → JSONPath in the reply; a path without a match is an error. Captures of `setup` are available in every
    later request, captures of another request only in its `wait`. A capture of `setup` that is only a path is a secret
    if its name or path looks like a credential (`token`, `apiKey`, …); `{path: …}` is a secret unless it has
    `secret: false`. A value that is sent in a header such as `Authorization`, or has the format of a known key, always
    is one."""

    @property
    def capture_paths(self) -> Mapping[str, str]:
        """The JSONPath of each captured variable."""
        return {name: one if isinstance(one, str) else one.path for name, one in self.captures.items()}


class Housekeeping(Request):
    """A request that opens or closes a scope."""

    repeatable: bool = False
    """Whether the request can be sent again and then returns the same ids (`get_or_create`, a lookup). If so, a process
    can search a scope that another process opened; otherwise, that is an error. A request that captures only secrets
    is a login and always repeatable."""
    wait: Poll | None = None
    """How to wait until the service has finished the operation; without it, a reply means that it has."""


class Storing(Request):
    """A request that stores documents."""

    stored_as: str | None = None
    """JSONPath in the reply to the ids that the system assigned (one per message or document, or one for all), if
    results name their sources by them. An id that occurs in several replies stands for the documents of all of them,
    because the system merged them."""
    wait: Wait | None = None
    """How to wait until the documents are searchable; without it, they count as searchable after the reply. `probe` is
    short for `mode: probe`."""


class Add(Storing):
    """Stores one document."""

    unit: Literal["session", "message"] = "session"
    """What a document is: a session, or one message."""
    message: Any = None
    """Template of one message in `$.messages`, with `role`, `speaker`, `content`, `date`, `epoch` and `turnId`. The
    default has `role`, `content` and `at`."""


class BatchAdd(Storing):
    """Stores many documents at once. Used if the provider is `unordered`."""

    document: Any
    """Template of one document, with the variables of `add`. In the body, `$.documents` is the list of documents,
    and `$.documents[*].id` the list of one field."""


class Zip(Record):
    """Parallel arrays: the n-th elements belong together."""

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


class Response(Record):
    """How memories are read from a reply. Paths may have fallbacks: `$.memory | $.chunk`."""

    results: str | None = None
    """JSONPath to the array of results. It may be empty; a missing array is an error."""
    content_field: str | None = None
    """JSONPath to the content, within one result. If it matches several texts, such as `$.parts[*].text`, they are
    joined as lines. The sources of a result without text do not count. A search that returns only such results is
    an error."""
    score_field: str | None = None
    """JSONPath to the score, within one result. If a result has no score, the results keep the order of the reply."""
    id_field: str | None = None
    """JSONPath to the memory's id, within one result."""
    sources_field: str | None = None
    """JSONPath to the ids of the sessions or messages that the result came from, usually in the `metadata` that
    was sent. Only an id that was sent (`documentId`, `sessionId`, `turnId`) or read with `storedAs` counts. Without
    this key, there are no retrieval figures."""
    date_field: str | None = None
    """JSONPath to the date of the memory, which is put before the content."""
    chunks_field: str | None = None
    """JSONPath to chunks of the source. The answering model sees them if the benchmark has `includeChunks`."""
    zip: Zip | None = None
    """Instead of `results`: parallel arrays."""
    score_direction: Literal["higher", "lower", "none"] = "higher"
    """Which scores are better; with `none`, results keep the order of the reply."""


class Pages(Record):
    """A reply is one page of the results. Pages are requested until the search has as many results as it needs."""

    by: Literal["cursor", "offset", "link"]
    """How the next page is requested. `cursor`: with the variable `cursor`, which is the value at `next` in the reply
    before and has no value on the first page. `offset`: with the variable `offset`, the number of results so far, or
    `page`, the number of the page. `link`: at the URL at `next`, which must be on the same server."""
    next: str | None = None
    """JSONPath to the cursor or the link in the reply; missing, null or empty on the last page. Without it, a link is
    read from the header `Link`."""
    more: str | None = None
    """JSONPath to `true` or `false`: whether there are more pages. Without it, an empty page is the last one with
    `by: offset`."""
    size: int | None = Field(default=None, ge=1)
    """Maximum number of results per page; the variable `limit` is at most this number."""
    first_page: int = Field(default=1, ge=0)
    """Number of the first page in the variable `page`."""
    max_pages: int = Field(default=100, ge=1)
    """Maximum number of pages per search. If a search has too few results after that many pages, a warning is reported;
    a `list` fails. A run that needs more than `size` times `maxPages` results is refused before anything is added."""


class Search(Call):
    response: Response
    """How memories are read from the reply."""
    pages: Pages | None = None
    """How further pages of results are requested; without it, the reply has all results."""
    token_budget: int = Field(default=4096, ge=1)
    """Value of the variable `tokenBudget`, for systems that limit results by their number of tokens."""


class ListAll(Call):
    response: Response
    """How memories are read from the reply."""
    pages: Pages | None = None
    """How further pages of memories are requested; without it, the reply has all memories."""


class Endpoints(Record):
    add: Add
    """Stores one document."""
    batch_add: BatchAdd | None = None
    """Stores up to `limits.batchSize` documents at once."""
    search: Search
    """Finds memories."""
    clear: Housekeeping | None = None
    """Deletes a scope after its last question. A failure is reported as a leaked scope."""
    list: ListAll | None = None
    """Lists all memories of a scope."""
    forget: Housekeeping | None = None
    """Deletes the memory with the id `memoryId`, for hygiene stores. The id is one that `list` returned."""
