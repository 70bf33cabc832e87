"""The keys of a provider config without requests or tools. Field docstrings are the user's documentation."""

# no `from __future__ import annotations`: pydantic would parse the text of every annotation when it creates the classes
# Defaults that are sections use `model_construct()`: it skips validation, for which pydantic would build the class.
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from memorybench.core.records import Record
from memorybench.core.retry_defaults import PROVIDER_FIRST_DELAY, TRIES
from memorybench.http.config import Auth
from memorybench.http.tls import TlsFiles


class Connection(Record):
    base_url: str | None = None
    """Address of the API: https, or http on this machine."""
    timeout: int = Field(default=30_000, ge=1)
    """Timeout of one request in milliseconds."""
    insecure: bool = False
    """Allow plain http to another machine: keys and data are visible on the network."""
    tls: TlsFiles = TlsFiles.model_construct()
    """Certificates for https."""
    sign: str | None = None
    """`./file.py:function` that signs each request: it gets a `RequestToSign` and returns the headers to add. Requires
    --allow-code."""


class Docker(Record):
    compose: str
    """Path of the compose file, relative to this file or to the working folder."""
    service: str
    """The service in the compose file that has the API."""
    healthcheck: str
    """URL that returns status 200 when the service is ready."""
    base_url: str
    """Address of the API of the running service."""
    timeout: int = Field(default=120_000, ge=1)
    """Timeout for the service to become ready, in milliseconds."""


class Scoping(Record):
    strategy: Literal["containerTags", "userId", "sessionId", "custom"] = "custom"
    """How requests name the scope. `containerTags`, `userId`, `sessionId`: every request that adds or searches must
    contain the name of the scope; `custom`: an id that `setup` captured for the scope is accepted as well."""
    run_id_format: str = "${benchmarkId}-${runId}-${haystackId}"
    """Name of the scope, from `benchmarkId`, `runId` and `haystackId`. Missing parts are appended, so that two
    haystacks, runs or providers never share a memory."""


class Limits(Record):
    batch_size: int = Field(default=100, ge=1)
    """Maximum number of documents in one `batchAdd`."""
    batch_sessions: int | None = Field(default=None, ge=1)
    """Maximum number of sessions whose documents are sent in one `batchAdd`."""
    batch_messages: int | None = Field(default=None, ge=1)
    """Maximum number of messages in one `batchAdd`, for documents with `messages` or of one message each."""
    batch_bytes: int | None = Field(default=None, ge=1)
    """Maximum size of the body of one `batchAdd` in bytes. A document that is larger fails."""
    max_messages: int | None = Field(default=None, ge=1)
    """Maximum number of messages in one add; a longer session is sent in several requests."""
    max_characters: int | None = Field(default=None, ge=1)
    """Maximum length of a document or message; a longer one is split, at the end of a sentence if possible."""
    max_query_characters: int | None = Field(default=None, ge=1)
    """Maximum length of a query; a longer one is cut after a word."""
    max_results: int | None = Field(default=None, ge=1)
    """Maximum number of results of a search; a run that needs more is an error."""


class Capabilities(Record):
    supports_chunks: bool | None = None
    """Whether results contain chunks of their source; `false` with a `chunksField` is an error."""
    supports_batch: bool | None = None
    """Whether many documents can be added at once. `true` without `endpoints.batchAdd` is an error; with `false`,
    `endpoints.batchAdd` is not used."""
    supports_metadata: bool | None = None
    """Whether the system stores metadata; `false` with a use of `metadata` is an error."""
    supports_rerank: bool | None = None
    """Whether the system can rerank; shown by `describe`."""
    unordered: bool = False
    """The order of sessions does not matter: they may be added in parallel and in batches."""


class RateLimit(Record):
    add_delay_ms: int = Field(default=0, ge=0)
    """Minimum delay between two adds in milliseconds."""
    search_delay_ms: int = Field(default=0, ge=0)
    """Minimum delay between two searches in milliseconds."""
    batch_delay_ms: int = Field(default=1000, ge=0)
    """Minimum delay between two batches in milliseconds."""
    max_retries: int = Field(default=TRIES - 1, ge=0)
    """Maximum number of retries of a request. Permanent errors are not retried."""
    retry_delay_ms: int = Field(default=int(1000 * PROVIDER_FIRST_DELAY), ge=0)
    """Maximum delay before the first retry in milliseconds, doubled for each further one; the delay is a random time of
    at least half of it. Retry-After takes precedence."""
    concurrency: int | None = Field(default=None, ge=1)
    """Maximum number of requests at the same time."""
    requests_per_second: float | None = Field(default=None, gt=0)
    """Maximum number of requests per second."""


class Embedding(Record):
    """The embedder, which turns text into vectors."""

    provider: Literal["local", "openai", "google"] = "local"
    """`local` (in this process, without a key), `openai` (any server with its API) or `google`."""
    model: str | None = None
    """The embedding model."""
    dimensions: int | None = Field(default=None, ge=1)
    """Length of the vectors, for models that support several."""
    base_url: str | None = None
    """Address of an OpenAI-compatible server; by default, that of OpenAI or `OPENAI_BASE_URL`."""
    env_var: str | None = None
    """Name of the environment variable that contains the key."""


