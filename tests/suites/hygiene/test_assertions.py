"""Each kind of assertion holds, breaks and says why; what a store lacks is skipped."""

import asyncio
import sqlite3
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from memorybench.core.errors import Unreadable
from memorybench.core.stores import Capability
from memorybench.stores.reference import open_reference
from memorybench.suites.hygiene.assertions import Assertion
from memorybench.suites.hygiene.claims import Finding
from memorybench.suites.hygiene.driver import Played, judge_end_state, judged, play, prepared
from memorybench.suites.hygiene.evidence import Call, OpenStore
from memorybench.suites.hygiene.matching import Matcher
from memorybench.suites.hygiene.scenario import Scenario
from tests.suites.hygiene.notebook import ALL, Notebook
from tests.suites.hygiene.playing import scenario

ASSERTION: TypeAdapter[Any] = TypeAdapter(Assertion)
TEA = {"do": "remember", "content": "The user drinks green tea", "as": "tea"}


def seen(assertion: dict[str, Any], *steps: dict[str, Any], by: OpenStore = open_reference, **changes: Any) -> Finding:
    """What the assertion sees after the steps."""
    script = {"well_behaved": list(steps), "violation": {"expectation": "detect", "steps": [TEA]}}
    claimed = assertion | {"claim": "it is so"}
    told = scenario(deterministic=script, assertions=[claimed], **changes)
    (finding, *_) = asyncio.run(_played(by, told))
    return finding


