"""Conversations as cases write them: turns, or lines that begin with who speaks."""

from __future__ import annotations

import re

from memorybench.core.conversation import Turn

ROLES = {
    **dict.fromkeys(("user", "human", "customer", "client"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "agent", "expert", "advisor", "coach"), "assistant"),
    "system": "system",
}
"""Who may speak in a text, and in which role."""

_SPEAKER = re.compile(rf"^\s*(?:\*\*)?({'|'.join(ROLES)})(?:\*\*)?\s*:(?:\*\*)?\s*", re.IGNORECASE)


def turns_of(text: str) -> tuple[Turn, ...]:
    """The turns of `User: …` lines; a line without a speaker goes on with the turn before. None where nobody speaks
    first."""
    turns: list[Turn] = []
    for line in filter(str.strip, text.splitlines()):
        speaker = _SPEAKER.match(line)
        if speaker:
            turns.append(Turn(role=ROLES[speaker[1].lower()], content=line[speaker.end() :].strip()))
        elif turns:
            turns[-1] = turns[-1].model_copy(update={"content": f"{turns[-1].content}\n{line.strip()}".strip()})
        else:
            return ()
    return tuple(turns)


def transcript(turns: tuple[Turn, ...]) -> str:
    return "\n".join(f"{turn.role.capitalize()}: {turn.content}" for turn in turns)
