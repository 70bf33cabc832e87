"""Credentials by kind: keys of providers, codes, and password sentences in five languages, beside near misses."""

from __future__ import annotations

import base64
import codecs
import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from memorybench.secrets.credentials import credential_in, find_credentials
from memorybench.secrets.decoding import decodings

HERE = Path(__file__).parent
BY_KIND: dict[str, list[str]] = {}
for line in (HERE / "credential_kinds.txt").read_text(encoding="utf-8").splitlines():
    group, _, sentence = line.partition("\t")
    BY_KIND.setdefault(group, []).append(sentence.replace("·", "").replace("⏎", "\n"))
NEAR_MISSES = (HERE / "near_misses.txt").read_text(encoding="utf-8").replace("·", "").splitlines()
KEY = "AKIA" + "Q7ZP2M4XK9RT1WBN"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _base58(octets: bytes) -> str:
    number, letters = int.from_bytes(octets), ""
    while number:
        number, digit = divmod(number, 58)
        letters = BASE58[digit] + letters
    return letters


def _rot47(text: str) -> str:
    return "".join(chr(33 + (ord(letter) - 33 + 47) % 94) if "!" <= letter <= "~" else letter for letter in text)


ENCODERS: dict[str, Callable[[str], str]] = {
    "base64 of gzip": lambda text: base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode(),
    "base64 of zlib": lambda text: base64.b64encode(zlib.compress(text.encode())).decode(),
    "hex of zlib": lambda text: zlib.compress(text.encode()).hex(),
    "base58": lambda text: _base58(text.encode()),
    "base64 three times": lambda text: base64.b64encode(base64.b64encode(base64.b64encode(text.encode()))).decode(),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "rot47": _rot47,
    "octal": lambda text: " ".join(f"{octet:03o}" for octet in text.encode()),
    "octal escapes": lambda text: "".join(f"\\{octet:03o}" for octet in text.encode()),
    "binary": lambda text: " ".join(f"{octet:08b}" for octet in text.encode()),
    "binary without blanks": lambda text: "".join(f"{octet:08b}" for octet in text.encode()),
}


@pytest.mark.parametrize("group", sorted(BY_KIND))
def test_credentials_of_a_kind_are_recognised(group: str) -> None:
    assert [text for text in BY_KIND[group] if credential_in(text) is None] == []


@pytest.mark.slow
def test_near_misses_give_no_alarm() -> None:
    assert {text: kind for text in NEAR_MISSES if (kind := credential_in(text)) is not None} == {}
    assert {text: found for text in NEAR_MISSES if (found := find_credentials(text))} == {}


@pytest.mark.parametrize("encoder", sorted(ENCODERS))
def test_an_encoded_key_or_password_sentence_is_recognised(encoder: str) -> None:
    assert credential_in(f"note {ENCODERS[encoder](KEY)} end") == "AWS access key"
    assert credential_in(ENCODERS[encoder]("my password is Larkspur!19")) == "password"


@pytest.mark.parametrize("encoder", sorted(ENCODERS))
def test_encoded_texts_are_decoded(encoder: str) -> None:
    text = "the sealed letter number 4711"
    assert any(text in decoding.text for decoding in decodings(ENCODERS[encoder](text)))


@pytest.mark.slow
def test_a_compressed_text_that_expands_without_end_is_cut() -> None:
    bomb = base64.b64encode(zlib.compress(b"A" * 50_000_000, 9)).decode()
    assert all(len(decoding.text) < 5_000_000 for decoding in decodings(bomb))


@pytest.mark.parametrize("position", [0, 250_000, 499_000])
@pytest.mark.parametrize(
    "secret", [KEY, "my password is Larkspur!19", base64.b64encode(f"the key is {KEY} for all".encode()).decode()]
)
def test_a_credential_is_found_anywhere_in_a_long_text(secret: str, position: int) -> None:
    prose = "The quick brown fox jumps over the lazy dog near the river.\n" * 8_500
    assert credential_in(f"{prose[:position]}\n{secret}\n{prose[position:]}") is not None


def test_find_credentials_returns_every_place() -> None:
    text = f"first {KEY}\nnothing here\npassword: Larkspur!19 and {base64.b64encode(KEY.encode()).decode()}\n"
    found = [
        (one.kind, text.count("\n", 0, one.start) + 1, text[one.start : one.end]) for one in find_credentials(text)
    ]
    assert ("AWS access key", 1, KEY) in found
    assert ("password", 3, "Larkspur!19") in found
    assert any(kind == "AWS access key" and line == 3 for kind, line, _ in found)
    assert find_credentials("nothing to see") == []


@pytest.mark.parametrize("rearrange", [ENCODERS["rot13"], _rot47, lambda text: text[::-1]])
def test_find_credentials_returns_keys_with_rearranged_letters(rearrange: Callable[[str], str]) -> None:
    token = rearrange(KEY)
    text = f"one line\nkept as {token} for later\n"
    [found] = find_credentials(text)
    assert (found.kind, text[found.start : found.end]) == ("AWS access key", token)


@pytest.mark.parametrize(
    "line",
    [
        "GET /back?to=mysql%3A%2F%2Fshop%3AM1nt%21Leaf7%40db.lan%2Forders 302",
        r"the password of the ftp account: printf '\120\151\156\145\056\107\162\157\166\145\071'",
    ],
)
def test_find_credentials_returns_lines_with_escapes(line: str) -> None:
    text = f"first line, 100%25 harmless\n{line}\nlast line"
    [found] = find_credentials(text)
    assert text[found.start : found.end] == line


def test_find_credentials_returns_values_of_a_text_that_says_it_is_in_rot13() -> None:
    text = f"one line\nin rot13, so that nobody reads it: {ENCODERS['rot13']('password: Moonlight-77')}\n"
    [found] = find_credentials(text)
    assert (found.kind, ENCODERS["rot13"](text[found.start : found.end])) == ("password", "Moonlight-77")
