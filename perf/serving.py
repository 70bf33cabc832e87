"""A server in a process of its own, so that what it takes of the machine is not counted as ours."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection


@contextmanager
def served(serve: Callable[[Connection], None]) -> Iterator[str]:
    """The address of `serve`, which sends its port through the pipe once it listens."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    port = ours.recv()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.join()
