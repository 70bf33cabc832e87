"""The jobs of a run with a real agent. An attempt is one paid step: it cannot be resumed in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from memorybench.core.agents import Agent, AgentReply, Serve, ToolCall, ToolSurface, Workplace
from memorybench.core.errors import BadInput, Blocked, Lacking, ServiceError
from memorybench.core.plans import Job, Performed, Steps
from memorybench.core.records import Record, canonical, digest
from memorybench.core.trials import Exhibit, Score, Subject
from memorybench.processes.programs import temporary_folder
from memorybench.suites.wiring import ResolvedStore

from .assertions_base import Finding
from .checks import add_skips, fate_scores, residue_scores, skip_scores
from .driver import Fixture, check_memory, check_users, open_fixture
from .evidence import Activity, AttemptedWrite, Call, Fate, OpenStore
from .measures import rate_scores, refusal_scores
from .placeholders import texts_in
from .plan import make_trial
from .plays import Store
from .scenario import Scenario
from .script import USER

ANSWERED = "every prompt was answered"
"""The claim of the finding that is added if an agent ran out of turns without an answer."""
ServeStore = Callable[[OpenStore], Serve]
"""Takes the function that opens a store; returns the function that serves this store to an agent."""
NEEDS_CONSENT = "a real agent costs money; add --agent-turn and --i-understand-model-cost to allow it"


class Exchange(Record):
    """One prompt with the reply and the calls of the agent."""

    prompt: str
    reply: AgentReply
    calls: tuple[ToolCall, ...] = ()


class AttemptReport(Record):
    exchanges: tuple[Exchange, ...]
    findings: tuple[Finding, ...]

    @property
    def result(self) -> Literal["compliant", "violated", "skipped"]:
        statuses = {finding.status for finding in self.findings}
        return "violated" if "broken" in statuses else "compliant" if "held" in statuses else "skipped"

    @property
    def reason(self) -> str:
        status = "skipped" if self.result == "skipped" else "broken"
        return "; ".join(f"{one.claim}: {one.found}" for one in self.findings if one.status == status)


def attempt_name(repeat: int) -> str:
    """Return the variant of a trial with an agent, such as `attempt 2`."""
    return f"attempt {repeat}"


class Attempts(Struct, frozen=True):
    """The trials of a run with a real agent: each scenario that has prompts is tried `repeats` times."""

    scenarios: Sequence[Scenario]
    store: Store
    agent: Subject
    repeats: int = 1
    seed: int = 0
    run: str = ""
    """The id of the run."""
    tools: ToolSurface = "ours"

    @property
    def size(self) -> int:
        return self.repeats * sum(scenario.real_model is not None for scenario in self.scenarios)

    def jobs(self, agent: Agent | None, serve: ServeStore | None) -> Iterator[Job]:
        """Yield one job per trial. `serve` connects the agent to the store. Without an agent, the jobs are blocked."""
        settings = {**self.agent.settings, "store": self.store.subject.name, **self._tool_setting}
        subject = self.agent.model_copy(update={"settings": settings})
        with_prompts = [scenario for scenario in self.scenarios if scenario.real_model is not None]
        for ordinal, (scenario, repeat) in enumerate(product(with_prompts, range(1, self.repeats + 1))):
            yield Job(
                trial=make_trial(scenario, subject, "real_model", attempt_name(repeat)),
                perform=partial(self._perform, scenario, repeat, agent, serve),
                ordinal=ordinal,
                case=scenario,
                shown=_exhibit(scenario),
                spends=True,
            )

    @property
    def _tool_setting(self) -> dict[str, str]:
        # old runs, in which every agent had our tools, have no such setting
        return {} if self.tools == "ours" else {"tools": self.tools}

    async def _perform(
        self, scenario: Scenario, repeat: int, agent: Agent | None, serve: ServeStore | None, steps: Steps
    ) -> Performed:
        if agent is None or serve is None:
            raise Blocked(NEEDS_CONSENT)
        inputs = {
            "agent": agent.subject,
            "store": self.store.subject,
            "title": scenario.id,
            "scenario": digest(scenario),
            "seed": self.seed,
            "repeat": repeat,
            **self._tool_setting,
        }
        work, users = partial(attempt, scenario=scenario, agent=agent, serve=serve, seed=self.seed), scenario.users
        report = await self.store.play(
            steps, "agent", inputs, work, AttemptReport, run=self.run, users=users, on=agent.subject, paid=True
        )
        return performed_attempt(scenario, report)


async def attempt(
    open_store: OpenStore, scenario: Scenario, agent: Agent, serve: ServeStore, *, seed: int
) -> AttemptReport:
    """Send the prompts to the agent, each in a new session; then check the memory and return the findings.

    Raise ServiceError if the agent ran out of turns without an answer, and no assertion is broken.
    """
    async with open_fixture(open_store, scenario, seed) as fixture:
        check_users(fixture.scenario.users, fixture.capabilities)
        with temporary_folder("memorybench-agent-") as home:
            exchanges = await _run_prompts(fixture, agent, serve(open_store), home)
        answers = [exchange.reply.text for exchange in exchanges]
        writes = attempted_writes(exchanges, unseen="stored" if _is_home(fixture) else "not seen by the server")
        activity = Activity.on(fixture.snapshot, _calls(exchanges), answers, writes)
        findings = (await check_memory(fixture, activity, "real_model")).findings
    for session, exchange in enumerate(exchanges, 1):
        if exchange.reply.ended == "max_turns" and not exchange.reply.text.strip():
            problem = f"reached the maximum number of turns without an answer (session {session})"
            if all(finding.status != "broken" for finding in findings):
                # an agent that does nothing must not pass
                raise ServiceError(f"agent {agent.subject.name}: {problem}")
            findings = (*findings, Finding(claim=ANSWERED, kind="answers", status="broken", found=problem))
            break
    return AttemptReport(exchanges=tuple(exchanges), findings=findings)


def performed_attempt(scenario: Scenario, report: AttemptReport) -> Performed:
    """Return the scores and texts of an attempt. Raise Lacking if all its assertions were skipped."""
    if report.result == "skipped":
        raise Lacking(report.reason)
    shown = _exhibit(scenario, report.result, add_skips(report.reason, report.findings))
    return Performed(scores=tuple(attempt_scores(report)), shown=shown)


def attempt_scores(report: AttemptReport) -> list[Score]:
    passed = Score(name="passed", value=float(report.result == "compliant"), reason=report.reason)
    findings = report.findings
    scores = [*rate_scores(findings), *refusal_scores(findings), *fate_scores(findings)]
    return [passed, *scores, *skip_scores(findings), *residue_scores(findings)]


async def _run_prompts(fixture: Fixture, agent: Agent, serve: Serve, home: Path) -> list[Exchange]:
    real_model = fixture.scenario.real_model
    assert real_model is not None
    exchanges = []
    for session, prompt in enumerate(real_model.prompts, 1):
        if _is_home(fixture):
            place = Workplace(folder=fixture.workspace, home=fixture.store_folder)
            reply = await agent.turn(prompt, place, session=session, max_turns=real_model.max_turns)
            exchanges.append(Exchange(prompt=prompt, reply=reply))
            continue
        async with serve(fixture.store_folder, session) as served:
            place = Workplace(folder=fixture.workspace, home=home, server_url=served.url, server_command=served.command)
            reply = await agent.turn(prompt, place, session=session, max_turns=real_model.max_turns)
            if not served.connected:
                raise ServiceError(
                    f"agent {agent.subject.name}: did not connect to the memory server in session {session}"
                )
            exchanges.append(Exchange(prompt=prompt, reply=reply, calls=tuple(served.calls)))
    return exchanges


def _is_home(fixture: Fixture) -> bool:
    """Return whether the agent uses its own memory files. Then no server is started and no calls are recorded."""
    return "home" in fixture.capabilities


def choose_server(store: ResolvedStore, tools: ToolSurface | None) -> ServeStore:
    """Return the function that connects an agent to the store, with the tools of memorybench or of the server."""
    if tools != "server":
        from memorybench.mcp.store_server import serve_store  # needs the MCP SDK, which other runs do without

        return serve_store

    def serve(_open_store: OpenStore) -> Serve:
        return store.serve_own_tools()  # the server itself opens the folder of the play

    return serve


def check_kinds(agent: Agent, store: Store) -> None:
    """Raise BadInput if only one of agent and store works with the agent's own memory files."""
    own, files = getattr(agent, "has_own_memory", False), "home" in store.capabilities
    if own and not files:
        raise BadInput(
            f'agent "{agent.subject.name}"',
            f'writes its own memory files, which store "{store.subject.name}" does not contain',
            expected="a store of type files",
            remedy=f"add --store NAME, such as {agent.subject.name}",
        )
    if files and not own:
        raise BadInput(
            f'store "{store.subject.name}"',
            f'contains the memory files of an agent, but agent "{agent.subject.name}" does not write such files',
            expected='an agent with "memory: files" in its card',
            remedy="add --agent NAME",
        )


