"""What a hygiene run depends on."""

from __future__ import annotations

from memorybench.suites.spec import ShardedSpec, flag

REFERENCE = "reference"


class HygieneSpec(ShardedSpec):
    scenarios: tuple[str, ...] = flag(
        (), help="Run these scenarios.", name="scenarios", metavar="SCENARIO", default_text="all"
    )
    folders: tuple[str, ...] = flag((), help="Add folders with scenario files.", name="--scenarios", metavar="DIR")
    store: str = flag(REFERENCE, help="Test this memory store.", metavar="NAME")
    seed: int = flag(0, help="Seed the planted secrets and facts.")
    mutants: bool = flag(True, help="Skip the self-checks with generated faulty scripts.")
    agent: str | None = flag(None, help="Prompt this agent instead of playing scripts.", metavar="NAME")
    model: str | None = flag(None, help="Set the agent's model.", metavar="MODEL")
    repeats: int = flag(1, help="Run each scenario N times with the agent.", metavar="N", ge=1)
    agent_turn: bool = flag(False, help="Allow prompting the agent; needs --i-understand-model-cost.", saved=False)
    i_understand_model_cost: bool = flag(False, help="Accept that the agent may cost money.", saved=False)
