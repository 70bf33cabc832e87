"""Computes slow parts of pages in background threads and caches the parts that were used last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError
from threading import Lock
from typing import Any, TypeVar

Made = TypeVar("Made")
Key = tuple[Hashable, ...]
_MOST_KEPT: dict[Hashable, int] = {"compare": 4, "data": 2}
"""The most parts of a kind that are cached. The kind of a part is the first item of its key.

Parts of these kinds contain all questions of a run.
"""
_MOST_OTHERS = 64


class Pending(Exception):
    """Raised if a part of a page is not ready yet; the browser must request the page again."""


class Jobs:
    def __init__(self, seconds: float = 2.0) -> None:
        """Create the cache. `seconds` is how long `get` waits for a part."""
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="view")
        self._kept: OrderedDict[Key, Future[Any]] = OrderedDict()
        self._lock = Lock()

    def start(self, key: Key, make: Callable[[], Made]) -> Future[Made]:
        """Return a future of `make()`, which is started unless it was already started for this key without an error."""
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
        """Return the result of `make`, which is called once per key. Raise Pending if it is not ready in time.

        An error of `make` is raised; the next call starts `make` again.
        """
        future = self.start(key, make)
        try:
            return future.result(self._seconds)
        except TimeoutError:
            if future.done():
                raise  # the error of `make`
            raise Pending from None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
