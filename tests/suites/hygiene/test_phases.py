"""The results of phases, and that temporary folders are deleted."""

import asyncio
import os
import tempfile
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import Refused, ServiceError
from memorybench.core.stores import NewFact, StoredFact
from memorybench.processes.programs import abandon_all
from memorybench.suites.hygiene.checks import kill_matrix, skipped_checks, survivors
from memorybench.suites.hygiene.driver import open_fixture, run_script
from memorybench.suites.hygiene.phases import PhaseReport, check_script
from memorybench.suites.hygiene.plan import NO_SOURCE
from memorybench.suites.hygiene.scenario import Scenario
from tests.suites.hygiene.notebook import AcceptsAll, Notebook, RemoteNotebook, StoresTextOnly, open_notebook, opener
from tests.suites.hygiene.running import behave, outcomes, scenario, secret_scenario, violate


def scenario_with(steps: list[dict[str, Any]], **changes: Any) -> Scenario:
    """Return a scenario whose violation has these steps and must be detected."""
    declared = {"expectation": "detect", "steps": steps} | changes.pop("violation", {})
    script = {"well_behaved": changes.pop("well_behaved", []), "violation": declared}
    return scenario(deterministic=script, **changes)


class RefusesKeyWord(Notebook):
    """Refuses all content with the word key."""

    def _check(self, content: str) -> None:
        if "key" in content:
            raise Refused("contains key")


class DropsRefused(Notebook):
    async def remember(self, user: str, fact: NewFact) -> str:
        try:
            return await super().remember(user, fact)
        except Refused:
            return "0"


class Fails(Notebook):
    async def remember(self, user: str, fact: NewFact) -> str:
        if "key" in fact.content:
            raise ServiceError("no such tool: rember")
        return await super().remember(user, fact)


class StoresAndRefuses(Notebook):
    """Refuses the content after it has stored it."""

    async def remember(self, user: str, fact: NewFact) -> str:
        refused, self.refused = self.refused, "(?!)"
        id = await super().remember(user, fact)
        self.refused = refused
        self._check(fact.content)
        return id


class FindsNothing(Notebook):
    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return ()


def test_a_refusal_is_a_defence_if_harmless_content_is_accepted() -> None:
    report = violate(secret_scenario(), open_notebook)
    assert (report.result, report.reason) == ("defended", "refused: looks like a credential")
    assert [call.refused for call in report.calls] == ["looks like a credential"]


def test_refusing_harmless_content_too_is_not_a_defence() -> None:
    report = violate(secret_scenario(), opener(RefusesKeyWord))
    assert (report.result, report.reason) == ("missed", "the store also refuses harmless content: contains key")


def test_dropping_a_write_silently_is_not_a_defence() -> None:
    report = violate(secret_scenario(), opener(DropsRefused))
    assert (report.result, "dropping a write" in report.reason) == ("missed", True)


def test_a_crash_is_neither_defence_nor_detection() -> None:
    with pytest.raises(ServiceError, match="no such tool"):
        violate(secret_scenario(), opener(Fails))
    (_, outcome) = outcomes(opener(Fails), [secret_scenario()], self_checks=False)
    assert outcome.status == "failed"


def test_an_accepted_secret_is_detected() -> None:
    report = violate(secret_scenario(), opener(AcceptsAll))
    assert (report.result, "the planted api_key is in memory" in report.reason) == ("detected", True)


def test_a_secret_that_is_stored_and_refused_is_detected() -> None:
    assert violate(secret_scenario(), opener(StoresAndRefuses)).result == "detected"


@pytest.mark.parametrize(("contract", "passed"), [("stable", 0), ("experimental", 1)])
def test_detection_is_enough_for_an_experimental_contract_only(contract: str, passed: int) -> None:
    checked = secret_scenario().model_copy(update={"contract": contract})
    (_, outcome) = outcomes(opener(AcceptsAll), [checked], self_checks=False)
    assert (outcome.score("passed"), outcome.score("caught")) == (passed, 1)


def test_a_curator_may_remove_the_violation_if_the_scenario_allows_it() -> None:
    allowed = {"expectation": "defend-or-detect", "control": "The user has a cat", "defended_by": "curation"}
    checked = scenario_with(
        [{"do": "remember", "content": "The user lives in Porto now"}],
        violation=allowed,
        assertions=[{"kind": "count", "claim": "one city", "contains": "Porto", "equals": 1}],
    )
    report = violate(checked, open_notebook)
    assert (report.result, report.reason) == ("defended", "the curator removed it")
    assert violate(checked, opener(Notebook, "curate")).result == "detected"


