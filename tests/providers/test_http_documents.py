"""How sessions are sent: whole or by message, split if they are too long, with ids that reveal nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.core.contracts import Receipt
from memorybench.core.conversation import Session, Turn
from memorybench.core.errors import BadInput, Malformed, Transient
from memorybench.providers.http.documents import shorten, split_text
from memorybench.providers.http.provider import HttpProvider
from tests.doubles.scripted_embedder import ScriptedEmbedder
from tests.doubles.stub import Stub, reply, status
from tests.providers.http_opening import HOME, run_with_provider, session

ADD = """\
name: sample
type: hosted
connection: {baseUrl: "URL"}
endpoints:
  add:
    method: POST
    path: /add
    body: BODY
  search:
    method: POST
    path: /search
    body: {query: "$.query", user: "$.scope"}
    response: {results: $.results, contentField: $.text, sourcesField: $.from}
"""
TEXT = ADD.replace("BODY", '{id: "$.documentId", text: "$.content", session: "$.sessionId", user: "$.scope"}')
MESSAGES = ADD.replace("BODY", '{messages: "$.messages", user: "$.scope"}')
TALK = Session(
    id="answer_1",
    at=datetime(2024, 3, 2, 9, 30, tzinfo=UTC),
    turns=(
        Turn(role="user", content="I have a cat.", speaker="Ann", id="D1:1"),
        Turn(role="assistant", content="  "),
        Turn(role="assistant", content="How lovely!", at=datetime(2024, 3, 2, 9, 31)),
    ),
)


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(reply({}))
    return stub


def sent(stub: Stub, text: str, *sessions: Session, **options: Any) -> list[Any]:
    async def add(provider: HttpProvider) -> None:
        for one in sessions:
            await provider.add(HOME, one)

    run_with_provider(text, stub.url, add, **options)
    return [call.json for call in stub.calls]


def test_a_session_is_one_document_of_lines(stub: Stub) -> None:
    [document] = sent(stub, TEXT, TALK)
    assert document["text"] == "Ann: I have a cat.\nassistant: How lovely!"


def test_session_text_takes_precedence_over_turns(stub: Stub) -> None:
    [document] = sent(stub, TEXT, replace(TALK, render_text=lambda: "Date: today\n[...]"))
    assert document["text"] == "Date: today\n[...]"


def test_session_may_have_text_without_turns(stub: Stub) -> None:
    [document] = sent(stub, TEXT, Session(id="s", turns=(), render_text=lambda: "All that was said."))
    assert document["text"] == "All that was said."


def test_a_document_may_be_a_message(stub: Stub) -> None:
    first, second = sent(stub, TEXT.replace("path: /add", "path: /add\n    unit: message"), TALK)
    assert (first["text"], second["text"]) == ("Ann: I have a cat.", "assistant: How lovely!")
    assert first["id"] != second["id"]
    assert first["session"] == second["session"]


def test_messages_have_the_default_or_configured_shape(stub: Stub) -> None:
    [document] = sent(stub, MESSAGES, TALK)
    assert document["messages"] == [
        {"role": "user", "content": "I have a cat.", "at": "2024-03-02T09:30:00+00:00"},
        {"role": "assistant", "content": "How lovely!", "at": "2024-03-02T09:31:00+00:00"},
    ]
    message = '\n    message: {name: "$.speaker", text: "$.content", role: "$.role", t: "$.epoch", id: "$.turnId"}'
    shaped = sent(stub, MESSAGES.replace("path: /add", "path: /add" + message), TALK)[-1]["messages"]
    assert [{**one, "id": ""} for one in shaped] == [
        {"name": "Ann", "text": "I have a cat.", "role": "user", "t": 1709371800, "id": ""},
        {"name": "assistant", "text": "How lovely!", "role": "assistant", "t": 1709371860, "id": ""},
    ]
    assert shaped[0]["id"] != shaped[1]["id"]


def test_message_template_without_messages_is_an_error(stub: Stub) -> None:
    with pytest.raises(BadInput, match=r"endpoints\.add\.message: .*has no effect"):
        sent(stub, TEXT.replace("path: /add", 'path: /add\n    message: {text: "$.content"}'), TALK)


def test_dates_are_sent_with_a_time_zone(stub: Stub) -> None:
    text = ADD.replace("BODY", '{at: "$.date", epoch: "$.epoch", user: "$.scope", meta: "$.metadata"}')
    for at in (
        datetime(2024, 3, 2, 9, 30, tzinfo=UTC),
        datetime(2024, 3, 2, 9, 30),
        datetime(2024, 3, 2, 11, 30, tzinfo=timezone(timedelta(hours=2))),
    ):
        sent(stub, text, session("s", "Hello.", at=at))
    assert {call.json["epoch"] for call in stub.calls} == {1709371800}
    assert {datetime.fromisoformat(call.json["at"]) for call in stub.calls} == {datetime(2024, 3, 2, 9, 30, tzinfo=UTC)}
    assert set(stub.calls[0].json["meta"]) == {"documentId", "sessionId", "date"}


def test_blank_content_is_not_sent(stub: Stub) -> None:
    async def live(provider: HttpProvider) -> None:
        receipts = [
            await provider.add(HOME, Session(id="silent", turns=())),
            await provider.add(HOME, session("blank", " \n")),
        ]
        assert [receipt.ids for receipt in receipts] == [(), ()]
        await provider.wait_until_searchable(HOME, receipts)

    run_with_provider(TEXT, stub.url, live)
    assert stub.calls == []


def test_parts_of_a_long_session_have_stable_ids(stub: Stub) -> None:
    text = TEXT + "limits: {maxCharacters: 60}\n"
    long = session("long", *(f"This is remark number {n} on my cat." for n in range(9)))
    first, again = sent(stub, text, long), sent(stub, text, long)[-9:]
    assert all(len(part["text"]) <= 60 for part in first)
    assert len({part["id"] for part in first}) == len(first) > 4
    assert [part["id"] for part in first] == [part["id"] for part in again][-len(first) :]
    assert "\n".join(part["text"] for part in first).count("remark") == 9


def test_long_messages_are_split_and_sent_in_order(stub: Stub) -> None:
    text = MESSAGES + "limits: {maxCharacters: 40, maxMessages: 2}\n"
    bodies = sent(stub, text, session("s", "One. " * 29 + "One.", "Two."))
    messages = [message for body in bodies for message in body["messages"]]
    assert all(len(body["messages"]) <= 2 for body in bodies)
    assert all(len(message["content"]) <= 40 for message in messages)
    assert " ".join(message["content"] for message in messages) == ("One. " * 30 + "Two.")


def test_no_id_of_the_benchmark_leaves_the_process(stub: Stub) -> None:
    """Some ids reveal the answer: in LongMemEval, sessions that contain an answer are called answer_…"""
    message = '\n    message: {text: "$.content", id: "$.turnId"}'
    body = '{d: "$.documentId", s: "$.sessionId", m: "$.metadata", all: "$.messages", user: "$.scope"}'
    sent(stub, ADD.replace("BODY", body).replace("path: /add", "path: /add" + message), TALK)
    for call in stub.calls:
        assert b"answer_1" not in call.body
        assert b"D1:1" not in call.body


@pytest.mark.parametrize("named", ["d", "s", "t"])
def test_our_ids_are_translated_to_sessions_and_turns(stub: Stub, named: str) -> None:
    message = '\n    message: {text: "$.content", id: "$.turnId"}'
    body = '{d: "$.documentId", s: "$.sessionId", all: "$.messages", user: "$.scope"}'
    text = ADD.replace("BODY", body).replace("path: /add", "path: /add" + message)

    async def live(provider: HttpProvider) -> None:
        await provider.add(HOME, TALK)
        sent_json = stub.calls[0].json
        id = sent_json["all"][0]["id"] if named == "t" else sent_json[named]
        stub.next(reply({"results": [{"text": "a cat", "from": id}]}), path="/search")
        [memories] = await provider.search(HOME, "cat", 1)
        assert memories.sources == (("answer_1", "D1:1") if named == "t" else ("answer_1",))

    run_with_provider(text, stub.url, live)


def test_ids_assigned_by_the_service_name_sources(stub: Stub) -> None:
    text = MESSAGES.replace("path: /add", "path: /add\n    storedAs: $.uuids")
    stub.next(reply({"uuids": ["u1", "u2"]}), reply({"results": [{"text": "a cat", "from": ["u2", "u9"]}]}))

    async def live(provider: HttpProvider) -> None:
        await provider.add(HOME, TALK)
        [memories] = await provider.search(HOME, "cat", 1)
        assert memories.sources == ("answer_1", "answer_1:3")

    run_with_provider(text, stub.url, live)


def test_ids_of_extracted_facts_name_the_session(stub: Stub) -> None:
    """Two chunks of a text with two messages are not the two messages."""
    text = TEXT.replace("path: /add", "path: /add\n    storedAs: $.chunks[*].id")
    stub.next(reply({"chunks": [{"id": 1}, {"id": 2}]}), reply({"results": [{"text": "a cat", "from": 1}]}))

    async def live(provider: HttpProvider) -> None:
        await provider.add(HOME, TALK)
        [memories] = await provider.search(HOME, "cat", 1)
        assert memories.sources == ("answer_1",)

    run_with_provider(text, stub.url, live)


def test_retry_sends_only_the_failed_part(stub: Stub) -> None:
    stub.next(reply({}), status(503))

    async def live(provider: HttpProvider) -> Receipt:
        with pytest.raises(Transient):
            await provider.add(HOME, TALK)
        return await provider.add(HOME, TALK)

    receipt = run_with_provider(TEXT.replace("path: /add", "path: /add\n    unit: message"), stub.url, live)
    assert [call.json["id"] for call in stub.calls] == [receipt.ids[0], receipt.ids[1], receipt.ids[1]]


def test_vectors_of_content_and_query_are_plain_numbers(stub: Stub) -> None:
    text = ADD.replace("BODY", '{vectors: ["$.embedding"], user: "$.scope"}').replace(
        'query: "$.query"', 'vector: "$.embedding"'
    )
    text += "embedding: {provider: local}\n"
    stub.next(reply({"results": []}), path="/search")

    async def live(provider: HttpProvider) -> None:
        await provider.add(HOME, session("s", "cat"))
        await provider.search(HOME, "user cat", 1)

    run_with_provider(text, stub.url, live, embedder=ScriptedEmbedder(8))
    stored, searched = (call.json for call in stub.calls)
    assert stored["vectors"] == [searched["vector"]]
    assert len(searched["vector"]) == 8


def test_missing_embedder_is_an_error(stub: Stub) -> None:
    with pytest.raises(BadInput, match="embedder"):
        sent(stub, TEXT + "embedding: {provider: local}\n", TALK)


@given(st.text(alphabet="ab. \n!", max_size=200), st.integers(1, 30))
def test_nothing_is_lost_by_splitting(text: str, longest: int) -> None:
    pieces = split_text(text, longest)
    assert all(len(piece.strip()) > 0 and len(piece) <= longest for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_text_is_split_after_lines_sentences_or_words() -> None:
    assert split_text("One line.\nAnother one. And more.", 24) == ["One line.\nAnother one.", "And more."]
    assert split_text("One line is here.\nAnother.", 24) == ["One line is here.", "Another."]
    assert split_text("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert (shorten("ab cd", 4), shorten("abcdef", 4), shorten("ab cd", 9)) == ("ab", "abcd", "ab cd")


def test_wrong_number_of_ids_is_an_error(stub: Stub) -> None:
    batch = """\
  batchAdd:
    method: POST
    path: /batch/${scope}
    document: {text: "$.content"}
    body: {documents: "$.documents"}
    storedAs: $.ids
  search:
"""
    text = TEXT.replace("  search:\n", batch).replace("path: /add", "path: /add\n    unit: message")
    stub.next(reply({"ids": ["only one"]}))
    with pytest.raises(Malformed, match=r"1 ids at \$\.ids"):
        sent(stub, text + "capabilities: {unordered: true}\n", TALK)
