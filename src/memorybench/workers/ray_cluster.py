"""Performs a run on a Ray cluster. This process is the driver: it starts workers, follows them and writes the reports.

Workers are Ray actors. Ray starts a worker again when its process or machine dies; the recorded steps of the run are
not repeated. The extra `ray` installs Ray.
"""

from __future__ import annotations

import asyncio
import logging
import math
import shutil
import signal
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memorybench import __version__
from memorybench.core.errors import BadInput, JournalError
from memorybench.engine.budget import Budget
from memorybench.engine.following import OutcomeFeed
from memorybench.engine.run import Ending
from memorybench.engine.stopping import Stop, stop_on_signals
from memorybench.journal.run_writer import RunWriter
from memorybench.reporting.progress import RunProgress
from memorybench.suites.running import PerformElsewhere
from memorybench.suites.spec import RunOptions, unsaved_values
from memorybench.suites.starting import Start
from memorybench.wiring.environment import environment, named_variables, set_variables

from .ray_worker import RayWorker, WorkerProcess, WorkerResult, WorkerTask

LOCAL = "local"
_MOST_RESTARTS = 20
"""The most restarts per worker, so that a conversation that crashes each worker does not occupy the cluster forever."""
_CONNECT_SECONDS = 10.0
_START_SECONDS = 300.0
_DRAIN_SECONDS = 60.0
_KILL_SECONDS = 10.0
_POLL_SECONDS = 0.5
_MOST_FILE_BYTES = 500 * 2**20
"""The most bytes that Ray accepts for all files of a job together."""


@contextmanager
def ray_workers(start: Start, stopping: Stop) -> Iterator[PerformElsewhere]:
    """Connect to Ray, start the workers, and yield a function that performs the run on the workers.

    If that is not possible, raise BadInput before anything is recorded or spent.
    """
    ray, options = import_module("ray"), start.options
    variables = named_variables(options.ray_env, "--ray-env")
    with TemporaryDirectory(prefix="memorybench-ray-") as folder:
        copy_files(options.ray_files, Path(folder))
        _connect(ray, options, folder if options.ray_files else None)
        try:
            actors = _start_workers(ray, options)
            task = WorkerTask(
                journal=options.journal or "",
                run_id=start.place.run_id,
                concurrency=options.concurrency,
                given=unsaved_values(start.prepared.spec),
                folder=None if options.ray_files else str(Path.cwd()),
                variables=variables,
            )
            yield _Driver(ray, actors, task, stopping).perform
        finally:
            ray.shutdown()


def copy_files(paths: Sequence[str], folder: Path) -> None:
    """Copy files and folders, which must be in the working folder, to the same relative paths in `folder`.

    Raise BadInput if a path does not exist, or the copies are larger than Ray accepts.
    """
    here = Path.cwd().resolve()
    for name in paths:
        path = Path(name).resolve()
        if not path.exists():
            raise BadInput("--ray-files", f"{name}: not found", remedy="check the path")
        if not path.is_relative_to(here) or path == here:
            raise BadInput(
                "--ray-files",
                f"{name}: the path is not inside the working folder",
                remedy="run the command in a folder that contains the files, or put them on every machine",
            )
        target = folder / path.relative_to(here)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(path, target)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > _MOST_FILE_BYTES:
        raise BadInput(
            "--ray-files",
            f"the files have {size / 2**20:,.0f} MiB",
            expected=f"at most {_MOST_FILE_BYTES / 2**20:.0f} MiB",
            remedy="put large files on every machine, or on a shared file system",
        )


