"""Receives a body and unpacks it piece by piece, so that a bomb never stands in memory."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from .http1 import REDIRECTS, BrokenOff

ACCEPTED_ENCODING = "gzip"


class Garbled(Exception):
    """The body is not packed as it claims. Says why, without a word of its content."""


class Received:
    """A reply that is kept, up to a cap on its unpacked body."""

    __slots__ = ("_begun", "_body", "_cap", "_error_cap", "_gunzip", "_packing", "headers", "status")

    def __init__(self, cap: int, error_cap: int) -> None:
        """`error_cap` holds for the bodies of unhappy replies."""
        self._cap = cap
        self._error_cap = error_cap
        self._body = bytearray()
        self._begun = False

    def head(self, status: int, headers: Mapping[str, str]) -> bool:
        self.status = status
        self.headers = headers
        if not self.succeeded:
            self._cap = self._error_cap
        self._packing = headers.get("content-encoding", "").strip().lower()
        gzip = self._packing in ("gzip", "x-gzip")
        self._gunzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16) if gzip else None
        return status not in REDIRECTS

    def piece(self, data: bytes) -> bool:
        self._begun = True
        try:
            self._body += self._unpacked(data, self._cap + 1 - len(self._body))
        except Garbled:
            if self.succeeded:
                raise
            return False  # the status says enough
        return not self.cut_off

    def _unpacked(self, piece: bytes, room: int) -> bytes:
        if self._packing in ("", "identity"):
            return piece[:room]
        if self._gunzip is None:
            raise Garbled("the reply is packed in a way that was not asked for")
        try:
            unpacked = self._gunzip.decompress(piece, room)
        except zlib.error:
            raise Garbled("the reply is not the gzip it claims to be") from None
        if self._gunzip.unused_data:
            raise Garbled("something follows the end of the reply's gzip")
        return unpacked

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300

    @property
    def cut_off(self) -> bool:
        """There is more than the cap. One byte more than that is kept."""
        return len(self._body) > self._cap

    def body(self) -> bytes:
        """To be asked for when all has come."""
        unpacked = self._gunzip is None or self._gunzip.eof or not self._begun
        if not unpacked and self.succeeded and not self.cut_off:
            raise BrokenOff
        return bytes(self._body)
