"""The settings of a provider, with their values and their documentation."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct
from pydantic import BaseModel

from memorybench.files.expressions import format_value
from memorybench.files.record_docs import documented, models_in

from .schemas import one_line


class Key(Struct, frozen=True):
    name: str
    default: str
    effect: str


def settings_keys(record: BaseModel, unused: Collection[str] = ()) -> Iterator[Key]:
    """Yield the settings of a provider with their values, spelled as in an expression such as `bm25(k1=1.5)`."""
    for name, info in documented(type(record)).model_fields.items():
        value = getattr(record, name)
        below = [inner for inner, repeated in models_in(info.annotation) if not repeated]
        if name in unused:
            continue
        if below:
            inner_unused = [key.partition(".")[2] for key in unused if key.startswith(f"{name}.")]
            section = below[0].model_construct() if value is None else value
            for key in settings_keys(section, inner_unused):
                yield Key(f"{name}.{key.name}", key.default, key.effect)
        else:
            yield Key(name, format_value(value), one_line(info.description))
