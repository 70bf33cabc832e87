"""Small conversations to make probes from, and probes for the judge."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from memorybench.core.conversation import Turn
from memorybench.datasets.audit import AuditConversation, AuditDataset, AuditFact, load_audit
from memorybench.datasets.audit_file import AbsentFact
from memorybench.suites.audit.events import option_text
from memorybench.suites.audit.generation import generate
from memorybench.suites.audit.probes import PROBE_TYPES, Policy, Probe, Probes
from memorybench.suites.audit.verification import ProbeModel
from memorybench.suites.audit.writing import drafts, write
from tests.doubles.scripted_model import ScriptedModel

SAMPLE = Path(__file__).parents[3] / "src/memorybench/catalog/data/sample-dataset.json"
START = datetime(2024, 1, 10, 9, tzinfo=UTC)
T = TypeVar("T")


def day(number: int) -> datetime:
    return START + timedelta(days=number)


def conversation(
    *facts: AuditFact, said: list[str] | None = None, id: str = "c1", absent: tuple[AbsentFact, ...] = ()
) -> AuditConversation:
    """A turn for each fact, as it is written, twenty days apart; or what was said."""
    texts = [fact.content for fact in facts] if said is None else said
    turns = tuple(Turn(role="user", content=text, at=day(20 * n), id=f"t{n + 1}") for n, text in enumerate(texts))
    return AuditConversation(id=id, turns=turns, facts=facts, absent=absent)


def fact(id: str, content: str, **more: Any) -> AuditFact:
    return AuditFact(id=id, content=content, **more)


def probes_of(*conversations: AuditConversation, policy: Policy = "latest", limit: int | None = None) -> Probes:
    dataset = AuditDataset(id="d", conversations=conversations)
    return generate(dataset, PROBE_TYPES, policy=policy, limit=limit)


def order_probes(*conversations: AuditConversation) -> list[Probe]:
    """The order probes that a probe model makes, which dates each event as the dataset does."""
    dataset = AuditDataset(id="d", conversations=conversations)
    drafted = drafts(dataset, Probes((), (), {}), ["temporal"], "latest", Counter())
    dates = {
        option_text(fact): f"{fact.valid_from:%Y-%m-%d}"
        for one in conversations
        for fact in one.facts
        if fact.valid_from is not None
    }
    model = ProbeModel(ScriptedModel(lambda turns: dates[turns[-1].content.partition("Event: ")[2].partition("\n")[0]]))
    by_id = {one.id: one for one in conversations}
    return [
        run(write(UnrecordedSteps(), model, draft, by_id[draft.conversation])) for draft in drafted if draft.options
    ]


def sample() -> AuditDataset:
    return load_audit(SAMPLE)


def sample_probes() -> Sequence[Probe]:
    """The probes of the sample dataset that code makes, and those of a probe model about the order of events."""
    dataset = sample()
    return (*generate(dataset, PROBE_TYPES).probes, *order_probes(*dataset.conversations))


def of_kind(made: Probes, kind: str) -> list[Probe]:
    return [probe for probe in made.probes if probe.kind == kind]


def reasons(made: Probes) -> dict[str, str]:
    return {skipped.fact: skipped.reason for skipped in made.skipped}


def questions(made: Probes) -> dict[str, str]:
    """The answer to each recall question."""
    return {probe.question: probe.expected_answer for probe in of_kind(made, "recall")}


class UnrecordedSteps:
    """Performs every step, and counts them by name."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def once(
        self, name: str, inputs: Mapping[str, Any], work: Callable[[], Awaitable[T]], returns: type[T], **more: object
    ) -> T:
        self.names.append(name)
        return await work()

    def is_recorded(self, name: str, inputs: Mapping[str, Any]) -> bool:
        return False

    def is_inherited(self, name: str, inputs: Mapping[str, Any], *, shared: bool = False) -> bool:
        return False

    async def note(self, kind: str, text: str) -> None:
        pass

    def show_adding(self, adding: object) -> None:
        pass

    def check_stopping(self) -> None:
        pass


def run(work: Awaitable[T]) -> T:
    async def wait() -> T:
        return await work

    return asyncio.run(wait())