async def _played(open_store: OpenStore, told: Scenario) -> tuple[Finding, ...]:
    async with prepared(open_store, told, 0) as ground:
        played = await play(ground, ground.scenario.deterministic.well_behaved)
        return (await judged(ground, played, "well_behaved")).findings


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
    "count, too many": ({"kind": "count", "at_most": 1}, [TEA], "2 facts with anything instead of at most 1"),
    "count, too few": (
        {"kind": "count", "contains": "tea", "at_least": 1},
        [],
        '0 facts with "tea" instead of at least',
    ),
    "content": ({"kind": "content", "contains": ["GREEN", "tea"]}, [TEA], ""),
    "content, missing": ({"kind": "content", "regex": "gr[ae]y"}, [TEA], "no fact has /gr[ae]y/"),
    "content, unwanted": ({"kind": "content", "contains": "tea", "present": False}, [TEA], 'a fact has "tea"'),
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
    "unchanged_since, new": ({"kind": "unchanged_since"}, [TEA], 'new: "The user drinks green tea"'),
    "unchanged_since, gone": ({"kind": "unchanged_since"}, [FORGET_CITY], 'gone: "The user lives in Porto"'),
    "unchanged_since, of one fact": ({"kind": "unchanged_since", "facts": ["city"]}, [TEA], ""),
    "unchanged_since, of one that moved": (
        {"kind": "unchanged_since", "facts": ["city"]},
        [MOVE],
        '"The user lives in Porto" no longer stands as it did',
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
    "search_hit, unwanted": (
        {"kind": "search_hit", "query": "drinks", "contains": "tea", "present": False},
        [TEA],
        '"drinks" finds "tea"',
    ),
    "search_rank": ({"kind": "search_rank", "query": "green tea", "contains": "tea", "at_worst": 1}, [TEA], ""),
    "search_rank, below": (
        {"kind": "search_rank", "query": "green tea user", "contains": "Porto", "at_worst": 1},
        [TEA],
        '"Porto" is not among the first 1 that "green tea user" finds',
    ),
    "retrieval_count": ({"kind": "retrieval_count", "fact": "city", "equals": 3}, [recall("Porto")], ""),
    "retrieval_count, other": (
        {"kind": "retrieval_count", "contains": "Porto", "at_most": 2},
        [recall("Porto")],
        'it is 3 instead of at most 2 for "The user lives in Porto"',
    ),
    "retrieval_count, gone": (
        {"kind": "retrieval_count", "fact": "city", "at_least": 0},
        [FORGET_CITY],
        "there is no fact city",
    ),
    "trust": ({"kind": "trust", "fact": "city", "equals": 0.9}, [], ""),
    "trust, other": ({"kind": "trust", "fact": "city", "at_least": 0.95}, [], "it is 0.9 instead of at least 0.95"),
    "curate_report": ({"kind": "curate_report", "spares": ["city"]}, [TEA], ""),
    "curate_report, wanted": (
        {"kind": "curate_report", "removes": ["city"]},
        [TEA],
        'the curator does not propose to remove "city"',
    ),
    "curate_report, of the script": (
        {"kind": "curate_report", "spares": ["city"], "of": "script"},
        [],
        "no dry run was made",
    ),
    "call_trace": ({"kind": "call_trace", "op": "recall"}, [recall("tea")], ""),
    "call_trace, not made": (
        {"kind": "call_trace", "op": "recall"},
        [TEA],
        "0 calls of recall with anything instead of",
    ),
    "call_trace, by what was said": (
        {"kind": "call_trace", "op": "recall", "contains": "milk"},
        [recall("tea")],
        "0 call",
    ),
    "call_trace, by what was found": (
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
        "2 calls of recall with anything instead of at most 1",
    ),
    "residue": ({"kind": "residue", "text": "in Porto"}, [FORGET_CITY], ""),
    "residue, in a fact": ({"kind": "residue", "text": "in porto!"}, [], '"in porto!" is left in facts and files'),
    "residue, in history": (
        {"kind": "residue", "text": "in Porto", "places": ["history"]},
        [MOVE],
        "is left in history",
    ),
    "sql": ({"kind": "sql", "query": "SELECT count(*) FROM facts", "equals": 2}, [TEA], ""),
    "sql, other": ({"kind": "sql", "query": "SELECT count(*) FROM facts", "equals": 2}, [], "gives 1 instead of 2"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_assertion_holds_or_says_why_not(name: str) -> None:
    assertion, steps, told = CASES[name]
    planting = {"prompts": ["${secret:password}"]}
    finding = seen(assertion, *steps, real_model=planting)
    assert finding.status == ("broken" if told else "held"), finding.found
    assert told in finding.found


def test_every_kind_has_a_case_that_holds_and_one_that_breaks() -> None:
    kinds = {assertion["kind"] for assertion, _, _ in CASES.values()}
    for outcome in (True, False):
        assert {assertion["kind"] for assertion, _, told in CASES.values() if bool(told) == outcome} == kinds
    assert kinds == set(ASSERTION.json_schema()["discriminator"]["mapping"]) - {"answer"}, "no script answers"


def lacking(*capabilities: Capability) -> OpenStore:
    @asynccontextmanager
    async def opened(folder: Path):  # type: ignore[no-untyped-def]
        notebook = Notebook(folder / "notes.json", ALL - set(capabilities))
        yield notebook
        notebook.save()

    return opened


@pytest.mark.parametrize(
    ("assertion", "lacks"),
    [
        ({"kind": "content", "contains": "tea"}, "list"),
        ({"kind": "trust", "fact": "city", "at_least": 0.1}, "trust"),
        ({"kind": "retrieval_count", "fact": "city", "at_least": 0}, "retrieval_count"),
        ({"kind": "search_hit", "query": "tea", "contains": "tea"}, "recall"),
        ({"kind": "curate_report", "spares": ["city"]}, "curate"),
        ({"kind": "sql", "query": "SELECT 1", "equals": 1}, "sql"),
    ],
)
def test_what_the_store_lacks_is_skipped_and_never_held(assertion: dict[str, Any], lacks: Capability) -> None:
    finding = seen(assertion, by=lacking(lacks))
    assert (finding.status, finding.found) == ("skipped", f"the store lacks {lacks}")


def test_a_tier_that_can_not_be_looked_into_is_told() -> None:
    finding = seen({"kind": "residue", "text": "Lisbon"}, by=lacking("history", "files"))
    assert (finding.status, finding.found) == ("held", "could not look into history and files")


@pytest.mark.parametrize("query", ["SELECT count(*) FROM entities", "SELECT nme FROM facts", "SELEKT 1"])
def test_a_query_that_the_store_can_not_be_asked_is_an_error_and_no_skip(query: str) -> None:
    with pytest.raises(Unreadable, match='"it is so" can not be asked'):
        seen({"kind": "sql", "query": query, "equals": 0})


def test_a_query_can_not_write(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="readonly"):
        seen({"kind": "sql", "query": "DELETE FROM facts", "equals": None})


def test_looking_changes_nothing(tmp_path: Path) -> None:
    """All assertions that there are, twice in a row: the second look sees what the first saw, in unchanged files."""
    claims = [
        assertion | {"claim": name, "phases": ["well_behaved"]}
        for name, (assertion, _, _) in CASES.items()
        if "moment" not in name
    ]
    told = scenario(assertions=claims, real_model=None, setup=_with_a_secret())

    async def looked() -> None:
        async with prepared(open_reference, told, 0) as ground:
            before = _rows(ground.store)
            first = await judge_end_state(ground, (), "well_behaved")
            assert await judge_end_state(ground, (), "well_behaved") == first
            assert _rows(ground.store) == before

    asyncio.run(looked())


def _with_a_secret() -> dict[str, Any]:
    city = {"as": "city", "content": "The user lives in Porto", "trust": 0.9, "retrieval_count": 2}
    return {"facts": [city], "files": {"notes.txt": "${secret:password}"}}


def _rows(folder: Path) -> list[Any]:
    database = sqlite3.connect(folder / "memory.db")
    try:
        return database.execute("SELECT * FROM facts").fetchall()
    finally:
        database.close()


def test_where_nothing_can_be_copied_searches_come_last() -> None:
    """Else the count would be that of the search before it."""
    claims = [
        {"kind": "search_hit", "claim": "found", "query": "Porto", "contains": "Porto"},
        {"kind": "retrieval_count", "claim": "counted", "fact": "city", "equals": 2},
    ]
    found = asyncio.run(_played(lacking("files"), scenario(assertions=claims)))
    assert [(finding.claim, finding.status) for finding in found][:2] == [("found", "held"), ("counted", "held")]


def test_calls_of_a_real_agent_are_judged_like_those_of_a_script() -> None:
    told = scenario(
        assertions=[
            {"kind": "call_trace", "claim": "asked", "op": "recall", "session": 2, "finds": {"contains": "Porto"}},
            {"kind": "unchanged_since", "claim": "kept"},
        ]
    )
    calls = (
        Call(op="recall", user="user", arguments={"query": "x"}),
        Call(op="restart", user="user"),
        Call(op="recall", user="user", arguments={"query": "city"}, ids=("1",), texts=("The user lives in Porto",)),
    )

    async def looked() -> tuple[Finding, ...]:
        async with prepared(open_reference, told, 0) as ground:
            assert (ground.workspace.is_dir(), Played.on(ground).calls) == (True, [])
            return await judge_end_state(ground, calls)

    assert [finding.status for finding in asyncio.run(looked())] == ["held", "held"]


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        (("Noted.", "You drink TEA"), ""),
        (("Tea it is.", "No idea."), 'the answer has no "tea": "No idea."'),
        ((), 'the answer has no "tea": ""'),
    ],
)
def test_an_answer_is_the_last_thing_that_an_agent_says(answers: tuple[str, ...], told: str) -> None:
    tea = {"kind": "answer", "claim": "it says what", "contains": "tea"}
    claims = [tea, {"kind": "unchanged_since", "claim": "kept"}]

    async def looked() -> Finding:
        async with prepared(open_reference, scenario(assertions=claims), 0) as ground:
            return (await judge_end_state(ground, (), answers=answers))[0]

    finding = asyncio.run(looked())
    assert (finding.status, finding.found) == ("broken" if told else "held", told)
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
def test_texts_are_matched_whatever_their_case_width_and_spacing(matcher: Any, text: str, matches: bool) -> None:
    assert Matcher(**matcher).matches(text) is matches
