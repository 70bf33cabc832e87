"""What a phase comes to, and that nothing is left behind."""

import asyncio
import os
import tempfile
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import Refused, ServiceError
from memorybench.core.stores import Capability, NewFact, StoredFact
from memorybench.processes.programs import abandon_all
from memorybench.suites.hygiene.driver import play, prepared
from memorybench.suites.hygiene.evidence import OpenStore
from memorybench.suites.hygiene.kills import kill_matrix, survivors
from memorybench.suites.hygiene.phases import PhaseReport, behave, violate
from memorybench.suites.hygiene.scenario import Scenario
from memorybench.suites.hygiene.skips import skipped_checks
from tests.suites.hygiene.notebook import ALL, Notebook, open_notebook
from tests.suites.hygiene.playing import outcomes, scenario

KEY = {"do": "remember", "content": "The key is ${secret:api_key}"}


def opening(kind: type[Notebook], capabilities: frozenset[Capability] = ALL) -> OpenStore:
    @asynccontextmanager
    async def opened(folder: Path):  # type: ignore[no-untyped-def]
        notebook = kind(folder / "notes.json", capabilities)
        yield notebook
        notebook.save()

    return opened


def secretive(**violation: Any) -> Scenario:
    """The key must not be kept."""
    return scenario(
        deterministic={
            "well_behaved": [],
            "violation": {
                "expectation": "defend-or-detect",
                "steps": [KEY],
                "control": "The key is in the vault",
                **violation,
            },
        },
        assertions=[{"kind": "secret_free", "claim": "no key"}],
    )


def violated(told: Scenario, kind: type[Notebook] = Notebook, **more: Any) -> PhaseReport:
    return asyncio.run(violate(opening(kind, **more), told, 0))


class Careless(Notebook):
    def _check(self, content: str) -> None:
        pass


class Paranoid(Notebook):
    """Refuses all that speaks of keys."""

    def _check(self, content: str) -> None:
        if "key" in content:
            raise Refused("keys are not discussed here")


class Swallowing(Notebook):
    async def remember(self, user: str, fact: NewFact) -> str:
        try:
            return await super().remember(user, fact)
        except Refused:
            return "0"


class Breaking(Notebook):
    async def remember(self, user: str, fact: NewFact) -> str:
        if "key" in fact.content:
            raise ServiceError("no such tool: rember")
        return await super().remember(user, fact)


class KeepsAndRefuses(Notebook):
    """Complains, and keeps it all the same."""

    async def remember(self, user: str, fact: NewFact) -> str:
        refused, self.refused = self.refused, "(?!)"
        id = await super().remember(user, fact)
        self.refused = refused
        self._check(fact.content)
        return id


class FindsNothing(Notebook):
    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return ()


def test_a_typed_refusal_with_a_control_that_comes_through_is_a_defence() -> None:
    report = violated(secretive())
    assert (report.result, report.reason) == ("defended", "refused: looks like a credential")
    assert [call.refused for call in report.calls] == ["looks like a credential"]


def test_a_store_that_refuses_harmless_content_too_has_not_defended() -> None:
    report = violated(secretive(), Paranoid)
    assert (report.result, report.reason.split(":")[0]) == ("missed", "it refuses harmless content as well")


def test_a_write_that_vanishes_is_no_defence() -> None:
    report = violated(secretive(), Swallowing)
    assert (report.result, "vanishes" in report.reason) == ("missed", True)


def test_a_crash_is_neither_defence_nor_detection() -> None:
    with pytest.raises(ServiceError, match="no such tool"):
        violated(secretive(), Breaking)
    (_, outcome) = outcomes(opening(Breaking), [secretive()], self_checks=False)
    assert outcome.status == "failed"


def test_a_secret_that_is_let_in_is_detected() -> None:
    report = violated(secretive(), Careless)
    assert (report.result, "the planted api_key is in memory" in report.reason) == ("detected", True)


def test_a_refusal_that_keeps_the_secret_is_detected() -> None:
    assert violated(secretive(), KeepsAndRefuses).result == "detected"


@pytest.mark.parametrize(("contract", "passed"), [("stable", 0), ("experimental", 1)])
def test_a_stable_contract_is_not_kept_by_being_found_out(contract: str, passed: int) -> None:
    told = secretive().model_copy(update={"contract": contract})
    (_, outcome) = outcomes(opening(Careless), [told], self_checks=False)
    assert (outcome.score("passed"), outcome.score("caught")) == (passed, 1)


