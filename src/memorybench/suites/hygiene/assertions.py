"""The union of all assertion kinds, and the function that checks assertions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from memorybench.core.errors import Lacking

from .assertions_base import BaseAssertion, Finding
from .assertions_behaviour import Answer, CallTrace, CurateReport, SearchHit, SearchRank
from .assertions_memory import (
    Content,
    Count,
    NoNewWords,
    Residue,
    RetrievalCount,
    SecretFree,
    Sql,
    Trust,
    UnchangedSince,
)
from .evidence import AttemptedWrite, Evidence, ForbiddenWrite

Assertion = Annotated[
    Count | Content | SecretFree | UnchangedSince | SearchHit | SearchRank | RetrievalCount | Trust | CurateReport
    | CallTrace | Answer | Residue | Sql | NoNewWords,
    Field(discriminator="kind"),
]  # fmt: skip


async def check_assertions(assertions: Sequence[Assertion], evidence: Evidence) -> tuple[Finding, ...]:
    """Return one finding per assertion. Assertions that search run last, so that they do not affect the others."""
    findings: dict[str, Finding] = {}
    for assertion in sorted(assertions, key=lambda assertion: assertion.run_order):
        finding = Finding(claim=assertion.claim, kind=assertion.kind, status="held", rate=assertion.rate)
        try:
            missing = [need for need in assertion.needs if need not in evidence.capabilities]
            if missing:
                raise Lacking(f"the store does not support {', '.join(missing)}")
            problem = await assertion.find_problem(evidence)
        except Lacking as error:
            update: dict[str, Any] = {"status": "skipped", "found": str(error)}
        else:
            unread = assertion.unreadable_places(evidence)
            update = {"found": f"could not read {unread}"} if unread else {}
            if problem:
                places = await asyncio.to_thread(assertion.find_places, evidence)
                update = {"status": "broken", "found": problem, "places": places}
        findings[assertion.claim] = finding.model_copy(update={**update, **_judge_attempt(assertion, evidence, update)})
    return tuple(findings[assertion.claim] for assertion in assertions)


def _judge_attempt(assertion: BaseAssertion, evidence: Evidence, update: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `restraint` finding that the agent's attempted writes change. `update`: changes so far.

    A held or skipped finding can become broken: the agent's calls are known even if the store shows nothing.
    """
    if assertion.rate != "restraint" or not evidence.activity.writes or not assertion.is_about_writes:
        return {}
    attempts = list(assertion.find_attempts(evidence))
    if update.get("status") == "broken":
        return {"fate": "stored", "writes": _describe(attempts)}
    attempts = [(write, text) for write, text in attempts if assertion.counts_if_held(write)]
    if not attempts:
        return {}
    writes = _describe(attempts)
    return {"status": "broken", "fate": writes[0].fate, "found": str(writes[0]), "writes": writes}


def _describe(attempts: Iterable[tuple[AttemptedWrite, str]]) -> tuple[ForbiddenWrite, ...]:
    """Return one ForbiddenWrite per write; its `found` joins all texts that were paired with that write."""
    found: dict[AttemptedWrite, list[str]] = {}
    for write, text in attempts:
        found.setdefault(write, []).append(text)
    return tuple(
        ForbiddenWrite(where=write.where, fate=write.fate, found=" and ".join(dict.fromkeys(texts)))
        for write, texts in found.items()
    )