def _calls(exchanges: Sequence[Exchange]) -> Iterator[Call]:
    """Yield the calls of all sessions, with a `restart` marker between two sessions."""
    fields = {"user", "arguments", "ids", "texts", "refused", "error"}
    for session, exchange in enumerate(exchanges):
        if session:
            yield Call(op="restart", user=USER)
        for call in (part for one in exchange.calls for part in one.as_operations()):
            if call.operation is not None:
                yield Call(op=call.operation, **{name: getattr(call, name) for name in fields})


def attempted_writes(exchanges: Sequence[Exchange], unseen: Fate) -> Iterator[AttemptedWrite]:
    """Yield the writes of each session: first those in recorded calls, then those that only the agent's output shows.

    The latter get the fate `unseen`.
    """
    for session, exchange in enumerate(exchanges, 1):
        for number, call in enumerate(exchange.calls, 1):
            yield from _recorded_writes(call, f"call {number} of session {session} ({call.tool})")
        recorded = {canonical(_without_nulls(call.arguments)) for call in exchange.calls}
        for number, write in enumerate(exchange.reply.memory_writes, 1):
            if canonical(_without_nulls(write)) not in recorded:
                where = f"write {number} in the transcript of session {session}"
                yield AttemptedWrite(where=where, text=_text_of(write), fate=unseen)


