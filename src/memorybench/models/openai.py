"""Chat completions, as OpenAI defined them and OpenRouter, Gemini, Ollama, vLLM and LM Studio speak them, too."""

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

FINISHES = {"content_filter": "filter", "tool_calls": "tools", "function_call": "tools"}
REASONING = re.compile(r"(o\d|gpt-[5-9])")
"""OpenAI's models from o1 and gpt-5 on: they refuse `max_tokens`, and all but the chat ones a temperature."""


class OpenAIModel:
    """Opened by `open_model`."""

    def __init__(self, address: ModelAddress, options: Options, http: Http, key: str | None) -> None:
        reasoning = REASONING.match(address.model) is not None
        temperature = None if reasoning and "chat" not in address.model else options.temperature
        self.subject = Subject(
            role="model",
            name=address.name,
            settings={
                "temperature": temperature,
                "seed": options.seed,
                "max_tokens": options.max_tokens,
                "base_url": address.base_url,
            },
        )
        sent = {
            "model": address.model,
            "temperature": temperature,
            "seed": options.seed,
            "max_completion_tokens" if reasoning else "max_tokens": options.max_tokens,
        }
        self._sent = {name: value for name, value in sent.items() if value is not None}
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._url = f"{address.base_url}/chat/completions"
        self._address = address
        self._timeout = options.timeout
        self._http = http

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> Completion:
        body: dict[str, Any] = {
            **self._sent,
            "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
        }
        if schema is not None:
            wanted = {"name": "reply", "schema": closed(schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        reply = await self._http.request("POST", self._url, headers=self._headers, json=body, deadline=self._timeout)
        return self._read(reply)

    def _read(self, reply: Reply) -> Completion:
        told = members(reply.json())
        choices, error = told.get("choices"), members(told.get("error"))
        if error and not choices:
            code = count(error.get("code"))  # OpenRouter reports what happened upstream under status 200
            raise reply.failure(code or reply.status)
        version = told.get("model")
        model = version if isinstance(version, str) and version else self._address.model
        spent = spending(_usage(members(told.get("usage"))), self._address.priced_as, model, self._address.model)
        charge(spent)  # whether the reply is of use or not
        if not isinstance(choices, list) or not choices:
            raise reply.malformed("the reply holds no choices")
        choice = members(choices[0])
        message = members(choice.get("message"))
        text = _text(message.get("content"))
        if text is None:
            raise reply.malformed("the reply holds no text")
        finish, refusal = choice.get("finish_reason"), message.get("refusal")
        if not text and isinstance(refusal, str) and refusal:
            text, finish = refusal, "filter"
        said = finish if isinstance(finish, str) and finish else "unknown"
        return Completion(text=text, finish=FINISHES.get(said, said), model=model, spent=spent)


def _text(content: Any) -> str | None:
    """Null is the empty text of a filtered reply; some servers send a list of parts. None: neither of these."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts = [members(part).get("text") for part in content if members(part).get("type") == "text"]
    return "".join(part for part in parts if isinstance(part, str))


def _usage(told: Mapping[str, Any]) -> Usage | None:
    prompt, reply = count(told.get("prompt_tokens")), count(told.get("completion_tokens"))
    if prompt is None or reply is None:
        return None
    cached = count(members(told.get("prompt_tokens_details")).get("cached_tokens")) or 0
    return Usage(input_tokens=prompt, output_tokens=reply, cached_tokens=cached)
