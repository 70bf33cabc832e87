"""A memory whose searches are recorded: it stands in for the provider while scores are computed again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memorybench.core.conversation import Haystack, Memory
from memorybench.core.errors import Unreadable
from memorybench.core.plans import Steps
from memorybench.core.records import digest
from memorybench.core.trials import Subject

from .ingest import Retrieved
from .replayed_steps import Contradiction, ReplayedSteps


@dataclass(frozen=True, slots=True)
class RecordedIngest:
    subject: Subject
    haystack: Callable[[str], Haystack] | None = None
    """Returns a history of the data; None: the data is not available."""

    async def search(self, steps: Steps, haystack: str, query: str, limit: int) -> Sequence[Memory]:
        """Return the recorded result of a search. Raise Contradiction if it was another search."""
        assert isinstance(steps, ReplayedSteps)
        if "search" not in steps.unused():
            # its key is not known here: a failed step of the trial may be this search
            (steps.failed if steps.has_failures else steps.missing).append("search")
            raise Unreadable("step search is not recorded")
        step = steps.next("search")
        expected = {"query": query, "limit": limit, "provider": self.subject.plain()}
        for name, value in expected.items():
            if step.inputs.get(name) != value:
                raise Contradiction(f"the search has another {name}")
        if self.haystack is not None:
            history = self.haystack(haystack)
            if step.inputs.get("haystack") not in (history.fingerprint, digest(history)):
                raise Contradiction("the search is about another history")
        return Retrieved.model_validate(step.result).memories

    async def leave(self, steps: Steps, haystack: str) -> None:
        return None
