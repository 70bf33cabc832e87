"""Replies are read as the YAML describes them; an invalid reply is an error and never a score."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from typing import Any

import pytest

from memorybench.core.conversation import Memory
from memorybench.core.errors import BadInput, Malformed, MemorybenchError, ServiceError
from tests.doubles.stub import Behaviour, Stub, flood, gzip_bomb, html, raw, redirect, reply
from tests.providers.http_memory import KEY
from tests.providers.http_opening import HOME, run_with_provider

SEARCH = """\
name: sample
type: hosted
connection: {baseUrl: "URL"}
auth: {type: bearer, envVar: K}
endpoints:
  add: {method: POST, path: /add, body: {text: "$.content", user: "$.scope"}}
  search:
    method: POST
    path: /search
    body: {query: "$.query", user: "$.scope", k: "$.limit"}
    response: RESPONSE
"""
LISTED = "{results: $.results, contentField: $.memory | $.chunk, scoreField: $.score, idField: $.id}"
ZIPPED = "{zip: {content: '$.docs[0]', score: '$.far[0]', id: '$.ids[0]', sources: '$.ids[0]'}, scoreDirection: lower}"


def search_memories(stub: Stub, data: Any, response: str = LISTED, limit: int = 10) -> Sequence[Memory]:
    stub.next(data if callable(data) else reply(data))
    return run_with_provider(
        SEARCH.replace("RESPONSE", response), stub.url, lambda provider: provider.search(HOME, "cat", limit)
    )


def error_line(stub: Stub, data: Any, response: str = LISTED) -> str:
    with pytest.raises(Malformed) as caught:
        search_memories(stub, data, response)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def results(*items: Any) -> Any:
    return {"results": list(items)}


def test_fallbacks_scores_and_ids_are_read(stub: Stub) -> None:
    one, two = search_memories(
        stub, results({"memory": "a", "score": 0.9, "id": 7}, {"memory": None, "chunk": "b", "score": 0.5})
    )
    assert (one.content, one.score, one.id, one.sources) == ("a", 0.9, "7", None)
    assert (two.content, two.score, two.id) == ("b", 0.5, "result 2")


def test_results_without_scores_keep_their_order(stub: Stub) -> None:
    memories = search_memories(
        stub, results({"memory": "a"}, {"memory": "b", "score": 0.9}, {"memory": "c", "score": None})
    )
    assert [(memory.content, memory.score) for memory in memories] == [("a", None), ("b", 0.9), ("c", None)]


def test_score_direction_is_respected(stub: Stub) -> None:
    items = results({"memory": "far", "score": 0.9}, {"memory": "near", "score": 0.1})
    ranked = {}
    for direction in ("higher", "lower", "none"):
        response = LISTED.replace("{", f"{{scoreDirection: {direction}, ", 1)
        ranked[direction] = [(memory.content, memory.score) for memory in search_memories(stub, items, response)]
    assert ranked == {
        "higher": [("far", 0.9), ("near", 0.1)],
        "lower": [("near", -0.1), ("far", -0.9)],
        "none": [("far", None), ("near", None)],
    }


def test_parallel_arrays_are_zipped(stub: Stub) -> None:
    near, far = search_memories(stub, {"docs": [["a", "b"]], "far": [[2.0, 0.5]], "ids": [["1", "2"]]}, ZIPPED)
    assert (near.content, near.score, near.id) == ("b", -0.5, "2")
    assert far.content == "a"
    assert search_memories(stub, {"docs": [[]], "far": [[]], "ids": [[]]}, ZIPPED) == []
    assert search_memories(stub, {"docs": [["a"]], "far": None, "ids": [["1"]]}, ZIPPED)[0].score is None


def test_dates_precede_the_content_and_chunks_are_separate(stub: Stub) -> None:
    response = LISTED.replace("{", "{dateField: $.valid_at, chunksField: '$.chunks[*].content', ", 1)
    item = {"memory": "Otto moved", "valid_at": "2024-03-02", "chunks": [{"content": "x"}, {"content": "y"}]}
    [memory] = search_memories(stub, results(item), response)
    assert (memory.content, memory.chunks) == ("[2024-03-02] Otto moved", ("x", "y"))
    assert "$.chunks" in error_line(stub, results(item), response.replace("[*].content", ""))


def test_results_may_be_nested(stub: Stub) -> None:
    response = "{results: '$.results[*].chunks[*]', contentField: $.content}"
    deep = results({"chunks": [{"content": "a"}, {"content": "b"}]}, {"chunks": []})
    assert [memory.content for memory in search_memories(stub, deep, response)] == ["a", "b"]
    assert search_memories(stub, results(), response) == []
    assert "$.results[*].chunks[*]" in error_line(stub, {"message": "not today"}, response)


def test_results_may_be_plain_strings(stub: Stub) -> None:
    [memory] = search_memories(stub, ["Otto is a cat"], "{results: $, contentField: $}")
    assert memory.content == "Otto is a cat"


def test_empty_list_of_results_is_valid(stub: Stub) -> None:
    assert search_memories(stub, results()) == []


@pytest.mark.parametrize("data", [{}, {"results": None}, {"results": {"a": 1}}, {"results": "a"}, [], "text", 7, None])
def test_results_null_missing_or_an_object_are_an_error(stub: Stub, data: Any) -> None:
    assert "at $.results" in error_line(stub, data)


@pytest.mark.parametrize(
    "data",
    [
        {"docs": None, "far": [[1]], "ids": [["1"]]},
        {"docs": [["a", "b"]], "far": [[1]], "ids": [["1", "2"]]},
        {"docs": [["a"]], "far": [{"0": 1}], "ids": [["1"]]},
        {"docs": ["a"], "far": [[1]], "ids": [["1"]]},
    ],
)
def test_parallel_arrays_of_different_shape_are_an_error(stub: Stub, data: Any) -> None:
    assert "list" in error_line(stub, data, ZIPPED)


@pytest.mark.parametrize("score", ["0.9", True, [0.9], {"value": 1}])
def test_score_that_is_not_a_number_is_an_error(stub: Stub, score: Any) -> None:
    assert "at $.score" in error_line(stub, results({"memory": "a", "score": score}))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'{"results": [{"memory": "a", "score": NaN}]}', "invalid JSON"),
        (b'{"results": [{"memory": "a", "score": 1e999}]}', "at $.score"),
        (b'{"results": [', "invalid JSON"),
        (b"", "invalid JSON"),
        (b"\xff\xfe", "invalid JSON"),
        (b"[" * 200_000, "invalid JSON"),
    ],
)
def test_invalid_json_is_an_error(stub: Stub, body: bytes, problem: str) -> None:
    assert problem in error_line(stub, raw(body))


@pytest.mark.parametrize("item", [{}, {"memory": None}, {"memory": 5}, {"memory": {"text": "a"}}, None, "a", []])
def test_result_without_text_is_an_error(stub: Stub, item: Any) -> None:
    assert "at $.memory | $.chunk" in error_line(stub, results(item))


def test_all_parts_of_a_text_are_joined(stub: Stub) -> None:
    response = "{results: $.results, contentField: '$.parts[*].text'}"
    parts = [{"text": "header"}, {"image": "x.png"}, {"text": "The cat is Otto."}]
    [memory] = search_memories(stub, results({"parts": parts}), response)
    assert memory.content == "header\nThe cat is Otto."
    assert "at $.parts[*].text" in error_line(stub, results({"parts": [*parts, {"text": 5}]}), response)


@pytest.mark.parametrize("name", ["scoreField", "idField", "dateField"])
def test_several_values_of_a_single_field_are_an_error(stub: Stub, name: str) -> None:
    response = f"{{results: $.results, contentField: $.memory, {name}: '$.of[*]'}}"
    assert "2 values at $.of[*]" in error_line(stub, results({"memory": "a", "of": [1, 2]}), response)


def test_html_with_status_200_is_an_error(stub: Stub) -> None:
    assert "invalid JSON" in error_line(stub, html())


def test_json_of_another_content_type_is_read(stub: Stub) -> None:
    assert search_memories(stub, raw(b'\xef\xbb\xbf{"results": [{"memory": "a"}]}', content_type="text/plain"))


@pytest.mark.slow
def test_extra_results_are_dropped(stub: Stub) -> None:
    items = results(*({"memory": str(n), "score": n} for n in range(100_000)))
    assert [memory.content for memory in search_memories(stub, items, limit=3)] == ["99999", "99998", "99997"]


@pytest.mark.parametrize("behaviour", [flood(2**30), gzip_bomb(2**26)])
def test_endless_body_is_limited(stub: Stub, behaviour: Behaviour) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "is larger than" in error_line(stub, behaviour)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024  # KiB, on Linux


def test_a_redirect_to_another_host_is_not_followed(stub: Stub) -> None:
    with Stub() as elsewhere:
        with pytest.raises(ServiceError):
            search_memories(stub, redirect(f"{elsewhere.url}/search", code=307))
        assert elsewhere.calls == []


def test_lone_surrogates_do_not_reach_the_journal(stub: Stub) -> None:
    [memory] = search_memories(stub, raw(rb'{"results": [{"memory": "a\ud800b", "id": "\udfff"}]}'))
    assert "\\ud800" not in memory.model_dump_json().encode().decode()
    assert memory.content.startswith("a")
    assert memory.content.endswith("b")


def test_key_returned_by_a_service_is_not_stored(stub: Stub) -> None:
    response = LISTED.replace("{", "{sourcesField: $.from, chunksField: $.chunks, ", 1)
    item = {"memory": f"You sent {KEY}", "id": KEY, "from": [KEY], "chunks": [KEY]}
    [memory] = search_memories(stub, results(item), response)
    assert KEY not in memory.model_dump_json()
    with pytest.raises(MemorybenchError) as caught:
        search_memories(stub, reply({"error": f"bad key {KEY}"}, code=400))
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("named", [["s1", None], "s1"])
def test_unknown_ids_are_no_sources(stub: Stub, named: Any) -> None:
    response = LISTED.replace("{", "{sourcesField: $.from, ", 1)
    [memory] = search_memories(stub, results({"memory": "a", "from": named}), response)
    assert memory.sources is None


def test_invalid_path_is_an_error_before_any_request(stub: Stub) -> None:
    with pytest.raises(BadInput, match=r"endpoints\.search\.response\.results: "):
        search_memories(stub, results(), "{results: '$.[', contentField: $.a}")
    assert stub.calls == []
