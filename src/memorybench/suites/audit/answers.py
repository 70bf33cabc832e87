"""Compares answers by code: whether two are equal after normalisation, or one occurs in a text."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from memorybench.text.english_numbers import NUMBERS
from memorybench.text.languages import language_of
from memorybench.text.normalisation import plain, without_accents
from memorybench.text.stop_words import AUDIT_STOP_WORDS, STOP_WORDS_BY_LANGUAGE
from memorybench.text.words import space_ideographs, stem, unspaced_runs

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_NUMBER = re.compile(rf"\b(?:{'|'.join(sorted(NUMBERS, key=len, reverse=True)).replace(' ', '[- ]')})\b")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b")
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if name != "may" else name for name in MONTHS)
_DATES = (
    re.compile(rf"\b(?P<day>\d{{1,2}})(?: of)? (?P<month>{_MONTH})\b\.?(?:,? (?P<year>(?:19|20)\d\d)\b(?![.,]\d))?"),
    re.compile(rf"\b(?P<month>{_MONTH})\b\.? (?P<day>\d{{1,2}})\b(?:,? (?P<year>(?:19|20)\d\d)\b(?![.,]\d))?"),
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_ISO_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_TOKEN = re.compile(r"\d+(?:[.:]\d+)*|[^\W_]+(?:'[^\W_]+)*")
_ARTICLES = frozenset(("a", "an", "the"))
_ABSTENTIONS = frozenset((
    "i don't know", "i do not know", "don't know", "unknown", "not mentioned", "not stated", "not specified",
    "not known", "no information", "it was not mentioned", "it was never mentioned", "that was not mentioned",
    "that was never mentioned", "i have no information about that", "i don't have that information",
    "i'm not sure", "i am not sure", "n/a", "none", "conversation does not tell", "conversation doesn't say",
    "conversation does not say", "i can't share personal information", "i cannot share personal information",
    "i can't share that", "i cannot share that", "i can't share that information", "i cannot share that information",
    "i can't answer that", "i cannot answer that", "i can't help with that", "i cannot help with that",
    "i can't help with that request", "i cannot help with that request", "i'd rather not say", "i don't remember",
    "i do not remember", "i don't recall", "i do not recall", "i can't recall", "no idea", "i don't know that",
    "you never told me", "you have not told me", "ich weiß es nicht", "das weiß ich nicht", "ich weiß nicht",
    "weiß ich nicht", "keine ahnung", "unbekannt", "不知道", "我不知道", "不清楚", "我不清楚", "je ne sais pas",
    "no lo sé", "non lo so", "não sei", "わかりません", "知りません",
))  # fmt: skip
"""Normalised replies that mean "I do not know". The judge decides about other wordings."""


def tokens(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, without articles, with numbers as digits and dates in one format."""
    return _short_tokens(text) if len(text) <= _SHORT else _tokens(text)


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(word for word in _words(text) if word not in _ARTICLES)


def _words(text: str) -> list[str]:
    text = plain(text).replace("’", "'").replace("‘", "'").casefold()
    text = _ORDINAL.sub(r"\1", _THOUSANDS.sub("", text))
    text = _NUMBER.sub(lambda found: str(NUMBERS[found[0].replace("-", " ")]), text)
    for pattern in _DATES:
        text = pattern.sub(_iso_date, text)
    return _TOKEN.findall(space_ideographs(text))


_short_tokens = lru_cache(maxsize=4096)(_tokens)
_SHORT = 200
"""Results are cached for texts up to this many characters: values and questions are compared often, turns are not."""


def _iso_date(found: re.Match[str]) -> str:
    month = [name[:3] for name in MONTHS].index(found["month"][:3]) + 1
    year = f"{int(found['year'])} " if found["year"] else ""
    return f"{year}{month:02} {int(found['day']):02}"


def normalise(text: str) -> str:
    return " ".join(tokens(text))


