"""Scopes and sessions for the tests of the embedded providers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from memorybench.core.contracts import Provider, Scope
from memorybench.core.conversation import Memory, Session, Turn

HOME = Scope(run="run-1", benchmark="test", provider="embedded", haystack="home")
AWAY = HOME.model_copy(update={"haystack": "away"})


def session(name: str, *contents: str, speaker: str | None = None) -> Session:
    turns = tuple(Turn(role="user", content=text, speaker=speaker) for text in contents)
    return Session(id=name, turns=turns, at=datetime(2024, 3, 2, 9, 30, tzinfo=UTC))


async def fill(provider: Provider, sessions: Sequence[Session], scope: Scope = HOME) -> None:
    await provider.wait_until_searchable(
        scope, [await provider.add(scope, session_to_add) for session_to_add in sessions]
    )


def sessions_of(memories: Sequence[Memory]) -> list[str]:
    """Return the sessions, ranked by their best turn."""
    return list(dict.fromkeys((memory.sources or ("",))[0] for memory in memories))
