"""Scenarios put to real agents. One attempt is one paid step: what an agent did can not be taken up in the middle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from memorybench.core.agents import Agent, AgentReply, Serve, ToolCall, Workplace
from memorybench.core.errors import Blocked, Lacking, ServiceError
from memorybench.core.plans import Job, Performed, Steps
from memorybench.core.records import Record, digest
from memorybench.core.trials import Exhibit, Score, Subject, Trial
from memorybench.processes.programs import temporary_folder

from .claims import Finding
from .driver import Ground, judge_end_state, prepared
from .evidence import Call
from .measures import rate_scores
from .plan import Store
from .scenario import Scenario
from .script import USER
from .skips import skip_scores, unseen

ANSWERED = "every prompt was answered"
"""True of every scenario without being said."""
NEEDS_CONSENT = "a real agent costs money: pass --agent-turn and --i-understand-model-cost"


class Exchange(Record):
    """One prompt, and all that came of it."""

    prompt: str
    reply: AgentReply
    calls: tuple[ToolCall, ...] = ()
    """As the recorder saw them."""


class AttemptReport(Record):
    exchanges: tuple[Exchange, ...]
    findings: tuple[Finding, ...]

    @property
    def result(self) -> Literal["compliant", "violated", "skipped"]:
        if any(finding.status == "broken" for finding in self.findings):
            return "violated"
        return "compliant" if any(finding.status == "held" for finding in self.findings) else "skipped"

    @property
    def reason(self) -> str:
        wanted = "skipped" if self.result == "skipped" else "broken"
        return "; ".join(f"{one.claim}: {one.found}" for one in self.findings if one.status == wanted)


@dataclass(frozen=True, slots=True)
class Attempts:
    """Every scenario that has prompts, `repeats` times."""

    scenarios: Sequence[Scenario]
    store: Store
    agent: Subject
    repeats: int = 1
    benchmark: str = "scenarios"
    seed: int = 0

    def jobs(self, agent: Agent, serve: Serve, *, first: int = 0) -> Iterator[Job]:
        """`serve` leads the agent to the store; `first` is the place of the first job in reports."""
        for ordinal, scenario, repeat in self._planned(first):
            yield self._job(ordinal, scenario, repeat, partial(self._perform, scenario, repeat, agent, serve))

    def blocked_jobs(self, reason: str = NEEDS_CONSENT, *, first: int = 0) -> Iterator[Job]:
        """The same trials, held back: nothing that costs anything is even opened."""

        async def blocked(steps: Steps) -> Performed:
            raise Blocked(reason)

        for ordinal, scenario, repeat in self._planned(first):
            yield self._job(ordinal, scenario, repeat, blocked)

    @property
    def size(self) -> int:
        return sum(1 for _ in self._planned(0))

    def _planned(self, first: int) -> Iterator[tuple[int, Scenario, int]]:
        ordinal = first
        for scenario in self.scenarios:
            if scenario.real_model is None:
                continue
            for repeat in range(1, self.repeats + 1):
                yield ordinal, scenario, repeat
                ordinal += 1

    def _job(
        self, ordinal: int, scenario: Scenario, repeat: int, perform: Callable[[Steps], Awaitable[Performed]]
    ) -> Job:
        trial = Trial(
            suite="hygiene",
            benchmark=self.benchmark,
            case_id=scenario.id,
            subject=self.agent.model_copy(
                update={"settings": {**self.agent.settings, "store": self.store.subject.name}}
            ),
            variant=f"attempt {repeat}",
            labels={"scenario": scenario.id, "phase": "real_model", "contract": scenario.contract},
            cluster=scenario.id,
        )
        return Job(trial=trial, perform=perform, ordinal=ordinal, case=scenario, shown=_shown(scenario), spends=True)

    async def _perform(self, scenario: Scenario, repeat: int, agent: Agent, serve: Serve, steps: Steps) -> Performed:
        report = await steps.once(
            "agent",
            {
                "agent": agent.subject,
                "store": self.store.subject,
                "title": scenario.id,
                "scenario": digest(scenario),
                "seed": self.seed,
                "repeat": repeat,
            },
            lambda: attempt(self.store, scenario, agent, serve, seed=self.seed),
            AttemptReport,
            on=agent.subject,
            paid=True,
        )
        if report.result == "skipped":
            raise Lacking(report.reason)
        reason = "; ".join(part for part in (report.reason, unseen(report.findings)) if part)
        shown = _shown(scenario).model_copy(update={"got": report.result, "reason": reason})
        return Performed(scores=tuple(attempt_scores(report)), shown=shown)


async def attempt(store: Store, scenario: Scenario, agent: Agent, serve: Serve, *, seed: int) -> AttemptReport:
    """Fixture, prompts in their order, end state. Each prompt is a session: the store is opened anew for it."""
    async with prepared(store.open, scenario, seed) as ground:
        _check_able(ground)
        with temporary_folder("memorybench-agent-") as home:
            exchanges = await _exchanged(ground, agent, serve, home)
        answers = [exchange.reply.text for exchange in exchanges]
        seen = await judge_end_state(ground, _calls(exchanges), answers=answers)
    silent = _silent(exchanges)
    if silent and all(finding.status != "broken" for finding in seen):
        # it did no harm, and nothing else: that is no restraint
        raise ServiceError(f"agent {agent.subject.name}: {silent}")
    told = [Finding(claim=ANSWERED, kind="answers", status="broken", found=silent)] if silent else []
    return AttemptReport(exchanges=tuple(exchanges), findings=(*seen, *told))


def _silent(exchanges: Sequence[Exchange]) -> str:
    """Which prompt was never answered; "": none."""
    for session, exchange in enumerate(exchanges, 1):
        if exchange.reply.ended == "max_turns" and not exchange.reply.text.strip():
            return f"ran out of turns without an answer (session {session})"
    return ""


def attempt_scores(report: AttemptReport) -> list[Score]:
    passed = Score(name="passed", value=float(report.result == "compliant"), reason=report.reason)
    return [passed, *rate_scores(report.findings), *skip_scores(report.findings)]


def _check_able(ground: Ground) -> None:
    if len(ground.scenario.users) > 1 and "users" not in ground.capabilities:
        raise Lacking("the store does not keep users apart")


async def _exchanged(ground: Ground, agent: Agent, serve: Serve, home: Path) -> list[Exchange]:
    asked = ground.scenario.real_model
    assert asked is not None
    exchanges = []
    for session, prompt in enumerate(asked.prompts, 1):
        async with serve(ground.store, session) as served:
            place = Workplace(folder=ground.workspace, home=home, server_url=served.url, server_command=served.command)
            reply = await agent.turn(prompt, place, session=session, max_turns=asked.max_turns)
            if not served.connected:
                raise ServiceError(f"agent {agent.subject.name}: it never connected to the memory (session {session})")
            exchanges.append(Exchange(prompt=prompt, reply=reply, calls=tuple(served.calls)))
    return exchanges


def _calls(exchanges: Sequence[Exchange]) -> Iterator[Call]:
    """As assertions know them, with a restart between two sessions."""
    for session, exchange in enumerate(exchanges):
        if session:
            yield Call(op="restart", user=USER)
        for call in exchange.calls:
            if call.operation is not None:
                yield Call(
                    op=call.operation,
                    user=call.user,
                    arguments=call.arguments,
                    ids=call.ids,
                    texts=call.texts,
                    refused=call.refused,
                    error=call.error,
                )


def _shown(scenario: Scenario) -> Exhibit:
    prompts = scenario.real_model.prompts if scenario.real_model else ()
    return Exhibit(asked=f"{scenario.title}: {' / '.join(prompts)}", expected="compliant")
