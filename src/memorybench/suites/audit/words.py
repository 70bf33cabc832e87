"""Text as the gates see it: words by their stems, numbers and dates by their worth.

Two texts that say the same word in another inflection, spelling of a number or form of a date share a key. The keys
err on the side of sameness, for a gate that drops a good probe costs one probe, and one that lets a leak through
costs the score.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from memorybench.text.porter import stem
from memorybench.text.stop_words import AUDIT_STOP_WORDS as STOP_WORDS

from .lexicon import listed
from .verbs import base_form

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT_NAMES = {name[:3]: name for name in (*MONTHS, *WEEKDAYS) if name not in ("may", "saturday", "sunday")}
_SHORT_NAMES["sept"] = "september"

_UNITS = listed("""
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
""")
_TENS = listed("twenty thirty forty fifty sixty seventy eighty ninety")
_FROM_THIRD = listed("third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth")
NUMBERS = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: 20 + 10 * place for place, word in enumerate(_TENS)},
    **{word: value for value, word in enumerate(_FROM_THIRD, 3)},
    "dozen": 12,
    "once": 1,
    "twice": 2,
}
_MULTIPLES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}

_ACCENTS = re.compile("[\u0300-\u036f]")
_TOKEN = re.compile(
    r"(?P<iso>\d{4}-\d{2}-\d{2})(?:t[\d:.]+z?)?"
    r"|(?P<number>\d+(?:[.,:]\d+)*)(?P<suffix>st|nd|rd|th|k|am|pm)?(?![^\W\d_])"
    r"|(?P<digits>\d+)|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)*)"
)


def plain(text: str) -> str:
    """One form of each letter and quote, lower case."""
    return unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'").casefold()


def unaccented(text: str) -> str:
    """Zoë as Zoe: many write the one and mean the other."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))


@lru_cache(maxsize=65536)
def words(text: str) -> tuple[str, ...]:
    """Every word, in order: possessives and contractions undone, numbers as digits, month names in full."""
    found: list[str] = []
    for match in _TOKEN.finditer(unaccented(plain(text))):
        if match["iso"]:
            year, month, day = match["iso"].split("-")
            found += [str(int(day)), MONTHS[int(month) - 1], year] if 1 <= int(month) <= 12 else [match["iso"]]
        elif match["number"] or match["digits"]:
            found += _digits(match["number"] or match["digits"], match["suffix"] or "")
        else:
            found += _undone(match["word"])
    return tuple(_numbers_folded(found))


def _digits(number: str, suffix: str) -> list[str]:
    # a comma between thousands is no point; "7:00" and "7" are one hour
    number = re.sub(r",(?=\d{3}(?:\D|$))", "", number)
    number = number.removesuffix(":00").lstrip("0") or "0"
    if suffix == "k":
        return [f"{float(number) * 1000:.0f}"] if number.replace(".", "").isdigit() else [number]
    return [number, suffix] if suffix in ("am", "pm") else [number]


def _undone(word: str) -> list[str]:
    if word.endswith("n't"):
        return [{"wo": "will", "ca": "can", "sha": "shall"}.get(word[:-3], word[:-3]), "not"]
    head, _, tail = word.partition("'")
    if tail in ("s", "m", "re", "ve", "ll", "d", "t"):
        return [_SHORT_NAMES.get(head, head)]
    return [_SHORT_NAMES.get(word, word.replace("'", ""))]


def _numbers_folded(found: Sequence[str]) -> Iterable[str]:
    """twenty one → 21, three hundred → 300; a number word alone by its digits."""
    place = 0
    while place < len(found):
        word = found[place]
        value = NUMBERS.get(word)
        if value is None:
            yield word
            place += 1
            continue
        place += 1
        if value in range(20, 100, 10) and place < len(found) and NUMBERS.get(found[place], 0) in range(1, 10):
            value += NUMBERS[found[place]]
            place += 1
        while place < len(found) and found[place] in _MULTIPLES:
            value *= _MULTIPLES[found[place]]
            place += 1
        yield str(value)


@lru_cache(maxsize=65536)
def key(word: str) -> str:
    """Inflections of one word share it: went, goes and going; nurse and nursing."""
    return stem(base_form(word))


def keys(text: str) -> tuple[str, ...]:
    return tuple(key(word) for word in words(text))


@lru_cache(maxsize=65536)
def content(text: str) -> frozenset[str]:
    """Keys of the words that mean something."""
    return frozenset(key(word) for word in words(text) if word not in STOP_WORDS)


def akin(one: str, other: str) -> bool:
    """Whether two keys may be one word in other forms, or one stands in the other: teach, teacher; Italy, Italian."""
    if one == other:
        return True
    shorter, longer = sorted((one, other), key=len)
    if shorter.isdigit() or longer.isdigit():
        return False
    spare = len(longer) - len(shorter)
    if longer.startswith(shorter):
        return (len(shorter) >= 4 and spare <= 3) or (len(shorter) >= 5 and spare <= 5)
    return len(shorter) >= 5 and shorter in longer


_SAME_NUMBER = {"first": "1", "single": "1", "second": "2", "double": "2", "pair": "2", "couple": "2", "both": "2",
                "triple": "3", "half": "0.5"}  # fmt: skip


def _surface(text: str) -> frozenset[str]:
    """Words that mean something as they are written, without the s of a plural; numbers by their worth."""
    meant = (_SAME_NUMBER.get(word, word) for word in words(text) if word not in STOP_WORDS)
    return frozenset(
        re.sub(r"(?<=[xzso])es$|(?<=[cs]h)es$|(?<=[^su])s$", "", word) if len(word) > 4 else word for word in meant
    )


def _hints(word: str, other: str) -> bool:
    """Whether two words look alike to a reader: Canada, Canadian; notes, notebook; walk, sidewalk."""
    if word == other:
        return True
    if not (word.isalpha() and other.isalpha()):
        return False
    shorter, longer = sorted((word, other), key=len)
    return len(shorter) >= 4 and (word[:4] == other[:4] or shorter in longer)


def hints(text: str, other: str) -> bool:
    """Whether a content word of `text` can be guessed from one in `other` by its letters."""
    asked = _surface(other)
    return any(_hints(word, one) for word in _surface(text) for one in asked)


def shared(text: str, other: str) -> frozenset[str]:
    """Content keys of `text` that stand in `other`, in any form."""
    theirs = set(keys(other))
    return frozenset(ours for ours in content(text) if ours in theirs or any(akin(ours, one) for one in theirs))
