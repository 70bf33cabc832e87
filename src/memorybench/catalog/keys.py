"""Documentation of every key of the config files, from the docstrings of the records.

`python -m memorybench.catalog.keys` prints docs/config-keys.md without its introduction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from memorybench.files.expressions import format_value
from memorybench.files.record_docs import documented, models_in
from memorybench.text.spelling import camel

from .files import KINDS, Described, record_of
from .schemas import one_line


class Key(Struct, frozen=True):
    name: str
    default: str
    effect: str


class Section(Struct, frozen=True):
    """A table of the documentation: keys that have one place each, or those of a section that has several places."""

    title: str
    about: str
    places: tuple[str, ...]
    """The places in the file where the section may appear; empty for the top level."""
    keys: tuple[Key, ...]


class _Field(Struct, frozen=True):
    place: str
    """Path of the section that has the field, such as `endpoints.add`."""
    owner: type[BaseModel]
    """The class that declares the field; the classes of several sections may inherit from it."""
    name: str
    info: FieldInfo


def sections(kind: Described) -> tuple[Section, ...]:
    """Return a section with the keys that have one place each, then one for each section with several places."""
    owners: dict[type[BaseModel], list[_Field]] = {}
    record = documented(record_of(kind))
    for field in _fields(record, ""):
        owners.setdefault(field.owner, []).append(field)
    single: list[Key] = []
    shared: list[Section] = []
    for owner, fields in owners.items():
        places = tuple(dict.fromkeys(field.place for field in fields))
        if len(places) == 1:
            single += [_key(field, field.place) for field in fields]
        else:
            keys = tuple(_key(field, "") for field in fields if field.place == places[0])
            shared.append(Section(owner.__name__, one_line(owner.__doc__), places, keys))
    return (Section("Keys of the file", one_line(record.__doc__), (), tuple(single)), *shared)


def markdown(kind: Described) -> str:
    return "\n".join(_markdown(section) for section in sections(kind))


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


def _fields(record: type[BaseModel], place: str) -> Iterator[_Field]:
    for name, info in record.model_fields.items():
        spelled = camel(info.alias or name)
        yield _Field(place, _declares(record, name), spelled, info)
        inner = f"{place}.{spelled}" if place else spelled
        for below, repeated in models_in(info.annotation):
            yield from _fields(below, f"{inner}[]" if repeated else inner)


def _declares(record: type[BaseModel], name: str) -> type[BaseModel]:
    return next(base for base in reversed(record.mro()) if name in getattr(base, "model_fields", ()))


def _key(field: _Field, place: str) -> Key:
    name = f"{place}.{field.name}" if place else field.name
    return Key(name, _default(field.info), one_line(field.info.description))


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    if info.default_factory is not None or info.default in (None, "", ()) or isinstance(info.default, BaseModel):
        return ""
    return f"`{str(info.default).lower() if isinstance(info.default, bool) else info.default}`"


def _markdown(section: Section) -> str:
    places = f" May appear at {', '.join(f'`{place}`' for place in section.places)}." if section.places else ""
    rows = "\n".join(
        f"| `{key.name}` | {key.default} | {key.effect.replace('|', chr(92) + '|')} |" for key in section.keys
    )
    return f"### {section.title}\n\n{section.about}{places}\n\n| key | default | effect |\n|---|---|---|\n{rows}\n"


if __name__ == "__main__":
    print("\n".join(f"## {kind.capitalize()} configs\n\n{markdown(kind)}" for kind in KINDS), end="")
