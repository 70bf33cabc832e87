"""Makes slow parts of pages in background threads and keeps the latest ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError
from threading import Lock
from typing import Any, TypeVar

Made = TypeVar("Made")
Key = tuple[Hashable, ...]
_MOST_KEPT: dict[Hashable, int] = {"compare": 4, "data": 2}
"""By the kind of a part, which its key begins with. A comparison and data have all questions of a run."""
_MOST_OTHERS = 64


class Pending(Exception):
    """A part is not ready yet; the page shall be asked for again."""


class Jobs:
    def __init__(self, seconds: float = 2.0) -> None:
        """`seconds`: how long a page waits for a part."""
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="view")
        self._kept: OrderedDict[Key, Future[Any]] = OrderedDict()
        self._lock = Lock()

    def start(self, key: Key, make: Callable[[], Made]) -> Future[Made]:
        """Start `make` unless it was started for this key; an error is forgotten, so that it is tried again."""
        with self._lock:
            future = self._kept.get(key)
            if future is None or (future.done() and future.exception() is not None):
                future = self._kept[key] = self._threads.submit(make)
            self._kept.move_to_end(key)
            same = [one for one in self._kept if one[0] == key[0]]
            for oldest in same[: -_MOST_KEPT.get(key[0], _MOST_OTHERS)]:
                del self._kept[oldest]
            return future

    def get(self, key: Key, make: Callable[[], Made]) -> Made:
        """Return what `make` returns, made once for each key. Raise Pending if it takes long, or its error."""
        future = self.start(key, make)
        try:
            return future.result(self._seconds)
        except TimeoutError:
            if future.done():
                raise  # the error of `make`
            raise Pending from None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