def _connect(ray: Any, options: RunOptions, folder: str | None) -> None:
    address = options.ray or LOCAL
    if ray.is_initialized():
        raise BadInput("--ray", "this process is already connected to Ray", remedy="call ray.shutdown() first")
    arguments: dict[str, Any] = {"address": address, "logging_level": logging.ERROR}
    if folder is not None:
        arguments["runtime_env"] = {"working_dir": folder}
    if address == LOCAL:
        if "RAY_USAGE_STATS_ENABLED" not in environment():
            set_variables({"RAY_USAGE_STATS_ENABLED": "0"})  # otherwise Ray sends usage statistics to its developers
        arguments |= {"include_dashboard": False, "object_store_memory": 80 * 2**20}
        print("memorybench: starting Ray on this machine …", file=sys.stderr)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _check_address(address)
        ray.init(**arguments)
    except Exception as error:
        versions = "that the cluster has the same versions of Python and Ray"
        raise BadInput(
            "--ray",
            f"cannot connect to {address} ({_one_line(error)})",
            remedy=f"check the address, RAY_AUTH_MODE and RAY_AUTH_TOKEN, and {versions}",
        ) from None
    with suppress(ValueError):  # outside of the main thread, where Ray cannot change the handler either
        signal.signal(signal.SIGTERM, handler)


