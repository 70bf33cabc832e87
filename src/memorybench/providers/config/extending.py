"""Provider configs that extend another one: `extends: NAME`, and expressions such as `bm25(k1=1.5)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.files.configs import merge
from memorybench.files.located import Document, Place
from memorybench.files.record_keys import in_snake_case, shape_of
from memorybench.providers.plugin import BUILTIN, PLUGIN, load_built_in
from memorybench.text.sanitize import preview
from memorybench.text.spelling import camel, snake, unknown_name

from .provider import ProviderConfig
from .sections import Local

_FIXED = ("type", "adapter", "docker", "mcp")
"""Keys that a config with `extends` cannot change, because they run code or decide which other keys are allowed."""
SERVICE_SECTIONS = ("connection", "limits", "rate_limit", "embedding")
"""Sections in the config of a service whose keys can be set as settings, such as `mem0(limits.max_results=20)`."""


def extend(base: Document, card: Document) -> Document:
    """Return the config `base` with the changes and additions that `card` makes, and without `extends`.

    Errors about the result name the lines of `card`.
    """
    inherited, changes = _with_snake_case_keys(base), _with_snake_case_keys(card)
    for name in _FIXED:
        if name in changes and changes[name] != inherited.get(name):
            raise BadInput(
                card.where(name),
                f"a config that extends another cannot change {camel(name)}",
                remedy=f"copy the whole config: memorybench describe {inherited['name']} --yaml",
            )
    if "schema" in (changes.get("local") or {}).get("database", {}):
        raise BadInput(
            card.where("local", "database", "schema"),
            "a config that extends another cannot change the database schema",
            remedy=f"copy the whole config: memorybench describe {inherited['name']} --yaml",
        )
    settings = changes.pop("settings", None) or {}
    if not isinstance(settings, Mapping):
        raise BadInput(
            card.where("settings"), f"invalid settings {preview(settings)}", expected="a mapping of keys to values"
        )
    if settings:
        changes = merge(changes, _route(settings, inherited, card))
    identity = {"display_name": "", **changes, "extends": None}
    return Document(card.path, merge(inherited, identity), lambda place: _line(card, place))


def _with_snake_case_keys(document: Document) -> dict[str, Any]:
    """Return the content of a config, with its keys in snake_case. Raise BadInput if it has a key in two spellings."""
    duplicates: list[Place] = []
    value: dict[str, Any] = in_snake_case(document.value, shape_of(ProviderConfig), (), duplicates)
    for place in duplicates:
        raise BadInput(
            document.where(*place), "the config has this key twice, in two spellings", remedy="remove one of the two"
        )
    if isinstance(value.get("settings"), Mapping):
        value["settings"] = {snake(key): member for key, member in value["settings"].items()}
    return value


def _route(settings: Mapping[str, Any], inherited: Mapping[str, Any], card: Document) -> dict[str, Any]:
    """Return the settings as a part of a config, below the key where the provider `inherited` reads them.

    For a provider with the section `local`, `{"chunking": …}` becomes `{"local": {"chunking": …}}`; for one with its
    own settings, `{"settings": {"chunking": …}}`. For a service, `{"limits": …}` is returned as it is.
    """
    adapter = str(inherited.get("adapter") or "")
    if adapter.startswith(PLUGIN) or (adapter and not adapter.startswith(BUILTIN)):
        return {"settings": dict(settings)}
    provider = load_built_in(adapter.removeprefix(BUILTIN)) if adapter else None
    if provider is not None and provider.settings_model is not None:
        return {"settings": dict(settings)}
    if provider is not None and provider.uses_local_section:
        known: Sequence[str] = tuple(Local.model_fields)
    else:
        known = SERVICE_SECTIONS if provider is None else ("rate_limit",)
    for key in settings:
        if key not in known:
            raise unknown_name(card.where("settings", key), f"unknown setting {preview(key)}", key, known)
    local = provider is not None and provider.uses_local_section
    whole = {"local": dict(settings)} if local else dict(settings)
    renamed: dict[str, Any] = in_snake_case(whole, shape_of(ProviderConfig), (), [])
    return renamed


def _line(card: Document, place: Place) -> int | None:
    """Return the line of `card` that sets the value at `place` of the merged config; None if no line sets it.

    In `card`, the value may be in the section `settings` instead of at `place`.
    """
    spellings = (place, ("settings", *place), ("settings", *place[1:]))
    return max((line for one in spellings if (line := card.line(*one)) is not None), default=None)
