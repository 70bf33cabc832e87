"""Finds YAML files and recognizes what each one is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from memorybench.core.errors import BadInput
from memorybench.files.located import Document

if TYPE_CHECKING:
    from memorybench.core.records import Record

Described = Literal["provider", "benchmark", "extractor", "store", "agent", "model"]
KINDS: tuple[Described, ...] = get_args(Described)
_RECORDS: Mapping[Described, str] = {
    "provider": "memorybench.providers.config.provider:ProviderConfig",
    "benchmark": "memorybench.datasets.config:BenchmarkConfig",
    "extractor": "memorybench.extractors.config:ExtractorConfig",
    "store": "memorybench.stores.config:StoreConfig",
    "agent": "memorybench.agents.config:AgentConfig",
    "model": "memorybench.models.config:ModelConfig",
}
"""By kind: the class of its configs, as `module:name`."""
_SUFFIXES = (".yaml", ".yml")
MODELS = "models"
"""Name, without suffix, of the file with model cards in the working folder."""
DATA = Path(__file__).parent / "data"
"""The folder of the bundled datasets."""
SCENARIOS = Path(__file__).parent / "scenarios"


def record_of(kind: Described) -> type[Record]:
    """Return the class of configs of this kind. It is imported only now, because importing all classes takes long."""
    from pkgutil import resolve_name

    record: type[Record] = resolve_name(_RECORDS[kind])
    return record


@cache
def _spellings(kind: Described) -> frozenset[str]:
    from memorybench.files.record_keys import shape_of

    return frozenset(shape_of(record_of(kind)).spellings)


def recognise(document: Document) -> Described | None:
    """Return the kind of a config file, by its keys or else by its folder; None if it is unknown or ambiguous.

    Keys have precedence, because a project may be in a folder that happens to be called `providers`.
    """
    from memorybench.models.config import SEVERAL

    if not isinstance(document.value, dict):
        return None
    if SEVERAL in document.value:
        return "model"
    matches = {kind: len(document.value.keys() & _spellings(kind)) for kind in KINDS}
    candidates = [kind for kind, n in matches.items() if n == max(matches.values())]
    if len(candidates) > 1:
        folders = {folder.name for folder in Path(document.path).absolute().parents[:2]}
        by_folder = [kind for kind in candidates if f"{kind}s" in folders]
        candidates = by_folder if len(by_folder) == 1 else [kind for kind in candidates if _is_valid(document, kind)]
    return candidates[0] if len(candidates) == 1 else None


def _is_valid(document: Document, kind: Described) -> bool:
    from memorybench.files.validation import validated

    try:
        validated(document, record_of(kind))
    except BadInput:
        return False
    return True


def unrecognised(document: Document) -> BadInput:
    return BadInput(
        document.where(),
        "the keys do not show what kind of config this is",
        expected="the keys of a provider (type, endpoints or adapter), a benchmark (data, schema, evaluation), …",
        remedy="`memorybench schema provider` (or benchmark, extractor, store, agent, model) shows every key",
    )


def bundled_files(kinds: Iterable[Described] = KINDS) -> Iterator[tuple[Path, Described]]:
    """Yield the path and the kind of each bundled config of these kinds; the file name without suffix is its name."""
    for kind in kinds:
        yield from ((path, kind) for path in _yaml_files(Path(__file__).parent / f"{kind}s"))


def files_of_user(folder: Path, extra: Sequence[Path]) -> Iterator[tuple[Path, Described | None]]:
    """Yield the path and the kind of each config in the working folder and the extra folders.

    The kind is None if the folder of the file does not determine it; `recognise` may find it in the file.
    """
    for kind in KINDS:
        yield from ((path, kind) for path in _yaml_files(folder / f"{kind}s" / "configs"))
    yield from ((path, "model") for path in _yaml_files(folder) if path.stem == MODELS)
    for config_dir in extra:
        if not config_dir.is_dir():
            raise BadInput(str(config_dir), "folder not found", remedy="check --config-dir")
        files: list[tuple[Path, Described | None]] = [(path, None) for path in _yaml_files(config_dir)]
        files += [(path, kind) for kind in KINDS for path in _yaml_files(config_dir / f"{kind}s")]
        if not files:
            raise BadInput(
                str(config_dir),
                "the folder contains no configs",
                expected="YAML files, or folders such as providers/ and benchmarks/",
            )
        yield from files


def _yaml_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES and path.is_file())
