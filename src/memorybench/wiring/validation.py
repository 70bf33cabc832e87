"""What a file is, and whether it is sound."""

from __future__ import annotations

from pathlib import Path

from memorybench.agents.config_reading import read_agent
from memorybench.catalog.files import recognise as recognise_config
from memorybench.catalog.files import unrecognised
from memorybench.catalog.plugins import installed_plugins
from memorybench.core.errors import BadInput
from memorybench.datasets.config_reading import read_benchmark
from memorybench.extractors.config_reading import read_extractor
from memorybench.files.loading import load
from memorybench.files.located import Document
from memorybench.journal.database import FILE_NAME, check
from memorybench.journal.run_reader import RunReader
from memorybench.metrics.names import known_metrics
from memorybench.providers.config.reading import needed_variables, read_provider
from memorybench.stores.config_reading import read_store

from .environment import environment

_DATABASES = (".db", ".sqlite", ".sqlite3")
_CONFIGS = (".yaml", ".yml")


def recognise(path: Path) -> str:
    """One line about a sound file; BadInput for any other. Nothing is changed."""
    if path.suffix in _DATABASES:
        return _database(path)
    document = load(path)
    if path.suffix in _CONFIGS:
        return _config(document)
    told = _of_a_suite(path, document.value)
    if told is not None:
        return told
    return f"well-formed, {_size(document.value)}"


def _of_a_suite(path: Path, value: object) -> str | None:
    """What the data of audit, extraction and hygiene is, by the keys that only it has; None: something else."""
    rows = value if isinstance(value, list) else [value]
    first = rows[0] if rows and isinstance(rows[0], dict) else {}
    if "conversations" in first or {"turns", "facts"} <= first.keys():
        from memorybench.datasets.audit import load_audit

        dataset = load_audit(path)
        facts = sum(len(conversation.facts) for conversation in dataset.conversations)
        return f"audit dataset, {len(dataset.conversations)} conversations, {facts} facts"
    if "cases" in first or "expected_facts" in first:
        from memorybench.suites.extraction.cases import load_cases
        from memorybench.suites.extraction.mutants import killing_of, report_of

        cases = load_cases(path)
        return f"{len(cases)} extraction cases; {report_of([killing_of(case) for case in cases])}"
    if {"schema_version", "assertions"} & first.keys():
        from memorybench.suites.hygiene.scenarios import load_scenario

        scenario = load_scenario(path)
        return f'hygiene scenario "{scenario.id}", {len(scenario.assertions)} assertions'
    return None


def _database(path: Path) -> str:
    if not path.exists():
        raise BadInput(str(path), "there is no such file", remedy="check the path")
    check(path)
    if path.name != FILE_NAME:
        return "results file"
    with RunReader.open(path.parent, thorough=False) as run_reader:
        return f"results file, {len(run_reader.runs())} runs"


def _config(document: Document) -> str:
    kind = recognise_config(document)
    if kind == "provider":
        provider = read_provider(document)
        missing = [name for name, there in needed_variables(provider, environment()).items() if not there]
        note = f"; set {', '.join(missing)} before you use it" if missing else ""
        return f'provider config "{provider.name}" ({provider.type}){note}'
    if kind == "benchmark":
        metrics = [entry.name for entry, _ in installed_plugins() if entry.kind == "metric"]
        benchmark = read_benchmark(document, metrics=known_metrics(metrics))
        return f'benchmark config "{benchmark.name}" (data: {benchmark.data.type})'
    if kind == "extractor":
        return f'extractor config "{read_extractor(document).name}"'
    if kind == "store":
        return f'store config "{read_store(document).name}"'
    if kind == "agent":
        return f'agent config "{read_agent(document).name}"'
    raise unrecognised(document)


def _size(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value)} items"
    if isinstance(value, dict):
        return f"{len(value)} keys"
    return "one value"
