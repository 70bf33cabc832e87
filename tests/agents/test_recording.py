"""`hygiene record`: what a program does behind the recorder becomes a scenario that can be run."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Literal

import pytest

from memorybench.agents.recording import watch
from memorybench.stores.reference import open_reference
from memorybench.suites.hygiene.drafts import draft, write_draft
from memorybench.suites.hygiene.phases import behave, violate
from memorybench.suites.hygiene.scenario import Scenario
from memorybench.suites.hygiene.scenarios import load_scenario
from memorybench.vocabulary.agents import Operation, ToolCall
from memorybench.vocabulary.errors import BadInput, ServiceError
from memorybench.vocabulary.stores import StoredFact
from tests.agents.scripted import PROGRAM, served_reference


def watched(folder: Path, behaviour: str, *way: str) -> tuple[ToolCall, ...]:
    command = [sys.executable, str(PROGRAM), behaviour, "Remember: Ana likes tea", *(way or ("--url", "${serverUrl}"))]
    return asyncio.run(watch(command, served_reference(), folder / "store", folder=folder, environment={}))


def held_in(folder: Path) -> list[StoredFact]:
    async def look() -> list[StoredFact]:
        async with open_reference(folder / "store") as store:
            return list(await store.list("user"))

    return asyncio.run(look())


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


def test_what_a_program_did_well_becomes_a_scenario_that_holds(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    calls = watched(tmp_path, "tidy")
    assert "done" in capfd.readouterr().out, "it has the user's own streams"
    scenario = drafted(tmp_path, list(calls), held_in(tmp_path), "well_behaved")
    steps = scenario.deterministic.well_behaved
    assert [step.do for step in steps] == ["recall", "remember"]
    report = asyncio.run(behave(open_reference, scenario, 0, steps))
    assert report.result == "compliant", report.reason
    assert asyncio.run(violate(open_reference, scenario, 0)).result == "detected"


def test_what_a_program_did_badly_is_caught_from_then_on(tmp_path: Path) -> None:
    calls = watched(tmp_path, "hoarding")
    scenario = drafted(tmp_path, list(calls), held_in(tmp_path), "violation")
    report = asyncio.run(violate(open_reference, scenario, 0))
    assert report.result == "detected"
    assert "it is not stored: Remember: Ana likes tea" in report.reason
    assert asyncio.run(behave(open_reference, scenario, 0, ())).result == "compliant"


def test_facts_are_called_by_names_and_found_again_by_their_words(tmp_path: Path) -> None:
    calls = [
        call("remember", ("1",), content="Ana likes tea", category="preference"),
        call("remember", ("2",), content="Ana lives in Porto"),
        call("recall", ("2", "7"), ("Ana lives in Porto", "Bo lives in Bern"), query="lives", limit=3),
        call("update", ("7",), id="7", content="Bo lives in Basel"),
        call("forget", ("1",), id="1"),
        call("forget", id="99"),
        call("curate", apply=True),
        call("list"),
    ]
    scenario = draft("seen", calls, [fact("2", "Ana lives in Porto")], shows="well_behaved")
    assert scenario["deterministic"]["well_behaved"] == [
        {"do": "remember", "content": "Ana likes tea", "category": "preference", "as": "fact 1"},
        {"do": "remember", "content": "Ana lives in Porto", "as": "fact 2"},
        {"do": "recall", "query": "lives", "limit": 3},
        {"do": "recall", "query": "Bo lives in Bern", "limit": 1, "as": "fact 3"},
        {"do": "update", "fact": "fact 3", "content": "Bo lives in Basel"},
        {"do": "forget", "fact": "fact 1"},
        {"do": "curate", "apply": True},
        {"do": "list"},
    ]
    assert "A call of forget is left out" in scenario["description"]
    path = tmp_path / "seen.json"
    write_draft(path, scenario)
    assert load_scenario(path).id == "seen"


def test_text_that_looks_like_a_placeholder_is_only_text(tmp_path: Path) -> None:
    calls = [call("remember", ("1",), content="Use ${HOME} in paths\nnot ~")]
    scenario = drafted(tmp_path, calls, [fact("1", "Use ${HOME} in paths not ~")], "violation")
    assert scenario.deterministic.violation.steps[0].do == "remember"
    assert asyncio.run(violate(open_reference, scenario, 0)).result == "detected"


def test_a_wrong_deletion_is_a_violation_though_nothing_is_left(tmp_path: Path) -> None:
    calls = [call("remember", ("1",), content="Ana likes tea"), call("forget", ("1",), id="1")]
    scenario = drafted(tmp_path, calls, [], "violation")
    assert asyncio.run(violate(open_reference, scenario, 0)).result == "detected"


def test_a_recording_without_a_call_is_no_scenario(tmp_path: Path) -> None:
    calls = watched(tmp_path, "idle")
    with pytest.raises(BadInput, match="no call of a memory operation was seen"):
        draft("nothing", calls, [], shows="well_behaved")


def test_a_draft_never_replaces_a_file(tmp_path: Path) -> None:
    path = tmp_path / "seen.json"
    path.write_text("mine")
    with pytest.raises(BadInput, match="is there already; choose another name"):
        write_draft(path, {})
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("behaviour", "complaint"),
    [("crashing", "ended with status 3; nothing is written"), ("unconnected", "it never connected to the memory")],
)
def test_a_program_that_failed_is_not_recorded(tmp_path: Path, behaviour: str, complaint: str) -> None:
    with pytest.raises(ServiceError, match=complaint):
        watched(tmp_path, behaviour)


def test_where_the_memory_is_stands_in_the_environment_too(tmp_path: Path) -> None:
    script = (
        "import json, os, urllib.request as u; m = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'};"
        "u.urlopen(os.environ['MEMORYBENCH_MCP_URL'], json.dumps(m).encode()).read();"
        "assert 'mcp_bridge' in os.environ['MEMORYBENCH_MCP_COMMAND']"
    )
    command = [sys.executable, "-c", script]
    calls = asyncio.run(watch(command, served_reference(), tmp_path / "store", folder=tmp_path, environment={}))
    assert calls == ()


def test_a_program_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match='"no-such-agent": can not be started'):
        asyncio.run(watch(["no-such-agent"], served_reference(), tmp_path / "s", folder=tmp_path, environment={}))
    with pytest.raises(BadInput, match='COMMAND: unknown variable "serverURL"'):
        asyncio.run(watch(["x", "${serverURL}"], served_reference(), tmp_path / "s", folder=tmp_path, environment={}))


def test_a_draft_is_one_readable_json_document(tmp_path: Path) -> None:
    write_draft(tmp_path / "a.json", draft("a", [call("list")], [], shows="violation"))
    assert json.loads((tmp_path / "a.json").read_text())["schema_version"] == 1
