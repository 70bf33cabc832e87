"""What a provider config may say. Field docstrings are the user's documentation, as in config_requests.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from memorybench.http.tls import TlsFiles

from .config_mcp import Mcp
from .config_requests import Endpoints, Housekeeping, Section


class Connection(Section):
    base_url: str | None = None
    """Where the API is: https, or http on this machine."""
    timeout: int = Field(default=30_000, ge=1)
    """Milliseconds for one request, from the first to the last byte."""
    insecure: bool = False
    """Allows plain http to another machine, which shows keys and data to the network."""
    tls: TlsFiles = TlsFiles()
    """Certificates for https."""


class Docker(Section):
    compose: str
    """Path of the compose file, from this file or from the working folder."""
    service: str
    """The service in the compose file that speaks the API."""
    healthcheck: str
    """URL that answers with 200 when the service is ready."""
    base_url: str
    """Where the API is once the service runs."""
    timeout: int = Field(default=120_000, ge=1)
    """Milliseconds that the service may take to become ready."""


class Auth(Section):
    type: Literal["bearer", "token", "apikey", "none"]
    """What is sent: `bearer`: `Bearer KEY`; `token`: `Token KEY`; `apikey`: the bare key."""
    header: str = "Authorization"
    """The header it is sent in."""
    prefix: str | None = None
    """What stands before the key, in the place of what `type` says."""
    env_var: str | None = None
    """Name of the environment variable that holds the key; never the key itself."""


class Scoping(Section):
    strategy: Literal["containerTags", "userId", "sessionId", "custom"] = "custom"
    """What carries the scope. `containerTags`, `userId`, `sessionId`: the scope's own name must stand in every
    request that adds or searches, whatever the system calls it; `custom`: an id that `setup` captured for the scope
    will do as well."""
    run_id_format: str = "${benchmarkId}-${runId}-${haystackId}"
    """The scope's name, from `benchmarkId`, `runId` and `haystackId`; what is left out is appended, so that no two
    haystacks, runs or providers ever share a memory."""


class Limits(Section):
    batch_size: int = Field(default=100, ge=1)
    """Documents that one `batchAdd` may hold."""
    max_messages: int | None = Field(default=None, ge=1)
    """Messages that one add may hold; a longer session is sent in several."""
    max_characters: int | None = Field(default=None, ge=1)
    """Characters that one document or message may have; a longer one is split, at a sentence's end where it can be."""
    max_query_characters: int | None = Field(default=None, ge=1)
    """Characters that a query may have; a longer one is cut at a word's end."""
    max_results: int | None = Field(default=None, ge=1)
    """Results that a search may ask for; a run that wants more is refused."""


class Capabilities(Section):
    supports_chunks: bool | None = None
    """Whether results bring chunks of their source; `false` beside a `chunksField` is refused."""
    supports_batch: bool | None = None
    """Whether many documents can be added at once; `true` without `endpoints.batchAdd` is refused; with `false` it
    is not used."""
    supports_metadata: bool | None = None
    """Whether the system keeps metadata; `false` beside a use of `metadata` is refused."""
    supports_rerank: bool | None = None
    """Whether the system can rerank; shown by `describe`."""
    unordered: bool = False
    """The order of sessions does not matter to the system: they may be added side by side and in batches."""


class RateLimit(Section):
    add_delay_ms: int = Field(default=0, ge=0)
    """Milliseconds between two adds."""
    search_delay_ms: int = Field(default=0, ge=0)
    """Milliseconds between two searches."""
    batch_delay_ms: int = Field(default=1000, ge=0)
    """Milliseconds between two batches."""
    max_retries: int = Field(default=3, ge=0)
    """How often a failed request is tried again; one that the system refuses for good is not."""
    retry_delay_ms: int = Field(default=2000, ge=0)
    """Milliseconds before the first retry, doubled for each further one; a Retry-After header wins."""
    concurrency: int | None = Field(default=None, ge=1)
    """Requests in flight at most."""
    requests_per_second: float | None = Field(default=None, gt=0)
    """Requests begun in a second at most."""


class Embedding(Section):
    """Who turns text into vectors."""

    provider: Literal["local", "openai", "google"] = "local"
    """Who makes the vectors: `local` (in this process, no key), `openai` (any server that speaks its API), `google`."""
    model: str | None = None
    """The embedding model."""
    dimensions: int | None = Field(default=None, ge=1)
    """Length of the vectors, for models that can choose."""
    base_url: str | None = None
    """Where an OpenAI-compatible server is, if not at OpenAI."""
    env_var: str | None = None
    """Name of the environment variable that holds the key."""