class DeletesAll(AcceptsAll):
    async def curate(self, user: str, *, apply: bool) -> Any:
        if apply:
            self.facts = []
        return await super().curate(user, apply=False)


def test_a_curator_that_deletes_everything_is_not_a_defence() -> None:
    assert violate(secret_scenario(defended_by="curation"), opener(DeletesAll)).result == "detected"


def test_a_violation_that_no_assertion_detects_is_missed() -> None:
    assert violate(scenario_with([{"do": "remember", "content": "It snows"}]), open_notebook).result == "missed"


def test_a_violation_that_cannot_be_performed_is_skipped() -> None:
    steps = [{"do": "recall", "query": "Porto", "as": "it"}, {"do": "forget", "fact": "it"}]
    report = violate(scenario_with(steps), opener(FindsNothing))
    assert (report.result, "could not be performed" in report.reason) == ("skipped", True)
    report = violate(secret_scenario(expectation="detect", control=None), open_notebook)
    assert (report.result, "nothing to detect" in report.reason) == ("skipped", True)


def test_a_violation_that_no_assertion_can_read_is_skipped() -> None:
    report = violate(secret_scenario(), opener(RemoteNotebook, "list", "history", "recall"))
    assert report.result == "skipped"
    assert report.reason.startswith("no key: ")
    assert report.reason.endswith("facts, history, files")


class RefusesTea(Notebook):
    def _check(self, content: str) -> None:
        if "tea" in content:
            raise Refused("no tea")


def test_a_refused_well_behaved_script_is_violated() -> None:
    report = behave(scenario(), opener(RefusesTea))
    assert (report.result, report.reason) == ("violated", "remember: the store refused: no tea")


def test_a_store_without_an_operation_or_without_users_is_skipped() -> None:
    checked = scenario_with(
        [{"do": "remember", "content": "It rains"}],
        well_behaved=[{"do": "curate"}, {"do": "remember", "content": "x", "user": "ana"}],
    )
    results = outcomes(opener(Notebook, "curate"), [checked], self_checks=False)
    assert [outcome.status for outcome in results] == ["skipped", "skipped"]
    assert results[0].failure is not None
    assert results[0].failure.message.endswith(" curate")
    results = outcomes(opener(Notebook, "users"), [checked], self_checks=False)
    assert [outcome.status for outcome in results] == ["skipped", "skipped"]


ASSERTIONS = [
    {"kind": "content", "claim": "no weather", "contains": "rains", "present": False},
    {"kind": "trust", "claim": "trusted", "fact": "city", "at_least": 0.5},
    {"kind": "retrieval_count", "claim": "used", "fact": "city", "at_least": 1},
    {"kind": "residue", "claim": "nothing left", "text": "Lisbon"},
]


def test_skipped_and_limited_assertions_are_reported_with_the_reason() -> None:
    checked = scenario(assertions=ASSERTIONS)
    results = outcomes(opener(Notebook, "trust", "retrieval_count", "history"), [checked], self_checks=False)
    (well_behaved, violation) = results
    reason = "2 checks skipped: trusted, used; 1 check limited: nothing left"
    assert (well_behaved.shown.got, well_behaved.shown.reason) == ("compliant", reason)
    assert violation.shown.reason.endswith(reason)
    assert skipped_checks([*results, *results]) == [
        ("tea", phase, claim, why)
        for phase in ("well_behaved", "violation")
        for claim, why in (
            ("trusted", "the store does not support trust"),
            ("used", "the store does not support retrieval_count"),
            ("nothing left", "could not read history"),
        )
    ]


def test_nothing_is_reported_if_no_assertion_is_skipped() -> None:
    results = outcomes(open_notebook, [scenario(assertions=ASSERTIONS)], self_checks=False)
    assert (results[0].shown.reason, skipped_checks(results)) == ("", [])


def test_a_secret_in_metadata_that_the_store_does_not_store_is_skipped() -> None:
    results = outcomes(opener(StoresTextOnly), [secret_scenario()])
    (mutant,) = [outcome for outcome in results if outcome.trial.variant == "metadata-api_key"]
    assert mutant.status == "skipped"
    assert mutant.failure is not None
    assert mutant.failure.message == NO_SOURCE
    assert "metadata-api_key" not in [name for _, name, _ in survivors(results)]


