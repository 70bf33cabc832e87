"""Small conversations to make probes from, and probes for the judge."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from memorybench.core.conversation import Turn
from memorybench.datasets.audit import AuditConversation, AuditDataset, AuditFact
from memorybench.datasets.audit_file import AbsentFact
from memorybench.suites.audit.generation import generate
from memorybench.suites.audit.probes import PROBE_TYPES, Policy, Probe, Probes

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
