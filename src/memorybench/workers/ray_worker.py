"""A worker on a Ray cluster: the class of its Ray actor, and the values that it exchanges with the driver."""

from __future__ import annotations

import os
import socket
import sys
import traceback
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct

from memorybench import __version__
from memorybench.core.errors import MemorybenchError
from memorybench.core.plans import Adding
from memorybench.engine.run import Ending
from memorybench.engine.stopping import Stop
from memorybench.reporting.progress import RunProgress
from memorybench.wiring.environment import redactor, set_variables
from memorybench.wiring.output import redacted_output

from .joining import join_run


@dataclass(frozen=True, slots=True)
class WorkerTask:
    """What a worker needs to join a run. It may contain secrets, because Ray does not show the arguments of calls."""

    journal: str
    run_id: str
    concurrency: int | None
    given: Mapping[str, Any]
    """Values that are not saved with the run, such as consent."""
    folder: str | None
    """The folder to work in, if it exists on the worker's machine; None: the folder that has the copied --ray-files."""
    variables: Mapping[str, str] = field(repr=False)


class WorkerProcess(Struct, frozen=True):
    host: str
    pid: int
    version: str

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.host}"


class WorkerResult(Struct, frozen=True):
    process: WorkerProcess
    ending: Ending | None = None
    error: str = ""
    """Why the worker failed, in one line without secrets; "" if it did not fail."""


class RayWorker:
    """The Ray actor that performs trials of a run. Ray calls its methods in separate threads."""

    def __init__(self) -> None:
        # Ray copies a worker's standard output to that of the driver, which must contain only the report
        os.dup2(2, 1)
        self._is_stopping = False
        self._stop: Stop | None = None
        self._adding: dict[tuple[str, str, str], Adding] = {}

    def process(self) -> WorkerProcess:
        return WorkerProcess(socket.gethostname(), os.getpid(), __version__)

    def perform(self, task: WorkerTask) -> WorkerResult:
        """Join the run and perform trials until none is left, as `memorybench worker` does."""
        set_variables(task.variables)
        if task.folder is not None and Path(task.folder).is_dir():
            os.chdir(task.folder)
        with redacted_output():
            try:
                joined = join_run(
                    task.journal,
                    task.run_id,
                    task.given,
                    show=self._follow,
                    options={"concurrency": task.concurrency},
                    new_stop=self._new_stop,
                )
                return WorkerResult(self.process(), joined.ending)
            except MemorybenchError as error:
                return WorkerResult(self.process(), error=redactor().clean(" ".join(str(error).split())))
            except Exception as error:
                print("".join(traceback.format_exception(error)), file=sys.stderr, flush=True)
                text = redactor().clean(" ".join(str(error).split()))
                return WorkerResult(self.process(), error=f"unexpected {type(error).__name__}: {text}")

    def stop(self) -> None:
        """Make `perform` return after the calls in flight have finished."""
        self._is_stopping = True
        if self._stop is not None:
            self._stop.set_from_thread()

    def _new_stop(self) -> Stop:
        self._stop = Stop()
        if self._is_stopping:
            self._stop.set()
        return self._stop

    def news(self) -> tuple[WorkerProcess, list[Adding]]:
        """Return this worker's process, and the progress of the haystacks that got sessions since the last call."""
        adding, self._adding = self._adding, {}
        return self.process(), list(adding.values())

    def _follow(self, progress: RunProgress) -> AbstractContextManager[None]:
        progress.on_adding = self._add
        return nullcontext()

    def _add(self, adding: Adding) -> None:
        self._adding[adding.benchmark, adding.subject, adding.haystack] = adding
