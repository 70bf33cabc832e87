"""What a reply says, as far as code can tell: that it does not know, which option it takes, whether it names a "
"value."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .lexicon import STOP_WORDS
from .words import content, key, plain, words

_NOT_KNOWING = re.compile(
    r"\b(?:(?:do|does|did|have|has|is|are|was|were|can|could|would)(?: not|n't)|cannot|can not|can't|never|not|no) "
    r"(?:\w+ ){0,3}?(?:know|knows|known|sure|certain|aware|recall|remember|tell|told|say|says|said|state|stated|mention"
    r"|mentioned|specify|specified|provide|provided|given|give|indicate|indicated|find|found|see|determine|determined"
    r"|answer|confirm|discuss|discussed|disclose|disclosed|share|shared|clear|available|information|record|mention"
    r"|memory|details?|idea|evidence|reference|indication|data|clue|way|able|come up|include|included|contain|specifics"
    r"|noted|listed|covered|possible|reveal|revealed|bring)\b"
    r"|\b(?:unable to|unknown|unclear|unspecified|undisclosed|unsure|uncertain|insufficient|lack(?:s|ing)?"
    r"|not enough|n/a|no answer|nothing (?:about|in|on|was|is)|there(?: is|'s| was) no(?:thing)?|there(?: are|'re) no"
    r"|i have no|beats me|not that i|you never|you have not|you haven't)\b"
)
_LEAD_IN = re.compile(
    r"^(?:(?:sorry|i'm sorry|i am sorry|apologies|i apologi[sz]e|unfortunately|hm+|well|honestly|actually|no"
    r"|as far as i (?:know|can tell)|based on [\w' ]+|from [\w' ]+|according to [\w' ]+|in (?:the|our|this) [\w' ]+)"
    r"[,.:;!-]+\s*)+"
)
_CONTRAST = re.compile(r"[,;.]?\s*\b(?:but|however|although|though|still|nevertheless|that said|even so)\b,?\s*")
_NO_ASSERTION = re.compile(
    r"\b(?:mention(?:s|ed)?|conversation|only|let me know|happy to|could you|can you|if you|please|you (?:might"
    r"|could|can|may)"
    r"|would be|tell me|told me|talk(?:s|ed)? about|said|says|does say|discuss(?:es|ed)?|ask|i can|context|chat"
    r"|help|feel free|share)\b"
)
_GUESS = re.compile(
    r"\b(?:probably|likely|i (?:would )?guess|my (?:best )?guess|i think|i believe|i suspect|maybe|perhaps|i "
    r"assume|i'd say"
    r"|most likely|presumably|must be|it (?:might|could|may) be|it's|it is|sounds like|appears to be|seems to be)\b"
)
_SENTENCE = re.compile(r"(?<!\b(?:mr|ms|dr|st))(?<!\bmrs)[.!?]+(?:\s+|$)|\n+")


def refuses(text: str) -> bool:
    """Whether it says that it does not know, and then gives no answer all the same.

    `I don't know, but he lives in Rome` answers; `I don't know, but you mentioned a trip` does not.
    """
    said = plain(text).replace("*", "").strip()
    opened = _LEAD_IN.sub("", said)
    first, *rest = [part for part in _SENTENCE.split(opened or said) if part.strip()] or [""]
    found = _NOT_KNOWING.search(first)
    if found is None or _asserts_before(first[: found.start()]):
        return False
    return not any(_answers(part) for part in _after_contrast(first, found.end())) and not any(
        _answers_alone(sentence) for sentence in rest
    )


def _asserts_before(text: str) -> bool:
    """`Rome, though I am not sure`: what comes before the doubt is the answer."""
    contrast = _CONTRAST.search(text)
    return contrast is not None and bool(content(text[: contrast.start()]))


def _after_contrast(sentence: str, start: int) -> Sequence[str]:
    return _CONTRAST.split(sentence[start:])[1:]


def _answers(clause: str) -> bool:
    if _NOT_KNOWING.search(clause):
        return False
    return bool(_GUESS.search(clause)) or (bool(content(clause)) and _NO_ASSERTION.search(clause) is None)


def _answers_alone(sentence: str) -> bool:
    """A sentence after the refusal answers where it guesses, or is nothing but a name."""
    if _NOT_KNOWING.search(sentence):
        return any(_answers(part) for part in _CONTRAST.split(sentence)[1:])
    if _NO_ASSERTION.search(sentence):
        return False
    return bool(_GUESS.search(sentence)) or (0 < len(words(sentence)) <= 2 and bool(content(sentence)))


_LETTER = re.compile(
    r"^\W*(?:(?:the )?(?:answer|correct answer|correct option|option)(?: is)?:?\s*)?\W*\(?([ab])\)?(?=$|[\s.,:;)*!-])",
    re.IGNORECASE,
)
_ANY_LETTER = re.compile(r"\(([ab])\)|\boption ([ab])\b", re.IGNORECASE)
_SOONER = re.compile(r"\b(?:before|first|earlier|preceded|then|prior|and later|followed by)\b")
_LATER = re.compile(r"\b(?:after|later than|followed(?! by)|following|second)\b")


def chosen_option(text: str, options: Sequence[str]) -> int | None:
    """Which option a reply takes, by its letter or its words; None: neither, or both and no order."""
    letter = _LETTER.match(text.strip())
    if letter and not (letter[1] == "a" and re.match(r"^a \w", text.strip())):
        return _within(ord(letter[1].lower()) - ord("a"), options)
    verbatim = [number for number, option in enumerate(options) if plain(option) in plain(text)]
    if len(verbatim) == 1:
        return verbatim[0]
    places = [_first_place(text, option, options) for option in options]
    named = [number for number, place in enumerate(places) if place is not None]
    if len(named) == 1:
        return None if _negated(text, places[named[0]] or 0) else named[0]
    if not named:
        letters = {(one or other).lower() for one, other in _ANY_LETTER.findall(text)}
        return _within(ord(letters.pop()) - ord("a"), options) if len(letters) == 1 else None
    return _first_of_both(text, places)


def _within(number: int, options: Sequence[str]) -> int | None:
    return number if number < len(options) else None


def _first_place(text: str, option: str, options: Sequence[str]) -> int | None:
    """Where the words stand that only this option has; None: fewer than half of them do."""
    others = frozenset().union(*(content(other) for other in options if other != option))
    own = content(option) - others or content(option)
    said = [key(word) for word in words(text)]
    places = [said.index(one) for one in own if one in said]
    return min(places) if 2 * len(places) >= len(own) and places else None


def _negated(text: str, place: int) -> bool:
    return any(word in _NEGATORS for word in words(text)[max(0, place - 4) : place])


def _first_of_both(text: str, places: Sequence[int | None]) -> int | None:
    """`X came before Y`, `Y was after X`."""
    order = sorted((place, number) for number, place in enumerate(places) if place is not None)
    (start, sooner), (end, later) = order[:2]
    if start == end:
        return None
    between = " ".join(words(text)[start:end])
    if _LATER.search(between):
        return later
    return sooner if _SOONER.search(between) else None


_NEGATORS = frozenset(("not", "no", "never", "without", "neither", "nor", "isnt", "longer"))
_TURNS = frozenset(("but", "instead", "rather", "however", "although", "though", "now"))
_ANSWERED_NO = re.compile(r"^\W*(?:yes|no|nope|not quite|not exactly)\b[,.;:!]+\s*", re.IGNORECASE)
_NEAR = 5


def mentions(text: str, value: str) -> bool:
    """Whether a reply gives a value: its content words within one sentence, none of them denied.

    Numbers and dates count by what they are worth: `three`, `3`; `12 May`, `May 12th`, `2024-05-12`.
    """
    wanted = [key(word) for word in words(value) if word not in STOP_WORDS] or [key(word) for word in words(value)]
    denied_itself = bool(_NEGATORS & set(words(value)))
    spoken = _ANSWERED_NO.sub("", text)
    return bool(wanted) and any(
        _says(sentence, frozenset(wanted), denied_itself) for sentence in _SENTENCE_KEPT.split(spoken)
    )


_SENTENCE_KEPT = re.compile(r"(?<!\b(?:Mr|Ms|Dr|St))(?<!\bMrs)[.!?;]+(?:\s+|$)|\n+")


def _says(sentence: str, wanted: frozenset[str], denied_itself: bool) -> bool:
    said = words(sentence)
    found = [place for place, word in enumerate(said) if key(word) in wanted]
    if {key(said[place]) for place in found} != wanted:
        return False
    if denied_itself:
        return True
    # a value named twice is given where one of the two is not denied
    return any(not _denied(said, place) for place in found if _complete(said, place, wanted))


def _complete(said: Sequence[str], place: int, wanted: frozenset[str]) -> bool:
    return wanted <= {key(word) for word in said[place : place + 4 * len(wanted) + 4]} or len(wanted) > 4


def _denied(said: Sequence[str], place: int) -> bool:
    for word in reversed(said[max(0, place - _NEAR) : place]):
        if word in _TURNS:
            return False
        if word in _NEGATORS:
            return True
    return False