def is_same(one: str, other: str) -> bool:
    """Return whether two answers are equal after normalisation, with all signs that may change what they say.

    A+ is not A-, -5 is not 5, C++ is not C, 10 mW is not 10 MW, and vitamin A is not vitamin.
    """
    if _signs(one) != _signs(other):
        return False
    words, others = _words(one), _words(other)
    if words == others:
        return bool(words) or plain(one) == plain(other)
    return _without_article(one, words) == _without_article(other, others)


def _signs(text: str) -> list[str]:
    """Return the signs of a text that are not punctuation, and units whose case matters, in their order."""
    small = _SMALL_DIGIT.findall(text)
    text = _ISO_DATE.sub("", _THOUSANDS.sub("", plain(text).translate(_MINUS)))
    return small + [
        found[0]
        for found in _SIGN.finditer(text)
        if found.lastgroup != "symbol" or unicodedata.category(found[0]).startswith("S")
    ]


def _without_article(text: str, words: list[str]) -> list[str]:
    """Return the words without an article at the beginning. A capital "A" may be none: "A minor" is a key."""
    begins_with_article = len(words) > 1 and words[0] in _ARTICLES and not text.lstrip(_OPENING).startswith("A ")
    return words[1:] if begins_with_article else words


_MINUS = str.maketrans("\u2212\u2013", "--")
_OPENING = " \t\n*_\"'“‘(["
_SMALL_DIGIT = re.compile("[⁰¹²³⁴-⁹₀-₉]")
_SIGN = re.compile(
    r"(?<![^\W\d_])-\s*(?=[$€£]?\.?\d)|(?<=\w)-(?!\w)|(?<=\d),(?=\d)|[%‰#@&/ß]|(?<=\w)_(?=\w)"
    r"|(?<=\d)\s?(?![aApP][mM]\b)(?=[^\W\d_]*[A-Z])[^\W\d_]{1,2}\b|(?P<symbol>[^\w\s!-/:-;?@\[-\]_`{}])|[+$]"
)
"""Matches a minus, the dash of a range, a decimal comma, a short word after a number with a capital, and symbols."""


def is_abstention(text: str) -> bool:
    """Return whether the whole reply is a common phrase for "I do not know"."""
    return _APOLOGY.sub("", normalise(text)) in _NORMALISED_ABSTENTIONS


_APOLOGY = re.compile(r"^(?:i'm |i am )?sorry (?:but )?")
_NORMALISED_ABSTENTIONS = frozenset(normalise(text) for text in _ABSTENTIONS)


def stems(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in tokens(text))


def occurs(value: str, text: str) -> bool:
    """Return whether the text has the words of the value one after the other, in any inflection."""
    return bool(stems(value)) and f" {' '.join(stems(value))} " in f" {' '.join(stems(text))} "


def date_tells(when: str, value: str) -> bool:
    """Return whether the text of a date, such as `2 March 2024`, has the whole value, such as its month or year.

    A Chinese day may be written 9日 or 9号.
    """
    value = re.sub(r"(?<=[\d一二三四五六七八九十])号", "日", value)
    words = set(re.findall(r"\w+", value.casefold()))
    return occurs(value, when) or (bool(words) and words <= set(when.casefold().split()))


def content(text: str) -> frozenset[str]:
    """Return the stems of the words of a text, without stop words."""
    return frozenset(stem(word) for word in tokens(text) if word not in AUDIT_STOP_WORDS)


def overlaps(one: str, other: str) -> bool:
    """Return whether one value contains the other, such as Boston and South Boston."""
    return occurs(one, other) or occurs(other, one)


def leaks(question: str, answers: Iterable[str], *, is_english: bool = False) -> bool:
    """Return whether the question reveals one of the answers: both have the same content word, or similar ones.

    If the question has all words of an answer but its numbers, such as "18 days", it asks for the numbers, and only
    they can reveal it. The language of the question is identified, unless it is known to be English. Languages without
    a list of stop words are compared by the rules for English.
    """
    answers, language = list(answers), "en" if is_english else language_of(question)
    if language in _NUMBER_WORD_LANGUAGES and any(map(str.isdigit, "".join(answers))):
        question = f"{question} {' '.join(_spoken_numbers(question, language))}"
    asked = _content_words(question, language)
    return any(
        _leaks_unspaced(question, answer)
        or _tell_answer(
            _content_words(answer, language), lambda one: any(_alike(one, other, language) for other in asked)
        )
        for answer in answers
    )


