"""What `describe` tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from memorybench.catalog.catalog import Catalog
from memorybench.catalog.entries import Entry, Kind
from memorybench.core.errors import BadInput
from memorybench.providers.config.reading import needed_variables
from memorybench.text.spelling import suggestion

from .datasets import open_dataset
from .environment import environment

_KINDS: tuple[Kind, ...] = ("provider", "baseline", "benchmark", "extractor", "store", "agent")


def describe(name: str, folder: Path, extra: Sequence[Path], kind: str | None = None) -> dict[str, str]:
    """Facts by name, in the order to be read; an empty fact is none. What several kinds call by one name is told of
    the first, unless a kind is named."""
    catalog = Catalog(folder, extra)
    found = [entry for one in _KINDS if kind in (None, one) for entry in catalog.entries(one)]
    named = {entry.name: entry for entry in reversed(found)}
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
    if entry.kind in ("extractor", "store", "agent"):
        return {**head, **_described_by_file(catalog, entry)}
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
        "model": config.enhancement_model or "",
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


def _described_by_file(catalog: Catalog, entry: Entry) -> dict[str, str]:
    if entry.kind == "extractor":
        extractor = catalog.extractor(entry.name)
        told = {"type": extractor.type, "asks": extractor.url or extractor.command or extractor.function or ""}
        used = f"memorybench extraction run --extractor {entry.name}"
    elif entry.kind == "store":
        store = catalog.store(entry.name)
        program = store.mcp.command if store.mcp else store.command.run if store.command else ()
        told = {"type": store.type, "provider": store.provider or "", "command": " ".join(program)}
        told |= {"checked against": store.checked_against, "install": store.mcp.install if store.mcp else ""}
        used = f"memorybench hygiene run --store {entry.name}"
    else:
        agent = catalog.agent(entry.name)
        words = [word if isinstance(word, str) else " ".join(word) for word in agent.command]
        told = {"type": agent.type, "command": " ".join(words), "checked against": agent.checked_against}
        told |= {"variables": ", ".join(agent.pass_env), "install": agent.install}
        used = f"memorybench hygiene run --agent {entry.name} --agent-turn --i-understand-model-cost"
    return {**told, "used by": used}


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
