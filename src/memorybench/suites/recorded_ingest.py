"""Replaces the ingest of a provider while scores are computed again: searches return their recorded results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from memorybench.core.conversation import Haystack, Memory
from memorybench.core.errors import Unreadable
from memorybench.core.plans import Steps
from memorybench.core.records import canonical, digest
from memorybench.core.trials import Subject
from memorybench.engine.steps import step_key

from .ingest import Retrieved
from .replayed_steps import Contradiction, ReplayedSteps


class RecordedIngest(Struct, frozen=True):
    subject: Subject
    haystack: Callable[[str], Haystack] | None = None
    """A function that returns a haystack of the dataset by id; None if the data is not available."""
    _digests: dict[str, str] = field(default_factory=dict)
    """The digests of haystacks by id, computed when first needed."""

    async def search(self, steps: Steps, haystack: str, query: str, limit: int) -> Sequence[Memory]:
        """Return the recorded result of a search.

        Raise Contradiction if the recorded search had other inputs, Unreadable if no search is recorded.
        """
        assert isinstance(steps, ReplayedSteps)
        if "search" not in steps.unused():
            # its key is not known here: a failed step of the trial may be this search
            (steps.failed if steps.has_failures else steps.missing).append("search")
            raise Unreadable('the run has not recorded the step "search"')
        step = steps.next("search")
        expected = {"query": query, "limit": limit, "provider": self.subject.plain()}
        for name, value in expected.items():
            if step.inputs.get(name) != value:
                raise Contradiction(f"the {name} of the recorded search differs from that of the trial")
        if self.haystack is not None:
            if not self._is_about(self.haystack(haystack), step.inputs.get("haystack")):
                raise Contradiction("the recorded search was made in another history than the trial's")
            if step.inputs.keys() - {"by_turn"} == {*expected, "haystack"}:
                steps.same_inputs.append(step_key("search", canonical(step.inputs)))
        return Retrieved.model_validate(step.result).memories

    def _is_about(self, history: Haystack, name: object) -> bool:
        if name is not None and name == history.fingerprint:
            return True
        if history.id not in self._digests:  # many searches are about one history, and its digest takes long
            self._digests[history.id] = digest(history)
        return name == self._digests[history.id]

    async def leave(self, steps: Steps, haystack: str) -> None:
        return None
