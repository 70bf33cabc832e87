"""As what a reply names a value: as what holds, as what held before, as one of several, or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from memorybench.text.stop_words import AUDIT_STOP_WORDS as STOP_WORDS

from .spoken import MARK, UNITS, marked_sentences, marked_words, value_words, worth
from .verbs import base_form, is_past
from .words import MONTHS, WEEKDAYS, words

Said = Sequence[str]


class Standing(IntEnum):
    """From 0 on the later one: of two values that are named so, the higher one holds."""

    PARTLY = -4
    """Some of its words are there, and nothing that speaks against the rest."""
    ONE_OF_TWO = -3
    ONE_OF_MANY = -2
    DENIED = -1
    PAST = 0
    WAS = 1
    PLAIN = 2
    THEN = 3
    NOW = 4


_NEGATORS = frozenset(("not", "no", "never", "without", "neither", "nor", "nobody", "nothing"))
_RETOLD = re.compile(
    r"\b(?:previously|earlier|originally|already|before) (?:\w+ )?(?:told|said|mentioned|stated|noted|shared)\b"
    r"|\b(?:told|said|mentioned|stated|noted|discussed|shared)(?: \w+){0,2} (?:previously|earlier|before)\b"
)
"""It was said before: not that it held before."""
_PAST = re.compile(
    r"\b(?:used to|previously|formerly|former|originally|initially|no longer|any ?more|in the past|at first|until"
    r"|earlier|(?:before|prior to) (?:that|then|this|now)|before$|1 (?:was|lived|had)|(?:was|were|had|you) 1)\b"
)
"""`once` is a number, and stands as `1`."""
_NOW = re.compile(
    r"\b(?:now|currently|current|these days|today|at the moment|at present|presently|nowadays|latest|most recent(?:ly)?"
    r"|finally|eventually|ultimately|in the end|is|are|lives?|became)\b"
)
_THEN = re.compile(r"^(?:and )?(?:then|later|after that|afterwards|next|subsequently)\b|\blater$")
_WAS = re.compile(r"\b(?:first|was|were|had)\b")
_INTO = re.compile(
    r"\b(?:from .* to|(?:moved|changed|switched|raised|updated|increased|went|cut|lowered) to|replaced (?:by|with))"
    r"(?: the| a| an)?$"
)
_OUT_OF = re.compile(r"\b(?:instead of|rather than|replaced|replaces|replacing|superseded)(?: the| a| an)?$")
_FROM = re.compile(r"\bfrom(?: the| a| an)?$")
_OVER_FROM = re.compile(r"\b(?:down|up|over|on) from(?: the| a| an)?$")
_AGAINST = re.compile(r"\b(stop|quit|give up|drop|hate|dislike|avoid|leave)\b")
"""What is said of a value that it is not chosen, or no more; unless that is the question."""
_NEXT_TO = re.compile(
    r"\b(after|before|near|outside|opposite|beyond|except|beside|than|least|most|under|over|nearly|almost|up to)"
    r"(?: the| a| an)?$"
)
"""After Aberdeen, less than 42: not that."""
_ALL_BUT = frozenset(("anywhere", "anything", "anyone", "everywhere", "everything", "everyone", "all", "nothing"))
_TURNS = frozenset(("but", "however", "while", "whereas", "then", "instead", "though", "although"))
_AFTER_AND = frozenset(
    ("now", "currently", "later", "then", "today", "these", "you", "it", "he", "she", "they", "is", "was")
)
_TITLES = frozenset(("mr", "mrs", "ms", "miss", "dr", "prof", "professor", "sir"))
_JOINT = re.compile(rf"{MARK}|\band\b")
_NUMBER = re.compile(r"\d[\d.:,]*")
_CLOCK = re.compile(r"\d+:\d\d")
_DATED = frozenset(worth(name) for name in (*MONTHS, *WEEKDAYS))
_AMOUNT = re.compile(
    r"\bhow (?:much|many|old|long|far|tall|high)\b|\b(?:rate|budget|price|cost|salary|wage|fee|rent|income|pay|earn|age"
    r"|number|amount|size|weight|height|distance|spend|charge|deposit|loan|percentage)s?\b"
)
"""Questions that a number answers without its unit."""
_BESIDE = 4
"""How many words from an `or` a value may stand and be one of its alternatives."""
_NAME = 3
"""As many words make a bare name at most."""


def standings(text: str, value: str, question: str = "") -> frozenset[Standing]:
    """As what a value is named, each time it is; empty: it is not."""
    wanted = Wanted.of(value, question)
    parts = marked_sentences(text)
    found = frozenset(_standing(said, span, wanted) for said in parts for span in wanted.spans(said))
    if (
        any(standing > Standing.DENIED for standing in found)
        and _row_of_names(parts)
        and not {MARK, "and"} & set(wanted.words)
    ):
        return frozenset((Standing.PARTLY,))
    if found or not wanted.hinted_at([word for said in parts for word in said]):
        return found
    return frozenset((Standing.PARTLY,))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A value as it is looked for."""

    value: str
    question: str
    said: tuple[str, ...]
    keys: frozenset[str]
    """What must all be there. `Dr` may be missing from `Dr Okafor`."""
    unit: str | None
    """Of a value that is a number and a unit."""

    @classmethod
    def of(cls, value: str, question: str) -> Wanted:
        said = value_words(value)
        telling = [word for word in said if _tells(word)] or list(said)
        keys = frozenset(worth(word) for word in telling)
        amount = len(telling) == 2 and _NUMBER.fullmatch(telling[0]) and worth(telling[1]) in UNITS
        followed = amount and said.index(telling[1]) == said.index(telling[0]) + 1
        return cls(value, question, said, keys, unit=worth(telling[1]) if followed else None)

    @property
    def words(self) -> list[str]:
        """As it is written: marks and idioms, too."""
        return marked_words(self.value)

    @property
    def unit_needed(self) -> bool:
        return _AMOUNT.search(self.question.lower()) is None

    @property
    def negated(self) -> bool:
        return bool(_NEGATORS & set(self.said))

    @property
    def known(self) -> frozenset[str]:
        """Words of the question and the value, verbs in their base form: they turn nothing against it."""
        return frozenset(base_form(word) for word in (*words(self.question), *self.said))

    def spans(self, said: Said) -> Iterator[tuple[int, int]]:
        """From the first to the last of its words, wherever all of them stand near each other."""
        place = 0
        while self.keys and place < len(said):
            end = self._end(said, place) if worth(said[place]) in self.keys else None
            if end is not None:
                yield self._start(said, place, end), end
            place = place + 1 if end is None else end

    def _end(self, said: Said, start: int) -> int | None:
        if self.unit is not None:
            return self._amount_end(said, start)
        missing = set(self.keys)
        for place in range(start, min(len(said), start + 4 * len(self.keys) + 4)):
            missing.discard(worth(said[place]))
            if not missing:
                return place + 1
        return None

    def _amount_end(self, said: Said, start: int) -> int | None:
        """42 alone stands for 42 pounds where an amount is asked for, unless it counts something else."""
        behind = said[start + 1] if start + 1 < len(said) else MARK
        if _NUMBER.fullmatch(said[start]) is None:
            return None
        if worth(behind) == self.unit:
            return start + 2
        alone = behind == MARK or behind in STOP_WORDS or behind == "hour"
        return start + 1 if alone and not self.unit_needed else None

    def _start(self, said: Said, start: int, end: int) -> int:
        """The last place from which all of it is there."""
        missing = set(self.keys)
        for place in range(end - 1, start, -1):
            missing.discard(worth(said[place]))
            if not missing:
                return place
        return start

    def hinted_at(self, said: Said) -> bool:
        """Whether some of its words are there, without another number, date or unit in place of its own."""
        keys = {worth(word) for word in said}
        measured = {one for one in keys if _is_measure(one)}
        ours = {one for one in self.keys if _is_measure(one)}
        contrary = bool(ours - keys) and bool(measured - ours)
        return (bool(keys & self.keys) and not contrary) or self._other_clock(keys)

    def _other_clock(self, keys: set[str]) -> bool:
        """6:45 as 6.45, as quarter to seven."""
        if not any(_CLOCK.fullmatch(one) for one in self.keys) or any(_CLOCK.fullmatch(one) for one in keys):
            return False
        return any(_NUMBER.fullmatch(one) for one in keys)