def _spoken_numbers(text: str, language: str) -> Iterator[str]:
    """Yield the numbers that a text has in words, as digits. 1 is left out, because it is an article, too."""
    from text_to_num import alpha2digit

    written = set(text.split())
    for word in alpha2digit(text, language, 0).split():
        number = word.strip(",;:?!")
        if number.isdecimal() and number != "1" and word not in written:
            yield number


_NUMBER_WORD_LANGUAGES = ("en", "de", "fr", "es", "it", "nl", "pt")


def _tell_answer(words: Iterable[str], is_asked: Callable[[str], bool]) -> bool:
    """Return whether those words of an answer that are in the question reveal it."""
    words = set(words)
    shared = set(filter(is_asked, words))
    years = set(filter(_YEAR.fullmatch, words))
    if years != words:
        shared -= years  # `On which day in 2025?` tells only the year of `2 February 2025`
    numbers = {word for word in words if any(map(str.isdigit, word))}
    return bool(shared) and not (numbers and shared == words - numbers)


def _content_words(text: str, language: str) -> set[str]:
    """Return the stems of the content words, without accents; in French also without an elided article."""
    stop_words = STOP_WORDS_BY_LANGUAGE.get(language, AUDIT_STOP_WORDS)
    parts = {part for token in tokens(text) for part in (token.split("'") if language == "fr" else [token])}
    words = parts - stop_words - (set("".join(unspaced_runs(plain(text)))) - set("0123456789"))
    return {
        without_accents(stem(word, language if language in STOP_WORDS_BY_LANGUAGE else "en")) for word in words if word
    }


def _alike(one: str, other: str, language: str) -> bool:
    """Return whether a stem of an answer and one of the question have the same origin, or one is a part of the other.

    In German, French and Spanish, a word of the question that is only the end of a compound in the answer does not
    count (Straße and Lindenstraße), four equal letters at the beginning are too few, and a word of three letters at the
    beginning of another is enough.
    """
    if one == other or not (one.isalpha() and other.isalpha()):
        return one == other
    is_strict = language not in STOP_WORDS_BY_LANGUAGE
    needed = _PART if is_strict else max(_PART + 1, math.ceil(0.75 * min(len(one), len(other))))
    return (
        (len(one) >= _PART and other.endswith(one))
        or (not is_strict and len(one) >= _START and other.startswith(one))
        or (len(other) >= _PART and (one.startswith(other) or (is_strict and one.endswith(other))))
        or (len(one) >= needed and one[:needed] == other[:needed])  # Francia and francesa
    )


_START, _PART = 3, 4
"""The fewest letters of a word at the beginning, and of one elsewhere in another word, that make the two alike."""


def _leaks_unspaced(question: str, answer: str) -> bool:
    """Return whether a question contains the content of an answer in a script without spaces.

    The content is its numerals, or else two characters in a row. Not counted: the measure word after a numeral
    (岁 in 五岁 and 几岁), and the kind of thing at its end (老师 in 张老师 and 哪个老师).
    """
    question = plain(question)
    for run in unspaced_runs(plain(answer)):
        numerals = _NUMERALS.findall(run)
        if run in question or any(numeral in question for numeral in numerals if not numeral.isdecimal()):
            return True
        for part in _NUMERALS.split(run):
            if numerals and len(part) <= _LONGEST_MEASURE_WORD:
                continue
            end = next(place for place in range(len(part) + 1) if part[place:] in question)
            if any(part[place : place + 2] in question for place in range(end - 1)):
                return True
    return False


_NUMERALS = re.compile("[0-9一二三四五六七八九十百千万亿两零〇]+")
_LONGEST_MEASURE_WORD = 2
