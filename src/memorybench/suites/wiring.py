"""The contract `Wiring`, by which suites open providers, models and stores without importing them.

A `Resolved…` object is a name that was looked up and checked, but not opened. memorybench.wiring implements this
contract with the catalog and the environment.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from memorybench.core.agents import Agent, Serve, ToolCall, ToolSurface
    from memorybench.core.contracts import Embedder, Model, Provider
    from memorybench.core.extraction import Extractor, FeedbackSink, Trace
    from memorybench.core.operations import MemorySearch, MemoryWrite
    from memorybench.core.plans import Limits
    from memorybench.core.questions import Dataset, Question
    from memorybench.core.stores import Isolation, MemoryStore
    from memorybench.core.trials import Subject
    from memorybench.core.uses import Consent, Use
    from memorybench.datasets.config import BenchmarkConfig, ModelChoice

Row = TypeVar("Row", covariant=True)


class Resolved(Protocol):
    """A name that was looked up and checked, but not opened."""

    @property
    def name(self) -> str: ...

    def described(self) -> str:
        """Return the text that must be unchanged when a run is resumed."""
        ...


class ResolvedModel(Resolved, Protocol):
    @property
    def listed_window(self) -> int | None:
        """Its context window in tokens, if known without a call to its server."""
        ...

    async def fetch_window(self) -> int | None:
        """Return the context window that the server reports."""
        ...

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        """Return the dollars of one call; None if unknown."""
        ...

    async def open(self, stack: AsyncExitStack, *, seed: int | None = None) -> Model: ...


class ResolvedProvider(Resolved, Protocol):
    @property
    def is_baseline(self) -> bool:
        """Whether it is a baseline of the suite: `none`, `placebo`, `full-context` or `oracle`."""
        ...

    @property
    def spends(self) -> bool:
        """Whether its calls may cost money."""
        ...

    @property
    def default_settings(self) -> Mapping[str, Any]:
        """The values of its settings where a config sets none; empty if it declares no settings."""
        ...

    @property
    def max_results(self) -> int | None:
        """The most memories that a search can return; None: no limit is known."""
        ...


class OpenedProvider(Protocol):
    @property
    def provider(self) -> Provider: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def remote(self) -> bool: ...

    @property
    def spends(self) -> bool: ...

    @property
    def unordered(self) -> bool: ...


class ProviderOpener(Protocol):
    """Opens the providers of one run. Shared parts, such as the local embedder, are opened once."""

    async def open(self, name: str) -> OpenedProvider: ...

    async def embedder(self) -> Embedder: ...


class ResolvedStore(Resolved, Protocol):
    @property
    def isolation(self) -> Isolation: ...

    def open(self, folder: Path) -> AbstractAsyncContextManager[MemoryStore]: ...

    def choose_tools(self, chosen: ToolSurface | None) -> ToolSurface:
        """Return which tools an agent gets; raise BadInput if it cannot get the chosen ones."""
        ...

    def serve_own_tools(self) -> Serve:
        """Return a function that serves the tools of an MCP server itself to one session of an agent."""
        ...


class ResolvedAgent(Protocol):
    @property
    def model(self) -> ResolvedModel | None: ...

    async def open(self, stack: AsyncExitStack) -> Agent: ...


class ResolvedExtractor(Resolved, Protocol):
    @property
    def model(self) -> ResolvedModel | None: ...

    @property
    def spends(self) -> bool: ...

    async def open(self, stack: AsyncExitStack, stores: Path, run: str) -> Extractor: ...


class FetchedTraces(Protocol):
    """Traces in a file of the run."""

    @property
    def path(self) -> Path: ...

    @property
    def problems(self) -> Mapping[str, str]:
        """By trace id: the reason why it cannot be judged."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Trace]: ...


class SpanQuery(Protocol):
    """Which recorded spans to read; the spec of a run says it."""

    @property
    def source(self) -> str: ...

    @property
    def file(self) -> str | None: ...

    @property
    def project(self) -> str | None: ...

    @property
    def since(self) -> str | None: ...

    @property
    def limit(self) -> int | None: ...

    @property
    def write_names(self) -> Sequence[str]: ...


class TraceQuery(SpanQuery, Protocol):
    """Which traces of an extractor to read."""

    @property
    def tag(self) -> str: ...

    @property
    def paths(self) -> Mapping[str, str]: ...