def _tells(word: str) -> bool:
    return word in MONTHS or (word not in STOP_WORDS and word not in _TITLES)


def _is_measure(key: str) -> bool:
    return key in _DATED or key in UNITS or _NUMBER.fullmatch(key) is not None


def _standing(said: Said, span: tuple[int, int], wanted: Wanted) -> Standing:
    if (alternative := _alternative(said, span, wanted)) is not None:
        return alternative
    start, end = span
    if end - start == len(said):  # a bare answer: nothing is said of it
        return Standing.DENIED if wanted.negated else Standing.PLAIN
    clause = _clause_around(said, start, end)
    before = " ".join(said[:start])
    around = _RETOLD.sub(" ", " ".join((*said[clause.start : start], *said[end : clause.stop])))
    left = _FROM.search(before) and ("to" in said[end:] or _OVER_FROM.search(before))
    if left or _OUT_OF.search(before) or _PAST.search(around):
        return Standing.PAST
    if _denied(said, start, clause) != wanted.negated:
        return Standing.DENIED
    if _INTO.search(before):
        return Standing.NOW
    next_to = _NEXT_TO.search(before)
    against = _AGAINST.search(" ".join(base_form(word) for word in said[clause.start : start]))
    unasked = [match for match in (next_to, against) if match and not set(match[1].split()) & wanted.known]
    if unasked or _denied_afterwards(said[clause.stop :]):
        return Standing.PARTLY
    return _time_of(around)


