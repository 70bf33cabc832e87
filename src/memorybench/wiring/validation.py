"""Checks whether a config or a results file is valid, and describes it in a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from pkgutil import resolve_name

from memorybench.catalog.catalog import READERS, Catalog
from memorybench.catalog.files import bundled_files, recognise, unrecognised
from memorybench.catalog.literal_credentials import check_literals
from memorybench.catalog.plugins import installed_plugins
from memorybench.catalog.uses import uses_of
from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.datasets.config import BenchmarkConfig
from memorybench.datasets.config_reading import read_benchmark
from memorybench.datasets.locating import source_of
from memorybench.datasets.sources import missing
from memorybench.datasets.survey import summary_lines
from memorybench.files.located import Document
from memorybench.journal.checksums import check_rows
from memorybench.journal.contract import Journal
from memorybench.journal.sqlite import SqliteJournal
from memorybench.metrics.names import known_metrics
from memorybench.models.config import SEVERAL, cards_in, read_model
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.reading import needed_variables, read_provider
from memorybench.providers.config.requests import Poll
from memorybench.providers.config.variables import can_name_sources
from memorybench.text.quantities import quantity

from .consent import needed_flags
from .data import cache_folder
from .datasets import preview_data
from .environment import environment


def is_database(path: Path) -> bool:
    return path.suffix in (".db", ".sqlite", ".sqlite3")


def is_config(path: Path) -> bool:
    return path.suffix in (".yaml", ".yml")


def describe_database(path: Path) -> str:
    if not path.exists():
        raise BadInput(str(path), "file not found", remedy="check the path")
    return f"results file, {describe_journal(SqliteJournal(path.parent, path.name))}"


def describe_journal(journal: Journal) -> str:
    checked = check_rows(journal)
    old = (
        f"; {quantity(checked.unchecked, 'row')} of an earlier version without a full checksum"
        if checked.unchecked
        else ""
    )
    runs, rows = quantity(checked.runs, "run"), quantity(checked.rows, "row")
    return f"{runs}, {rows} unchanged since written{old}"


def describe_config(document: Document) -> str:
    kind = recognise(document)
    check_literals(document)
    if kind == "provider":
        file = Path(document.path)
        catalog = Catalog(Path(), [file.absolute().parent])  # has what it may extend
        document = catalog.complete(document)
        provider = read_provider(document)
        unset = [name for name, is_set in needed_variables(provider, environment()).items() if not is_set]
        note = f"; set {', '.join(unset)} before you use it" if unset else ""
        note += "".join(f"; {hint}" for hint in _hints(provider))
        return f'provider config "{provider.name}" ({provider.type}){note}{_consent_note(provider, document)}'
    if kind == "benchmark":
        metrics = [entry.name for entry, _ in installed_plugins() if entry.kind == "metric"]
        benchmark = read_benchmark(document, metrics=known_metrics(metrics))
        read, lines = _describe_data(benchmark, document)
        data = f"(data: {benchmark.data.type}{read})"
        text = f'benchmark config "{benchmark.name}" {data}{_consent_note(benchmark, document)}'
        return "\n  ".join((text, *lines))
    if kind is None:
        raise unrecognised(document)
    if kind == "model":
        return _describe_cards(document)
    config = resolve_name(READERS[kind])(document)
    return f'{kind} config "{config.name}"{_consent_note(config, document)}'


def _hints(provider: ProviderConfig) -> Iterator[str]:
    """Yield hints about keys that the config lacks, and what a run therefore does not measure, use or notice."""
    endpoints, capabilities = provider.endpoints, provider.capabilities
    if endpoints is None:
        return
    response = endpoints.search.response
    if (response.zip.sources if response.zip else response.sources_field) is None:
        yield "no recall: endpoints.search.response.sourcesField is missing"
    elif not can_name_sources(provider):
        yield "no recall: endpoints.add sends no id that sourcesField could return; send documentId, or use storedAs"
    if endpoints.batch_add is not None and not capabilities.unordered and capabilities.supports_batch is not False:
        yield "endpoints.batchAdd is not used: it needs capabilities.unordered"
    add = endpoints.add
    if not (add.failed_if or add.captures or add.stored_as or isinstance(add.wait, Poll)):
        yield "endpoints.add: only the status of a reply tells a failure; if its body can, add failedIf"


def _describe_data(benchmark: BenchmarkConfig, document: Document) -> tuple[str, Sequence[str]]:
    """Return a text with the number of questions, and lines about the data; both are empty if the data is not local."""
    if benchmark.data.type != "local" or (benchmark.mapping is None and benchmark.cues is None):
        return "", ()
    source = source_of(benchmark, beside=Path(document.path).parent, cache=cache_folder())
    if not any(file.is_file() for file in source.item_files):
        return f", not found: {missing(source).expected}", ()
    summary = preview_data(benchmark, source)
    return f", {quantity(summary['counts']['questions'], 'question')}", tuple(summary_lines(summary))


def _describe_cards(document: Document) -> str:
    try:
        return "; ".join(_describe_card(part, document) for part in cards_in(document))
    except BadInput as error:
        if SEVERAL in document.value:
            raise
        hint = "the file was read as a model card"  # its author may have meant another kind
        remedy = f"{error.remedy}; {hint}" if error.remedy else hint
        raise BadInput(error.where, error.problem, expected=error.expected, remedy=remedy) from error


def _describe_card(part: Document, document: Document) -> str:
    card = read_model(part)
    if sum(other.value.get("name") == card.name for other in cards_in(document)) > 1:
        raise BadInput(part.where("name"), f'two models are called "{card.name}"', remedy="rename or remove one")
    unset = card.auth.env_var if card.auth.env_var and not environment().get(card.auth.env_var) else ""
    note = f"; set {unset} before you use it" if unset else ""
    return f'model card "{card.name}" ({card.kind}, {card.base_url}){note}{_consent_note(card, document)}'


def _consent_note(config: Record, document: Document) -> str:
    file = Path(document.path)
    if file.resolve() in {path.resolve() for path, _ in bundled_files()}:
        return ""
    flags = needed_flags(uses_of(config, file, environment()))
    return f"; needs {' '.join(flags)}" if flags else ""
