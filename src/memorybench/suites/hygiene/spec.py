"""The options of the hygiene commands."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import field_validator

from memorybench.core.agents import ToolSurface
from memorybench.suites.spec import ShardedSpec, Spec, flag

REFERENCE = "reference"
FORGET, CORRECTIONS = "forgetting", "corrections"
"""The names of the case sets of `hygiene forget` and `hygiene corrections`, and the `mode` of their saved runs. The
mode of `hygiene run` is `scenarios`; older runs have none."""


def new_seed() -> int:
    return secrets.randbelow(10**9)


class HygieneSpec(ShardedSpec):
    scenarios: tuple[str, ...] = flag(
        (), help="Run these scenarios.", name="scenarios", metavar="SCENARIO", default_text="all"
    )
    folders: tuple[str, ...] = flag((), help="Add folders with scenario files.", name="--scenarios", metavar="DIR")
    store: str = flag(REFERENCE, help="Test this memory store.", metavar="NAME")
    seed: int | None = flag(
        None,
        help="Generate the planted secrets and facts with this seed.",
        metavar="N",
        default_text="new in every run",
    )
    mutants: bool = flag(True, help="Skip the self-checks with generated faulty scripts.")
    allow_skips: bool = flag(False, help="Pass even if all well-behaved and agent phases are skipped.")
    agent: str | None = flag(None, help="Prompt this agent instead of running scripts.", metavar="NAME")
    model: str | None = flag(None, help="Set the agent's model.", metavar="MODEL")
    tools: ToolSurface | None = flag(
        None,
        help="Give the agent our tools or the MCP server's own.",
        metavar="ours|server",
        default_text="server for an MCP store",
    )
    repeats: int = flag(1, help="Run each scenario N times with the agent.", metavar="N", ge=1)
    agent_turn: bool = flag(False, help="Let hygiene prompt agents; needs --i-understand-model-cost.", saved=False)
    i_understand_model_cost: bool = flag(False, help="Accept that the agent may cost money.", saved=False)

    @classmethod
    def migrate(cls, saved: Mapping[str, Any]) -> Mapping[str, Any]:
        # until --tools existed, every agent got our tools
        return {"tools": "ours", **saved} if saved.get("agent") else saved


class ForgetSpec(Spec):
    store: str = flag(REFERENCE, help="Test this memory store.", metavar="NAME")
    seed: int = flag(new_seed, help="Seed the made-up facts.", metavar="N", default_text="a new one per run")
    look_in: tuple[str, ...] = flag((), help="Also search these files and folders.", metavar="PATH")
    wait: float = flag(0.0, help="Wait this many seconds for background jobs.", metavar="SECONDS", ge=0)
    strict: bool = flag(False, help="Also fail if a step cannot tell.")

    @field_validator("look_in")
    @classmethod
    def _make_absolute(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """Make the paths absolute, so that a run can be resumed from another folder."""
        return tuple(str(Path(name).absolute()) for name in value)


class CorrectionsSpec(Spec):
    store: str = flag(REFERENCE, help="Test this memory store.", metavar="NAME")
    seed: int = flag(new_seed, help="Seed the made-up statements.", metavar="N", default_text="a new one per run")
    curate: bool = flag(False, help="Run the store's curation before the search.")
    model: str | None = flag(None, help="Also let this model answer from the search results.", metavar="MODEL")
