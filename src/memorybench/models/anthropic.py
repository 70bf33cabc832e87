"""Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorybench.core.contracts import Completion
from memorybench.core.conversation import Turn

from .presets import ModelAddress, Options
from .prices import Usage
from .replying import closed, count, joined_text, members, text_or
from .server import Server, model_subject

if TYPE_CHECKING:
    from memorybench.http.client import Http
    from memorybench.http.replies import Reply

MAX_TOKENS = 4096
"""Maximum number of tokens of a reply if the options set none, because the API requires a limit."""
FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filter",
    "tool_use": "tools",
}
SAMPLED = re.compile(r"claude-(3|(opus|sonnet|haiku)-4(-[0-6])?(-\d{8}|-latest|$))")
"""Pattern for the names of models that accept a temperature; Opus 4.7 and later reject it."""
UNSUPPORTED_KEYWORDS = frozenset(
    {"default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "minItems", "maxItems", "uniqueItems"}
)
"""Keywords of JSON Schema that the API rejects."""


class AnthropicModel:
    """A model with the Messages API, opened by `open_model`."""

    def __init__(self, address: ModelAddress, options: Options, http: Http, key: str | None) -> None:
        temperature = options.temperature if SAMPLED.match(address.model) else None
        options = options.model_copy(update={"max_tokens": options.max_tokens or MAX_TOKENS})
        self.subject = model_subject(address, options, temperature=temperature, seed=None)  # the API has no seed
        self._defaults = {"model": address.model, "max_tokens": options.max_tokens, "temperature": temperature}
        self._model = address.model
        self._server = Server(address, "/v1/messages", http, key, options.timeout)

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> Completion:
        return self._read(*await self._server.post(self._body(turns, schema)))

    def highest_cost(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> float | None:
        return self._server.highest_cost(self._body(turns, schema))

    def _body(self, turns: Sequence[Turn], schema: Mapping[str, Any] | None) -> dict[str, Any]:
        messages = [{"role": turn.role, "content": turn.content} for turn in turns if turn.role != "system"]
        body: dict[str, Any] = {**self._defaults, "messages": messages}
        system = "\n\n".join(turn.content for turn in turns if turn.role == "system")
        if system:
            body["system"] = system
        if schema is not None:
            output = {"type": "json_schema", "schema": closed(schema, without=UNSUPPORTED_KEYWORDS)}
            body["output_config"] = {"format": output}
        return body

    def _read(self, reply: Reply, data: Mapping[str, Any]) -> Completion:
        model = text_or(data.get("model"), self._model)
        spent = self._server.charge(_usage(members(data.get("usage"))), model)
        blocks = data.get("content")
        if not isinstance(blocks, list):
            raise reply.malformed('the reply has no list "content"')
        finish = text_or(data.get("stop_reason"), "unknown")
        return Completion(text=joined_text(blocks), finish=FINISHES.get(finish, finish), model=model, spent=spent)


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    """Return the token counts of a reply; None if they are missing or invalid.

    Anthropic's count of input tokens does not include cached tokens, but `Usage.input_tokens` does: they are added.
    """
    uncached, output = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    if uncached is None or output is None:
        return None
    cached = count(usage.get("cache_read_input_tokens")) or 0
    stored = count(usage.get("cache_creation_input_tokens")) or 0
    return Usage(uncached + cached + stored, output, cached_tokens=cached, stored_tokens=stored)
