"""Reasoning before a reply is not part of it."""

import pytest

from memorybench.text.reasoning import without_reasoning


@pytest.mark.parametrize(
    ("reply", "rest"),
    [
        ("<think>Rome?</think>Oslo", "Oslo"),
        ("<think>a</think>\n<reasoning>b</reasoning> Oslo", " Oslo"),
        ("Rome? No.</think>\nOslo", "\nOslo"),
    ],
)
def test_reasoning_before_a_reply_is_removed(reply: str, rest: str) -> None:
    assert without_reasoning(reply) == rest


@pytest.mark.parametrize(
    "reply",
    [
        "Oslo",
        "<think>Oslo",
        "<think>Oslo</think>",
        "<answer>yes</answer><reasoning>because</reasoning>",
        '{"facts": ["code: uses the tag </think> twice"]}',
        "It prints <think>x</think>.",
    ],
)
def test_a_tag_that_does_not_end_reasoning_before_the_reply_belongs_to_it(reply: str) -> None:
    assert without_reasoning(reply) == reply
