"""Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorybench.core.contracts import Completion
from memorybench.core.conversation import Turn
from memorybench.core.spending import charge, charging_unreadable
from memorybench.core.trials import Subject

from .presets import ModelAddress, Options
from .prices import Usage, spending
from .replying import count, joined_text, members, text_or
from .schemas import closed

if TYPE_CHECKING:
    from memorybench.http.client import Http
    from memorybench.http.replies import Reply

API_VERSION = "2023-06-01"
MAX_TOKENS = 4096
"""The default, because the API requires a limit."""
FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filter",
    "tool_use": "tools",
}
SAMPLED = re.compile(r"claude-(3|(opus|sonnet|haiku)-4(-[0-6])?(-\d{8}|-latest|$))")
"""Models that accept a temperature; Opus 4.7 and later reject it."""
UNSUPPORTED_KEYWORDS = frozenset(
    {"default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "minItems", "maxItems", "uniqueItems"}
)
"""Keywords of JSON Schema that the API rejects."""


class AnthropicModel:
    """A model with the Messages API, opened by `open_model`."""

    def __init__(self, address: ModelAddress, options: Options, http: Http, key: str | None) -> None:
        temperature = options.temperature if SAMPLED.match(address.model) else None
        max_tokens = options.max_tokens or MAX_TOKENS
        self.subject = Subject(
            role="model",
            name=address.name,
            settings={
                "temperature": temperature,
                "seed": None,  # not supported by the API
                "max_tokens": max_tokens,
                "base_url": address.base_url,
            },
        )
        self._defaults: dict[str, Any] = {"model": address.model, "max_tokens": max_tokens}
        if temperature is not None:
            self._defaults["temperature"] = temperature
        self._headers = {"anthropic-version": API_VERSION, **({"x-api-key": key} if key else {})}
        self._url = f"{address.base_url}/v1/messages"
        self._address = address
        self._timeout = options.timeout
        self._http = http

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> Completion:
        messages = [{"role": turn.role, "content": turn.content} for turn in turns if turn.role != "system"]
        body = {**self._defaults, "messages": messages}
        system = "\n\n".join(turn.content for turn in turns if turn.role == "system")
        if system:
            body["system"] = system
        if schema is not None:
            output = {"type": "json_schema", "schema": closed(schema, without=UNSUPPORTED_KEYWORDS)}
            body["output_config"] = {"format": output}
        with charging_unreadable(spending(None, self._address.priced_as)):
            reply = await self._http.request(
                "POST", self._url, headers=self._headers, json=body, deadline=self._timeout
            )
            data = members(reply.json())
        return self._read(reply, data)

    def _read(self, reply: Reply, data: Mapping[str, Any]) -> Completion:
        model = text_or(data.get("model"), self._address.model)
        spent = spending(_usage(members(data.get("usage"))), self._address.priced_as, model, self._address.model)
        charge(spent)  # an invalid reply costs as much
        blocks = data.get("content")
        if not isinstance(blocks, list):
            raise reply.malformed("content is missing")
        finish = text_or(data.get("stop_reason"), "unknown")
        return Completion(text=joined_text(blocks), finish=FINISHES.get(finish, finish), model=model, spent=spent)


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    """Read the token counts. Anthropic does not count cached tokens as input; we do."""
    uncached, output = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    if uncached is None or output is None:
        return None
    cached = count(usage.get("cache_read_input_tokens")) or 0
    stored = count(usage.get("cache_creation_input_tokens")) or 0
    return Usage(uncached + cached + stored, output, cached_tokens=cached, stored_tokens=stored)
