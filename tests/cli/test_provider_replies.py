"""Replies of memory services that are legal or nearly so: each is read completely, or reported, and never guessed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from tests.cli.command import Command, Said
from tests.doubles.stub import Call, Stub

THINGS = ("apple", "boat", "cello", "drum", "eagle", "fjord")
BENCHMARK = """\
name: places
data: {type: local, path: ./places.json}
schema:
  itemId: id
  questions: {field: qa, questionField: q, answerField: a, evidenceField: ev}
  context: {field: log, turnsField: t, sessionSchema: {id: n}, itemSchema: {text: x}}
evaluation: {method: exact-match}
"""
ITEM = {
    "id": "i1",
    "qa": [{"q": f"Where is the {thing}?", "a": f"place {n}", "ev": [f"s{n}"]} for n, thing in enumerate(THINGS, 1)],
    "log": [
        {"n": f"s{n}", "t": [{"x": f"The {thing} is at place {n}."}, {"x": "I see."}]}
        for n, thing in enumerate(THINGS, 1)
    ],
}
CONFIG = """\
name: notes
type: hosted
connection: {baseUrl: "URL"}
endpoints:
  add:
    method: POST
    path: /notes/${scope}
    body: {id: "$.documentId", text: "$.content"}
  search:
    method: GET
    path: /notes/${scope}
    query: {q: "$.query"}
    response: {results: $.hits, contentField: $.text, scoreField: $.score, idField: $.id, sourcesField: $.id}
  clear: {method: DELETE, path: "/notes/${scope}"}
