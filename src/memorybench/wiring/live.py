"""The wiring of real runs: looks up names in the catalog and keys in the environment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from memorybench.catalog.catalog import Catalog
from memorybench.core.errors import BadInput
from memorybench.core.uses import Consent
from memorybench.journal.rows import Fingerprint, config_text

from .consent import check_consent, require_code
from .credentials import learn_secrets
from .environment import environment, fault, first_variable, redactor
from .providers import ProviderOpener, check_provider, described, may_spend, registered_class
from .source_code import code_of

if TYPE_CHECKING:
    from memorybench.catalog.entries import Entry
    from memorybench.core.agents import Serve, ToolCall
    from memorybench.core.questions import Dataset, Question
    from memorybench.core.uses import Use
    from memorybench.datasets.config import BenchmarkConfig, ModelChoice
    from memorybench.suites.extraction.spec import OnlineSpec as ExtractionOnlineSpec
    from memorybench.suites.online.spec import OnlineSpec

    from .agents import ResolvedAgent
    from .extractors import ResolvedExtractor
    from .models import ModelResolver, ResolvedModel
    from .stores import ResolvedStore
    from .traces import FileOperations, FileTraces, LangSmithOperations, LangSmithTraces

T = TypeVar("T")
_CATALOG_FILES = Path(__file__).parents[1] / "catalog"


class ResolvedProvider(Struct, frozen=True):
    """A provider whose config was found and checked."""

    entry: Entry
    catalog: Catalog

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def is_baseline(self) -> bool:
        """Whether it is a baseline of the suite (`none`, `placebo`, `full-context` or `oracle`), not a memory."""
        return self.entry.kind == "baseline"

    @property
    def spends(self) -> bool:
        """Whether calls of the provider may cost money."""
        return not self.is_baseline and may_spend(self.catalog.provider(self.name))

    @property
    def default_settings(self) -> Mapping[str, Any]:
        """The default values of the provider's settings; empty if it declares no settings."""
        provider = None if self.is_baseline else registered_class(self.catalog, self.catalog.provider(self.name))
        model = provider.settings_model if provider is not None else None
        return {} if model is None else model.model_construct().model_dump(mode="json")

    @property
    def max_results(self) -> int | None:
        """The most memories that one search can return; None if no limit is known."""
        return None if self.is_baseline else self.catalog.provider(self.name).max_results

    @property
    def uses_threshold(self) -> bool:
        """Whether its search requests contain the variable `threshold`."""
        endpoints = None if self.is_baseline else self.catalog.provider(self.name).endpoints
        search = "" if endpoints is None else endpoints.search.model_dump_json()
        return "$.threshold" in search or "${threshold}" in search

    def described(self) -> str:
        """Return a text that identifies the provider. If it changes, a run cannot be resumed."""
        return described(self.catalog, self.entry)


