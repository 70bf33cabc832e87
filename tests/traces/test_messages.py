"""Conversations in the formats of OpenAI, Anthropic and LangChain."""

import json
from typing import Any

import pytest

from memorybench.traces.messages import NO_ROLE, InvalidConversation, turns_of

TURNS = [("user", "I sell bikes."), ("assistant", "Noted.")]
SHAPES: dict[str, Any] = {
    "OpenAI": [{"role": "user", "content": "I sell bikes."}, {"role": "assistant", "content": "Noted."}],
    "parts": [
        {
            "role": "user",
            "content": [{"type": "text", "text": "I sell bikes."}, {"type": "image_url", "image_url": {}}],
        },
        {"role": "assistant", "content": ["Noted."]},
    ],
    "an object with messages": {"messages": [["user", "I sell bikes."], ["assistant", "Noted."]]},
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
def test_all_formats_give_the_same_turns(shape: str) -> None:
    assert [(turn.role, turn.content) for turn in turns_of(SHAPES[shape])] == TURNS


def test_plain_text_is_one_turn_without_a_role() -> None:
    [turn] = turns_of("User: I sell bikes.\nAssistant: Noted.")
    assert (turn.role, turn.content) == (NO_ROLE, "User: I sell bikes.\nAssistant: Noted.")


def test_a_name_becomes_the_speaker() -> None:
    [turn] = turns_of([{"role": "user", "name": "Ada", "content": "Hello"}])
    assert turn.speaker == "Ada"


def test_deep_nesting_is_an_error() -> None:
    with pytest.raises(InvalidConversation, match="nested"):
        turns_of(json.loads("[" * 50 + '"x"' + "]" * 50))