rateLimit: {maxRetries: 1, retryDelayMs: 0}
"""

FLAGS = ("--benchmarks", "places", "--providers", "notes", "--config-dir", ".")
Hits = list[dict[str, Any]]


@dataclass
class Notes:
    """Returns all notes with each search, the most similar first, as `answer` changes them."""

    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    """By id, by scope."""
    added: Callable[[int], Any] = lambda count: {"memory": f"m{count}"}
    """The reply to the n-th add of a scope."""
    answer: Callable[[Hits], Any] = lambda hits: {"hits": hits}
    """The reply to a search: JSON, or a response."""
    cleared: list[str] = field(default_factory=list)

    async def behave(self, _: web.BaseRequest, call: Call) -> web.StreamResponse:
        scope = call.path.split("/")[2]
        texts = self.texts.setdefault(scope, {})
        if call.method == "DELETE":
            self.cleared.append(scope)
            return web.json_response({})
        if call.method == "POST":
            texts[call.json.get("id", str(len(texts)))] = call.json["text"]
            reply = self.added(len(texts))
        else:
            asked = set(call.query["q"].lower().strip("?").split())
            hits = [
                {"id": id, "text": text, "score": len(asked & set(text.lower().split()))} for id, text in texts.items()
            ]
            reply = self.answer(sorted(hits, key=lambda hit: -hit["score"]))
        return reply if isinstance(reply, web.Response) else web.json_response(reply)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as server:
        yield server


@pytest.fixture
def notes(stub: Stub) -> Notes:
    service = Notes()
    stub.always(service.behave)
    return service


@pytest.fixture
def run(command: Command, stub: Stub) -> Callable[..., Said]:
    (command.folder / "places.json").write_text(json.dumps([ITEM]))
    (command.folder / "places.yaml").write_text(BENCHMARK)

    def run(text: str = CONFIG) -> Said:
        (command.folder / "notes.yaml").write_text(text.replace("URL", stub.url))
        return command("eval", *FLAGS, "--run-id", "r", "--json")

    return run


def measures(said: Said) -> dict[str, Any]:
    [result] = [one for one in said.json["results"] if not one["group"]]
    return {one["name"]: one["value"] for one in result["measures"]}


def note_kinds(said: Said) -> list[str]:
    return [note["kind"] for note in said.json["notes"]]


def test_ids_that_were_sent_name_the_session(run: Callable[..., Said], notes: Notes) -> None:
    said = run()
    assert said.code == 0, said.err
    assert (measures(said)["recall@1"], note_kinds(said)) == (1.0, [])


def test_sessions_that_are_added_turn_by_turn_are_found(
    run: Callable[..., Said], command: Command, stub: Stub, notes: Notes
) -> None:
    (command.folder / "places.yaml").write_text(f"{BENCHMARK}ingestion: {{mode: incremental}}\n")
    said = run(CONFIG.replace("$.documentId", "$.sessionId"))
    assert (measures(said)["recall@1"], note_kinds(said)) == (1.0, [])
    hits = command("show", "r", "i1:q0", "--json").json["trials"][0]["memories"][0]["hits"]
    assert hits == ["s1"]
    planned = command("eval", *FLAGS, "--dry-run", "--json").json["expected"]
    sent = sum(call.method == "POST" for call in stub.calls)
    assert [row["calls"] for row in planned if row["stage"] == "add"] == [sent]


def test_a_search_of_sessions_is_not_reused_for_single_turns(
    run: Callable[..., Said], command: Command, notes: Notes
) -> None:
    run()
    (command.folder / "places.yaml").write_text(f"{BENCHMARK}ingestion: {{mode: incremental}}\n")
    said = command("eval", *FLAGS, "--reuse", "r", "--run-id", "s", "--json")
    assert [stage["reused"] for stage in said.json["circumstances"]["stages"] if stage["name"] == "search"] == [0]


def test_benchmarks_with_different_thresholds_are_not_searched_in_one_run(
    run: Callable[..., Said], command: Command, stub: Stub, notes: Notes
) -> None:
    """A threshold was left out of all searches if the benchmarks of the run did not agree on it."""
    other = BENCHMARK.replace("name: places", "name: near") + "search: {defaultThreshold: 0.4}\n"
    (command.folder / "near.yaml").write_text(other)
    (command.folder / "notes.yaml").write_text(
        CONFIG.replace("URL", stub.url).replace('"$.query"', '"$.query", min: "$.threshold"')
    )
    both = ("eval", "--benchmarks", "places", "near", "--config-dir", ".")
    said = command(*both, "--providers", "notes")
    assert (said.code, stub.calls) == (2, [])
    assert "search.defaultThreshold" in said.err
    assert command(*both, "--providers", "bm25", "--dry-run").code == 0


def test_ids_of_the_service_are_not_taken_for_session_ids(
    run: Callable[..., Said], command: Command, notes: Notes
) -> None:
    """The service counts its notes from s1, as the benchmark counts its sessions."""
    notes.answer = lambda hits: {"hits": [{**hit, "id": f"s{n}"} for n, hit in enumerate(hits, 1)]}
    said = run()
    assert said.code == 0, said.err
    assert measures(said).get("recall@1") is None
    assert note_kinds(said) == ["no sources"]
    assert "no recall" not in command("validate", "notes.yaml").out


def test_sources_without_ids_of_ours_are_told_by_validate(
    run: Callable[..., Said], command: Command, notes: Notes
) -> None:
    said = run(CONFIG.replace('id: "$.documentId", ', ""))
    assert note_kinds(said) == ["no sources"]
    assert "no recall: " in command("validate", "notes.yaml").out


def test_a_memory_of_several_adds_names_all_their_sessions(run: Callable[..., Said], notes: Notes) -> None:
    """The service merges three notes into one memory each."""

    def answer(hits: Hits) -> Any:
        texts = [text for one in notes.texts.values() for text in one.values()]
        merged = [{"id": f"m{n}", "text": " ".join(texts[3 * n : 3 * n + 3])} for n in range(2)]
        best = hits[0]["text"]
        return {"hits": sorted(merged, key=lambda one: best not in one["text"])}

    notes.added = lambda count: {"memory": f"m{(count - 1) // 3}"}
    notes.answer = answer
    said = run(CONFIG.replace("    body: {id:", "    storedAs: $.memory\n    body: {id:"))
    assert said.code == 0, said.err
    assert measures(said)["recall@3"] == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        lambda hits: web.Response(body=b'{"hits": [{"id": "x", "text": "lost"}], "hits": []}'),
        lambda hits: web.json_response({"hits": hits[:1]}, status=206),
        lambda hits: {"hits": [{**hit, "text": " "} for hit in hits]},
    ],
    ids=["repeated key", "partial content", "blank texts"],
)
def test_an_unclear_reply_to_a_search_is_a_failure(
    run: Callable[..., Said], notes: Notes, answer: Callable[[Hits], Any]
) -> None:
    notes.answer = answer
    said = run()
    assert said.json["counts"]["failed"] == len(THINGS)
    assert "GET" in said.json["failures"][0]["reason"]


def test_a_memory_without_text_is_no_hit(run: Callable[..., Said], notes: Notes) -> None:
    notes.answer = lambda hits: {"hits": [{**hits[0], "text": ""}, *hits[1:]]}
    said = run()
    assert said.code == 0, said.err
    assert measures(said)["recall@5"] == 0


def test_a_memory_that_is_returned_twice_counts_once(run: Callable[..., Said], notes: Notes) -> None:
    notes.answer = lambda hits: {"hits": [hits[0]] * 10 + hits[1:]}
    said = run()
    assert said.code == 0, said.err
    [note] = said.json["notes"]
    assert note["kind"] == "search cut short"


@pytest.mark.parametrize("can_clear", [True, False])
@pytest.mark.parametrize(
    ("unit", "added"),
    [
        ("session", lambda count: {"memory": None}),
        ("message", lambda count: {"memory": count} if count == 1 else web.json_response({}, status=400)),
    ],
    ids=["invalid reply", "part of a session"],
)
def test_a_failed_add_leaves_nothing_behind_or_says_so(
    run: Callable[..., Said], stub: Stub, notes: Notes, unit: str, added: Callable[[int], Any], can_clear: bool
) -> None:
    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        if call.method == "DELETE" and not can_clear:
            return web.json_response({}, status=400)
        return await notes.behave(request, call)

    stub.always(behave)
    notes.added = added
    wait = "{id: $.memory, method: GET, path: /jobs, accept: [404]}"
    said = run(CONFIG.replace("  search:", f"    unit: {unit}\n    wait: {wait}\n  search:"))
    assert said.json["counts"]["failed"] == len(THINGS)
    assert len(notes.cleared) == can_clear
    assert note_kinds(said) == ([] if can_clear else ["leaked scope"])


def with_failed_if(rule: str) -> str:
    return CONFIG.replace("    body: {id:", f"    failedIf: {rule}\n    body: {{id:")


FAILURES = [
    ("{path: $.success, equals: false}", {"success": True}, {"success": False, "error": "disk full"}),
    ("{path: $.state, equals: [failed, lost]}", {"state": "stored"}, {"state": "lost", "error": "disk full"}),
    ("{path: $.code, notEquals: 0}", {"code": 0}, {"code": 17, "error": "disk full"}),
    ("{path: $.code, notEquals: 0}", {"code": 0}, {"error": "disk full"}),
    ("{path: $.error}", {"error": None}, {"error": "disk full"}),
    ("{path: $.errors}", {"errors": []}, {"errors": ["disk full"]}),
    ("{path: '$.ok[*]', equals: false}", {"ok": [True]}, {"ok": [True, False], "error": "disk full"}),
]


@pytest.mark.parametrize(("rule", "success", "failure"), FAILURES)
def test_an_add_that_fails_with_status_200_is_retried(
    run: Callable[..., Said], stub: Stub, notes: Notes, rule: str, success: Any, failure: Any
) -> None:
    replies = iter([failure])
    notes.added = lambda count: next(replies, success)
    said = run(with_failed_if(rule))
    assert said.code == 0, said.err
    assert (measures(said)["recall@1"], note_kinds(said)) == (1.0, [])
    assert sum(call.method == "POST" for call in stub.calls) == len(THINGS) + 1


@pytest.mark.parametrize(("rule", "success", "failure"), FAILURES)
def test_an_add_that_always_fails_with_status_200_fails_the_haystack(
    run: Callable[..., Said], stub: Stub, notes: Notes, rule: str, success: Any, failure: Any
) -> None:
    notes.added = lambda count: failure
    said = run(with_failed_if(rule))
    assert said.json["counts"]["failed"] == len(THINGS)
    assert sum(call.method == "POST" for call in stub.calls) == 2
    assert "disk full" in said.json["failures"][0]["reason"]
    assert len(notes.cleared) == 1  # a part may be stored


def test_the_message_of_a_failure_is_shown(run: Callable[..., Said], notes: Notes) -> None:
    notes.added = lambda count: {"padding": "x" * 5000, "success": False, "detail": {"text": "disk full"}}
    said = run(with_failed_if("{path: $.success, equals: false, message: $.detail.text}"))
    assert "disk full" in said.json["failures"][0]["reason"]


@pytest.mark.parametrize("equals", ["0", "'false'", "[]"])
def test_values_are_compared_with_their_type(run: Callable[..., Said], notes: Notes, equals: str) -> None:
    notes.added = lambda count: {"success": False}
    said = run(with_failed_if(f"{{path: $.success, equals: {equals}}}"))
    assert said.code == (2 if equals == "[]" else 0)


def test_a_search_that_fails_with_status_200_is_retried(run: Callable[..., Said], stub: Stub, notes: Notes) -> None:
    replies = iter([{"success": False, "hits": []}])
    notes.answer = lambda hits: next(replies, {"success": True, "hits": hits})
    said = run(
        CONFIG.replace('query: {q: "$.query"}', 'query: {q: "$.query"}\n    failedIf: {path: $.success, equals: false}')
    )
    assert said.code == 0, said.err
    assert measures(said)["recall@1"] == 1.0


@pytest.mark.parametrize(
    "rule",
    [
        "{equals: false}",
        "{path: '$.[', equals: false}",
        "{path: $.a, equals: 1, notEquals: 2}",
        "{path: $.a, equals: }",
    ],
)
def test_an_invalid_rule_is_refused(run: Callable[..., Said], stub: Stub, rule: str) -> None:
    said = run(with_failed_if(rule))
    assert said.code == 2
    assert "notes.yaml:" in said.err
    assert stub.calls == []


def test_validate_says_that_failures_in_the_body_are_not_seen(run: Callable[..., Said], command: Command) -> None:
    run()
    assert "failedIf" in command("validate", "notes.yaml").out
    run(with_failed_if("{path: $.success, equals: false}"))
    assert "failedIf" not in command("validate", "notes.yaml").out
    run(CONFIG.replace("    body: {id:", "    storedAs: $.memory\n    body: {id:"))
    assert "failedIf" not in command("validate", "notes.yaml").out


def test_failures_that_differ_only_in_the_id_of_the_request_have_one_reason(
    run: Callable[..., Said], notes: Notes
) -> None:
    ids = iter(("req_011CSxa", "req_7fhLq", "req_a9", "b0e4-cafe-2d", "5", "x1y2-beef"))
    notes.answer = lambda _: web.json_response({"error": "overloaded", "request": next(ids)}, status=400)
    (failures,) = run().json["failures"]
    assert (failures["failed"], failures["times"]) == (6, 6)


def test_failures_with_another_status_have_another_reason(run: Callable[..., Said], notes: Notes) -> None:
    statuses = iter((400, 403, 403, 400, 403, 403))
    notes.answer = lambda _: web.Response(status=next(statuses))
    (failures,) = run().json["failures"]
    assert (failures["failed"], failures["times"]) == (6, 4)
    assert "HTTP 403" in failures["reason"]


def test_clearing_a_memory_is_not_part_of_the_time_of_a_question(
    run: Callable[..., Said], command: Command, notes: Notes
) -> None:
    assert run().code == 0
    assert notes.cleared
    flags = ("--benchmarks", "places", "--providers", "notes", "--config-dir", ".", "--run-id", "again")
    assert command("eval", *flags).code == 0
    rows = {row["item"]: row for row in command("export", "r", "--format", "json").json}
    assert len(rows) == len(THINGS)
    assert all(row["seconds"] == row["search_seconds"] for row in rows.values())
    (pair,) = command("compare", "r", "again", "--measure", "latency", "--only", "changed", "--json").json[
        "comparisons"
    ]
    assert pair["cases"]
    assert all(case["first"] == rows[case["case_id"]]["search_seconds"] for case in pair["cases"])
