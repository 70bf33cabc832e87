"""Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorybench.core.contracts import Completion
from memorybench.core.conversation import Turn
from memorybench.core.spending import charge
from memorybench.core.trials import Subject

from .options import Options
from .presets import ModelAddress
from .prices import Usage, spending
from .replying import count, members
from .schemas import closed

if TYPE_CHECKING:
    from memorybench.http.client import Http
    from memorybench.http.replies import Reply

API_VERSION = "2023-06-01"
MAX_TOKENS = 4096
"""The API wants a limit; this one holds where the options name none."""
FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filter",
    "tool_use": "tools",
}
SAMPLED = re.compile(r"claude-(3|(opus|sonnet|haiku)-4(-[0-6])?(-\d{8}|-latest|$))")
"""The last models that take a temperature; from Opus 4.7 on it is an error to send one."""
UNKNOWN_KEYWORDS = frozenset(
    {"default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "minItems", "maxItems", "uniqueItems"}
)
"""Of JSON Schema; the API refuses schemas that hold them."""


class AnthropicModel:
    """Opened by `open_model`."""

    def __init__(self, address: ModelAddress, options: Options, http: Http, key: str | None) -> None:
        temperature = options.temperature if SAMPLED.match(address.model) else None
        max_tokens = options.max_tokens or MAX_TOKENS
        self.subject = Subject(
            role="model",
            name=address.name,
            settings={
                "temperature": temperature,
                "seed": None,  # the API has none
                "max_tokens": max_tokens,
                "base_url": address.base_url,
            },
        )
        self._sent: dict[str, Any] = {"model": address.model, "max_tokens": max_tokens}
        if temperature is not None:
            self._sent["temperature"] = temperature
        self._headers = {"anthropic-version": API_VERSION, **({"x-api-key": key} if key else {})}
        self._url = f"{address.base_url}/v1/messages"
        self._address = address
        self._timeout = options.timeout
        self._http = http

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> Completion:
        said = [{"role": turn.role, "content": turn.content} for turn in turns if turn.role != "system"]
        body = {**self._sent, "messages": said}
        system = "\n\n".join(turn.content for turn in turns if turn.role == "system")
        if system:
            body["system"] = system
        if schema is not None:
            wanted = {"type": "json_schema", "schema": closed(schema, without=UNKNOWN_KEYWORDS)}
            body["output_config"] = {"format": wanted}
        reply = await self._http.request("POST", self._url, headers=self._headers, json=body, deadline=self._timeout)
        return self._read(reply)

    def _read(self, reply: Reply) -> Completion:
        told = members(reply.json())
        version = told.get("model")
        model = version if isinstance(version, str) and version else self._address.model
        spent = spending(_usage(members(told.get("usage"))), self._address.priced_as, model, self._address.model)
        charge(spent)  # whether the reply is of use or not
        blocks = told.get("content")
        if not isinstance(blocks, list):
            raise reply.malformed("the reply holds no content")
        texts = [members(block).get("text") for block in blocks if members(block).get("type") == "text"]
        stop = told.get("stop_reason")
        finish = stop if isinstance(stop, str) and stop else "unknown"
        return Completion(
            text="".join(text for text in texts if isinstance(text, str)),
            finish=FINISHES.get(finish, finish),
            model=model,
            spent=spent,
        )


def _usage(told: Mapping[str, Any]) -> Usage | None:
    """Anthropic counts what goes through the cache apart from the input; we count it in."""
    fresh, reply = count(told.get("input_tokens")), count(told.get("output_tokens"))
    if fresh is None or reply is None:
        return None
    cached = count(told.get("cache_read_input_tokens")) or 0
    stored = count(told.get("cache_creation_input_tokens")) or 0
    return Usage(fresh + cached + stored, reply, cached_tokens=cached, stored_tokens=stored)
