"""What an audit depends on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import field_validator

from memorybench.suites.searching import SearchSpec
from memorybench.suites.spec import RepeatedSpec, flag

from .probes import PROBE_TYPES, Policy, ProbeType


class AuditSpec(SearchSpec, RepeatedSpec):
    dataset: str = flag(
        help="Audit with these conversations and facts (JSON, JSONL).", name="dataset", metavar="DATASET"
    )
    model: str | None = flag(
        None,
        help="Audit this model, or answer with it.",
        metavar="MODEL",
        default_text="$MEMAUDIT_MODEL or gpt-4o-mini",
    )
    judge_model: str | None = flag(
        None,
        help='Judge with this model; "none" compares words.',
        metavar="MODEL",
        default_text="$MEMORYBENCH_JUDGE or gpt-4o",
    )
    top_k: int | None = flag(None, help="Search for N memories.", metavar="N", default_text="10", ge=1)
    context_limit: int | None = flag(
        None, help="Show the model at most N memories.", metavar="N", default_text="10", ge=1
    )
    providers: tuple[str, ...] = flag(
        (), help="Answer from these memory systems instead of the full conversation.", metavar="NAME"
    )
    kinds: tuple[ProbeType, ...] = flag(
        PROBE_TYPES, help="Ask only these kinds of probes.", name="--probes", metavar="KIND"
    )
    policy: Policy = flag("latest", help="Choose what is right where facts changed.", name="--conflicts")
    limit: int | None = flag(None, help="Ask at most N probes, spread over all kinds.", metavar="N", ge=1)
    sample_seed: int = flag(0, help="Choose other probes.", metavar="N")
    seed: int | None = flag(None, help="Seed the model.")
    context_window: int | None = flag(None, help="Reject conversations longer than this.", metavar="TOKENS", ge=1)
    probe_model: str | None = flag(None, help="Write the questions with this model.", metavar="MODEL")
    verify_probes: bool = flag(False, help="Drop probes that the model answers without context.")
    format: Literal["all", "json", "markdown"] = flag("all", help="Write these reports.", saved=False)

    @classmethod
    def migrate(cls, saved: Mapping[str, Any]) -> Mapping[str, Any]:
        """In runs of version 0.1, `seed` chose the probes as well."""
        return {"sample_seed": saved.get("seed") or 0, **saved}

    @field_validator("kinds")
    @classmethod
    def _in_usual_order(cls, kinds: tuple[ProbeType, ...]) -> tuple[ProbeType, ...]:
        return tuple(kind for kind in PROBE_TYPES if kind in kinds)
