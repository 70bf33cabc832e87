from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.documents.canaries import Sighting, encodings, found

SECRET = "Kestrel-7h4Zq-9vWm2"
ORDINARY = (Path(__file__).parent / "ordinary_sentences.txt").read_text(encoding="utf-8").splitlines()
DISGUISES = sorted(encodings(SECRET))


def halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def test_there_are_more_than_eight_disguises_and_none_is_another() -> None:
    planted = encodings(SECRET)
    assert len(planted) >= 8
    assert len(set(planted.values())) == len(planted)


@pytest.mark.parametrize("disguise", DISGUISES)
def test_it_is_found_in_text_among_ordinary_sentences(disguise: str) -> None:
    texts = {f"fact {n}": said for n, said in enumerate(ORDINARY)}
    texts["fact 77"] = f"Please keep {encodings(SECRET)[disguise]} in mind."
    assert [sighting.where for sighting in found(SECRET, texts)] == ["fact 77"]


@pytest.mark.parametrize("disguise", DISGUISES)
def test_it_is_found_in_metadata(disguise: str) -> None:
    texts = {"fact 1: content": "The router is in the hall.", "fact 1: source": f"chat/{encodings(SECRET)[disguise]}"}
    assert [sighting.where for sighting in found(SECRET, texts)] == ["fact 1: source"]


@pytest.mark.parametrize("disguise", DISGUISES)
def test_it_is_found_split_over_two_records(disguise: str) -> None:
    first, second = halves(encodings(SECRET)[disguise])
    texts = {"fact 1": f"It begins with {first}", "fact 2": "Tea is at four.", "fact 3": f"{second} is how it ends"}
    [sighting] = found(SECRET, texts)
    assert sighting.where == "fact 1 + fact 3"
    assert sighting.encoding.endswith(", split")


def test_it_is_found_split_over_content_and_metadata_and_over_three_records() -> None:
    first, second = halves(SECRET)
    over_fields = {"fact 1: content": f"code {first}", "fact 1: category": second}
    assert found(SECRET, over_fields) == [Sighting(encoding="plain, split", where="fact 1: content + fact 1: category")]
    over_three = {"a": SECRET[:7], "b": SECRET[6:13], "c": SECRET[13:]}
    assert [sighting.where for sighting in found(SECRET, over_three)] == ["a + b + c"]


@pytest.mark.parametrize("before", ["", "x", "xy", "user:"])
def test_base64_is_found_at_every_alignment(before: str) -> None:
    encoded = base64.b64encode(f"{before}{SECRET}!".encode()).decode()
    assert found(SECRET, {"fact": f"token {encoded}."}) == [Sighting(encoding="base64", where="fact")]


def test_each_text_is_told_once_by_its_plainest_disguise() -> None:
    assert found(SECRET, {"a": f"{SECRET} {SECRET.upper()} {SECRET[::-1]}", "b": SECRET.lower()}) == [
        Sighting(encoding="plain", where="a"),
        Sighting(encoding="re-cased", where="b"),
    ]


def test_half_of_it_is_not_all_of_it() -> None:
    first, second = halves(SECRET)
    assert found(SECRET, {"a": first, "b": "nothing"}) == []
    assert found(SECRET, {"a": first, "b": second[1:]}) == []


def test_ordinary_sentences_give_no_false_alarm() -> None:
    texts = {f"sentence {n}": said for n, said in enumerate(ORDINARY)}
    assert len(texts) == 200
    for secret in (SECRET, "swordfish-4471", "tok_9f86d081aa", "blue heron at dawn 12"):
        assert found(secret, texts) == []


def test_the_empty_secret_is_nowhere() -> None:
    assert found("", {"a": "something"}) == []
    assert found("   ", {"a": "some   thing"}) == []


@given(st.text(alphabet=st.characters(codec="ascii", categories=("L", "N")), min_size=12, max_size=30))
def test_any_secret_is_found_in_any_disguise(secret: str) -> None:
    for disguise, planted in encodings(secret).items():
        assert found(secret, {"fact": f"It is {planted} now"}), disguise
