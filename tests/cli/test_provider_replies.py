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
        flags = ("--benchmarks", "places", "--providers", "notes", "--config-dir", ".")
        return command("eval", *flags, "--run-id", "r", "--json")

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
