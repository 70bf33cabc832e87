"""YAML files: where they are looked for, and what each is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from memorybench.datasets.config import BenchmarkConfig
from memorybench.documents.located import Document
from memorybench.documents.record_keys import shape_of
from memorybench.providers.config import ProviderConfig
from memorybench.vocabulary.errors import BadInput

Described = Literal["provider", "benchmark"]

_SPELLINGS: Mapping[Described, frozenset[str]] = {
    "provider": frozenset(shape_of(ProviderConfig).spellings),
    "benchmark": frozenset(shape_of(BenchmarkConfig).spellings),
}
_FOLDERS: Mapping[Described, str] = {"provider": "providers", "benchmark": "benchmarks"}
_SUFFIXES = (".yaml", ".yml")


def recognise(document: Document) -> Described | None:
    """What a file is, by the keys that only such files have; None: neither, or as much one as the other."""
    if not isinstance(document.value, dict):
        return None
    keys = document.value.keys()
    provider = len(keys & (_SPELLINGS["provider"] - _SPELLINGS["benchmark"]))
    benchmark = len(keys & (_SPELLINGS["benchmark"] - _SPELLINGS["provider"]))
    if provider == benchmark:
        return None
    return "provider" if provider > benchmark else "benchmark"


def unrecognised(document: Document) -> BadInput:
    return BadInput(
        document.where(),
        "is neither a provider config nor a benchmark config",
        expected="a provider's keys (type, endpoints or adapter) or a benchmark's (data, schema, evaluation)",
        remedy="memorybench schema provider (or benchmark) shows every key",
    )


def bundled_files() -> Iterator[tuple[Path, Described]]:
    for kind, name in _FOLDERS.items():
        yield from ((path, kind) for path in _yaml_files(Path(__file__).parent / name))


def files_of_user(folder: Path, extra: Sequence[Path]) -> Iterator[tuple[Path, Described | None]]:
    """Files dropped into the working folder, and those of the folders named. Without a kind, the content tells."""
    for kind, name in _FOLDERS.items():
        yield from ((path, kind) for path in _yaml_files(folder / name / "configs"))
    for named in extra:
        yield from _files_in(named)


def _files_in(named: Path) -> Iterator[tuple[Path, Described | None]]:
    if not named.is_dir():
        raise BadInput(str(named), "there is no such folder", remedy="check --config-dir")
    found: list[tuple[Path, Described | None]] = [(path, None) for path in _yaml_files(named)]
    for kind, name in _FOLDERS.items():
        found += [(path, kind) for path in _yaml_files(named / name)]
    if not found:
        raise BadInput(str(named), "holds no configs", expected="YAML files, or folders providers/ and benchmarks/")
    yield from found


def _yaml_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES and path.is_file())