class LiveWiring:
    """Looks up and opens everything that a run names. Raises BadInput if a name is unknown or not allowed.

    Suites get it as `Wiring`, because they must not import this package.
    """

    def __init__(
        self,
        config_dirs: Sequence[str] = (),
        consent: Consent | None = None,
        folder: Path | None = None,
        *,
        need_keys: bool = True,
    ) -> None:
        """Search for configs in `config_dirs` and `folder` (None: the current folder).

        `need_keys` is False in a dry run.
        """
        self.missing: list[BadInput] = []
        """In a dry run: the errors that a real run would raise, such as about keys that are not set."""
        self._need_keys = need_keys
        self._config_dirs = tuple(config_dirs)
        self._consent = consent or Consent()
        self._folder = folder or Path()

    @cached_property
    def catalog(self) -> Catalog:
        return Catalog(self._folder, [Path(place) for place in self._config_dirs], learn_secrets)

    def configured(self, config_dirs: Sequence[str], consent: Consent) -> LiveWiring:
        """Return a copy with these config folders instead; `consent` is what the user allows configs to do."""
        wiring = LiveWiring(config_dirs, consent, self._folder, need_keys=self._need_keys)
        wiring.missing = self.missing
        return wiring

    def _resolve(self, resolve: Callable[..., T]) -> T:
        """Return the result of `resolve`.

        In a dry run, an error about something that only a real run needs, such as a key, is added to `missing` instead
        of raised.
        """
        if self._need_keys:
            return resolve(need_keys=True)
        found = resolve(need_keys=False)
        try:
            resolve(need_keys=True)
        except BadInput as missing:
            self.missing.append(missing)
        return found

    def require_code(self, where: str, uses: Sequence[Use]) -> None:
        """Raise ConsentRequired unless the user allowed the file `where` to run the code in `uses`."""
        require_code(where, uses, self._consent)

    def variable(self, *names: str) -> str | None:
        """Return the value of the first of these environment variables that is set; None if none is."""
        return first_variable(*names)

    @cached_property
    def redact(self) -> Callable[[str], str]:
        """A function that replaces every secret of the environment in a text."""
        return redactor().clean  # the journal redacts every row

    def fault(self) -> Callable[[], None] | None:
        """For tests: return a function that kills the process at a chosen commit; None outside tests."""
        return fault()

    def _models(self, need_keys: bool) -> ModelResolver:
        from .models import ModelResolver

        return ModelResolver(self.catalog, self._consent, need_keys)

    def model(self, name: str) -> ResolvedModel:
        return self._resolve(lambda need_keys: self._models(need_keys).resolve(name))

    def choose_model(
        self, name: str | None, variable: str | None, defaults: Sequence[ModelChoice | None]
    ) -> ResolvedModel | None:
        """Return the model `name`, else the one that the environment `variable` names, else the first default.

        None if there is none of these, if the name is "none", or if the API key of the default is not set.
        """
        if not name and not any(defaults) and not (variable and self.variable(variable)):
            return None
        return self._resolve(lambda need_keys: self._models(need_keys).choose(name, variable, defaults))

    def provider(self, name: str, *, check: bool = True) -> ResolvedProvider:
        entry = self.catalog.chosen("provider", name)
        if check and entry.kind != "baseline":
            self._resolve(partial(check_provider, self.catalog, entry, self._consent))
        return ResolvedProvider(entry, self.catalog)

    def open_providers(
        self, stack: AsyncExitStack, folder: Path, *, run_id: str, threshold: float | None = None
    ) -> ProviderOpener:
        """Return an object that opens providers. `folder` is for the data of providers that run in this process.

        `threshold` is the value of the variable `threshold` in search requests; None: the variable has no value.
        """
        return ProviderOpener(stack, self.catalog, folder, run_id, self._consent, threshold)

    def store(self, name: str) -> ResolvedStore:
        from .stores import resolve_store

        return self._resolve(partial(resolve_store, self.catalog, name, self._consent))

    def agent(self, name: str, model: str | None) -> ResolvedAgent:
        from .agents import resolve_agent

        return self._resolve(partial(resolve_agent, self.catalog, name, model, self._consent))

    def describe_agent(self, name: str) -> str:
        """Return the agent's config as text, without checking that the agent can run."""
        return config_text(self.catalog.agent(name).plain()) + code_of(self.catalog, self.catalog.chosen("agent", name))

    def extractor(self, name: str | None, command: str | None, model: str | None) -> ResolvedExtractor:
        from .extractors import resolve_extractor

        return self._resolve(partial(resolve_extractor, self.catalog, name, command, model, self._consent))

    def traces(self, spec: ExtractionOnlineSpec) -> FileTraces | LangSmithTraces:
        """Return a source of traces: a file or a LangSmith project."""
        from .traces import resolve_traces

        return resolve_traces(spec)

    def operations(self, spec: OnlineSpec) -> FileOperations | LangSmithOperations:
        """Return a source of operations on a memory: files of spans or a LangSmith project."""
        from .traces import resolve_operations

        return resolve_operations(spec)

    def benchmark(self, name: str) -> BenchmarkConfig:
        # the variables, too: addresses and file names that errors show contain their values
        check_consent(self.catalog, self.catalog.chosen("benchmark", name), self._consent)
        return self.catalog.benchmark(name, environment())

    def describe_benchmark(self, name: str) -> str:
        """Return the benchmark's config as text, without values from the environment."""
        return config_text(self.catalog.benchmark(name).plain()) + code_of(
            self.catalog, self.catalog.chosen("benchmark", name)
        )

    def dataset(self, config: BenchmarkConfig, file: Path | None = None) -> Dataset:
        from .datasets import open_dataset

        return open_dataset(config, self.catalog, file=file)

    def reopen_dataset(self, name: str, recorded: Fingerprint, file: Path | None, folders: Sequence[Path]) -> Dataset:
        """Open the data of an earlier run to show it. Only files in the cache and below `folders` are read."""
        from .datasets import reopen_dataset

        return reopen_dataset(self.benchmark(name), self.catalog, recorded, file=file, folders=folders)

    def evaluator(self, name: str | None) -> Callable[[Question, str], Awaitable[float]]:
        """Return the custom scorer of a benchmark config. It returns a number from 0 (wrong) to 1 (right)."""
        from .code import load_evaluator

        return load_evaluator(name, self._consent)

    def bundled_file(self, name: str) -> Path:
        """Return a file or folder that ships with the catalog."""
        return _CATALOG_FILES / name

    async def record_calls(
        self, command: Sequence[str], serve: Serve, folder: Path, *, quiet: bool = False
    ) -> Sequence[ToolCall]:
        """Run a program that can use a memory server, and return its tool calls. `quiet`: stdout goes to stderr."""
        from memorybench.agents.recording import watch

        return await watch(command, serve, folder, folder=Path.cwd(), environment=environment(), quiet=quiet)
