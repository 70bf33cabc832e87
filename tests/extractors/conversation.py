"""One short conversation, and a helper that runs an extractor on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from memorybench.core.conversation import Turn
from memorybench.core.extraction import Extractor

EXISTING = {"home": ["Lives in Bristol"], "pets": []}
CONVERSATION = (
    Turn(role="user", content="We have a dog now."),
    Turn(role="assistant", content="Lovely! What is it called?"),
    Turn(role="user", content="Biscuit. She sleeps a lot."),
)
MESSAGES = [{"role": turn.role, "content": turn.content} for turn in CONVERSATION]
DIALOGUE = "User: We have a dog now.\nAssistant: Lovely! What is it called?\nUser: Biscuit. She sleeps a lot."
LEARNED = {"home": ["Lives in Bristol"], "pets": ["Has a dog named Biscuit"]}


def ask(
    opening: AbstractAsyncContextManager[Extractor],
    existing: Any = EXISTING,
    conversation: Sequence[Turn] = CONVERSATION,
) -> Any:
    """Open an extractor, run it on the conversation and return the memory."""

    async def extract() -> Any:
        async with opening as extractor:
            return await extractor.extract(existing, conversation)

    return asyncio.run(extract())
