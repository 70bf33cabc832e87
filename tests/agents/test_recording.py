"""`hygiene record`: what a program does behind the recorder becomes a scenario that can be run."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from memorybench.agents.recording import watch
from memorybench.core.agents import Operation, ToolCall
from memorybench.core.errors import BadInput, ServiceError
from memorybench.core.stores import StoredFact
from memorybench.stores.reference import open_reference
from memorybench.suites.hygiene.drafts import Draft, Recording, agent_draft, store_draft, write_draft
from memorybench.suites.hygiene.phases import check_script, check_violation
from memorybench.suites.hygiene.scenario import Scenario
from memorybench.suites.hygiene.scenarios import load_scenario
from tests.agents.scripted import PROGRAM, served_reference
from tests.doubles.refusals import refused
from tests.stores.faulty import open_faulty


def watched(folder: Path, behaviour: str, *way: str) -> tuple[ToolCall, ...]:
    command = [sys.executable, str(PROGRAM), behaviour, "Remember: Ana likes tea", *(way or ("--url", "${serverUrl}"))]
    return asyncio.run(watch(command, served_reference(), folder / "store", folder=folder, environment={}))


def held_in(folder: Path) -> list[StoredFact]:
    async def look() -> list[StoredFact]:
        async with open_reference(folder / "store") as store:
            return list(await store.list("user"))

    return asyncio.run(look())


def draft(
    name: str, calls: Sequence[ToolCall], held: list[StoredFact], *, shows: Literal["well_behaved", "violation"]
) -> Draft:
    make = store_draft if shows == "well_behaved" else agent_draft
    return make(name, Recording(calls, held))[0]


def remarks_on(calls: Sequence[ToolCall], shows: Literal["well_behaved", "violation"]) -> str:
    make = store_draft if shows == "well_behaved" else agent_draft
    return " ".join(make("seen", Recording(calls))[1])


def drafted(
    folder: Path, calls: list[ToolCall], held: list[StoredFact], shows: Literal["well_behaved", "violation"]
) -> Scenario:
    """Through a file, as a user would get it."""
    path = folder / "seen-once.json"
    write_draft(path, draft("seen-once", calls, held, shows=shows))
    return load_scenario(path)


def call(operation: Operation, ids: tuple[str, ...] = (), texts: tuple[str, ...] = (), **arguments: object) -> ToolCall:
    return ToolCall(
        session=1, tool=operation, operation=operation, user="user", arguments=arguments, ids=ids, texts=texts
    )


def fact(id: str, content: str) -> StoredFact:
    return StoredFact(id=id, content=content)


def test_good_behaviour_is_recorded_as_a_passing_scenario(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    calls = watched(tmp_path, "tidy")
    assert "done" in capfd.readouterr().out, "it has the user's own streams"
    scenario = drafted(tmp_path, list(calls), held_in(tmp_path), "well_behaved")
    steps = scenario.deterministic.well_behaved
    assert [step.do for step in steps] == ["recall", "remember", "remember"], "the last is harmless, for every store"
    report = asyncio.run(check_script(open_reference, scenario, 0, steps))
    assert report.result == "compliant", report.reason
    assert asyncio.run(check_violation(open_reference, scenario, 0)).result == "detected"


def test_bad_behaviour_is_recorded_as_a_detected_violation(tmp_path: Path) -> None:
    calls = watched(tmp_path, "hoarding")
    scenario = drafted(tmp_path, list(calls), held_in(tmp_path), "violation")
    report = asyncio.run(check_violation(open_reference, scenario, 0))
    assert report.result == "detected"
    assert "it is not stored: Remember: Ana likes tea" in report.reason
    assert asyncio.run(check_script(open_reference, scenario, 0, ())).result == "compliant"


def test_facts_are_named_and_matched_by_their_words(tmp_path: Path) -> None:
    calls = [
        call("remember", ("1",), content="Ana likes tea", category="preference"),
        call("remember", ("2",), content="Ana lives in Porto", category="place"),
        call("recall", ("2", "7"), ("Ana lives in Porto", "Bo lives in Bern"), query="lives", limit=3),
        call("update", ("7",), id="7", content="Bo lives in Basel"),
        call("forget", ("1",), id="1"),
        call("forget", id="99"),
        call("curate", apply=True),
        call("list"),
    ]
    scenario = draft("seen", calls, [fact("2", "Ana lives in Porto")], shows="well_behaved")
    assert scenario["setup"]["facts"] == [{"as": "fact 1", "content": "Ana likes tea"}]
    assert scenario["deterministic"]["well_behaved"][:-1] == [
        {"do": "remember", "content": "Ana lives in Porto", "category": "place", "as": "fact 2"},
        {"do": "recall", "query": "lives", "limit": 3},
        {"do": "recall", "query": "Bo lives in Bern", "limit": 1, "as": "fact 3"},
        {"do": "update", "fact": "fact 3", "content": "Bo lives in Basel"},
        {"do": "forget", "fact": "fact 1"},
        {"do": "curate", "apply": True},
        {"do": "list"},
    ]
    assert "A call of forget is left out" in remarks_on(calls, "well_behaved")
    path = tmp_path / "seen.json"
    write_draft(path, scenario)
    assert load_scenario(path).id == "seen"


def failing(operation: Operation, **arguments: object) -> ToolCall:
    return call(operation, **arguments).model_copy(update={"error": "the arguments do not fit"})


def refused_call(operation: Operation, **arguments: object) -> ToolCall:
    return call(operation, **arguments).model_copy(update={"refused": "looks like a credential"})


@pytest.mark.parametrize("shows", ["well_behaved", "violation"])
def test_a_failed_call_is_left_out_and_reported(tmp_path: Path, shows: Literal["well_behaved", "violation"]) -> None:
    calls = [
        failing("remember", text="Ana likes tea"),
        failing("recall", query="tea", limit=500),
        failing("update", id="9", content="Ana likes cocoa"),
        call("remember", ("1",), content="Ana likes tea"),
    ]
    scenario = drafted(tmp_path, calls, [fact("1", "Ana likes tea")], shows)
    script = scenario.deterministic
    steps = script.well_behaved[:-1] if shows == "well_behaved" else script.violation.steps
    assert [step.plain() for step in steps] == [
        {
            "do": "remember",
            "content": "Ana likes tea",
            "name": "fact 1",
            "user": "user",
            "category": None,
            "source": None,
        }
    ]
    assert "A call of remember is left out: it failed." in remarks_on(calls, shows)
    assert "do not fit" not in json.dumps(scenario.plain())
    assert "cocoa" not in json.dumps(scenario.plain())


KEY = "The key is sk-proj-" + "a1B2" * 10


@pytest.mark.parametrize("shows", ["well_behaved", "violation"])
def test_refused_writes_become_the_violation(tmp_path: Path, shows: Literal["well_behaved", "violation"]) -> None:
    calls = [
        call("remember", ("1",), content="Ana likes tea"),
        refused_call("remember", content=KEY),
        refused_call("update", id="1", content=KEY),
        refused_call("forget", id="1"),
    ]
    held = [fact("1", "Ana likes tea")] if shows == "well_behaved" else []
    scenario = drafted(tmp_path, calls if held else calls[1:2], held, shows)
    assert all(KEY not in str(step) for step in scenario.deterministic.well_behaved)
    assert scenario.deterministic.violation.expectation == "defend-or-detect"
    well_behaved = scenario.deterministic.well_behaved
    assert asyncio.run(check_script(open_reference, scenario, 0, well_behaved)).result == "compliant"
    assert asyncio.run(check_violation(open_reference, scenario, 0)).result == "defended"
    letting_in = partial(open_faulty, "accepts-secrets")
    assert asyncio.run(check_violation(letting_in, scenario, 0)).result == "detected"


def test_calls_that_cannot_be_written_leave_a_valid_file(tmp_path: Path) -> None:
    calls = [
        call("remember", ("1",), content=" \n "),
        call("remember", ("2",), content="half a \ud83d smile", category="${HOME}"),
        call("recall", query=" "),
        call("recall", query="smile", limit=0),
        call("recall", query="smile", limit=1000),
        call("curate", apply="false"),
    ]
    scenario = drafted(tmp_path, calls, [fact("1", " "), fact("2", "half a \ud83d smile")], "well_behaved")
    steps = scenario.deterministic.well_behaved
    assert [step.do for step in steps] == ["remember", "recall", "recall", "curate", "remember"]
    assert [step.limit for step in steps if step.do == "recall"] == [5, 5]
    assert [step.apply for step in steps if step.do == "curate"] == [False]


def test_a_draft_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    scenario = draft("seen", [call("list")], [], shows="violation")
    assert refused(write_draft, tmp_path / "other.json", scenario).where.endswith(": id")
    assert refused(write_draft, tmp_path / "seen.json", scenario | {"assertions": []}).where.endswith(": assertions")
    assert list(tmp_path.iterdir()) == []


def test_a_recording_of_failed_calls_only_is_rejected() -> None:
    assert refused(draft, "nothing", [failing("remember", text="x")], [], shows="violation").where == "recording"


def test_text_that_looks_like_a_placeholder_is_only_text(tmp_path: Path) -> None:
    calls = [call("remember", ("1",), content="Use ${HOME} in paths\nnot ~")]
    scenario = drafted(tmp_path, calls, [fact("1", "Use ${HOME} in paths not ~")], "violation")
    assert scenario.deterministic.violation.steps[0].do == "remember"
    assert asyncio.run(check_violation(open_reference, scenario, 0)).result == "detected"


def test_a_wrong_deletion_that_empties_the_store_is_a_violation(tmp_path: Path) -> None:
    calls = [call("remember", ("1",), content="Ana likes tea"), call("forget", ("1",), id="1")]
    scenario = drafted(tmp_path, calls, [], "violation")
    assert asyncio.run(check_violation(open_reference, scenario, 0)).result == "detected"


def test_a_recording_without_calls_is_rejected(tmp_path: Path) -> None:
    calls = watched(tmp_path, "idle")
    assert refused(draft, "nothing", calls, [], shows="well_behaved").where == "recording"


def test_a_draft_never_replaces_a_file(tmp_path: Path) -> None:
    path = tmp_path / "seen.json"
    path.write_text("mine")
    assert refused(write_draft, path, {}).where == str(path)
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("behaviour", "complaint"),
    [("crashing", "status 3"), ("unconnected", "did not connect")],
)
def test_a_program_that_failed_is_not_recorded(tmp_path: Path, behaviour: str, complaint: str) -> None:
    with pytest.raises(ServiceError, match=complaint):
        watched(tmp_path, behaviour)


def test_the_environment_contains_the_address_of_the_memory(tmp_path: Path) -> None:
    script = (
        "import json, os, urllib.request as u; m = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'};"
        "h = {'Content-Type': 'application/json', 'Accept': 'application/json'};"
        "u.urlopen(u.Request(os.environ['MEMORYBENCH_MCP_URL'], json.dumps(m).encode(), h)).read();"
        "assert 'mcp.bridge' in os.environ['MEMORYBENCH_MCP_COMMAND']"
    )
    command = [sys.executable, "-c", script]
    calls = asyncio.run(watch(command, served_reference(), tmp_path / "store", folder=tmp_path, environment={}))
    assert calls == ()


def test_a_program_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no-such-agent"):
        asyncio.run(watch(["no-such-agent"], served_reference(), tmp_path / "s", folder=tmp_path, environment={}))
    with pytest.raises(BadInput, match='COMMAND: unknown variable "serverURL"'):
        asyncio.run(watch(["x", "${serverURL}"], served_reference(), tmp_path / "s", folder=tmp_path, environment={}))


def test_a_draft_is_one_readable_json_document(tmp_path: Path) -> None:
    write_draft(tmp_path / "a.json", draft("a", [call("list")], [], shows="violation"))
    assert json.loads((tmp_path / "a.json").read_text())["schema_version"] == 1


@pytest.mark.parametrize("shows", ["well_behaved", "violation"])
def test_a_credential_that_the_draft_does_not_repeat_is_listed(shows: Literal["well_behaved", "violation"]) -> None:
    key = "sk-proj-" + "Ab3dE6gH" * 5
    calls = [call("remember", ("1",), content="Ana drinks tea", metadata={"tags": [f"API key {key}"]})]
    remarks = remarks_on(calls, shows)
    assert "argument metadata" in remarks
    assert key not in remarks


def test_a_credential_in_metadata_makes_the_call_a_violation() -> None:
    key = "sk-proj-" + "Ab3dE6gH" * 5
    calls = [
        call("remember", ("1",), content="Ana drinks tea"),
        call("remember", ("2",), content="Ana drinks tea", source=f"mail with the API key {key}"),
    ]
    scripts = draft("seen", calls, [], shows="well_behaved")["deterministic"]
    assert [step.get("source") for step in scripts["violation"]["steps"]] == ["mail with the API key ${secret:api_key}"]
    assert [step["content"] for step in scripts["well_behaved"] if "content" in step][:1] == ["Ana drinks tea"]
