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
"""For `hygiene forget` and `hygiene corrections`: the name of the case set, and the `mode` in the saved spec of a run.
The mode of `hygiene run` is `scenarios`; its older runs have none."""


def new_seed() -> int:
    return secrets.randbelow(10**9)


class HygieneSpec(ShardedSpec):
    scenarios: tuple[str, ...] = flag(
        (),
        help="Run these scenarios; `memorybench hygiene list` shows them.",
        name="scenarios",
        metavar="SCENARIO",
        default_text="all",
    )
    folders: tuple[str, ...] = flag(
        (), help="Also read scenario files from these folders.", name="--scenarios", metavar="DIR"
    )
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
        help="Give the agent memorybench's tools, or the MCP server's own.",
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
    seed: int = flag(new_seed, help="Make up the facts with this seed.", metavar="N", default_text="a new one per run")
    look_in: tuple[str, ...] = flag(
        (), help="Also search these files and folders for the deleted facts.", metavar="PATH"
    )
    wait: float = flag(
        0.0,
        help="Wait this long after deletions, for the store's background jobs.",
        metavar="SECONDS",
        default_text="0",
        ge=0,
    )
    strict: bool = flag(False, help="Also fail if a step's result is `cannot tell`.")

    @field_validator("look_in")
    @classmethod
    def _make_absolute(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """Make the paths absolute, so that a run can be resumed from another folder."""
        return tuple(str(Path(name).absolute()) for name in value)


class CorrectionsSpec(Spec):
    store: str = flag(REFERENCE, help="Test this memory store.", metavar="NAME")
    seed: int = flag(
        new_seed, help="Make up the statements with this seed.", metavar="N", default_text="a new one per run"
    )
    curate: bool = flag(False, help="Run the store's curation before the search.")
    model: str | None = flag(None, help="Also let this model answer from the search results.", metavar="MODEL")
