"""The protocol `Wiring`, through which suites open providers, models and stores without importing them.

A `Resolved…` object is a name that was looked up and checked, but not opened. memorybench.wiring implements this
protocol with the catalog and the environment. Its classes are imported for annotations only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from memorybench.core.agents import Serve, ToolCall, ToolSurface
    from memorybench.core.contracts import Model
    from memorybench.core.questions import Dataset, Question
    from memorybench.core.stores import Isolation, MemoryStore
    from memorybench.core.uses import Consent, Use
    from memorybench.datasets.config import BenchmarkConfig, ModelChoice
    from memorybench.wiring.agents import ResolvedAgent
    from memorybench.wiring.extractors import ResolvedExtractor
    from memorybench.wiring.providers import ProviderOpener
    from memorybench.wiring.traces import FileOperations, FileTraces, LangSmithOperations, LangSmithTraces

    from .extraction.spec import OnlineSpec as ExtractionOnlineSpec
    from .online.spec import OnlineSpec

Row = TypeVar("Row", covariant=True)


class Resolved(Protocol):
    """A provider, model or store whose name was looked up and checked, but that is not opened yet."""

    @property
    def name(self) -> str: ...

    def described(self) -> str:
        """Return a text that describes the config. It must be unchanged when a run is resumed."""
        ...


class ResolvedModel(Resolved, Protocol):
    @property
    def listed_window(self) -> int | None:
        """The context window of the model in tokens; None if it is unknown without a call to the server."""
        ...

    async def fetch_window(self) -> int | None:
        """Return the context window in tokens that the server reports; None if it reports none."""
        ...

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        """Return the dollars of one call; None if unknown."""
        ...

    async def open(self, stack: AsyncExitStack, *, seed: int | None = None) -> Model: ...


class ResolvedProvider(Resolved, Protocol):
    @property
    def is_baseline(self) -> bool:
        """Whether it is a baseline of the suite (`none`, `placebo`, `full-context` or `oracle`), not a memory."""
        ...

    @property
    def spends(self) -> bool:
        """Whether calls of the provider may cost money."""
        ...

    @property
    def default_settings(self) -> Mapping[str, Any]:
        """The default values of the provider's settings; empty if it declares no settings."""
        ...

    @property
    def max_results(self) -> int | None:
        """The most memories that one search can return; None if no limit is known."""
        ...


class ResolvedStore(Resolved, Protocol):
    @property
    def isolation(self) -> Isolation: ...

    def open(self, folder: Path) -> AbstractAsyncContextManager[MemoryStore]: ...

    def choose_tools(self, chosen: ToolSurface | None) -> ToolSurface:
        """Return the kind of tools that an agent gets; raise BadInput if the store does not support `chosen`."""
        ...

    def serve_own_tools(self) -> Serve:
        """Return a function that gives one session of an agent the tools of the store's own MCP server."""
        ...


class SizedRecords(Protocol[Row]):
    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Row]: ...


class Wiring(Protocol):
    """Looks up providers, models, stores and data by name. Raises BadInput if one is unknown or not allowed."""

    def configured(self, config_dirs: Sequence[str], consent: Consent) -> Wiring:
        """Return a copy with these config folders added; `consent` is what the user allows configs to do."""
        ...

    def require_code(self, where: str, uses: Sequence[Use]) -> None:
        """Raise ConsentRequired unless the user allowed the file `where` to run the code in `uses`."""
        ...

    def variable(self, *names: str) -> str | None:
        """Return the value of the first of these environment variables that is set; None if none is."""
        ...

    @property
    def redact(self) -> Callable[[str], str]:
        """A function that replaces every secret of the environment in a text."""
        ...

    def fault(self) -> Callable[[], None] | None:
        """For tests: return a function that kills the process at a chosen commit; None outside tests."""
        ...

    def model(self, name: str) -> ResolvedModel: ...

    def choose_model(
        self, name: str | None, variable: str | None, defaults: Sequence[ModelChoice | None]
    ) -> ResolvedModel | None:
        """Return the model `name`, else the one in the environment `variable`, else the first default with an API key.

        None if there is none of these.
        """
        ...

    def provider(self, name: str, *, check: bool = True) -> ResolvedProvider: ...

    def open_providers(
        self, stack: AsyncExitStack, folder: Path, *, run_id: str, threshold: float | None = None
    ) -> ProviderOpener:
        """Return an object that opens providers. `folder` is for the data of providers that run in this process."""
        ...

    def store(self, name: str) -> ResolvedStore: ...

    def agent(self, name: str, model: str | None) -> ResolvedAgent: ...

    def describe_agent(self, name: str) -> str:
        """Return the agent's config as text, without checking that the agent can run."""
        ...

    def extractor(self, name: str | None, command: str | None, model: str | None) -> ResolvedExtractor: ...

    def traces(self, spec: ExtractionOnlineSpec) -> FileTraces | LangSmithTraces:
        """Return a source of traces: a file or a LangSmith project."""
        ...

    def operations(self, spec: OnlineSpec) -> FileOperations | LangSmithOperations:
        """Return a source of operations on a memory: files of spans or a LangSmith project."""
        ...

    def benchmark(self, name: str) -> BenchmarkConfig: ...

    def describe_benchmark(self, name: str) -> str:
        """Return the benchmark's config as text, without values from the environment."""
        ...

    def dataset(self, config: BenchmarkConfig, file: Path | None = None) -> Dataset: ...

    def evaluator(self, name: str | None) -> Callable[[Question, str], Awaitable[float]]:
        """Return the custom scorer of a benchmark config. It returns a number from 0 (wrong) to 1 (right)."""
        ...

    def bundled_file(self, name: str) -> Path:
        """Return a file or folder that ships with the catalog."""
        ...

    async def record_calls(
        self, command: Sequence[str], serve: Serve, folder: Path, *, quiet: bool = False
    ) -> Sequence[ToolCall]:
        """Run a program that can use a memory server, and return its tool calls. `quiet`: stdout goes to stderr."""
        ...
