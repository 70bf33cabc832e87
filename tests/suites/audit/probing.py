"""Small conversations to make probes from."""

from datetime import UTC, datetime, timedelta

from memorybench.core.conversation import Turn
from memorybench.datasets.audit import AuditConversation, AuditDataset, AuditFact
from memorybench.suites.audit.generation import generate
from memorybench.suites.audit.probes import PROBE_TYPES, Policy, Probe, Probes

START = datetime(2024, 1, 10, 9, tzinfo=UTC)


def day(number: int) -> datetime:
    return START + timedelta(days=number)


def conversation(*facts: AuditFact, said: list[str] | None = None, id: str = "c1") -> AuditConversation:
    """A turn for each fact, as it is written, twenty days apart; or what was said."""
    texts = [fact.content for fact in facts] if said is None else said
    turns = tuple(Turn(role="user", content=text, at=day(20 * n), id=f"t{n + 1}") for n, text in enumerate(texts))
    return AuditConversation(id=id, turns=turns, facts=facts)


def fact(id: str, content: str, **more: object) -> AuditFact:
    return AuditFact.model_validate({"id": id, "content": content, **more})


def probes_of(*conversations: AuditConversation, policy: Policy = "latest", limit: int | None = None) -> Probes:
    dataset = AuditDataset(id="d", conversations=conversations)
    return generate(dataset, PROBE_TYPES, policy=policy, limit=limit)


def of_kind(made: Probes, kind: str) -> list[Probe]:
    return [probe for probe in made.probes if probe.kind == kind]


def reasons(made: Probes) -> dict[str, str]:
    return {skipped.fact: skipped.reason for skipped in made.skipped}
