"""Tells in a microsecond that a step is certainly not recorded, so that most look-ups in the file are spared."""

from __future__ import annotations

_BITS = 1 << 23  # one megabyte, whatever the size of the run; at a million steps one look-up in 25 is in vain


class BloomFilter:
    """A Bloom filter (Bloom 1970) over keys that are digests already: their own digits are the hashes."""

    __slots__ = ("_marks",)

    def __init__(self) -> None:
        self._marks = bytearray(_BITS // 8)

    def add(self, key: str) -> None:
        digits = int(key[:12], 16)
        for place in (digits % _BITS, (digits >> 24) % _BITS):
            self._marks[place >> 3] |= 1 << (place & 7)

    def may_hold(self, key: str) -> bool:
        digits = int(key[:12], 16)
        first, second = digits % _BITS, (digits >> 24) % _BITS
        marks = self._marks
        return bool(marks[first >> 3] >> (first & 7) & 1 and marks[second >> 3] >> (second & 7) & 1)
