"""Opens runs for writing. A new run is begun, an earlier one is continued; the run is locked meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from memorybench.core.errors import RunConflict

from .lock import LOCK_NAME
from .places import journal_of
from .rows import Fingerprint, Run, differences
from .run_changes import Fault
from .run_reader import RunReader, check_new
from .run_writer import Redact, RunWriter, now


@contextmanager
def open_run(
    folder: Path,
    run: Run,
    *,
    redact: Redact = str,
    fault: Fault = None,
    reuse: str | None = None,
    begin: bool = True,
) -> Iterator[RunWriter]:
    """Begin a new run in a results folder. `reuse` names an earlier run whose unchanged steps are not repeated.

    With `begin=False`, nothing but the lock of the run is written until the caller calls `RunWriter.begin`. Raise
    RunConflict if a run with this id exists.
    """
    check_new(folder, run.id, reuse)
    run = run.model_copy(update={"created": now(), "status": "running"})
    with _locked(folder, run, redact, fault, reuse) as run_writer:
        check_new(folder, run.id)  # a process that had the lock may have begun it
        if begin:
            run_writer.begin()
        yield run_writer


@contextmanager
def reopen_run(
    folder: Path,
    run_id: str,
    *,
    fingerprints: Mapping[str, Fingerprint],
    spec_changes: Mapping[str, Any] | None = None,
    redact: Redact = str,
    fault: Fault = None,
    is_joining: bool = False,
) -> Iterator[RunWriter]:
    """Continue a run. Raise RunConflict if something that it depends on, according to `fingerprints`, has changed.

    `spec_changes` are new values for its spec that change no result, such as the budget. With `is_joining`, this
    process only helps the one that began or resumed the run: `spec_changes` are ignored, and failed trials are not
    tried again.
    """
    with RunReader.open(folder, thorough=False) as run_reader:
        run = run_reader.run(run_id)
    current = {
        name: mark if mark.text is None else mark.model_copy(update={"text": redact(mark.text)})
        for name, mark in fingerprints.items()
    }
    if changes := differences(run.fingerprints, current):
        raise RunConflict(
            f"run {run_id} cannot be resumed: {'; '.join(changes)}; undo the change, or start a new run"
            f" with --reuse {run_id}, which reuses unchanged steps"
        )
    reuse = run.spec.get("reuse")
    reuse = reuse if isinstance(reuse, str) else None
    with _locked(folder, run, redact, fault, reuse) as run_writer:
        with RunReader.open(folder, thorough=False) as run_reader:
            run_reader.run(run_id)  # raises if it was deleted or renamed before the lock was ours
        run_writer.open()
        if is_joining:
            run_writer.join()
        else:
            run_writer.resume(spec_changes or {})
        yield run_writer


@contextmanager
def _locked(folder: Path, run: Run, redact: Redact, fault: Fault, reuse: str | None) -> Iterator[RunWriter]:
    """Hold the lock of a run while the context is open.

    If the run was not begun until then, remove the lock file and the folders that were created for it.
    """
    journal, own = journal_of(folder), folder / run.id
    new = [place for place in (own, *own.parents) if not place.exists()]
    lock = journal.lock(run.id, shared=True)
    run_writer = RunWriter(run, journal, lock, redact=redact, fault=fault, reuse=reuse)
    try:
        with closing(run_writer):
            yield run_writer
    finally:
        if not run_writer.is_begun:
            with suppress(OSError):  # a folder is not empty
                (own / LOCK_NAME).unlink()
                for place in new:
                    place.rmdir()
        lock.release()
