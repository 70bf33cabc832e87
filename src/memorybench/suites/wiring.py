"""`Wiring`: how a suite gets live objects. Suites receive one and import no provider, model or store themselves.

A `Resolved…` object is a name that was looked up: all that can be checked before a run was checked, and nothing is
opened yet. memorybench.wiring implements this contract from the catalog and the environment.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Protocol

from memorybench.core.agents import Agent, Serve, ToolCall
from memorybench.core.contracts import Embedder, Model, Provider
from memorybench.core.extraction import Extractor, FeedbackSink, Trace
from memorybench.core.plans import Limits
from memorybench.core.questions import Dataset, Question
from memorybench.core.stores import MemoryStore
from memorybench.core.trials import Subject
from memorybench.datasets.config import BenchmarkConfig, ModelChoice


class Resolved(Protocol):
    """A name that was looked up."""

    @property
    def name(self) -> str: ...

    def described(self) -> str:
        """What must be unchanged when a run is resumed."""
        ...


class ResolvedModel(Resolved, Protocol):
    @property
    def listed_window(self) -> int | None:
        """Its context window in tokens, where that is known without asking its server."""
        ...

    async def fetch_window(self) -> int | None:
        """Its context window as its server reports it."""
        ...

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        """Dollars for one call; None: unknown."""
        ...

    async def open(self, stack: AsyncExitStack, *, seed: int | None = None) -> Model: ...


class ResolvedProvider(Resolved, Protocol):
    @property
    def is_baseline(self) -> bool:
        """Whether the suite makes it itself: `none`, `full-context` or `oracle`."""
        ...

    @property
    def asks_model(self) -> bool:
        """Whether it asks a model of its own when data is added."""
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
    """Opens the providers of one run. What they share, such as the local embedder, is opened once."""

    async def open(self, name: str) -> OpenedProvider: ...

    async def embedder(self) -> Embedder: ...


class ResolvedStore(Resolved, Protocol):
    def open(self, folder: Path) -> AbstractAsyncContextManager[MemoryStore]: ...


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
    """Traces in a file beside the run."""

    @property
    def path(self) -> Path: ...

    @property
    def problems(self) -> Mapping[str, str]:
        """By trace id: why it cannot be judged."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Trace]: ...


class ResolvedTraces(Protocol):
    """Where traces come from: a LangSmith project or a file."""

    async def fetch(self, path: Path) -> tuple[Subject, FetchedTraces]:
        """Fetches the traces into a file, unless it is there already. Costs nothing."""
        ...

    async def open_feedback(self, stack: AsyncExitStack) -> FeedbackSink | None:
        """Where scores can be written back to; None: the source takes none."""
        ...


class Wiring(Protocol):
    """Looks up names, and raises BadInput where something is unknown, missing or not allowed."""

    def configured(self, config_dirs: Sequence[str], allow_code: bool) -> Wiring:
        """The same, with more folders of configs and, where the user allows it, their code."""
        ...

    def variable(self, *names: str) -> str | None:
        """The first of these environment variables that is set."""
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
        """The model named, else the one in the variable, else the first default that has its key; None: no model."""
        ...

    def provider(self, name: str, *, check: bool = True) -> ResolvedProvider: ...

    def open_providers(
        self, stack: AsyncExitStack, folder: Path, *, run_id: str, threshold: float | None = None
    ) -> ProviderOpener:
        """`folder` is where providers of this process keep their data."""
        ...

    def store(self, name: str) -> ResolvedStore: ...

    def agent(self, name: str, model: str | None) -> ResolvedAgent: ...

    def describe_agent(self, name: str) -> str:
        """The agent's config as text, without checking that the agent could run."""
        ...

    def extractor(self, name: str | None, command: str | None, model: str | None) -> ResolvedExtractor: ...

    def traces(
        self,
        source: str,
        *,
        file: str | None,
        project: str | None,
        tag: str | None,
        since: str | None,
        limit: int | None,
        paths: Mapping[str, str],
    ) -> ResolvedTraces: ...

    def benchmark(self, name: str) -> BenchmarkConfig: ...

    def describe_benchmark(self, name: str) -> str:
        """The benchmark's config as text, as it was written: without values from the environment."""
        ...

    def dataset(self, config: BenchmarkConfig, file: Path | None = None) -> Dataset: ...

    def evaluator(self, name: str | None) -> Callable[[Question, str], Awaitable[float]]:
        """The custom evaluator that a benchmark config names: 1 right, 0 wrong, or a share between."""
        ...

    def bundled_file(self, name: str) -> Path:
        """A file or folder that ships with the catalog."""
        ...

    async def record_calls(self, command: Sequence[str], serve: Serve, folder: Path) -> Sequence[ToolCall]:
        """Runs a program in front of a memory server and returns the calls it made."""
        ...
