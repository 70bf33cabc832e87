"""Identifies the language of a text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from .words import words

_SAMPLE = 600
"""Number of characters at the beginning of a text by which its language is identified."""
_SURE = 0.9
_PIDGIN = "pcm"
"""The code of Nigerian Pidgin. Short English sentences with few function words are often mistaken for it."""


def is_english(*texts: str) -> bool:
    """Return whether the texts together are in English and none of them is certainly in another language.

    Texts without words count as English. Texts that are too short to be certain count as the most likely language.
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
    """Return the code in `languages` that is most likely for a text.

    For short texts, more reliable than `language_of`.
    """
    probabilities = {str(language): float(probability) for language, probability in _identifier().rank(text)}
    return max(languages, key=lambda language: probabilities.get(language, 0.0))


def _identify(text: str) -> tuple[str, float]:
    language, probability = _identifier().classify(text)
    return str(language), float(probability)


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # loads a model of 5 MB

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