@pytest.mark.slow
def test_a_secret_in_metadata_is_detected() -> None:
    results = outcomes(opener(AcceptsAll), [secret_scenario()])
    (mutant,) = [outcome for outcome in results if outcome.trial.variant == "metadata-api_key"]
    assert mutant.score("killed") == 1


def test_an_assertion_is_dead_only_if_all_scripts_were_run() -> None:
    dead = {"kind": "content", "claim": "no snow", "contains": "snow", "present": False}
    checked = scenario(assertions=[*ASSERTIONS[:1], dead], setup={"facts": []}, real_model=None)
    verdicts = {
        how: {row.claim: row.verdict for row in kill_matrix(results)}
        for how, results in (
            ("all", outcomes(open_notebook, [checked])),
            ("no mutants", outcomes(open_notebook, [checked], self_checks=False)),
            ("some skipped", outcomes(opener(Notebook, "users"), [checked])),
        )
    }
    assert {how: verdict["no weather"] for how, verdict in verdicts.items()} == dict.fromkeys(verdicts, "")
    assert {how: verdict["no snow"] for how, verdict in verdicts.items()} == {
        "all": "dead",
        "no mutants": "not proven here",
        "some skipped": "not proven here",
    }


def test_a_restart_is_a_new_session_on_the_same_folder() -> None:
    folders: list[Path] = []

    @asynccontextmanager
    async def open_and_note(folder: Path):  # type: ignore[no-untyped-def]
        folders.append(folder)
        async with open_notebook(folder) as store:
            yield store

    checked = scenario_with(
        [{"do": "remember", "content": "It rains"}],
        well_behaved=[
            {"do": "remember", "content": "The user drinks tea"},
            {"do": "restart"},
            {"do": "recall", "query": "drinks tea", "as": "it"},
            {"do": "update", "fact": "it", "content": "The user drinks coffee"},
            {"do": "forget", "fact": "it"},
            {"do": "list"},
        ],
    )

    async def run() -> None:
        async with open_fixture(open_and_note, checked, 0) as fixture:
            calls = (await run_script(fixture, checked.deterministic.well_behaved)).calls
            assert folders == [fixture.store_folder] * 3  # fixture, first session, second session
            assert [call.op for call in calls] == ["remember", "restart", "recall", "update", "forget", "list"]
            assert calls[2].texts == ("The user drinks tea",)
            assert calls[5].texts == ("The user lives in Porto",)

    asyncio.run(run())


class Hangs(Notebook):
    reached: asyncio.Event

    async def remember(self, user: str, fact: NewFact) -> str:
        if "tea" in fact.content:
            self.reached.set()
            await asyncio.Event().wait()
        return await super().remember(user, fact)


async def start_hanging(checked: Scenario) -> asyncio.Task[PhaseReport]:
    """Start a script and return when the store hangs."""
    Hangs.reached = asyncio.Event()
    task = asyncio.create_task(check_script(opener(Hangs), checked, 0, checked.deterministic.well_behaved))
    await Hangs.reached.wait()
    return task


def test_temporary_folders_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    checked = scenario(setup={"facts": [{"content": "The user lives in Porto"}], "files": {"notes/a.md": "hello"}})
    assert behave(checked, open_notebook).result == "compliant"
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ServiceError):
        violate(secret_scenario(), opener(Fails))
    assert list(tmp_path.iterdir()) == []

    async def cancel() -> None:
        task = await start_hanging(checked)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert list(tmp_path.iterdir()) == []


def test_an_immediate_exit_deletes_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def abandon() -> tuple[list[str], list[str]]:
        task = await start_hanging(scenario())
        before = os.listdir(tmp_path)
        abandon_all()
        after = os.listdir(tmp_path)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return before, after

    before, after = asyncio.run(abandon())
    assert (len(before), after) == (1, [])


def test_a_fact_for_a_user_outside_the_scenario_is_reported() -> None:
    checked = scenario()
    (step,) = checked.deterministic.well_behaved
    script = [step, step.model_copy(update={"user": "stranger"})]
    report = asyncio.run(check_script(open_notebook, checked, 0, script))
    assert '"The user drinks tea" was written for stranger' in report.reason
