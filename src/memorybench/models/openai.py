"""OpenAI's chat completions API, which OpenRouter, Gemini, Ollama, vLLM and LM Studio offer, too."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorybench.core.contracts import Completion
from memorybench.core.conversation import Turn
from memorybench.text.reasoning import without_reasoning

from .presets import ModelAddress, Options
from .prices import Usage
from .replying import closed, count, joined_text, members, text_or
from .server import Server, model_subject

if TYPE_CHECKING:
    from memorybench.http.client import Http
    from memorybench.http.replies import Reply

FINISHES = {"content_filter": "filter", "tool_calls": "tools", "function_call": "tools"}
REASONING = re.compile(r"(o\d|gpt-[5-9])")
"""Pattern for OpenAI's models since o1 and gpt-5. They reject `max_tokens`; except chat models, also a temperature."""


class OpenAIModel:
    """A model with the chat completions API, opened by `open_model`."""

    def __init__(self, address: ModelAddress, options: Options, http: Http, key: str | None) -> None:
        reasoning = REASONING.match(address.model) is not None
        temperature = None if reasoning and "chat" not in address.model else options.temperature
        self.subject = model_subject(address, options, temperature=temperature, seed=options.seed)
        self._defaults = {
            "model": address.model,
            "temperature": temperature,
            "seed": options.seed,
            "max_completion_tokens" if reasoning else "max_tokens": options.max_tokens,
        }
        self._model = address.model
        self._server = Server(address, "/chat/completions", http, key, options.timeout)

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> Completion:
        return self._read(*await self._server.post(self._body(turns, schema)))

    def highest_cost(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> float | None:
        return self._server.highest_cost(self._body(turns, schema))

    def _body(self, turns: Sequence[Turn], schema: Mapping[str, Any] | None) -> dict[str, Any]:
        body: dict[str, Any] = {
            **self._defaults,
            "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
        }
        if schema is not None:
            output = {"name": "reply", "schema": closed(schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": output}
        return body

    def _read(self, reply: Reply, data: Mapping[str, Any]) -> Completion:
        choices, error = data.get("choices"), members(data.get("error"))
        if error and not choices:
            code = count(error.get("code"))  # OpenRouter reports errors of its upstream with status 200
            raise reply.failure(code or reply.status)
        model = text_or(data.get("model"), self._model)
        spent = self._server.charge(_usage(members(data.get("usage"))), model)
        if not isinstance(choices, list) or not choices:
            raise reply.malformed('the reply has no "choices"')
        choice = members(choices[0])
        message = members(choice.get("message"))
        content = _text(message.get("content"))
        if content is None:
            raise reply.malformed('the reply has no text at "choices[0].message.content"')
        text = without_reasoning(content).strip() if "</" in content else content
        finish, refusal = choice.get("finish_reason"), message.get("refusal")
        if not text and isinstance(refusal, str) and refusal:
            text, finish = refusal, "filter"
        finish = text_or(finish, "unknown")
        return Completion(text=text, finish=FINISHES.get(finish, finish), model=model, spent=spent)


def _text(content: Any) -> str | None:
    """Return the text of a reply, whose content may be a list of parts.

    Null, which means that a filter removed the text, becomes "". For other content, return None.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return joined_text(content) if isinstance(content, list) else None


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    prompt, output = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    if prompt is None or output is None:
        return None
    cached = count(members(usage.get("prompt_tokens_details")).get("cached_tokens")) or 0
    return Usage(input_tokens=prompt, output_tokens=output, cached_tokens=cached)
