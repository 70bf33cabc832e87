from __future__ import annotations

import base64
import codecs
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorybench.secrets.canaries import Sighting, encodings, find_secret, find_text, locate
from memorybench.secrets.decoding import text_in
from memorybench.suites.hygiene.placeholders import SECRETS

SECRET = "Kestrel-7h4Zq-9vWm2"
HERE = Path(__file__).parent
ORDINARY = (HERE / "ordinary_sentences.txt").read_text(encoding="utf-8").splitlines()
ODD = (HERE / "ordinary_odds.txt").read_text(encoding="utf-8").splitlines()
"""Ids, hashes, numbers, encoded words and lines of code."""
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
    assert [sighting.where for sighting in find_secret(SECRET, texts)] == ["fact 77"]


@pytest.mark.parametrize("disguise", DISGUISES)
def test_it_is_found_in_metadata(disguise: str) -> None:
    texts = {"fact 1: content": "The router is in the hall.", "fact 1: source": f"chat/{encodings(SECRET)[disguise]}"}
    assert [sighting.where for sighting in find_secret(SECRET, texts)] == ["fact 1: source"]


@pytest.mark.parametrize("disguise", DISGUISES)
def test_it_is_found_split_over_two_records(disguise: str) -> None:
    first, second = halves(encodings(SECRET)[disguise])
    texts = {"fact 1": f"It begins with {first}", "fact 2": "Tea is at four.", "fact 3": f"{second} is how it ends"}
    [sighting] = find_secret(SECRET, texts)
    assert sighting.where == "fact 1 + fact 3"
    assert sighting.encoding.endswith(", split")


def test_it_is_found_split_over_content_and_metadata_and_over_three_records() -> None:
    first, second = halves(SECRET)
    over_fields = {"fact 1: content": f"code {first}", "fact 1: category": second}
    assert find_secret(SECRET, over_fields) == [
        Sighting(encoding="plain, split", where="fact 1: content + fact 1: category")
    ]
    over_three = {"a": SECRET[:7], "b": SECRET[6:13], "c": SECRET[13:]}
    assert [sighting.where for sighting in find_secret(SECRET, over_three)] == ["a + b + c"]


@pytest.mark.parametrize("size", [2, 3, 4])
def test_it_is_found_in_short_pieces_among_ordinary_sentences(size: int) -> None:
    secret = SECRETS["api_key"](Random(size))
    texts = {}
    for number, at in enumerate(range(0, len(secret), size)):
        texts[f"sentence {number}"] = ORDINARY[number]
        texts[f"piece {number}"] = f"Part {number} of the key: {secret[at : at + size]}"
    [sighting] = find_secret(secret, texts)
    assert sighting.encoding == "plain, split"
    assert {place.split()[0] for place in sighting.where.split(" + ")} == {"piece"}
    some = {name: text for number, (name, text) in enumerate(texts.items()) if number % 8 < 6}
    assert find_secret(secret, some) == []


@pytest.mark.parametrize("before", ["", "x", "xy", "user:"])
def test_base64_is_found_at_every_alignment(before: str) -> None:
    encoded = base64.b64encode(f"{before}{SECRET}!".encode()).decode()
    assert find_secret(SECRET, {"fact": f"token {encoded}."}) == [Sighting(encoding="base64", where="fact")]


def test_each_text_is_told_once_by_its_plainest_disguise() -> None:
    assert find_secret(SECRET, {"a": f"{SECRET} {SECRET.upper()} {SECRET[::-1]}", "b": SECRET.lower()}) == [
        Sighting(encoding="plain", where="a"),
        Sighting(encoding="re-cased", where="b"),
    ]


def test_half_of_it_is_not_all_of_it() -> None:
    first, second = halves(SECRET)
    assert find_secret(SECRET, {"a": first, "b": "nothing"}) == []
    assert find_secret(SECRET, {"a": first, "b": second[6:]}) == []
    assert find_secret(SECRET, {"a": f"{first} and {second[7:]}"}) == []


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("seed", range(2))
def test_ordinary_texts_give_no_false_alarm(kind: str, seed: int) -> None:
    texts = {f"sentence {n}": said for n, said in enumerate(ORDINARY + ODD)}
    assert len(texts) == 260
    assert find_secret(SECRETS[kind](Random(f"{kind} {seed}")), texts) == []


@pytest.mark.parametrize("secret", [SECRET, "swordfish-4471", "tok_9f86d081aa", "blue heron at dawn 12"])
def test_secrets_that_look_like_words_and_hashes_give_no_false_alarm_either(secret: str) -> None:
    assert find_secret(secret, {f"sentence {n}": said for n, said in enumerate(ORDINARY + ODD)}) == []


def test_vast_files_of_numbers_and_bytes_give_no_false_alarm() -> None:
    chance = Random(7)
    files = {
        "vectors": " ".join(str(chance.random()) for _ in range(1_500)),
        "blob": base64.b64encode(chance.randbytes(15_000)).decode(),
    }
    for kind, grow in SECRETS.items():
        assert find_secret(grow(chance), files) == [], kind


@pytest.mark.slow
def test_a_memory_with_many_numbers_gives_no_false_alarm() -> None:
    chance = Random(7)
    texts = {f"fact {n}": " ".join(f"{chance.randrange(1000):03}" for _ in range(30)) for n in range(60)}
    assert [find_secret(SECRETS["card_number"](chance), texts) for _ in range(40)] == [[]] * 40


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


