"""Finds YAML files and recognizes what each one is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from memorybench.agents.config import AgentConfig
from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.datasets.config import BenchmarkConfig
from memorybench.extractors.config import ExtractorConfig
from memorybench.files.located import Document
from memorybench.files.record_keys import shape_of
from memorybench.files.validation import validated
from memorybench.providers.config.provider import ProviderConfig
from memorybench.stores.config import StoreConfig

Described = Literal["provider", "benchmark", "extractor", "store", "agent"]

RECORDS: Mapping[Described, type[Record]] = {
    "provider": ProviderConfig,
    "benchmark": BenchmarkConfig,
    "extractor": ExtractorConfig,
    "store": StoreConfig,
    "agent": AgentConfig,
}
_SPELLINGS = {kind: frozenset(shape_of(record).spellings) for kind, record in RECORDS.items()}
_SUFFIXES = (".yaml", ".yml")
DATA = Path(__file__).parent / "data"
"""Bundled datasets."""
SCENARIOS = Path(__file__).parent / "scenarios"


def recognise(document: Document) -> Described | None:
    """Return what a file is, by its folder or else by its keys; None if that is unknown or ambiguous."""
    if not isinstance(document.value, dict):
        return None
    above = {folder.name for folder in Path(document.path).absolute().parents[:2]}
    by_folder = [kind for kind in RECORDS if f"{kind}s" in above]
    if len(by_folder) == 1:
        return by_folder[0]
    keys = document.value.keys()
    known = {kind: len(keys & spellings) for kind, spellings in _SPELLINGS.items()}
    most = max(known.values())
    best = [kind for kind, n in known.items() if n == most > 0]
    if len(best) > 1:
        best = [kind for kind in best if _fits(document, kind)]
    return best[0] if len(best) == 1 else None


def _fits(document: Document, kind: Described) -> bool:
    try:
        validated(document, RECORDS[kind])
    except BadInput:
        return False
    return True


def unrecognised(document: Document) -> BadInput:
    return BadInput(
        document.where(),
        "unknown kind of config",
        expected="the keys of a provider (type, endpoints or adapter), a benchmark (data, schema, evaluation), …",
        remedy="memorybench schema provider (or benchmark, extractor, store, agent) shows every key",
    )


def bundled_files() -> Iterator[tuple[Path, Described]]:
    for kind in RECORDS:
        yield from ((path, kind) for path in _yaml_files(Path(__file__).parent / f"{kind}s"))


def files_of_user(folder: Path, extra: Sequence[Path]) -> Iterator[tuple[Path, Described | None]]:
    """Yield the files of the working folder and the extra folders; the kind is None if the folder does not show it."""
    for kind in RECORDS:
        yield from ((path, kind) for path in _yaml_files(folder / f"{kind}s" / "configs"))
    for named in extra:
        yield from _files_in(named)


def _files_in(named: Path) -> Iterator[tuple[Path, Described | None]]:
    if not named.is_dir():
        raise BadInput(str(named), "folder not found", remedy="check --config-dir")
    found: list[tuple[Path, Described | None]] = [(path, None) for path in _yaml_files(named)]
    for kind in RECORDS:
        found += [(path, kind) for path in _yaml_files(named / f"{kind}s")]
    if not found:
        raise BadInput(
            str(named), "no configs found", expected="YAML files, or folders such as providers/ and benchmarks/"
        )
    yield from found


def _yaml_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES and path.is_file())
