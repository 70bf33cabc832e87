"""Opens a model on a stub server and calls it once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from memorybench.core.contracts import Completion, Model
from memorybench.core.conversation import Turn
from memorybench.core.spending import Tally
from memorybench.core.trials import Subject
from memorybench.models.opening import open_model
from memorybench.models.presets import ModelAddress, Options, key_of, resolve
from memorybench.secrets.redaction import Redactor

KEY = "sk-Sentinel/0123+456\"789'abc"
TURNS = (Turn(role="system", content="Be brief."), Turn(role="user", content="Capital of France?"))


def environment(url: str) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "OLLAMA_BASE_URL": url,
        "OPENROUTER_BASE_URL": f"{url}/v1",
        "OPENROUTER_API_KEY": KEY,
    }


def complete(
    name: str,
    url: str,
    turns: Sequence[Turn] = TURNS,
    *,
    schema: Mapping[str, Any] | None = None,
    tally: Tally | None = None,
    **options: Any,
) -> Completion:
    """Calls a model; `tally` receives the charge even if the call fails."""

    async def ask() -> Completion:
        async with open_on_stub(name, url, **options) as model:
            with Tally() as charged:
                try:
                    return await model.complete(turns, schema=schema)
                finally:
                    if tally:
                        tally.spent = charged.spent

    return asyncio.run(ask())


def subject(name: str, url: str, **options: Any) -> Subject:
    async def get_subject() -> Subject:
        async with open_on_stub(name, url, **options) as model:
            assert isinstance(model, Model)
            return model.subject

    return asyncio.run(get_subject())


def open_on_stub(name: str, url: str, **options: Any) -> Any:
    address: ModelAddress = resolve(name, environment(url))
    key = key_of(address, environment(url))
    return open_model(address, key=key, redactor=Redactor([KEY]), options=Options(**options))
