"""What `describe` tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from memorybench.catalog.catalog import Catalog
from memorybench.catalog.entries import Entry
from memorybench.documents.spelling import suggestion
from memorybench.providers.chunk_memory import wanted_model
from memorybench.providers.config_reading import needed_variables
from memorybench.vocabulary.errors import BadInput

from .datasets import open_dataset
from .environment import environment


def describe(name: str, folder: Path, extra: Sequence[Path]) -> dict[str, str]:
    """Facts by name, in the order to be read; an empty fact is none."""
    catalog = Catalog(folder, extra)
    named = {entry.name: entry for entry in catalog.entries("provider", "baseline", "benchmark")}
    if name not in named:
        raise BadInput(
            "", f'there is no "{name}"', remedy=f"{suggestion(name, list(named))} (memorybench list)".strip()
        )
    entry = named[name]
    if entry.broken is not None:
        raise entry.broken
    head = {"kind": entry.kind, "what": entry.description, "tags": ", ".join(entry.tags), "from": entry.origin}
    if entry.kind == "provider":
        return {**head, **_provider(catalog, entry)}
    if entry.kind == "benchmark":
        return {**head, **_benchmark(catalog, entry)}
    return {**head, "named": f"memorybench eval --providers {name}"}


def _provider(catalog: Catalog, entry: Entry) -> dict[str, str]:
    config = catalog.provider(entry.name)
    needed = needed_variables(config, environment())
    facts = {
        "type": config.type,
        "adapter": config.adapter or "",
        "API version": config.api_version or "",
        "checked against": config.checked_against or "",
        "address": (config.connection.base_url if config.connection else None) or "",
        "model": wanted_model(config) or "",
        "command": " ".join(config.mcp.command) if config.mcp and config.mcp.command else "",
        "variables": ", ".join(f"{name} ({'set' if there else 'NOT set'})" for name, there in needed.items()),
    }
    for place, request in enumerate(config.setup, 1):
        facts[f"setup {place}"] = f"{request.method} {request.path}"
    if config.endpoints is not None:
        for name, endpoint in config.endpoints:
            if endpoint is not None:
                facts[f"endpoint {name}"] = f"{endpoint.method} {endpoint.path}"
    able = [name.removeprefix("supports_").replace("_", " ") for name, yes in config.capabilities if yes]
    return {**facts, "capabilities": ", ".join(able)}


def _benchmark(catalog: Catalog, entry: Entry) -> dict[str, str]:
    config = catalog.benchmark(entry.name, environment())
    facts = {
        "version": config.version,
        "source": config.source,
        "paper": config.paper,
        "data": f"{config.data.type}: {config.data.path}",
        "licence": config.data.licence,
        "scored by": config.evaluation.method,
    }
    try:
        dataset = open_dataset(config, catalog)
    except BadInput as missing:
        return {**facts, "questions": f"not here yet: {missing}"}
    kinds = Counter(question.kind for question in dataset.questions)
    histories = len({question.haystack for question in dataset.questions})
    return {
        **facts,
        "questions": f"{len(dataset.questions)} on {histories} histories",
        "types": ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items()) if kind),
        "evidence": f"counted by {dataset.evidence}",
        "quirks": "; ".join(getattr(dataset, "notes", ())),
        "fingerprint": dataset.fingerprint,
    }
