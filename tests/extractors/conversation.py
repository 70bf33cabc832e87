"""One short conversation, and how an extractor is asked about it."""

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
    """What an extractor makes of the conversation, opened for this one question."""

    async def extract() -> Any:
        async with opening as extractor:
            return await extractor.extract(existing, conversation)

    return asyncio.run(extract())