def _check_address(address: str) -> None:
    """Raise OSError if nothing listens at a HOST:PORT. Ray itself would try for a minute and may end the process."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if separator and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()


def _start_workers(ray: Any, options: RunOptions) -> list[Any]:
    number, cpus = options.workers or 1, options.cpus_per_worker
    total = ray.cluster_resources().get("CPU", 0.0)
    if total < number * cpus:
        fitting = math.floor(total / cpus)
        fewer = f"at most --workers {fitting}, or " if fitting else ""
        raise BadInput(
            "--workers",
            f"{number} workers with {cpus:g} CPUs each need {number * cpus:g} CPUs, but the cluster has {total:g}",
            remedy=f"use {fewer}a smaller --cpus-per-worker, such as 0.25",
        )
    actor_class = ray.remote(RayWorker).options(
        num_cpus=cpus, max_concurrency=3, max_restarts=_MOST_RESTARTS, max_task_retries=_MOST_RESTARTS
    )
    actors = [actor_class.remote() for _ in range(number)]
    calls = [actor.process.remote() for actor in actors]
    _, late = ray.wait(calls, num_returns=number, timeout=_START_SECONDS)
    if late:
        raise BadInput(
            "--workers",
            f"only {number - len(late)} of {number} workers started within {_START_SECONDS:.0f} s",
            remedy="wait until CPUs of the cluster are free, or use fewer workers",
        )
    try:
        processes: list[WorkerProcess] = ray.get(calls)
    except Exception as error:  # such as Ray's error if a machine of the cluster does not have the code
        raise BadInput(
            "--ray",
            f"a worker cannot start ({_one_line(error)})",
            remedy=f"install memorybench {__version__} with its extras on every machine of the cluster",
        ) from None
    for process in processes:
        if process.version != __version__:
            raise BadInput(
                "--ray",
                f"{process.host} has memorybench {process.version}, but this machine has {__version__}",
                remedy="install the same version on every machine of the cluster",
            )
    return actors


class _Driver:
    """Starts the work of the workers, shows their progress and waits until they have ended."""

    def __init__(self, ray: Any, actors: Sequence[Any], task: WorkerTask, stopping: Stop) -> None:
        self._ray = ray
        self._actors = actors
        self._task = task
        self._stopping = stopping
        stopping.at_once = self._stop_at_once
        self._calls: dict[Any, int] = {}
        """The calls of `RayWorker.perform` that have not returned yet, each with the number of its worker."""
        self._processes: dict[int, WorkerProcess] = {}
        """The process that each worker ran in when it last replied, by the number of the worker."""
        self._news: dict[Any, int] = {}
        """The calls of `RayWorker.news` that have not returned yet, each with the number of its worker."""
        self._endings: list[Ending] = []
        self._errors: list[str] = []

    async def perform(self, run_writer: RunWriter, budget: Budget, progress: RunProgress) -> Ending:
        stopping = self._stopping
        budget.read_total, budget.recount = run_writer.spending, run_writer.recount_spending
        outcomes = OutcomeFeed(run_writer, budget, progress)
        calls = self._calls = {actor.perform.remote(self._task): n for n, actor in enumerate(self._actors)}
        with stop_on_signals(stopping):
            try:
                while calls:
                    if stopping.is_set():
                        self._stop(calls.values())
                    ended, _ = self._ray.wait(list(calls), num_returns=len(calls), timeout=0)
                    for call in ended:
                        self._end(calls.pop(call), call)
                    self._read_news(calls.values(), progress)
                    outcomes.read_sometimes()
                    await asyncio.sleep(_POLL_SECONDS)
            finally:
                if calls:  # an exception ends the driver, so that nothing follows the workers any more
                    self._stop(calls.values())
                    self._ray.wait(list(calls), num_returns=len(calls), timeout=_DRAIN_SECONDS)
                self._kill()
        return self._ending(stopping)

    def _ending(self, stopping: Stop) -> Ending:
        performed = sum(ending.performed for ending in self._endings)
        if any(ending.status == "complete" for ending in self._endings):
            return Ending("complete", False, performed)
        if stopping.is_set():
            return Ending("partial", True, performed)
        if not self._endings:
            raise JournalError(
                f"all workers failed; the first error: {self._errors[0]}; remove its cause, then continue with --resume"
            )
        return Ending("partial", False, performed, next((one.paused for one in self._endings if one.paused), ""))

    def _stop_at_once(self) -> None:
        """Kill the workers and wait until Ray reports that they are dead, so that they make no more calls."""
        self._kill()
        if self._calls:
            self._ray.wait(list(self._calls), num_returns=len(self._calls), timeout=_KILL_SECONDS)

    def _kill(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor)

    def _stop(self, numbers: Iterable[int]) -> None:
        """Ask the workers with these numbers to stop after their calls in flight.

        Must be called repeatedly: a worker that Ray restarts has forgotten the earlier request.
        """
        for number in numbers:
            self._actors[number].stop.options(max_task_retries=0).remote()

    def _end(self, number: int, call: Any) -> None:
        try:
            result: WorkerResult = self._ray.get(call)
        except Exception as error:  # the worker died _MOST_RESTARTS times, or the cluster does not exist any more
            self._report_error(number, f"Ray does not start it again ({_one_line(error)})")
            return
        if result.ending is None:
            self._report_error(number, result.error, result.process)
            return
        self._endings.append(result.ending)
        _report(f"worker {number + 1} ({result.process}): {result.ending.performed} trials performed")

    def _report_error(self, number: int, error: str, process: WorkerProcess | None = None) -> None:
        where = process or self._processes.get(number)
        text = f"worker {number + 1}{f' ({where})' if where else ''}: {error}"
        self._errors.append(text)
        _report(text)

    def _read_news(self, numbers: Iterable[int], progress: RunProgress) -> None:
        """Show how many sessions the workers have added to memories, and which workers Ray has restarted.

        Do not wait for replies, because a worker that is starting does not reply yet.
        """
        ended, _ = self._ray.wait(list(self._news), num_returns=len(self._news), timeout=0) if self._news else ([], [])
        for call in ended:
            number = self._news.pop(call)
            with suppress(self._ray.exceptions.RayError):
                process, adding = self._ray.get(call)
                before = self._processes.get(number)
                self._processes[number] = process
                if before is not None and before != process:
                    _report(f"worker {number + 1} ({before}) died; Ray started it again ({process})")
                for one in adding:
                    with suppress(Exception):  # an error in showing progress must not stop the run
                        progress.add_sessions(one)
        for number in set(numbers) - set(self._news.values()):
            self._news[self._actors[number].news.options(max_task_retries=0).remote()] = number


def _report(text: str) -> None:
    with suppress(OSError):  # a closed terminal must not stop the run
        print(f"memorybench: {text}", file=sys.stderr, flush=True)


def _one_line(error: BaseException) -> str:
    """Return the last non-empty line of an error. Ray puts a traceback before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
