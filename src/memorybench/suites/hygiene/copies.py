"""Finds copies of texts in the bytes of a file: plain, packed, XORed with one byte, and in every encoding that
secrets/decoding.py knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from memorybench.secrets.canaries import Sighting, find_each, find_text, find_xored, first_byte, plain_offsets
from memorybench.secrets.compressed import Span, Unpacked, gaps
from memorybench.secrets.decoding import text_in

LARGEST_DECODED = 8 * 2**20
"""The most bytes of a file and its compressed streams that are searched in every encoding, which is slow. Further bytes
are searched only as plain text, and the file is reported as not fully searched."""
_CHUNK, _OVERLAP = 2**17, 2**12
"""The number of bytes that are decoded at a time, and how many of them overlap with the next ones."""
_SHORTEST_RUN = 4
"""The shortest run of printable characters that is searched, as by the program `strings`; copies are longer."""

Check = Callable[[], None]
"""Called repeatedly during a search; an error that it raises ends the search."""


class Copy(NamedTuple):
    offset: int | None
    """The byte at which the copy, or the packed stream with it, begins; None: unknown."""
    encoding: str


class _Decoder:
    """Searches bytes for texts in every known encoding, up to LARGEST_DECODED bytes in total."""

    def __init__(self, unpacked: Unpacked, check: Check) -> None:
        self._unpacked = unpacked
        self._check = check
        self._left = LARGEST_DECODED

    def find(
        self, texts: Sequence[str], octets: bytes, packed: Sequence[Span]
    ) -> Iterator[tuple[str, str, int | None]]:
        """Yield (text, encoding, offset of its first byte or None) for each text that is encoded in `octets`.

        The compressed bytes at `packed` are skipped: their unpacked content is searched separately.
        """
        parts = gaps(packed, octets)
        loose = octets if not packed else b"\0".join(octets[start:end] for start, end in parts)
        if not texts or not loose.strip(b"\0"):
            return
        if len(loose) > self._left:
            self._unpacked.note(
                f"more than {LARGEST_DECODED // 2**20} MB, of which a part is searched as plain text only"
            )
            return
        self._left -= len(loose)
        absent = list(texts)
        for start in range(0, len(loose), _CHUNK - _OVERLAP):
            chunk = loose[start : start + _CHUNK]
            found = find_each(absent, text_in(chunk, _SHORTEST_RUN), self._check)
            for text, encoding in found.items():
                at = first_byte(text, chunk, self._find_text)
                yield text, encoding, None if at is None else _offset_of(start + at, parts)
            absent = [text for text in absent if text not in found]
            if not absent:
                return

    def _find_text(self, text: str, texts: Mapping[str, str]) -> list[Sighting]:
        self._check()
        return find_text(text, texts)


def _offset_of(at: int, parts: Sequence[Span]) -> int:
    """Return the offset in a file for an offset in the bytes made by joining parts of it with one byte between them."""
    for start, end in parts:
        if at <= end - start:
            return start + at
        at -= end - start + 1
    return at


def xor_name(key: int) -> str:
    """Return the name of the encoding that XORs each byte with this key, such as `XOR 0x5a`."""
    return f"XOR {key:#04x}"


def find_copies(texts: Sequence[str], octets: bytes, unpacked: Unpacked, check: Check) -> dict[str, list[Copy]]:
    """Return the copies of each text: all plain, packed and XORed ones or, without any, the first encoded one.

    The list of a text without a copy is empty. Bytes that are too many to be searched in every encoding are noted in
    `unpacked`. `check` may raise an error to end the search.
    """
    copies = {text: [Copy(at, "plain") for at in plain_offsets(text, octets)] for text in texts}
    for text, places in find_xored(texts, octets).items():
        copies[text] += [Copy(at, xor_name(key)) for at, key in places]
    decoder = _Decoder(unpacked, check)
    for stream in unpacked.streams:
        check()
        plain = [text for text in texts if plain_offsets(text, stream.content)]
        for text in plain:
            copies[text].append(Copy(stream.offset, stream.encoding))
        xored = {text: places[0][1] for text, places in find_xored(texts, stream.content).items() if places}
        for text, key in xored.items():
            copies[text].append(Copy(stream.offset, f"{xor_name(key)} in {stream.encoding}"))
        encoded = [text for text in texts if text not in plain and text not in xored]
        for text, encoding, _ in decoder.find(encoded, stream.content, stream.packed):
            copies[text].append(Copy(stream.offset, f"{encoding} in {stream.encoding}"))
    for text, encoding, at in decoder.find([text for text in texts if not copies[text]], octets, unpacked.packed):
        copies[text].append(Copy(at, encoding))
    return copies
