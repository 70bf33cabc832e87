"""What is spared because a text lacks the signs for it would have found nothing."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.judging import facts_quantities as quantities
from memorybench.judging import facts_reading as reading
from memorybench.judging.facts_signs import Signs, rewritten, rule, rules, signs_of
from memorybench.text.normalisation import plain

WORDS = """
    won't can't cannot don't Tom's unable to not want wants wanted no longer any more anymore only yet sure decided
    undecided up than less fewer dislikes disliking solely e-mail non-smoker per a an each every hour hours day week wk
    month mo year yr annual annually annum but while and nor rather instead of without never avoids refused rejecting
    declined quit lacks maybe could if may May considering exploring think about open twice dozen one half hundred
    thousand million 5 00 twenty-five seventeen 3 March march 3rd of, 2026 2026-03-04 03.04.2026 3/4/2026 7pm 7 a.m.
    12:30 $5k 30% sept Sept. - ; ( ) / ' İf wıthout refuſed \N{KELVIN SIGN}ilo x_no NOT
"""
TEXTS = st.lists(st.sampled_from(WORDS.split()), max_size=8).flatmap(
    lambda words: st.sampled_from((" ", "  ", "\n", "-", "", ", ")).map(lambda blank: blank.join(words))
)


def patterns() -> Iterator[tuple[Signs, re.Pattern[str]]]:
    for one in (*reading._REWRITTEN.each, reading._DENIALS, reading._DOUBTS, *quantities.FIXED.each):
        yield one.needs, one.said
    yield reading._CLAUSE_SIGNS, reading._CLAUSES
    yield reading._SUBJECTS, reading._SUBJECT
    yield quantities._SPELLED_IN, quantities._SPELLED
    for needs, _, dates in quantities._DATED:
        yield from ((needs, pattern) for pattern in dates)


PATTERNS = tuple(patterns())


def missed(text: str) -> list[str]:
    """Patterns that match though nothing in the text calls for them."""
    signs = signs_of(text)
    return [pattern.pattern for needs, pattern in PATTERNS if needs.isdisjoint(signs) and pattern.search(text)]


@pytest.mark.parametrize("blank", [" ", "-"])
def test_no_pattern_matches_two_words_without_their_signs(blank: str) -> None:
    words = WORDS.split()
    assert not [text for one in words for other in words if missed(text := f"{one}{blank}{other}")]


@given(TEXTS)
def test_no_pattern_matches_a_text_without_its_signs(text: str) -> None:
    assert not missed(text)
    assert not missed(plain(text))


@given(TEXTS)
def test_a_text_without_digits_or_months_has_no_quantities(text: str) -> None:
    if not re.search(r"\d", text) and quantities.MONTH_SIGNS.isdisjoint(signs_of(text)):
        dates = [pattern for _, _, patterns in quantities._DATED for pattern in patterns]
        for pattern in (*dates, quantities._HALF_DAY_CLOCK, quantities._CLOCK, quantities._AMOUNT):
            assert not pattern.search(text)


@given(TEXTS)
def test_a_glance_misses_no_stem_that_a_reading_finds(text: str) -> None:
    glance = reading.glance_of(text)
    if glance is not None:
        assert {stem for stem in reading.reading_of(text).stems if stem.isalpha()} <= glance


@pytest.mark.parametrize("text", ["Two kilos of flour", "Plays the cello (since 1998)", "tea; coffee, milk"])
def test_a_plain_text_is_taken_in_at_a_glance(text: str) -> None:
    assert reading.glance_of(text) is not None


@pytest.mark.parametrize("text", ["I don't", "e-mail", "a 3D printer", "half past ten", "naïve", "no tea"])
def test_a_text_that_must_be_rewritten_is_not_taken_in_at_a_glance(text: str) -> None:
    assert reading.glance_of(text) is None


@pytest.mark.parametrize("text", ["I don't", "won't", "DON'T do that", "it's what I don't want"])
def test_a_rule_sees_what_the_rules_before_it_made(text: str) -> None:
    told, signs = rewritten(text, signs_of(text), reading._REWRITTEN)
    assert "not" in told
    assert signs == signs_of(told)


def test_rules_leave_a_text_alone_that_has_nothing_of_theirs() -> None:
    shouted = rules(rule("tea", r"\btea\b", "TEA"), rule("milk", r"\bmilk\b", "MILK"))
    assert rewritten("coffee with milk", signs_of("coffee with milk"), shouted)[0] == "coffee with MILK"
    assert rewritten("teapot", signs_of("teapot"), shouted)[0] == "teapot"


@pytest.mark.parametrize("mark", ["\U000f0000", "\U000f0001", "\U000ffffd", "\ue000", "\U00100000"])
@pytest.mark.parametrize(
    "text", ["Has{} 3 dogs", "Has 3 dogs {}", "{}", "Opens in March{}, never{} at 7pm", "Likes{} tea"]
)
def test_characters_for_private_use_are_read_as_if_they_were_not_there(text: str, mark: str) -> None:
    without = reading.reading_of(text.format("", ""))
    assert reading.reading_of(text.format(mark, mark)) == without
    assert reading.tokens_of(text.format(mark, mark)) == reading.tokens_of(text.format("", ""))