class Database(Section):
    type: Literal["sqlite", "postgres"] = "sqlite"
    """`sqlite`: a file in the results folder; `postgres`: needs pgvector and a `connectionString`."""
    connection_string: str | None = None
    """Where Postgres is, usually `${DATABASE_URL}`."""
    schema_file: str | None = Field(default=None, alias="schema")
    """Path of an SQL file, from this file or the working folder. It is run at every opening, before the adapter's own
    `CREATE TABLE IF NOT EXISTS`: what it creates first is used."""


class Chunking(Section):
    size: int = Field(default=1024, ge=1)
    """Tokens in a chunk; a token is taken for 4 bytes of text."""
    overlap: int = Field(default=96, ge=0)
    """Tokens that a chunk shares with the one before it; less than `size`."""
    strategy: Literal["fixed", "semantic", "paragraph"] = "fixed"
    """Where chunks end: after `size` tokens, where the topic changes, or at the end of a paragraph."""


class Enhancement(Section):
    enabled: bool = True
    """Whether a model works on each chunk when it is stored."""
    model: str | None = None
    """That model."""
    generate_questions: bool = False
    """Whether it writes questions that the chunk answers, to be found by."""
    questions_per_chunk: int = Field(default=10, ge=1)
    """How many."""


class Retrieval(Section):
    strategy: Literal["lexical", "dense", "weighted"] = "weighted"
    """By words, by vectors, or by the sum of what `weights` names."""
    max_results: int | None = Field(default=None, ge=1)
    """Chunks that a search gives back at most; the run's k may ask for fewer."""
    weights: Mapping[str, float] = Field(default_factory=dict)
    """What each part counts, such as `chunk` and `questions`."""


class Local(Section):
    database: Database = Database()
    """Where the adapter keeps what it stores."""
    chunking: Chunking = Chunking()
    """How sessions are cut."""
    embedding: Embedding = Embedding()
    """Who makes its vectors."""
    enhancement: Enhancement | None = None
    """What a model adds to each chunk; nothing without it."""
    retrieval: Retrieval = Retrieval()
    """How chunks are found."""


class ProviderConfig(Section):
    """A memory system, and how to speak with it."""

    name: str
    """What it is called on the command line: 1 to 64 of a-z 0-9 _ -."""
    display_name: str = ""
    """What reports call it."""
    description: str = ""
    """One line for `list`."""
    type: Literal["hosted", "local", "docker"]
    """How it runs: an API somewhere, Python in this process, or a container that is started for the run."""
    api_version: str = ""
    """The version of its API that this file is written for; recorded with every result."""
    checked_against: str = ""
    """What this file was checked against; shown by `describe`."""
    tags: tuple[str, ...] = ()
    """Words to find it by: `list --tags`."""
    connection: Connection = Connection()
    """The API of a `hosted` provider; `timeout`, `insecure` and `tls` also serve `docker`."""
    adapter: str | None = None
    """The Python of a `local` provider: `builtin:NAME`, `plugin:NAME` (an installed package), or `./file.py:Class`,
    which runs only with --allow-code."""
    docker: Docker | None = None
    """The container of a `docker` provider."""
    auth: Auth = Auth(type="none")
    """How requests prove who sends them."""
    scoping: Scoping = Scoping()
    """How haystacks are kept apart."""
    setup: tuple[Housekeeping, ...] = ()
    """Requests that open a scope, in this order, before its first add."""
    endpoints: Endpoints | None = None
    """The requests of a `hosted` or `docker` provider."""
    teardown: tuple[Housekeeping, ...] = ()
    """Requests that close a scope, in this order, after `endpoints.clear`."""
    limits: Limits = Limits()
    """What the system can take at once."""
    capabilities: Capabilities = Capabilities()
    """What the system can do."""
    rate_limit: RateLimit = RateLimit()
    """How hard it may be driven."""
    embedding: Embedding | None = None
    """Makes the variable `embedding` of content and query, for a system that wants vectors."""
    local: Local | None = None
    """Settings of a `local` provider."""
    mcp: Mcp | None = None
    """The server behind `adapter: builtin:mcp`."""
