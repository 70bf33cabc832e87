"""English number words from zero to ninety-nine."""

from __future__ import annotations

_UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBERS = {
    **{word: number for number, word in enumerate(_UNITS)},
    **{word: 10 * ten for ten, word in enumerate(_TENS, 2)},
    **{f"{word} {unit}": 10 * ten + n for ten, word in enumerate(_TENS, 2) for n, unit in enumerate(_UNITS[:10]) if n},
}
"""By number word: the number. Compounds have a space: `twenty one`."""
