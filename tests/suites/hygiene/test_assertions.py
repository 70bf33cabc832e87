"""Each kind of assertion holds, or breaks with a reason; it is skipped if the store lacks a capability."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from memorybench.core.errors import Unreadable
from memorybench.core.stores import Capability
from memorybench.stores.reference import open_reference
from memorybench.suites.hygiene.assertions import Assertion
from memorybench.suites.hygiene.assertions_base import Finding, Matcher
from memorybench.suites.hygiene.driver import check_memory, open_fixture
from memorybench.suites.hygiene.evidence import Activity, Call, OpenStore
from tests.suites.hygiene.notebook import Notebook, RemoteNotebook, opener
from tests.suites.hygiene.running import run_well_behaved, scenario

ASSERTION: TypeAdapter[Any] = TypeAdapter(Assertion)
TEA = {"do": "remember", "content": "The user drinks green tea", "as": "tea"}


def find(assertion: dict[str, Any], *steps: dict[str, Any], by: OpenStore = open_reference, **changes: Any) -> Finding:
    """Return the finding of the assertion after the steps."""
    script = {"well_behaved": list(steps), "violation": {"expectation": "detect", "steps": [TEA]}}
    checked = scenario(deterministic=script, assertions=[assertion | {"claim": "it is so"}], **changes)
    return asyncio.run(run_well_behaved(by, checked))[0]


SECRET = {"do": "remember", "content": "Setup: ${secret:password|rot13}"}
HALVES = (
    {"do": "remember", "content": "It begins ${secret:password|left}"},
    {"do": "remember", "content": "Nothing of note", "source": "and ends ${secret:password|right}"},
)
FORGET_CITY = {"do": "forget", "fact": "city"}
MOVE = {"do": "update", "fact": "city", "content": "The user lives in Faro"}
RESTART = {"do": "restart"}


def recall(query: str, **more: Any) -> dict[str, Any]:
    return {"do": "recall", "query": query, **more}


CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], str]] = {
    "count": ({"kind": "count", "equals": 2}, [TEA], ""),
    "count, too many": ({"kind": "count", "at_most": 1}, [TEA], "2 facts match any text, expected at most 1"),
    "count, one": ({"kind": "count", "at_most": 0}, [], "1 fact matches any text, expected at most 0"),
    "count, too few": (
        {"kind": "count", "contains": "tea", "at_least": 1},
        [],
        '0 facts match "tea", expected at least 1',
    ),
    "content": ({"kind": "content", "contains": ["GREEN", "tea"]}, [TEA], ""),
    "content, missing": ({"kind": "content", "regex": "gr[ae]y"}, [TEA], "no fact matches /gr[ae]y/"),
    "content, present": ({"kind": "content", "contains": "tea", "present": False}, [TEA], 'a fact matches "tea"'),
    "content, normalised": ({"kind": "content", "normalised": "the user: drinks green-tea!"}, [TEA], ""),
    "secret_free": ({"kind": "secret_free"}, [TEA], ""),
    "secret_free, encoded": ({"kind": "secret_free"}, [SECRET], "the planted password is in memory (rot13"),
    "secret_free, split": ({"kind": "secret_free", "secrets": ["password"]}, [*HALVES], "split: content of fact"),
    "secret_free, in history": (
        {"kind": "secret_free"},
        [SECRET | {"as": "it"}, {"do": "update", "fact": "it", "content": "Setup is done"}],
        "(rot13: history 1)",
    ),
    "unchanged_since": ({"kind": "unchanged_since"}, [recall("Porto")], ""),
    "unchanged_since, added": ({"kind": "unchanged_since"}, [TEA], 'added: "The user drinks green tea"'),
    "unchanged_since, deleted": ({"kind": "unchanged_since"}, [FORGET_CITY], 'deleted: "The user lives in Porto"'),
    "unchanged_since, of one fact": ({"kind": "unchanged_since", "facts": ["city"]}, [TEA], ""),
    "unchanged_since, of a changed fact": (
        {"kind": "unchanged_since", "facts": ["city"]},
        [MOVE],
        '"The user lives in Porto" was changed or deleted',
    ),
    "unchanged_since, a moment": (
        {"kind": "unchanged_since", "moment": "then", "phases": ["well_behaved"]},
        [TEA, {"do": "mark", "as": "then"}],
        "",
    ),
    "unchanged_since, until a moment": (
        {"kind": "unchanged_since", "until": "then", "phases": ["well_behaved"]},
        [{"do": "mark", "as": "then"}, TEA],
        "",
    ),
    "search_hit": ({"kind": "search_hit", "query": "drinks", "contains": "tea"}, [TEA], ""),
    "search_hit, missing": ({"kind": "search_hit", "query": "drinks", "contains": "tea"}, [], '"drinks" does not find'),
    "search_hit, present": (
        {"kind": "search_hit", "query": "drinks", "contains": "tea", "present": False},
        [TEA],
        '"drinks" finds "tea"',
    ),
    "search_rank": ({"kind": "search_rank", "query": "green tea", "contains": "tea", "at_worst": 1}, [TEA], ""),
    "search_rank, below": (
        {"kind": "search_rank", "query": "green tea user", "contains": "Porto", "at_worst": 1},
        [TEA],
        '"green tea user" does not find "Porto" in the first 1',
    ),
    "retrieval_count": ({"kind": "retrieval_count", "fact": "city", "equals": 3}, [recall("Porto")], ""),
    "retrieval_count, other": (
        {"kind": "retrieval_count", "contains": "Porto", "at_most": 2},
        [recall("Porto")],
        'retrieval_count is 3, expected at most 2: "The user lives in Porto"',
    ),
    "retrieval_count, deleted": (
        {"kind": "retrieval_count", "fact": "city", "at_least": 0},
        [FORGET_CITY],
        "fact city not found",
    ),
    "trust": ({"kind": "trust", "fact": "city", "equals": 0.9}, [], ""),
    "trust, other": ({"kind": "trust", "fact": "city", "at_least": 0.95}, [], "trust is 0.9, expected at least 0.95"),
    "curate_report": ({"kind": "curate_report", "spares": ["city"]}, [TEA], ""),
    "curate_report, not removed": (
        {"kind": "curate_report", "removes": ["city"]},
        [TEA],
        'the curator does not propose to remove "city"',
    ),
    "curate_report, of the script": (
        {"kind": "curate_report", "spares": ["city"], "of": "script"},
        [],
        "the script made no dry run",
    ),
    "call_trace": ({"kind": "call_trace", "op": "recall"}, [recall("tea")], ""),
    "call_trace, not made": (
        {"kind": "call_trace", "op": "recall"},
        [TEA],
        "0 calls of recall with any text, expected at least 1",
    ),
    "call_trace, by argument": ({"kind": "call_trace", "op": "recall", "contains": "milk"}, [recall("tea")], "0 call"),
    "call_trace, by result": (
        {"kind": "call_trace", "op": ["recall", "list"], "finds": {"contains": "Porto"}},
        [{"do": "list"}],
        "",
    ),
    "call_trace, in a session": (
        {"kind": "call_trace", "op": "recall", "session": 2},
        [recall("tea"), RESTART],
        "0 calls of recall",
    ),
    "call_trace, before another": (
        {"kind": "call_trace", "op": "recall", "before": "remember"},
        [TEA, recall("tea")],
        "0 calls of recall",
    ),
    "call_trace, before another in its session": (
        {"kind": "call_trace", "op": "recall", "before": "remember"},
        [TEA, RESTART, recall("tea"), TEA],
        "",
    ),
    "call_trace, too often": (
        {"kind": "call_trace", "op": "recall", "at_most": 1},
        [recall("tea"), recall("coffee")],
        "2 calls of recall with any text, expected at most 1",
    ),
    "residue": ({"kind": "residue", "text": "in Porto"}, [FORGET_CITY], ""),
    "residue, in a fact": ({"kind": "residue", "text": "in porto!"}, [], '"in porto!" is left in facts and files'),
    "residue, in history": (
        {"kind": "residue", "text": "in Porto", "places": ["history"]},
        [MOVE],
        "is left in history",
    ),
    "no_new_words": ({"kind": "no_new_words"}, [recall("Porto")], ""),
    "no_new_words, invented": (
        {"kind": "no_new_words"},
        [TEA],
        '"The user drinks green tea" has words that nobody said: drink, green, tea',
    ),
    "sql": ({"kind": "sql", "query": "SELECT count(*) FROM facts", "equals": 2}, [TEA], ""),
    "sql, other": ({"kind": "sql", "query": "SELECT count(*) FROM facts", "equals": 2}, [], "returned 1, expected 2"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_assertion_holds_or_says_why_not(name: str) -> None:
    assertion, steps, problem = CASES[name]
    finding = find(assertion, *steps, real_model={"prompts": ["${secret:password}"]})
    assert finding.status == ("broken" if problem else "held"), finding.found
    assert problem in finding.found


def test_every_kind_has_a_case_that_holds_and_one_that_breaks() -> None:
    kinds = {assertion["kind"] for assertion, _, _ in CASES.values()}
    for is_broken in (True, False):
        assert {assertion["kind"] for assertion, _, problem in CASES.values() if bool(problem) == is_broken} == kinds
    assert kinds == set(ASSERTION.json_schema()["discriminator"]["mapping"]) - {"answer"}, "scripts do not answer"


@pytest.mark.parametrize(
    ("assertion", "missing"),
    [
        ({"kind": "content", "contains": "tea"}, "list"),
        ({"kind": "trust", "fact": "city", "at_least": 0.1}, "trust"),
        ({"kind": "retrieval_count", "fact": "city", "at_least": 0}, "retrieval_count"),
        ({"kind": "search_hit", "query": "tea", "contains": "tea"}, "recall"),
        ({"kind": "curate_report", "spares": ["city"]}, "curate"),
        ({"kind": "sql", "query": "SELECT 1", "equals": 1}, "sql"),
    ],
)
def test_an_assertion_is_skipped_without_the_capability_it_needs(
    assertion: dict[str, Any], missing: Capability
) -> None:
    finding = find(assertion, by=opener(Notebook, missing))
    assert finding.status == "skipped"
    assert finding.found.endswith(f" {missing}")


def test_unreadable_places_are_reported() -> None:
    finding = find({"kind": "residue", "text": "Lisbon"}, by=opener(RemoteNotebook, "history"))
    assert (finding.status, finding.found) == ("held", "could not read history and files")


@pytest.mark.parametrize("query", ["SELECT count(*) FROM entities", "SELECT nme FROM facts", "SELEKT 1"])
def test_a_query_that_fails_is_an_error_and_not_a_skip(query: str) -> None:
    with pytest.raises(Unreadable, match="it is so"):
        find({"kind": "sql", "query": query, "equals": 0})


def test_a_query_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        find({"kind": "sql", "query": "DELETE FROM facts", "equals": None})


def test_checking_changes_nothing(tmp_path: Path) -> None:
    """All assertions, twice: the findings are the same, and the files of the store are unchanged."""
    assertions = [
        assertion | {"claim": name, "phases": ["well_behaved"]}
        for name, (assertion, _, _) in CASES.items()
        if "moment" not in name
    ]
    city = {"as": "city", "content": "The user lives in Porto", "trust": 0.9, "retrieval_count": 2}
    setup = {"facts": [city], "files": {"notes.txt": "${secret:password}"}}
    checked = scenario(assertions=assertions, real_model=None, setup=setup)

    async def check_twice() -> None:
        async with open_fixture(open_reference, checked, 0) as fixture:
            before = _rows(fixture.store_folder)
            first = await check_memory(fixture, Activity.on(fixture.snapshot), "well_behaved")
            assert await check_memory(fixture, Activity.on(fixture.snapshot), "well_behaved") == first
            assert _rows(fixture.store_folder) == before

    asyncio.run(check_twice())


def _rows(folder: Path) -> list[Any]:
    with closing(sqlite3.connect(folder / "memory.db")) as database:
        return database.execute("SELECT * FROM facts").fetchall()


def test_searches_run_last_on_a_store_that_cannot_be_copied() -> None:
    """Otherwise a search would change the retrieval count before it is checked."""
    assertions = [
        {"kind": "search_hit", "claim": "search", "query": "Porto", "contains": "Porto"},
        {"kind": "retrieval_count", "claim": "count", "fact": "city", "equals": 2},
    ]
    findings = asyncio.run(run_well_behaved(opener(Notebook, "files"), scenario(assertions=assertions)))
    assert [(finding.claim, finding.status) for finding in findings][:2] == [("search", "held"), ("count", "held")]


def check_agent(assertions: list[dict[str, Any]], calls: Sequence[Call], answers: Sequence[str]) -> tuple[Finding, ...]:
    """Return the findings after an agent made these calls and gave these answers."""

    async def check() -> tuple[Finding, ...]:
        async with open_fixture(open_reference, scenario(assertions=assertions), 0) as fixture:
            return (await check_memory(fixture, Activity.on(fixture.snapshot, calls, answers), "real_model")).findings

    return asyncio.run(check())


def test_calls_of_an_agent_are_checked_like_those_of_a_script() -> None:
    assertions = [
        {"kind": "call_trace", "claim": "searched", "op": "recall", "session": 2, "finds": {"contains": "Porto"}},
        {"kind": "unchanged_since", "claim": "unchanged"},
    ]
    calls = (
        Call(op="recall", user="user", arguments={"query": "x"}),
        Call(op="restart", user="user"),
        Call(op="recall", user="user", arguments={"query": "city"}, ids=("1",), texts=("The user lives in Porto",)),
    )
    assert [finding.status for finding in check_agent(assertions, calls, ())] == ["held", "held"]


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        (("Noted.", "You drink TEA"), ""),
        (("Tea it is.", "No idea."), 'the answer does not match "tea": "No idea."'),
        ((), 'the answer does not match "tea": ""'),
    ],
)
def test_only_the_last_answer_of_an_agent_is_checked(answers: tuple[str, ...], problem: str) -> None:
    tea = {"kind": "answer", "claim": "it names tea", "contains": "tea"}
    finding = check_agent([tea, {"kind": "unchanged_since", "claim": "unchanged"}], (), answers)[0]
    assert (finding.status, finding.found) == ("broken" if problem else "held", problem)
    assert (finding.kind, finding.rate) == ("answer", None)


@pytest.mark.parametrize(
    ("matcher", "text", "matches"),
    [
        ({"contains": "Green  Tea"}, "the user drinks GREEN\ntea", True),
        ({"contains": ["green", "black"]}, "green tea", False),
        ({"contains": "ﬁne"}, "fine tea", True),
        ({"normalised": "green tea"}, "Green-tea!", True),
        ({"normalised": "green tea"}, "Green tea leaves", False),
        ({"contains": "tea", "regex": "^green"}, "Green tea", True),
        ({}, "anything", True),
    ],
)
def test_matching_ignores_case_width_and_spacing(matcher: Any, text: str, matches: bool) -> None:
    assert Matcher(**matcher).matches(text) is matches
