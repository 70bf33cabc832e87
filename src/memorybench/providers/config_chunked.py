"""Checks of the `local` section for the adapters that keep chunks: every key has an effect, or is refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from memorybench.core.errors import BadInput
from memorybench.files.located import Document
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names, suggestion

from .config import Local, ProviderConfig


@dataclass(frozen=True, slots=True)
class _Rules:
    strategies: Collection[str]
    weights: Collection[str]
    asks: bool
    """Whether its model writes questions."""


CHUNKED: Mapping[str, _Rules] = {
    "builtin:aqrag": _Rules(("weighted",), ("chunk", "questions"), asks=True),
    "builtin:contextual-retrieval": _Rules(("lexical", "dense", "weighted"), ("lexical", "dense"), asks=False),
}


def check_chunked(config: ProviderConfig, document: Document) -> None:
    rules = CHUNKED.get(config.adapter or "")
    if rules is None or config.local is None:
        return
    part = document.at("local")
    _check_enhancement(config.local, rules, part)
    _check_retrieval(config.local, rules, part)
    if config.local.database.type == "sqlite" and config.local.database.schema_file:
        raise BadInput(part.where("database", "schema"), "has no effect on SQLite", remedy="remove it, or use postgres")


def _check_enhancement(local: Local, rules: _Rules, part: Document) -> None:
    enhancement = local.enhancement
    if enhancement is None:
        return
    if enhancement.enabled and not enhancement.model:
        raise BadInput(
            part.where("enhancement"), '"model" is missing', expected="who works on each chunk", remedy="add it"
        )
    for name in ("generate_questions", "questions_per_chunk"):
        if name in enhancement.model_fields_set and not rules.asks:
            remedy = "remove it: this one writes a context for each chunk"
            raise BadInput(part.where("enhancement", name), "has no effect here", remedy=remedy)


def _check_retrieval(local: Local, rules: _Rules, part: Document) -> None:
    retrieval = local.retrieval
    if retrieval.strategy not in rules.strategies:
        raise BadInput(
            part.where("retrieval", "strategy"),
            f"{preview(retrieval.strategy)} is not what this adapter does",
            expected=f"one of {join_names(rules.strategies)}",
        )
    if retrieval.weights and retrieval.strategy != "weighted":
        raise BadInput(part.where("retrieval", "weights"), "has no effect", expected="strategy: weighted beside it")
    for name, weight in retrieval.weights.items():
        where = part.where("retrieval", "weights", name)
        if name not in rules.weights:
            raise BadInput(
                where,
                f"nothing here is called {preview(name)}",
                expected=f"one of {join_names(rules.weights)}",
                remedy=suggestion(name, rules.weights),
            )
        if weight < 0:
            raise BadInput(where, f"{weight} is no weight", expected="0 or more")
    if retrieval.weights and not sum(retrieval.weights.values()):
        raise BadInput(part.where("retrieval", "weights"), "nothing counts", expected="a weight above 0")
