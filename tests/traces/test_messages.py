"""Conversations as they are written down in the field."""

import json
from typing import Any

import pytest

from memorybench.traces.messages import NO_ROLE, InvalidConversation, turns_of

SAID = [("user", "I sell bikes."), ("assistant", "Noted.")]
SHAPES: dict[str, Any] = {
    "OpenAI": [{"role": "user", "content": "I sell bikes."}, {"role": "assistant", "content": "Noted."}],
    "parts": [
        {
            "role": "user",
            "content": [{"type": "text", "text": "I sell bikes."}, {"type": "image_url", "image_url": {}}],
        },
        {"role": "assistant", "content": ["Noted."]},
    ],
    "an object around": {"messages": [["user", "I sell bikes."], ["assistant", "Noted."]]},
    "LangChain, plain": [{"type": "human", "content": "I sell bikes."}, {"type": "ai", "content": "Noted."}],
    "LangChain, messages_to_dict": [
        {"type": "human", "data": {"content": "I sell bikes.", "additional_kwargs": {}}},
        {"type": "AIMessageChunk", "data": {"content": "Noted.", "type": "AIMessageChunk"}},
    ],
    "LangChain, serialised, a batch of one": [
        [
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", "HumanMessage"],
                "kwargs": {"content": "I sell bikes."},
            },
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", "AIMessage"],
                "kwargs": {"content": "Noted.", "type": "ai"},
            },
        ]
    ],
    "LangChain, pairs": [["human", "I sell bikes."], ["ai", "Noted."]],
    "with a bare tool call": [
        {"role": "user", "content": "I sell bikes."},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "assistant", "content": "Noted."},
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_way_to_write_a_conversation_says_the_same(shape: str) -> None:
    assert [(turn.role, turn.content) for turn in turns_of(SHAPES[shape])] == SAID


def test_text_stays_as_it_is() -> None:
    [turn] = turns_of("User: I sell bikes.\nAssistant: Noted.")
    assert (turn.role, turn.content) == (NO_ROLE, "User: I sell bikes.\nAssistant: Noted.")


def test_a_name_is_kept_as_the_speaker() -> None:
    [turn] = turns_of([{"role": "user", "name": "Ada", "content": "Hello"}])
    assert turn.speaker == "Ada"


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(InvalidConversation, match="nested"):
        turns_of(json.loads("[" * 50 + '"x"' + "]" * 50))
