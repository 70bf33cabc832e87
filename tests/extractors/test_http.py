"""HTTP endpoints as extractors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memorybench.core.errors import BadInput, Denied, Malformed, ServiceError, Transient
from memorybench.extractors.config_reading import read_extractor
from memorybench.extractors.http import HttpExtractor
from memorybench.extractors.plugin import OpenContext
from memorybench.files.yaml_file import parse_yaml
from memorybench.secrets.redaction import Redactor
from tests.doubles.stub import Stub, babble, flood, half_body, hang, html, raw, redirect, reply, reset, status
from tests.extractors.conversation import DIALOGUE, EXISTING, LEARNED, MESSAGES, ask

KEY = "sk-plum-kettle-7741"


def described(
    url: str, more: str = "", *, key: str | None = None, environment: Mapping[str, str] | None = None
) -> AbstractAsyncContextManager[HttpExtractor]:
    text = f"name: ours\ntype: http\nurl: {url}/extract\n{more}"
    config = read_extractor(parse_yaml(text, "ours.yaml"), environment or {})
    keys = {"OUR_KEY": key} if key else {}
    context = SimpleNamespace(config=config, environment=keys, redactor=Redactor([KEY]))
    return HttpExtractor.open(cast(OpenContext, context))


def test_default_body_is_the_input_of_programs() -> None:
    with Stub() as stub:
        stub.always(reply(LEARNED), path="/extract")
        assert ask(described(stub.url)) == LEARNED
    (call,) = stub.calls
    assert (call.method, call.path) == ("POST", "/extract")
    assert call.json == {"existing_memory": EXISTING, "conversation": MESSAGES}


TEMPLATE = """
method: PUT
headers: {X-Team: "${TEAM}"}
body:
  state: $.existingMemory
  turns: $.messages
  first: $.messages[0].content
  prompt: "Memory after this: ${conversation}"
output: $.result.memory
"""


def test_body_and_output_follow_the_config() -> None:
    with Stub() as stub:
        stub.always(reply({"result": {"memory": LEARNED}}))
        assert ask(described(stub.url, TEMPLATE, environment={"TEAM": "blue"})) == LEARNED
    (call,) = stub.calls
    assert call.method == "PUT"
    assert call.headers["x-team"] == "blue"
    assert call.json == {
        "state": EXISTING,
        "turns": MESSAGES,
        "first": "We have a dog now.",
        "prompt": f"Memory after this: {DIALOGUE}",
    }


def test_path_with_many_matches_returns_a_list() -> None:
    with Stub() as stub:
        stub.always(reply({"facts": [{"text": "Has a dog"}, {"text": "Lives in Bristol"}]}))
        assert ask(described(stub.url, "output: $.facts[*].text")) == ["Has a dog", "Lives in Bristol"]


@pytest.mark.parametrize(
    ("auth", "header", "sent"),
    [
        ("{type: bearer, envVar: OUR_KEY}", "authorization", f"Bearer {KEY}"),
        ("{type: token, env_var: OUR_KEY}", "authorization", f"Token {KEY}"),
        ("{type: apikey, envVar: OUR_KEY, header: X-API-Key}", "x-api-key", KEY),
        ("{type: bearer, envVar: OUR_KEY, prefix: 'Key '}", "authorization", f"Key {KEY}"),
    ],
)
def test_key_is_sent_as_configured(auth: str, header: str, sent: str) -> None:
    with Stub() as stub:
        stub.always(reply([]))
        ask(described(stub.url, f"auth: {auth}", key=KEY))
    assert stub.calls[0].headers[header] == sent


def test_missing_key_is_an_error_before_any_request() -> None:
    with Stub() as stub:
        with pytest.raises(BadInput, match="OUR_KEY is not set"):
            ask(described(stub.url, "auth: {type: bearer, envVar: OUR_KEY}"))
        assert stub.calls == []


@pytest.mark.parametrize(
    ("behaviour", "error", "complaint"),
    [
        (status(401), Denied, "HTTP 401"),
        (status(429, headers={"Retry-After": "7"}), Transient, "HTTP 429"),
        (status(503), Transient, "HTTP 503"),
        (status(404), ServiceError, "HTTP 404"),
        (reset(), Transient, ""),
        (half_body(), Transient, ""),
        (babble(), Malformed, ""),
        (html(), Malformed, ""),
        (redirect("http://127.0.0.2:1/"), ServiceError, ""),
        (flood(64 * 2**20), Malformed, ""),
        (reply(None), Malformed, "invalid memory null"),
        (reply(7), Malformed, "invalid memory 7"),
        (raw(b'{"pets": ["\\ud83d"]}'), Malformed, "lone surrogate"),
    ],
)
def test_each_failure_has_its_error_type(behaviour: Any, error: type[Exception], complaint: str) -> None:
    with Stub() as stub:
        stub.always(behaviour)
        with pytest.raises(error) as raised:
            ask(described(stub.url))
    assert complaint in str(raised.value)
    assert type(raised.value) is error
    assert len(stub.calls) == 1, "asking again is the engine's business"


def test_a_reply_without_the_memory_is_named_with_its_path() -> None:
    with Stub() as stub:
        stub.always(reply({"error": "no idea"}))
        with pytest.raises(Malformed, match=r"memory at \$\.result\.memory: .*no idea"):
            ask(described(stub.url, "output: $.result.memory"))


def test_service_that_does_not_answer_times_out() -> None:
    with Stub() as stub:
        stub.always(hang())
        with pytest.raises(Transient):
            ask(described(stub.url, "timeout: 100"))


def test_key_in_a_reply_is_redacted() -> None:
    with Stub() as stub:
        stub.next(reply({"notes": [f"called with {KEY}"]}), status(500, said=f"bad key {KEY}"))
        assert ask(described(stub.url)) == {"notes": ["called with [redacted]"]}
        with pytest.raises(Transient) as raised:
            ask(described(stub.url))
    assert KEY not in str(raised.value)


def test_subject_depends_on_the_body() -> None:
    async def key(more: str) -> str:
        async with described("https://extractor.example", more) as extractor:
            return extractor.subject.key

    assert asyncio.run(key("")) != asyncio.run(key("body: {said: $.conversation}"))
