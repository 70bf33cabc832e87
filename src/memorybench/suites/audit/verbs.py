"""Enough of the English verb to turn a statement into a question."""

from __future__ import annotations

import re
from functools import lru_cache

from .lexicon import IRREGULAR_VERBS, REGULAR_VERBS

_FORMS: dict[str, str] = {}
_PASTS: dict[str, str] = {}
PARTICIPLES: set[str] = set()
for _entry in IRREGULAR_VERBS.split(","):
    _base, _past, _participle = _entry.split()
    for _form in (_past, _participle):
        _FORMS.setdefault(_form, _base)
    _PASTS[_base] = _past
    PARTICIPLES.add(_participle)
_FORMS |= {
    "were": "be",
    "am": "be",
    "is": "be",
    "are": "be",
    "has": "have",
    "does": "do",
    "felt": "feel",
    "left": "leave",
}
BASES = frozenset(_PASTS) | frozenset(REGULAR_VERBS)
# bases that also read as the past of themselves must not be taken for another verb's form
for _base in BASES & _FORMS.keys():
    if _FORMS[_base] != _base:
        del _FORMS[_base]


@lru_cache(maxsize=16384)
def base_form(word: str) -> str:
    """went → go, studies → study, stopped → stop; a word that is no form of a known verb stays."""
    if word in _FORMS:
        return _FORMS[word]
    if word in BASES:
        return word
    return next((base for base in _stripped(word) if base in BASES), word)


def _stripped(word: str) -> tuple[str, ...]:
    """What the word may be a regular form of."""
    for ending, put in (("ies", "y"), ("ied", "y")):
        if word.endswith(ending):
            return (word[:-3] + put,)
    if word.endswith("es"):
        return word[:-1], word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return (word[:-1],)
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            rest = word[: -len(ending)]
            doubled = rest[:-1] if len(rest) > 2 and rest[-1] == rest[-2] else rest
            return rest + "e", rest, doubled, rest.removesuffix("y") + "ie"
    return ()


def is_third_person(word: str) -> bool:
    """works, studies, has: the present of a known verb after he or she."""
    if word in ("is", "has", "does"):
        return True
    return word.endswith("s") and word not in BASES and base_form(word) in BASES - {"be"}


def is_past(word: str) -> bool:
    base = base_form(word)
    if base not in BASES:
        return False
    return word in ("was", "were") or _PASTS.get(base) == word or (word.endswith("ed") and word != base)


def is_participle(word: str) -> bool:
    return word in PARTICIPLES or (word.endswith("ed") and base_form(word) in BASES) or word in ("born", "got", "sewn")


def is_gerund(word: str) -> bool:
    return word.endswith("ing") and base_form(word) in BASES and base_form(word) != word


def past(base: str) -> str:
    if base in _PASTS:
        return _PASTS[base]
    if base.endswith("e"):
        return base + "d"
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ied"
    if re.fullmatch(r"[^aeiou]*[aeiou][bdgklmnprt]", base):
        return base + base[-1] + "ed"
    return base + "ed"


def third(base: str) -> str:
    """works, studies, watches: what he or she does."""
    if base in ("be", "have", "do"):
        return {"be": "is", "have": "has", "do": "does"}[base]
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ies"
    return base + ("es" if re.search(r"(?:s|sh|ch|x|z|o)$", base) else "s")
