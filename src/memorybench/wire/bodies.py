"""Reads and unpacks a body piece by piece, so that a bomb never stands in memory."""

from __future__ import annotations

import zlib

from aiohttp import ClientPayloadError, ClientResponse

ACCEPTED_ENCODING = "gzip"


class Garbled(Exception):
    """The body is not packed as it claims. Says why, without a word of its content."""


async def read_body(response: ClientResponse, cap: int) -> bytes:
    """The unpacked body, or its first `cap + 1` bytes: the one too many says that there is more."""
    gunzip = _gunzip(response.headers.get("Content-Encoding", "identity"))
    if gunzip is None and response.content_length is not None and response.content_length <= cap:
        return await response.content.read()
    body = bytearray()
    async for piece in response.content.iter_any():
        room = cap + 1 - len(body)
        body += _unpacked(gunzip, piece, room) if gunzip else piece[:room]
        if len(body) > cap:
            response.close()  # the rest is not worth draining
            return bytes(body)
    if body and gunzip and not gunzip.eof:
        raise ClientPayloadError("the gzip stream breaks off")
    return bytes(body)


def _gunzip(encoding: str) -> zlib._Decompress | None:
    match encoding.strip().lower():
        case "identity" | "":
            return None
        case "gzip" | "x-gzip":
            return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        case _:
            raise Garbled("the reply is packed in a way that was not asked for")


def _unpacked(gunzip: zlib._Decompress, piece: bytes, room: int) -> bytes:
    try:
        unpacked = gunzip.decompress(piece, room)
    except zlib.error:
        raise Garbled("the reply is not the gzip it claims to be") from None
    if gunzip.unused_data:
        raise Garbled("something follows the end of the reply's gzip")
    return unpacked
