"""The kinds of assertion a scenario may use, each told apart by `kind`, and how they are put to the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from memorybench.core.errors import Lacking

from .about_behaviour import Answer, CallTrace, CurateReport, SearchHit, SearchRank
from .about_memory import Content, Count, Residue, RetrievalCount, SecretFree, Sql, Trust, UnchangedSince
from .claims import Finding
from .evidence import Evidence

Assertion = Annotated[
    Count | Content | SecretFree | UnchangedSince | SearchHit | SearchRank | RetrievalCount | Trust | CurateReport
    | CallTrace | Answer | Residue | Sql,
    Field(discriminator="kind"),
]  # fmt: skip

KINDS = (
    "count", "content", "secret_free", "unchanged_since", "search_hit", "search_rank", "retrieval_count", "trust",
    "curate_report", "call_trace", "answer", "residue", "sql",
)  # fmt: skip


async def findings(assertions: Sequence[Assertion], evidence: Evidence) -> tuple[Finding, ...]:
    """What each assertion sees, in their order; those that search come last, so that none sees another's traces."""
    seen: dict[str, Finding] = {}
    for assertion in sorted(assertions, key=lambda assertion: assertion.disturbs):
        seen[assertion.claim] = await _finding(assertion, evidence)
    return tuple(seen[assertion.claim] for assertion in assertions)


async def _finding(assertion: Assertion, evidence: Evidence) -> Finding:
    def with_status(status: Literal["held", "broken", "skipped"], told: str) -> Finding:
        return Finding(claim=assertion.claim, kind=assertion.kind, status=status, found=told, rate=assertion.rate)

    lacking = [need for need in assertion.needs if need not in evidence.capabilities]
    if lacking:
        return with_status("skipped", f"the store lacks {', '.join(lacking)}")
    try:
        wrong = await assertion.fault(evidence)
    except Lacking as error:
        return with_status("skipped", str(error))
    if wrong:
        return with_status("broken", wrong)
    blind = assertion.blind(evidence)
    return with_status("held", f"could not look into {blind}" if blind else "")
