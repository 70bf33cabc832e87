"""Which texts an assertion means. Models word things as they like: nothing here depends on case, blanks or dashes."""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, field_validator, model_validator

from memorybench.core.records import Record

T = TypeVar("T")


def _not_empty(given: tuple[T, ...]) -> tuple[T, ...]:
    if not given:
        raise ValueError("is empty; expected at least one")
    return given


# pydantic's own min_length also complains, and first, where it is an item that is wrong
Some = Annotated[tuple[T, ...], AfterValidator(_not_empty)]

_PUNCTUATION = re.compile(r"[^\w\s]|_")


def folded(text: str) -> str:
    """For `contains`: compatibility forms, case and runs of white space count for nothing."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def normalised(text: str) -> str:
    """For `normalised`: punctuation counts for nothing, either."""
    return " ".join(_PUNCTUATION.sub(" ", folded(text)).split())


class Matcher(Record):
    """Texts in which everything stands that is given here; with nothing given, every text."""

    contains: tuple[str, ...] = ()
    """Each stands somewhere in the text."""
    regex: str | None = None
    """Is found in the text, in any case."""
    normalised: str | None = None
    """Is the whole text."""

    @field_validator("contains", mode="before")
    @classmethod
    def _one_or_many(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _usable(self) -> Matcher:
        if any(not folded(part) for part in self.contains):
            raise ValueError("an empty text stands in everything; write what must be found")
        try:
            _ = self._pattern
        except re.error as error:
            raise ValueError(f"the regex can not be read: {error}") from None
        return self

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        return None if self.regex is None else re.compile(self.regex, re.IGNORECASE)

    @property
    def selective(self) -> bool:
        return bool(self.contains) or self.regex is not None or self.normalised is not None

    def matches(self, text: str) -> bool:
        if any(folded(part) not in folded(text) for part in self.contains):
            return False
        if self._pattern is not None and self._pattern.search(text) is None:
            return False
        return self.normalised is None or normalised(self.normalised) == normalised(text)

    @property
    def told(self) -> str:
        """For messages: `"tabs" and /spaces?/`."""
        parts = [f'"{part}"' for part in self.contains]
        parts += [f"/{self.regex}/"] if self.regex is not None else []
        parts += [f'exactly "{self.normalised}"'] if self.normalised is not None else []
        return " and ".join(parts) or "anything"
