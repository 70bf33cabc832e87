"""A sequence that needs little memory for many objects, because it keeps them as compressed pickles."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Generic, TypeVar, overload

T = TypeVar("T")
_FAST_COMPRESSION = 1
_UNPACKED = 32
"""How many chunks stay unpacked in a cache, because readers alternate between a few places."""


class PackedSequence(Sequence[T], Generic[T]):
    """An immutable sequence. Reading an item returns a copy that is equal to the original, not the original object."""

    def __init__(self, items: Iterable[T], per_chunk: int = 64) -> None:
        remaining = iter(items)
        self._per_chunk = per_chunk
        self._length = 0
        self._chunks: list[bytes] = []
        while chunk := list(islice(remaining, per_chunk)):
            self._length += len(chunk)
            self._chunks.append(zlib.compress(pickle.dumps(chunk, pickle.HIGHEST_PROTOCOL), _FAST_COMPRESSION))
        self._cached = lru_cache(maxsize=_UNPACKED)(self._unpack)

    def _unpack(self, number: int) -> list[T]:
        chunk: list[T] = pickle.loads(zlib.decompress(self._chunks[number]))  # noqa: S301  # packed by this process
        return chunk

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        for number in range(len(self._chunks)):
            yield from self._unpack(number)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        if isinstance(place, slice):
            return tuple(self[one] for one in range(self._length)[place])
        number, offset = divmod(range(self._length)[place], self._per_chunk)
        return self._cached(number)[offset]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # compared by its items, as a list is