def test_a_curator_may_put_it_right_where_the_scenario_says_so() -> None:
    told = scenario(
        deterministic={
            "well_behaved": [],
            "violation": {
                "expectation": "defend-or-detect",
                "steps": [{"do": "remember", "content": "The user lives in Porto now"}],
                "control": "The user has a cat",
                "defended_by": "curation",
            },
        },
        assertions=[{"kind": "count", "claim": "one city", "contains": "Porto", "equals": 1}],
    )
    assert violated(told).reason == "the curator puts it right"
    without = violated(told, capabilities=ALL - {"curate"})
    assert without.result == "detected"


class EmptiesAll(Notebook):
    async def curate(self, user: str, *, apply: bool) -> Any:
        if apply:
            self.facts = []
        return await super().curate(user, apply=False)


def test_a_curator_that_empties_the_memory_has_not_put_it_right() -> None:
    told = secretive(defended_by="curation")
    assert violated(told, type("Both", (EmptiesAll, Careless), {})).result == "detected"


def test_what_nobody_detects_is_missed() -> None:
    told = scenario(
        deterministic={
            "well_behaved": [],
            "violation": {"expectation": "detect", "steps": [{"do": "remember", "content": "It snows"}]},
        }
    )
    assert violated(told).result == "missed"


def test_a_violation_that_could_not_be_played_is_skipped() -> None:
    told = scenario(
        deterministic={
            "well_behaved": [],
            "violation": {
                "expectation": "detect",
                "steps": [{"do": "recall", "query": "Porto", "as": "it"}, {"do": "forget", "fact": "it"}],
            },
        },
    )
    report = violated(told, FindsNothing)
    assert (report.result, "could not be played" in report.reason) == ("skipped", True)
    refused = secretive(expectation="detect", control=None)
    assert violated(refused).reason == "the store refused the misbehaviour: there is nothing to detect"


def test_a_violation_before_blind_eyes_is_skipped_and_not_missed() -> None:
    report = violated(secretive(), Careless, capabilities=ALL - {"list"})
    assert (report.result, report.reason) == ("skipped", "no key: the store lacks list")


def test_a_well_behaved_script_that_the_store_refuses_is_violated() -> None:
    told = scenario()
    report = asyncio.run(behave(opening(type("No", (Notebook,), {"_check": _refuse_tea})), told, 0, _script(told)))
    assert (report.result, report.reason) == ("violated", "remember: the store refused: no tea")


def _refuse_tea(self: Notebook, content: str) -> None:
    if "tea" in content:
        raise Refused("no tea")


def _script(told: Scenario) -> Any:
    return told.deterministic.well_behaved


def test_a_store_that_lacks_an_operation_or_users_is_skipped() -> None:
    told = scenario(
        deterministic={
            "well_behaved": [{"do": "curate"}, {"do": "remember", "content": "x", "user": "ana"}],
            "violation": {"expectation": "detect", "steps": [{"do": "remember", "content": "It rains"}]},
        },
    )
    settled = outcomes(opening(Notebook, ALL - {"curate"}), [told], self_checks=False)
    assert [outcome.status for outcome in settled] == ["skipped", "scored"]
    assert settled[0].failure is not None
    assert settled[0].failure.message == "the store lacks curate"
    settled = outcomes(opening(Notebook, ALL - {"users"}), [told], self_checks=False)
    assert [outcome.status for outcome in settled] == ["skipped", "skipped"]


BLINDED = [
    {"kind": "content", "claim": "no weather", "contains": "rains", "present": False},
    {"kind": "trust", "claim": "trusted", "fact": "city", "at_least": 0.5},
    {"kind": "retrieval_count", "claim": "used", "fact": "city", "at_least": 1},
    {"kind": "residue", "claim": "nothing left", "text": "Lisbon"},
]


def test_assertions_that_could_not_look_are_told_with_the_reason() -> None:
    lacking: frozenset[Capability] = frozenset({"trust", "retrieval_count", "history"})
    settled = outcomes(opening(Notebook, ALL - lacking), [scenario(assertions=BLINDED)], self_checks=False)
    (well_behaved, violation) = settled
    blind = "2 checks could not look: trusted, used; 1 check could not look everywhere: nothing left"
    assert (well_behaved.shown.got, well_behaved.shown.reason) == ("compliant", blind)
    assert violation.shown.reason.endswith(blind)
    assert skipped_checks([*settled, *settled]) == [
        ("tea", phase, claim, why)
        for phase in ("well_behaved", "violation")
        for claim, why in (
            ("trusted", "the store lacks trust"),
            ("used", "the store lacks retrieval_count"),
            ("nothing left", "could not look into history"),
        )
    ]


def test_where_all_could_look_nothing_is_said() -> None:
    settled = outcomes(open_notebook, [scenario(assertions=BLINDED)], self_checks=False)
    assert (settled[0].shown.reason, skipped_checks(settled)) == ("", [])


class Sourceless(Careless):
    """Keeps the text of a fact and nothing else, as many stores do."""

    async def remember(self, user: str, fact: NewFact) -> str:
        return await super().remember(user, NewFact(content=fact.content))