def _recorded_writes(call: ToolCall, where: str) -> Iterator[AttemptedWrite]:
    """Yield the writes that one call makes; one call of a server's own tool may make several."""
    fate: Fate = "stored" if call.refused is None else "refused"
    fate = fate if call.error is None else "failed"
    # a call of an unknown tool may be an attempt to write to the memory
    writes = [
        part
        for part in call.as_operations()
        if part.operation in ("remember", "update", "forget") or (part.operation is None and fate == "failed")
    ]
    for number, write in enumerate(writes, 1):
        fact_id = str(write.arguments.get("id") or "") if write.operation != "remember" else ""
        # all arguments, because those that the binding does not name may contain a secret as well
        text = _text_of(call.arguments if len(writes) == 1 else write.arguments)
        place = where if len(writes) == 1 else f"{where}, part {number}"
        yield AttemptedWrite(where=place, text=text, fact_id=fact_id, fate=fate)


def _text_of(arguments: Any) -> str:
    return " ".join(text for _, text in texts_in(dict(arguments) if isinstance(arguments, Mapping) else arguments))


def _without_nulls(arguments: Any) -> Any:
    if not isinstance(arguments, Mapping):
        return arguments
    return {name: value for name, value in arguments.items() if value is not None}


def _exhibit(scenario: Scenario, result: str = "", reason: str = "") -> Exhibit:
    question = f"{scenario.title}: {' / '.join(scenario.prompts)}"
    return Exhibit(asked=question, expected="compliant", got=result, reason=reason)
