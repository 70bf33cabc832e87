"""Detects credentials in a text by the format of known keys and by the words around them.

Planted secrets are found by canaries.py. This detector prefers misses to false alarms: it must not report
"the password policy".
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain

from .credential import Credential, Kind
from .credential_values import is_made_of_words, is_strong
from .credential_words import find_values
from .decoding import REARRANGEMENTS, ROTATIONS, decode_long, decodings, may_be_encoded, replace_escapes
from .provider_keys import find_keys

_SHORT = 4_000
"""In characters. A longer text is not decoded as a whole, only its parts that look encoded."""
_ENCODED_RUNS = (
    re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}+={0,2}(?:\n[A-Za-z0-9+/_-]{16,}={0,2})*"),
    re.compile(r"(?=[0-9A-Fa-f&%=\\])(?:(?:0x|\\+[xu]?|%|=|&#x?)?[0-9A-Fa-f]{2,8};?[ ,:]{0,2}){8,}"),
    re.compile(r"(?:%[0-9A-Fa-f]{2}[\w.-]?){4,}"),
)
"""Patterns of text that looks encoded. Separate patterns are faster than one combined pattern."""
_BATCH = 4_000
"""The most characters that are decoded together. A longer encoded part is decoded only from its first character."""

_USER_AND_PASSWORD = re.compile(r"^[\w.@+-]{2,64}:(?P<value>[\x21-\x7e]{8,64})$", re.M)
"""A line `user:password`, as encoded in the header of HTTP basic authentication."""
_SPELLED_OUT = re.compile(r"(?:(?<=\s)|^)(?:[\w+/=-]{1,4}[ \t]){5,}[\w+/=-]{1,4}(?=\s|$|[.,;])")
_LONGEST_SPELLED_OUT = 64
_TOKEN = re.compile(r"(?<!\S)(?=\S*[^A-Za-z\s.,;:/-])\S{16,200}(?!\S)")
"""A token that may be a rotated or reversed key: longer than ordinary words, and not only letters."""
_DIGEST = re.compile(r"(?:[\w-]{0,12}[=:])?[0-9a-f]{32,128}", re.I)
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|\\[0-3xu]")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")


_ROT13 = re.compile(r"\brot[ _-]?13\b", re.I)
_AROUND_ROT13 = 300
_LONG_NAME = re.compile(
    r"passw|passphr|kennwort|mot ?de ?passe|contrase|senha|palavra|secret|token|\bkey\b|\bpin\b", re.I
)
"""Names of credentials that do not occur by chance when the letters of ordinary text are rotated."""
_OF_LETTERS: tuple[Kind, ...] = ("connection string with a password", "bearer token")
"""Kinds of keys whose format has so few fixed characters that ordinary text matches it when its letters are rotated."""


def credential_in(text: str) -> Kind | None:
    """Return the kind of credential in the text, or None.

    Use it on what an agent wants to store and on what a store holds afterwards: facts, metadata, and the text of files
    (`decoding.text_in`). The time is linear in the length, about a second per megabyte, and no network or file is
    used; in asynchronous code call it with `asyncio.to_thread`, so that other calls go on.
    """
    text = _normalize(text)
    found = next(_plain(text), None)
    if found is not None:
        return found.kind
    if len(text) > _SHORT:
        return next((credential.kind for credential in _encoded(text)), None)
    return _in_encoded_text(text)


def find_credentials(text: str) -> list[Credential]:
    """Return the credentials in a text, plain or encoded, in the order of the text.

    Of those that overlap, only the first.
    """
    found = [*find_keys(text), *_encoded(text), *_rotated(text), *find_values(text), *_said_to_be_rotated(text)]
    found += _in_rewritten_lines(text, found)
    found.sort(key=lambda credential: (credential.start, -credential.end))
    apart: list[Credential] = []
    for credential in found:
        if not apart or credential.start >= apart[-1].end:
            apart.append(credential)
    return apart


def _in_rewritten_lines(text: str, found: Sequence[Credential]) -> Iterator[Credential]:
    """Yield a credential per line that contains one after Unicode normalization or after replacing escapes (`%3A`)."""
    if text.isascii() and not _ESCAPE.search(text):
        return
    for line in re.finditer(r"[^\n]+", text):
        start, end = line.span()
        written = [] if line[0].isascii() else [_normalize(line[0])]
        if not any(one.start < end and start < one.end for one in found) and _ESCAPE.search(line[0]):
            written += replace_escapes(line[0])
        for other in written:
            if other != line[0] and (credential := next(_plain(other), None)) is not None:
                yield Credential(credential.kind, start, end)
                break


def _normalize(text: str) -> str:
    return text if text.isascii() else _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def _plain(text: str) -> Iterator[Credential]:
    return chain(find_keys(text), find_values(text))


def _in_encoded_text(text: str) -> Kind | None:
    """Return the kind of credential in any decoding of a short text; None if there is none.

    In reversed text, and in text with changed case, only keys with a known format count.
    """
    decoded = []
    is_digest = _DIGEST.fullmatch(text) is not None
    for decoding in decodings(text):
        if is_digest and decoding.name.endswith("base85"):
            continue  # hex digits are base85, too, and in noise a short password sentence occurs by chance
        if not decoding.name.endswith(ROTATIONS):
            decoded.append(decoding.text)
        if decoding.name.endswith("base64"):
            pairs = _USER_AND_PASSWORD.finditer(decoding.text)
            if any(is_strong(pair["value"]) for pair in pairs):
                return "password"
        if decoding.name:
            is_rotated = decoding.name.endswith(ROTATIONS)
            has_words = not is_rotated or _LONG_NAME.search(decoding.text)
            kinds = (one.kind for one in (_plain(decoding.text) if has_words else find_keys(decoding.text)))
            kind = next((kind for kind in kinds if not is_rotated or kind not in _OF_LETTERS), None)
            if kind is not None:
                return kind
    rearranged = chain(_spelled_out(text), *((one[::-1], one.swapcase()) for one in decoded))
    return next((key.kind for one in rearranged for key in find_keys(one)), None)


def _encoded(text: str) -> Iterator[Credential]:
    """Yield the credentials in encoded parts of a text.

    Several parts are decoded together, and again one by one if they contain a credential.
    """
    batch: list[re.Match[str]] = []
    for run in _encoded_runs(text):
        if len(run[0]) > _BATCH:
            kind = next((one.kind for one in _plain(decode_long(run[0]))), None)
            if kind is not None:
                yield Credential(kind, run.start(), run.end())
        elif not is_made_of_words(run[0].rstrip()) and may_be_encoded(run[0]):
            batch.append(run)
            if run.end() - batch[0].start() > _BATCH:
                yield from _in_batch(batch)
                batch = []
    yield from _in_batch(batch)


def _rotated(text: str) -> Iterator[Credential]:
    """Yield tokens that are keys when their letters are rotated or reversed."""
    tokens = list(_TOKEN.finditer(text))
    for rearrange in REARRANGEMENTS:
        if next(find_keys(rearrange(" ".join(token[0] for token in tokens))), None) is None:
            continue
        for token in tokens:
            key = next((key for key in find_keys(rearrange(token[0])) if key.kind not in _OF_LETTERS), None)
            if key is not None:
                yield Credential(key.kind, token.start(), token.end())


def _said_to_be_rotated(text: str) -> Iterator[Credential]:
    """Yield the credentials that are encoded in rot13 near the word "rot13"."""
    end = 0
    for name in _ROT13.finditer(text):
        start = max(name.start() - _AROUND_ROT13, end)
        end = name.end() + _AROUND_ROT13
        for credential in _plain(codecs.encode(text[start:end], "rot13")):
            yield Credential(credential.kind, start + credential.start, start + credential.end)


def _encoded_runs(text: str) -> Iterator[re.Match[str]]:
    """Yield the parts of the text that look encoded, in order and without overlaps."""
    end = 0
    for run in sorted(
        (run for pattern in _ENCODED_RUNS for run in pattern.finditer(text)), key=lambda run: (run.start(), -run.end())
    ):
        if run.start() >= end:
            end = run.end()
            yield run


def _in_batch(batch: list[re.Match[str]]) -> Iterator[Credential]:
    if not batch or _in_encoded_text("\n".join(run[0] for run in batch)) is None:
        return
    for run in batch:
        kind = _in_encoded_text(run[0])
        if kind is not None:
            yield Credential(kind, run.start(), run.end())


@lru_cache(maxsize=2_000)
def cached_credential_in(text: str) -> Kind | None:
    """Return the same as `credential_in`, cached, for callers that check the same texts repeatedly."""
    return credential_in(text)


def _spelled_out(text: str) -> Iterator[str]:
    """Yield sequences of short tokens joined without spaces, such as a key that is spelled letter by letter."""
    for run in _SPELLED_OUT.findall(text):
        pieces = run.split()
        # ordinary short words may precede the key
        yield from ("".join(pieces[start : start + _LONGEST_SPELLED_OUT]) for start in range(len(pieces)))