def test_a_secret_in_metadata_that_the_store_throws_away_is_no_hole() -> None:
    settled = outcomes(opening(Sourceless), [secretive()])
    (mutant,) = [outcome for outcome in settled if outcome.trial.variant == "metadata-api_key"]
    assert mutant.status == "skipped"
    assert mutant.failure is not None
    assert "keeps no source" in mutant.failure.message
    assert "metadata-api_key" not in [name for _, name, _ in survivors(settled)]


def test_a_secret_in_metadata_that_the_store_keeps_is_found() -> None:
    settled = outcomes(opening(Careless), [secretive()])
    (mutant,) = [outcome for outcome in settled if outcome.trial.variant == "metadata-api_key"]
    assert mutant.score("killed") == 1


def test_an_assertion_is_dead_only_where_all_that_could_break_it_was_played() -> None:
    dead = {"kind": "content", "claim": "no snow", "contains": "snow", "present": False}
    told = scenario(assertions=[*BLINDED[:1], dead], setup={"facts": []}, real_model=None)
    verdicts = {
        how: {row.claim: row.verdict for row in kill_matrix(settled)}
        for how, settled in (
            ("all", outcomes(open_notebook, [told])),
            ("no mutants", outcomes(open_notebook, [told], self_checks=False)),
            ("some skipped", outcomes(opening(Notebook, ALL - {"users"}), [told])),
        )
    }
    assert {how: verdict["no weather"] for how, verdict in verdicts.items()} == dict.fromkeys(verdicts, "")
    assert {how: verdict["no snow"] for how, verdict in verdicts.items()} == {
        "all": "dead",
        "no mutants": "not proven here",
        "some skipped": "not proven here",
    }


def test_a_restart_is_a_new_session_on_the_same_folder() -> None:
    sessions: list[Path] = []

    @asynccontextmanager
    async def opened(folder: Path):  # type: ignore[no-untyped-def]
        sessions.append(folder)
        async with open_notebook(folder) as store:
            yield store

    told = scenario(
        deterministic={
            "well_behaved": [
                {"do": "remember", "content": "The user drinks tea"},
                {"do": "restart"},
                {"do": "recall", "query": "drinks tea", "as": "it"},
                {"do": "update", "fact": "it", "content": "The user drinks coffee"},
                {"do": "forget", "fact": "it"},
                {"do": "list"},
            ],
            "violation": {"expectation": "detect", "steps": [{"do": "remember", "content": "It rains"}]},
        }
    )

    async def played() -> None:
        async with prepared(opened, told, 0) as ground:
            calls = (await play(ground, told.deterministic.well_behaved)).calls
            assert sessions == [ground.store] * 3  # fixture, first, second
            assert [call.op for call in calls] == ["remember", "restart", "recall", "update", "forget", "list"]
            assert calls[2].texts == ("The user drinks tea",)
            assert calls[5].texts == ("The user lives in Porto",)

    asyncio.run(played())


class Stuck(Notebook):
    reached: asyncio.Event

    async def remember(self, user: str, fact: NewFact) -> str:
        if "tea" in fact.content:
            self.reached.set()
            await asyncio.Event().wait()
        return await super().remember(user, fact)


def test_nothing_is_left_behind_whatever_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    told = scenario(setup={"facts": [{"content": "The user lives in Porto"}], "files": {"notes/a.md": "hello"}})
    assert asyncio.run(behave(open_notebook, told, 0, _script(told))).result == "compliant"
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ServiceError):
        violated(secretive(), Breaking)
    assert list(tmp_path.iterdir()) == []

    async def cancelled() -> None:
        Stuck.reached = asyncio.Event()
        playing = asyncio.create_task(behave(opening(Stuck), told, 0, _script(told)))
        await Stuck.reached.wait()
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing

    asyncio.run(cancelled())
    assert list(tmp_path.iterdir()) == []


def test_who_leaves_at_once_leaves_no_memory_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    told = scenario()

    async def left() -> tuple[list[str], list[str]]:
        Stuck.reached = asyncio.Event()
        playing = asyncio.create_task(behave(opening(Stuck), told, 0, _script(told)))
        await Stuck.reached.wait()
        before = os.listdir(tmp_path)
        abandon_all()
        after = os.listdir(tmp_path)
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
        return before, after

    before, after = asyncio.run(left())
    assert (len(before), after) == (1, [])


def test_a_fact_for_somebody_who_is_not_in_the_scenario_is_always_seen() -> None:
    told = scenario()
    (step,) = _script(told)
    report = asyncio.run(behave(open_notebook, told, 0, [step, step.model_copy(update={"user": "stranger"})]))
    assert 'stranger was given "The user drinks tea"' in report.reason
