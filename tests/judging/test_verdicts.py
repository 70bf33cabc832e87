from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memorybench.core.errors import Unreadable
from memorybench.judging.verdicts import read_verdict
from tests.judging.rules import Labelled, corpus, ours, table

DOCS = Path(__file__).parents[2] / "docs" / "judging.md"


def _id(reply: Labelled) -> str:
    return f"{reply.kind}: {reply.reply[:30]!r}"


def test_the_corpus_is_large_enough_and_holds_every_kind_of_verdict() -> None:
    labels = Counter(reply.label for reply in corpus())
    assert sum(labels.values()) >= 220
    assert set(labels) == {"yes", "no", "unreadable"}
    assert min(labels.values()) >= 60


@pytest.mark.parametrize("reply", corpus(), ids=_id)
def test_no_reply_is_read_as_what_a_careful_person_would_not_read(reply: Labelled) -> None:
    assert ours(reply) in (reply.label, "unreadable")


def test_few_decided_replies_are_left_unread() -> None:
    """The corpus is made of hard ones; those that a judge told to say one word gives are all read."""
    decided = [reply for reply in corpus() if reply.label != "unreadable"]
    unread = [reply for reply in decided if ours(reply) == "unreadable"]
    assert len(unread) / len(decided) <= 0.15
    plain = {"bare word", "punctuation", "markdown", "quotes", "whitespace", "JSON", "JSON in a fence", "labelled"}
    assert not [reply for reply in unread if reply.kind in plain]


# found after the parser stood, by looking for what would fool it
@pytest.mark.parametrize(
    "reply",
    [
        "No, nothing wrong here.",
        "True, but the year differs",
        "Correct, but incomplete.",
        "Yes, except for the year.",
        "Yes, with reservations.",
        "No. 5",
        "No. 12 Main Street",
        "Yes: 0.2",
        "Incorrect: false",
        "Wrong: no",
        "~~Yes~~",
        "[ ] yes\n[x] no",
        "The answer is no longer valid.",
        "Response:\nyes",
        "No. I agree with the response.",
        "So, yes, the response fails",
        "Is the response incorrect\nno",
        "No comment.",
        "<response>yes</response>",
    ],
)
def test_what_might_fool_a_reader_of_words_is_not_read(reply: str) -> None:
    with pytest.raises(Unreadable):
        read_verdict(reply)


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("Yes because both say Rome", True),
        ("No because it names Porto", False),
        ("Verdict:\nyes", True),
        ("Hmm, blue or green? Yes, blue.</think>\nNo", False),
        ("correct: no\nreason: it names Porto", False),
    ],
)
def test_other_ways_to_say_it_are_read(reply: str, verdict: bool) -> None:
    assert read_verdict(reply) is verdict


@pytest.mark.parametrize("finish", ["length", "filter", "tools"])
def test_a_reply_that_did_not_end_by_itself_decides_nothing(finish: str) -> None:
    with pytest.raises(Unreadable):
        read_verdict("yes", finish)


def test_the_complaint_shows_the_reply_short_and_cleaned() -> None:
    with pytest.raises(Unreadable) as caught:
        read_verdict("\x1b[31mperhaps\x1b[0m\n" + "x" * 10_000)
    message = str(caught.value)
    assert "perhaps" in message
    assert "\x1b" not in message
    assert "\n" not in message
    assert len(message) < 120


@example("", "yes", "\x9d", "no", "\x07")  # what a terminal takes for one title
@given(st.text(), st.sampled_from(["yes", "no"]), st.text(), st.sampled_from(["yes", "no"]), st.text())
def test_two_different_verdict_lines_are_never_one_verdict(
    before: str, first: str, between: str, second: str, after: str
) -> None:
    if first == second:
        return
    try:
        read_verdict("\n".join((before, first + ".", between, second + ".", after)))
    except Unreadable:
        return
    # only what stands behind the end of a thought may count alone
    assert "</think" in before + between + after or "</reason" in before + between + after


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(Unreadable):
        assert read_verdict(text) in (True, False)


def test_long_replies_are_read_in_one_pass() -> None:
    """Should a pattern go over it again and again, this test never ends."""
    gap = "yes" + " " * 60_000 + "!"
    remark = '{"verdict": "yes", "reason": "%s?"}' % (" " * 60_000)
    parts = ("no\n", "\n", ". ", "the answer is ", "is very ", "<think>", "</think>", "```", "<b>", "yes (")
    for reply in (gap + "?", remark, *(part * (60_000 // len(part)) for part in parts)):
        with pytest.raises(Unreadable):
            read_verdict(reply)


def test_the_table_in_the_docs_is_that_of_the_corpus() -> None:
    """`python -m tests.judging.rules` prints it."""
    assert table() in DOCS.read_text(encoding="utf-8")
