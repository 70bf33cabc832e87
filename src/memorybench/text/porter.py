"""Strips English suffixes: Porter, "An algorithm for suffix stripping", Program 14, 1980.

With the changes of NLTK's default mode, because LoCoMo's official scores are computed with it:
- irregular words, and words of one or two letters, are not changed by the steps;
- 1a, 1b: "ies" and "ied" become "ie" in words of four letters (dies → die, but flies → fli);
- 1b, 5a: a vowel and a consonant alone count as a short ending, too (ice keeps its e);
- 1c: y becomes i after a consonant that does not begin the word (try → tri, enjoy stays);
- 2: bli instead of abli; fulli and logi are added, the l of logi counts with the stem; after alli, step 2 is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

_IRREGULAR = {
    "sky": "sky",
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "news": "news",
    "inning": "inning",
    "innings": "inning",
    "outing": "outing",
    "outings": "outing",
    "canning": "canning",
    "cannings": "canning",
    "howe": "howe",
    "proceed": "proceed",
    "exceed": "exceed",
    "succeed": "succeed",
}

# the first suffix that fits decides, so the longer stands before its own ending
_PLURALS = {"sses": "ss", "ies": "i", "ss": "ss", "s": ""}
_DOUBLE = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "bli": "ble",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "fulli": "ful",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
}
_SINGLE = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_RESIDUAL = dict.fromkeys(
    (
        *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent"),
        *("ou", "ism", "ate", "iti", "ous", "ive", "ize"),
    ),
    "",
)


def stem(word: str) -> str:
    word = word.lower()
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    for step in (_plural, _past, _final_y, _double_suffix, _single_suffix, _residual_suffix, _final_e, _final_ll):
        word = step(word)
    return word


def _plural(word: str) -> str:
    """Perform step 1a: remove the ending of a plural."""
    if word.endswith("ies") and len(word) == 4:
        return word[:-1]
    return _replaced(word, _PLURALS, lambda base: True)


def _past(word: str) -> str:
    """Perform step 1b: shorten -eed and -ied, remove -ed and -ing."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        base = word.removesuffix(suffix)
        if base != word and "v" in _shape(base):
            return _tidied(base)
    return word


def _tidied(base: str) -> str:
    """Perform the end of step 1b: correct a stem such as hopp(ing), troubl(ed) or fil(ing)."""
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if len(base) > 1 and base[-1] == base[-2] and _shape(base)[-1] == "c":
        return base if base[-1] in "lsz" else base[:-1]
    return base + "e" if _measure(base) == 1 and _ends_short(base) else base


def _final_y(word: str) -> str:
    """Perform step 1c: replace a final y by i."""
    if word.endswith("y") and len(word) > 2 and _shape(word)[-2] == "c":
        return word[:-1] + "i"
    return word


def _double_suffix(word: str) -> str:
    """Perform step 2: shorten double suffixes such as -ational."""
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _double_suffix(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replaced(word, _DOUBLE, lambda base: _measure(base) > 0)


def _single_suffix(word: str) -> str:
    """Perform step 3: shorten suffixes such as -icate and -ful."""
    return _replaced(word, _SINGLE, lambda base: _measure(base) > 0)


def _residual_suffix(word: str) -> str:
    """Perform step 4: remove suffixes such as -ance and -ment."""
    if word.endswith(("sion", "tion")):  # their s and t belong to the stem
        return word[:-3] if _measure(word[:-3]) > 1 else word
    return _replaced(word, _RESIDUAL, lambda base: _measure(base) > 1)


def _final_e(word: str) -> str:
    """Perform step 5a: remove a final e."""
    base = word.removesuffix("e")
    if _measure(base) > 1 or (_measure(base) == 1 and not _ends_short(base)):
        return base
    return word


def _final_ll(word: str) -> str:
    """Perform step 5b: replace a final ll by l."""
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _replaced(word: str, rules: Mapping[str, str], fits: Callable[[str], bool]) -> str:
    for suffix, put in rules.items():
        if word.endswith(suffix):
            base = word.removesuffix(suffix)
            return base + put if fits(base) else word
    return word


def _shape(word: str) -> str:
    """Return a word with c for each consonant and v for each vowel; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(base: str) -> int:
    """Return how often a consonant follows a vowel: Porter's m."""
    return _shape(base).count("vc")


def _ends_short(base: str) -> bool:
    """Return whether a stem ends with consonant, vowel and consonant other than w, x, y (Porter's *o).

    Also true for a stem that is only a vowel and a consonant.
    """
    shape = _shape(base)
    return shape == "vc" or (shape.endswith("cvc") and base[-1] not in "wxy")