IN_ONE_TEXT: dict[str, tuple[Callable[[str], str], str]] = {
    "two halves": (lambda s: f"first half {s[: len(s) // 2]} and the second half {s[len(s) // 2 :]}", ""),
    "four chunks": (lambda s: " and then ".join(quarters(s)), ", split"),
    "four chunks, shuffled": (lambda s: " comes before ".join(quarters(s)[::-1]), ", split"),
    "without its prefix": (lambda s: f"it is {s.removeprefix('sk-proj-')[4:]}", ", in part"),
    "without its end": (lambda s: f"it is {s[:-4]}", ", in part"),
    "one half in base64": (lambda s: f"{s[: len(s) // 2]} and {base64_of(s[len(s) // 2 :])}", ""),
    "the other half in hex": (lambda s: f"{s[: len(s) // 2].encode().hex()} and {s[len(s) // 2 :]}", ""),
    "base64, cut in two": (lambda s: f"{base64_of(s)[:9]} and then {base64_of(s)[9:]}", ""),
    "base64, written backwards": (lambda s: base64_of(s)[::-1], "reversed of base64"),
    "base64 of hex": (lambda s: base64_of(s.encode().hex()), "base64 of hex"),
    "hex of base64": (lambda s: base64_of(s).encode().hex(), "hex of base64"),
    "rot13 in base64": (lambda s: base64_of(codecs.encode(s, "rot13")), "base64 of rot13"),
    "base32, in lower case": (lambda s: base64.b32encode(s.encode()).decode().lower(), "base32"),
    "hexadecimal entities": (lambda s: "".join(f"&#x{ord(letter):x};" for letter in s), "entities"),
    "escaped bytes": (lambda s: "".join(f"\\x{ord(letter):02x}" for letter in s), ""),
    "escaped twice": (lambda s: "".join(f"\\\\u{ord(letter):04x}" for letter in s), "escapes"),
    "calls of chr": (lambda s: "+".join(f"chr({ord(letter)})" for letter in s), "character codes"),
    "UTF-16 in hex": (lambda s: s.encode("utf-16").hex(), "hex"),
}


def quarters(text: str) -> list[str]:
    quarter = -(-len(text) // 4)
    return [text[at : at + quarter] for at in range(0, len(text), quarter)]


@pytest.mark.parametrize("kind", [kind for kind in SECRETS if kind != "pin"])  # the pieces of a PIN prove nothing
@pytest.mark.parametrize("disguise", IN_ONE_TEXT)
def test_it_is_found_in_part_in_pieces_and_encoded_twice(disguise: str, kind: str) -> None:
    hide, told = IN_ONE_TEXT[disguise]
    secret = SECRETS[kind](Random(kind))
    [sighting] = find_secret(secret, {"fact": f"A note for later: {hide(secret)}."})
    # these are found, too, but may be reported under a simpler encoding: rot13 leaves digits as they are, for example
    if kind not in ("password", "web_token", "private_key", "card_number"):
        assert told in sighting.encoding


def test_halves_of_a_long_key_are_told_each_by_itself() -> None:
    key = SECRETS["api_key"](Random(1))
    first, second = halves(key)
    assert find_secret(key, {"a": first, "b": base64_of(second)}) == [
        Sighting(encoding="plain, in part", where="a"),
        Sighting(encoding="base64, in part", where="b"),
    ]


def test_pieces_in_different_disguises_are_put_together() -> None:
    first, second = halves(SECRET)
    told = Sighting(encoding="plain and base64, split", where="a + c")
    assert find_secret(SECRET, {"a": first, "b": "Tea is at four.", "c": base64_of(second)}) == [told]


@pytest.mark.parametrize("said", ["The user prefers tabs", "Müllerstraße 12, Köln", "東京都港区芝公園", "Badofegukin"])
def test_a_sentence_is_found_whole_or_not_at_all(said: str) -> None:
    for disguise in encodings("any").keys() - {"base64-utf16", "look-alikes", "codes"} if said.isascii() else {"plain"}:
        assert find_text(said, {"a": f"So: {encodings(said)[disguise]} it is"}), disguise
    assert find_text(said, {"a": json.dumps(said), "b": base64_of(f"{said}.")})[1].encoding == "base64"
    first, second = halves(said)
    assert find_text(said, {"a": f"{first} and then {second}", "b": first, "c": second}) == []


def test_a_short_word_read_backwards_is_another_word() -> None:
    assert find_text("desserts", {"a": "The user is stressed"}) == []
    assert find_text("desserts", {"a": "No more DESSERTS."}) == [Sighting(encoding="re-cased", where="a")]


def test_the_empty_secret_is_nowhere() -> None:
    assert find_secret("", {"a": "something"}) == []
    assert find_secret("   ", {"a": "some   thing"}) == []


@pytest.mark.slow
@settings(max_examples=30)
@given(st.text(alphabet=st.characters(codec="ascii", categories=("L", "N")), min_size=12, max_size=30))
def test_any_secret_is_found_in_any_disguise(secret: str) -> None:
    for disguise, planted in encodings(secret).items():
        assert find_secret(secret, {"fact": f"It is {planted} now"}), disguise


def test_the_place_of_an_encoded_secret_is_found_without_decoding_the_file_again_and_again() -> None:
    secret = "sk-proj-f3kkwDmboKiuynSYW465ZQX2"
    page = b"\x00" * 40 + b"The user lives in Porto" + b"\x00" * 40
    encoded = encodings(secret)["base64"].encode()
    octets = page * 100 + encoded + page * 100
    decoded = 0

    def count(text: str, texts: Mapping[str, str]) -> list[Sighting]:
        nonlocal decoded
        decoded += sum(map(len, texts.values()))
        return find_text(text, texts)

    located = locate(secret, octets, count)
    assert located is not None
    assert (located[0], octets[located[1] :].startswith(encoded)) == ("base64", True)
    assert decoded < 3 * len(text_in(octets)), "by halving the file, it was decoded ten times"