class OperationQuery(SpanQuery, Protocol):
    """Which operations on a memory to read."""

    @property
    def search_names(self) -> Sequence[str]: ...

    @property
    def kinds(self) -> Sequence[str]: ...

    @property
    def feedback(self) -> bool: ...


class ResolvedTraces(Protocol):
    """A source of traces: a LangSmith project or a file."""

    async def fetch(self, path: Path) -> tuple[Subject, FetchedTraces]:
        """Download the traces into a file, unless it exists. Costs nothing."""
        ...

    async def open_feedback(self, stack: AsyncExitStack) -> FeedbackSink | None:
        """Open the destination of scores; None if the source accepts none."""
        ...


class SizedRecords(Protocol[Row]):
    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Row]: ...


class FetchedOperations(Protocol):
    """Searches and writes in a memory that happened elsewhere, in files of the run."""

    @property
    def subject(self) -> Subject: ...

    @property
    def searches(self) -> SizedRecords[MemorySearch]: ...

    @property
    def writes(self) -> SizedRecords[MemoryWrite]: ...

    def digest(self) -> str:
        """Return a digest of the files."""
        ...

    def remove(self) -> None:
        """Remove the files."""
        ...


class ResolvedOperations(Protocol):
    """A source of recorded operations: files of spans, or a LangSmith project."""

    @property
    def since(self) -> str | None:
        """The date and time from which they are read."""
        ...

    async def fetch(self, folder: Path) -> FetchedOperations:
        """Collect the operations into files in this folder, unless they exist. Costs nothing."""
        ...

    async def open_feedback(self, stack: AsyncExitStack) -> FeedbackSink | None:
        """Open the destination of scores; None if the source accepts none."""
        ...


class Wiring(Protocol):
    """Looks up names; raises BadInput if something is unknown, missing or not allowed."""

    def configured(self, config_dirs: Sequence[str], consent: Consent) -> Wiring:
        """Return a copy with more config folders, and with what the user allows them."""
        ...

    def require_code(self, where: str, uses: Sequence[Use]) -> None:
        """Raise ConsentRequired unless the user allows this code of a file."""
        ...

    def variable(self, *names: str) -> str | None:
        """Return the first of these environment variables that is set."""
        ...

    @property
    def redact(self) -> Callable[[str], str]:
        """Replaces every secret of the environment in a text."""
        ...

    def fault(self) -> Callable[[], None] | None:
        """For tests: kills the process at a chosen commit."""
        ...

    def model(self, name: str) -> ResolvedModel: ...

    def choose_model(
        self, name: str | None, variable: str | None, defaults: Sequence[ModelChoice | None]
    ) -> ResolvedModel | None:
        """Return the model `name`, else that of the variable, else the first default with an API key, else None."""
        ...

    def provider(self, name: str, *, check: bool = True) -> ResolvedProvider: ...

    def open_providers(
        self, stack: AsyncExitStack, folder: Path, *, run_id: str, threshold: float | None = None
    ) -> ProviderOpener:
        """Return an opener; `folder` is for the data of providers that run in this process."""
        ...

    def store(self, name: str) -> ResolvedStore: ...

    def agent(self, name: str, model: str | None) -> ResolvedAgent: ...

    def describe_agent(self, name: str) -> str:
        """Return the agent's config as text, without checking that the agent can run."""
        ...

    def extractor(self, name: str | None, command: str | None, model: str | None) -> ResolvedExtractor: ...

    def traces(self, query: TraceQuery) -> ResolvedTraces: ...

    def operations(self, query: OperationQuery) -> ResolvedOperations:
        """Return the operations on a memory in recorded spans."""
        ...

    def benchmark(self, name: str) -> BenchmarkConfig: ...

    def describe_benchmark(self, name: str) -> str:
        """Return the benchmark's config as text, without values from the environment."""
        ...

    def dataset(self, config: BenchmarkConfig, file: Path | None = None) -> Dataset: ...

    def evaluator(self, name: str | None) -> Callable[[Question, str], Awaitable[float]]:
        """Return the custom evaluator of a benchmark config. It returns 0 (wrong) to 1 (right)."""
        ...

    def bundled_file(self, name: str) -> Path:
        """Return a file or folder that ships with the catalog."""
        ...

    async def record_calls(
        self, command: Sequence[str], serve: Serve, folder: Path, *, quiet: bool = False
    ) -> Sequence[ToolCall]:
        """Run a program with a memory server and return the calls that it made; `quiet`: it prints to stderr only."""
        ...
