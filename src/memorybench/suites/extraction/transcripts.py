"""Converts conversations between turns and text in which each line begins with its speaker."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memorybench.core.conversation import Turn

ROLES = {
    **dict.fromkeys(("user", "human", "customer", "client"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "agent", "expert", "advisor", "coach"), "assistant"),
    "system": "system",
}
"""By speaker name that a text may use: its role."""

_SPEAKER = re.compile(rf"^\s*(?:\*\*)?({'|'.join(ROLES)})(?:\*\*)?\s*:(?:\*\*)?\s*", re.IGNORECASE)


def turns_of(text: str) -> tuple[Turn, ...]:
    """Parse lines such as `User: …` into turns. Only the names in ROLES are speakers; other lines continue a turn.

    Return no turns if the first line has no speaker.
    """
    turns: list[Turn] = []
    for line in filter(str.strip, text.splitlines()):
        speaker = _SPEAKER.match(line)
        if speaker:
            turns.append(Turn(role=ROLES[speaker[1].lower()], content=line[speaker.end() :].strip()))
        elif turns:
            turns[-1] = replace(turns[-1], content=f"{turns[-1].content}\n{line.strip()}".strip())
        else:
            return ()
    return tuple(turns)


def split_turns(conversation: Sequence[Turn]) -> Iterator[Turn]:
    """Yield the turns. A turn without a role is split into the turns in its text, if the text names speakers."""
    for turn in conversation:
        yield from (turn,) if turn.role else turns_of(turn.content) or (turn,)


def transcript(turns: Sequence[Turn]) -> str:
    """Return turns as `User: …` lines. The text of a turn without a role is used unchanged."""
    lines = []
    for turn in turns:
        speaker = turn.role.capitalize() if turn.speaker is None else f"{turn.speaker} ({turn.role})"
        lines.append(f"{speaker}: {turn.content}" if turn.role else turn.content)
    return "\n".join(lines)