def _time_of(around: str) -> Standing:
    if _NOW.search(around):
        return Standing.NOW
    if _THEN.search(around):
        return Standing.THEN
    return Standing.WAS if _WAS.search(around) or any(is_past(word) for word in around.split()) else Standing.PLAIN


def _denied(said: Said, start: int, clause: range) -> bool:
    if start > 1 and said[start - 1] == "but" and said[start - 2] in _ALL_BUT:
        return True
    return bool(_NEGATORS & set(said[clause.start : start]))


def _denied_afterwards(rest: Said) -> bool:
    """Your sister lives there, you do not."""
    following = list(rest[1 : rest.index(MARK, 1) if MARK in rest[1:] else len(rest)])
    return bool(_NEGATORS & set(following)) and all(word in STOP_WORDS for word in following)


def _clause_around(said: Said, start: int, end: int) -> range:
    """What is said of the words between: up to the next mark or turn, and a lone `previously` beyond the mark."""
    left, right = start, end
    while left > 0 and not _opens(said, left):
        left -= 1
    while right < len(said) and not _opens(said, right) and said[right] != MARK:
        right += 1
    return range(_with_lone_time(said, left), right)


def _opens(said: Said, place: int) -> bool:
    """Whether a clause begins here."""
    if said[place - 1] == MARK or said[place] in _TURNS:
        return True
    return said[place] == "and" and place + 1 < len(said) and said[place + 1] in _AFTER_AND


def _with_lone_time(said: Said, left: int) -> int:
    """Where a clause begins if nothing but a word of time stands before it, between marks."""
    if left < 2 or said[left - 1] != MARK:
        return left
    begin = left - 1
    while begin > 0 and said[begin - 1] != MARK:
        begin -= 1
    lone = " ".join(said[begin : left - 1])
    return begin if _PAST.fullmatch(lone) or _NOW.fullmatch(lone) or _THEN.fullmatch(lone) else left


def _alternative(said: Said, span: tuple[int, int], wanted: Wanted) -> Standing | None:
    """Whitby or York; Whitby, York or Leeds."""
    start, end = span
    ors = [place for place, word in enumerate(said) if word == "or"]
    if not ors or "or" in wanted.words:
        return None
    in_row = [place for place in ors if _row_before(said, place)]
    reach = 2 * _BESIDE if in_row else _BESIDE
    if not any(start - reach <= place < end + reach for place in ors):
        return None
    return Standing.ONE_OF_MANY if in_row or len(ors) > 1 else Standing.ONE_OF_TWO


def _row_before(said: Said, place: int) -> bool:
    """Whether a short name and a mark stand before an `or`."""
    near = said[max(0, place - 2 - _NAME) : place]
    return MARK in near[:-1]


def _row_of_names(parts: Sequence[Said]) -> bool:
    """Two bare names that `and` joins, or three or more, and no word of which it is."""
    text = f" {MARK} ".join(" ".join(said) for said in parts)
    rows = [row.split() for row in _JOINT.split(text)]
    if len(rows) == 2 and "and" not in text.split():
        return False
    # the first of three may have a beginning before it: games such as whist, bridge and rummy
    names = rows if len(rows) == 2 else rows[1:]
    return len(rows) > 1 and all(0 < len(row) <= _NAME and not _tells_more(row) for row in names)


def _tells_more(row: Said) -> bool:
    text = " ".join(row)
    return bool(STOP_WORDS & set(row) or _PAST.search(text) or _NOW.search(text) or _THEN.search(text))
