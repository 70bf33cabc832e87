"""The fingerprint of a dataset: its files, and the parts of its config that questions and haystacks depend on."""

from __future__ import annotations

from typing import Any

from memorybench.core.records import digest

from .config import BenchmarkConfig

_LATER_KEYS = frozenset(
    ("parse", "cluster", "labels", "image", "prefix", "session_schema", "answer_mode", "rubric", "rubric_item",
     "must_contain", "must_not_contain", "forbidden", "rubric_field", "must_contain_field", "must_not_contain_field",
     "forbidden_field", "columns", "split", "prefix_field", "choice_index",
     "speaker_separator", "line_pattern", "session_per")
)  # fmt: skip
"""Keys that were added later. They are left out if not set, so that fingerprints that earlier versions recorded
still match."""


def fingerprint_of(config: BenchmarkConfig, checksum: str) -> str:
    """Return the fingerprint of a dataset whose files have this checksum."""
    return digest([checksum, *settings_of(config)])


def settings_of(config: BenchmarkConfig) -> tuple[Any, ...]:
    """Return the parts of the config that questions and haystacks depend on."""
    mapping = _without_later(config.model_dump(mode="json", include={"mapping", "categories"}))
    settings: tuple[Any, ...] = (mapping, config.ingestion.preprocessing.model_dump(mode="json"))
    rubrics = {kind.name: kind.rubric for kind in config.question_types if kind.rubric}
    if rubrics:
        settings = (*settings, rubrics)
    if config.data.where is not None:
        settings = (*settings, config.data.where)
    if config.data.items is not None:  # two paths into one file are two datasets
        settings = (*settings, config.data.items)
    if not config.data.join:
        return settings
    return *settings, config.data.model_dump(mode="json", include={"files", "items", "join"})


def _without_later(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        key: _without_later(inner)
        for key, inner in value.items()
        if key not in _LATER_KEYS or (any(inner.values()) if isinstance(inner, dict) else _is_set(inner))
    }


def _is_set(value: Any) -> bool:
    return value is not None and value is not False and value not in ([], "")  # 0 is a value
