"""Tells languages apart."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from .words import words

_SAMPLE = 600
"""Characters that suffice to identify a language."""
_SURE = 0.9
_PIDGIN = "pcm"
"""Nigerian Pidgin: a short English sentence with few small words looks like it."""


def is_english(*texts: str) -> bool:
    """Return whether the texts together are in English and none of them is surely in another language.

    Texts without words are in English; a few words that could be of several languages are not.
    """
    samples = [text[:_SAMPLE] for text in texts if words(text[:_SAMPLE])]
    if not samples:
        return True
    found = [_identify(text) for text in samples]
    if all(language == "en" for language, _ in found):
        return True
    if any(language not in ("en", _PIDGIN) and probability >= _SURE for language, probability in found):
        return False
    language, probability = _identify("\n".join(samples))
    return language == "en" or (language == _PIDGIN and probability < 0.5)


def language_of(text: str) -> str:
    """Return the ISO 639 code of the most likely language of a text."""
    return _identify(text[:_SAMPLE])[0]


def likelier(text: str, languages: Iterable[str]) -> str:
    """Return which of these languages a text is in; short texts are seldom identified among all languages."""
    probabilities = {str(language): float(probability) for language, probability in _identifier().rank(text)}
    return max(languages, key=lambda language: probabilities.get(language, 0.0))


def _identify(text: str) -> tuple[str, float]:
    language, probability = _identifier().classify(text)
    return str(language), float(probability)


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # loads a model of 5 MB

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