class Database(Record):
    type: Literal["sqlite", "postgres"] = "sqlite"
    """`sqlite`: a file in the results folder; `postgres`: requires pgvector and a `connectionString`."""
    connection_string: str | None = None
    """Address of Postgres, usually `${DATABASE_URL}`."""
    schema_file: str | None = Field(default=None, alias="schema")
    """Path of an SQL file, relative to this file or to the working folder. It runs at every opening, before the
    provider's `CREATE TABLE IF NOT EXISTS`, so that it may create the tables in another way."""


class Chunking(Record):
    size: int = Field(default=1024, ge=1)
    """Tokens per chunk; a token counts as 4 bytes of text."""
    overlap: int = Field(default=96, ge=0)
    """Tokens that a chunk shares with the previous one; must be less than `size`."""
    strategy: Literal["fixed", "semantic", "paragraph"] = "fixed"
    """Where chunks end: after `size` tokens, where the topic changes, or at the end of a paragraph."""


class Enhancement(Record):
    enabled: bool = True
    """Whether a model processes each chunk when it is stored."""
    model: str | None = None
    """Name of the model that processes the chunks."""
    generate_questions: bool = False
    """Whether the model writes questions that the chunk answers; they are searched with the chunk."""
    questions_per_chunk: int = Field(default=10, ge=1)
    """Number of questions per chunk."""


class Retrieval(Record):
    strategy: Literal["lexical", "dense", "weighted"] = "weighted"
    """How chunks are scored: by words (`lexical`), by vectors (`dense`), or by the weighted sum of the scores that
    `weights` names (`weighted`)."""
    max_results: int | None = Field(default=None, ge=1)
    """Maximum number of chunks that a search returns; a run that asks for fewer gets fewer."""
    weights: Mapping[str, float] = Field(default_factory=dict)
    """Weight of each score, such as `chunk` and `questions`."""


class Local(Record):
    database: Database = Database.model_construct()
    """Database of the provider."""
    chunking: Chunking = Chunking.model_construct()
    """How sessions are split into chunks."""
    embedding: Embedding = Embedding.model_construct()
    """The embedder."""
    enhancement: Enhancement | None = None
    """What a model adds to each chunk; without it, nothing."""
    retrieval: Retrieval = Retrieval.model_construct()
    """How chunks are ranked."""


class PlainProviderConfig(Record):
    """The config of a provider without requests and tools. Its subclass ProviderConfig adds the sections for these."""

    name: str
    """Name on the command line: 1 to 64 of a-z 0-9 _ -."""
    display_name: str = ""
    """Name in reports."""
    description: str = ""
    """One line for `list`."""
    extends: str | None = None
    """Another provider, whose keys this file changes or adds to. Mappings are merged, lists are replaced; `type`,
    `adapter`, `docker` and `mcp` cannot be changed."""
    type: Literal["hosted", "local", "docker"]
    """`hosted` (an API), `local` (Python in this process) or `docker` (a container that is started for the run)."""
    api_version: str = ""
    """Version of the API that this file is written for; recorded with every result."""
    checked_against: str = ""
    """The version of the system, or of its documentation, that this file was checked against; shown by `describe`."""
    tags: tuple[str, ...] = ()
    """Tags for `list --tags`."""
    connection: Connection = Connection.model_construct()
    """The API of a `hosted` provider; `timeout`, `insecure` and `tls` also apply to `docker`."""
    adapter: str | None = None
    """The class of a `local` provider: `builtin:NAME`, `plugin:NAME` (of an installed package), or `./file.py:Class`,
    which requires --allow-code."""
    docker: Docker | None = None
    """The container of a `docker` provider. Requires --allow-code."""
    auth: Auth = Auth.model_construct(type="none")
    """How requests are authenticated."""
    scoping: Scoping = Scoping.model_construct()
    """How the memories of different haystacks are kept apart."""
    setup: tuple[Any, ...] = ()
    endpoints: Any = None
    teardown: tuple[Any, ...] = ()
    limits: Limits = Limits.model_construct()
    """Limits of the system."""
    capabilities: Capabilities = Capabilities.model_construct()
    """Capabilities of the system."""
    rate_limit: RateLimit = RateLimit.model_construct()
    """Rate limits and retries."""
    embedding: Embedding | None = None
    """The embedder for the variable `embedding`: the vector of the content or query, if the system needs vectors."""
    local: Local | None = None
    """Settings of a `local` provider."""
    mcp: Any = None
    settings: Mapping[str, Any] = Field(default_factory=dict)
    """Settings of the provider; `memorybench describe NAME` lists them. In a file with `extends`, also sections of the
    extended provider, such as `chunking` or `limits`."""

    @property
    def max_results(self) -> int | None:
        """Maximum number of memories that a search can return, by `limits` and `pages`; None if neither limits it."""
        pages = getattr(getattr(self.endpoints, "search", None), "pages", None)
        by_pages = pages.size * pages.max_pages if pages is not None and pages.size is not None else None
        return min((most for most in (self.limits.max_results, by_pages) if most is not None), default=None)

    @property
    def enhancement_model(self) -> str | None:
        """The name of the model that processes each chunk or session when it is stored; None if no model does."""
        enhancement = self.local.enhancement if self.local else None
        return enhancement.model if enhancement and enhancement.enabled else None
