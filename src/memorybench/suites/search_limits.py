"""How many memories a search asks for, and how many the answering model sees: the same for every provider."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.core.trials import Score
from memorybench.metrics.retrieval import CUTOFFS

from .answering import context_of, estimated_tokens
from .spec import Spec, flag

if TYPE_CHECKING:
    from memorybench.core.conversation import Memory

    from .wiring import ResolvedProvider

OVER_BUDGET = "over_token_budget"
"""The name of a score: 1 if the first memory alone exceeds --token-budget, so that the answering model saw none."""
DEFAULT_SETTINGS = "default_settings"
"""The key of a run's spec under which the default settings of each provider are recorded."""


def default_settings(providers: "Sequence[ResolvedProvider]") -> dict[str, Mapping[str, Any]]:
    return {provider.name: provider.default_settings for provider in providers if provider.default_settings}


class SearchSpec(Spec):
    """The spec of a suite that searches providers."""

    top_k: int | None = flag(
        None, help="Retrieve N memories per search.", metavar="N", default_text="the benchmark's", ge=1
    )
    context_limit: int | None = flag(
        None, help="Show the answering model at most N memories.", metavar="N", default_text="the benchmark's", ge=1
    )
    token_budget: int | None = flag(
        None,
        help="Show the model only memories within N estimated tokens.",
        metavar="N",
        default_text="none",
        ge=1,
    )


class SearchLimits(Struct, frozen=True):
    """How many memories a search asks for, and how many of them the answering model sees."""

    depth: int = 50
    """Number of memories that a search asks for."""
    shown: int = 10
    """Maximum number of memories that the answering model sees."""
    token_budget: int | None = None
    """Maximum of the estimated tokens of the memories that the model sees; None: no maximum."""

    @classmethod
    def of(cls, spec: SearchSpec, benchmark: str, *, depth: int, shown: int) -> "SearchLimits":
        """Return the limits of a benchmark: those that the user set in the spec, else `depth` and `shown`.

        Raise BadInput if --context-limit asks for more memories than are searched for.
        """
        limits = cls(spec.top_k or depth, spec.context_limit or shown, spec.token_budget)
        if spec.context_limit is not None and limits.shown > limits.depth:
            problem = f"{limits.shown} memories are more than the {limits.depth} that a search of {benchmark} returns"
            raise BadInput("--context-limit", problem, remedy=f"add --top-k {limits.shown}")
        return limits

    def check(self, providers: "Sequence[ResolvedProvider]", benchmark: str) -> None:
        """Raise BadInput if a provider cannot return as many memories as a search asks for."""
        for provider in providers:
            most = None if provider.is_baseline else provider.max_results
            if most is not None and most < self.depth:
                limit = "limits.maxResults, or pages.size × pages.maxPages"
                raise BadInput(
                    f'provider "{provider.name}"',
                    f"returns at most {most} results ({limit}), but {benchmark} searches for {self.depth}",
                    remedy=f"add --top-k {most}, which then applies to every provider",
                )

    def cut(self, memories: "Sequence[Memory]", *, chunks: bool = False) -> "Sequence[Memory]":
        """Return the memories that the answering model sees: the first ones that fit the limits.

        No memory is shortened.
        """
        shown = memories[: self.shown]
        if self.token_budget is not None:
            while shown and estimated_tokens(context_of(shown, chunks=chunks)) > self.token_budget:
                shown = shown[:-1]
        return shown

    def scores(self, found: "Sequence[Memory]", shown: "Sequence[Memory]") -> list[Score]:
        """Return the score OVER_BUDGET: 1 if memories were found but none fits the token budget, else 0.

        The list is empty if there is no token budget.
        """
        if self.token_budget is None:
            return []
        return [Score(name=OVER_BUDGET, value=float(bool(found) and not shown))]


DEFAULT_SEARCH_LIMITS = SearchLimits()


def over_budget_warning(subject: str, questions: float) -> str:
    return (
        f"{subject}: for {questions:.0f} question{'' if round(questions) == 1 else 's'}, the first memory alone exceeds"
        " --token-budget, so the answering model saw no memory."
    )


def search_facts(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the limits that the user has set, as text for the header; empty if none are set."""
    texts = {
        "top_k": "{} memories per search",
        "context_limit": "at most {} memories shown",
        "token_budget": "at most {} tokens shown",
    }
    parts = [text.format(spec[name]) for name, text in texts.items() if spec.get(name)]
    if (spec.get("top_k") or CUTOFFS[-1]) < CUTOFFS[-1]:
        parts.append(f"recall@{CUTOFFS[-1]} and the like see {spec['top_k']}")
    return {"Search": ", ".join(parts)} if parts else {}
