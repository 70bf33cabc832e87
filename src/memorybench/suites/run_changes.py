"""Tags, renames, deletes and prunes runs.

A delete or rename marks the run's folder, commits the change to the results file, and then changes the folder. If the
process is killed in between, `repair` sees the mark and completes the change, or undoes it if nothing was committed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from memorybench.core.errors import BadInput, JournalError, Refusal, RunConflict
from memorybench.files.names import inside, safe_run_id, safe_tag
from memorybench.files.writing import write_file
from memorybench.journal import run_changes
from memorybench.journal.lock import LOCK_NAME, remove_unused
from memorybench.journal.places import journal_of
from memorybench.journal.run_changes import BASELINES, references
from memorybench.journal.run_reader import RunReader
from memorybench.journal.sqlite import FILE_NAME
from memorybench.reporting.report_files import FORMATS, HTML_FILE, write_reports

from .html_report import page_without_charts
from .registry import suite, suite_of
from .stored_run import new_run_id, open_stored_run, with_current_status
from .suite import resume_command

if TYPE_CHECKING:
    from memorybench.journal.run_changes import Fault

    from .html_report import MakePage
    from .run_list import ListedRun

_MARK = ".change"
"""The name of a file in the folder of a run that is being deleted or renamed. It contains `delete` or `rename NEW`."""


def change_tags(
    row: ListedRun, tags: Sequence[str], redact: Callable[[str], str], *, remove: bool = False, fault: Fault = None
) -> tuple[str, ...]:
    """Add or remove tags, and return all tags that the run has afterwards."""
    wanted = [redact(safe_tag(tag, "TAG")) for tag in tags]
    missing = [tag for tag in wanted if remove and tag not in row.tags]
    if missing:
        has = f"the tags {', '.join(row.tags)}" if row.tags else "no tags"
        raise BadInput("TAG", f'run {row.run.id} is not tagged "{missing[0]}"; it has {has}')
    kept = (set(row.tags) - set(wanted)) if remove else {*row.tags, *wanted}
    run_changes.change_tags(row.folder, row.run.id, () if remove else wanted, wanted if remove else (), fault)
    return tuple(sorted(kept))


def rename(row: ListedRun, new: str, fault: Fault = None, make_page: MakePage = page_without_charts) -> None:
    run, folder = row.run, row.folder
    new_run_id(new, "NEW")
    _check_not_written(row)
    if run.status not in ("complete", "blocked"):  # the memory of a started run contains its name
        command = resume_command(suite_of(run).command_of(run), folder, run.id)
        raise RunConflict(f"run {run.id} is {run.status} and cannot be renamed; finish it first: {command}")
    with RunReader.open(folder, thorough=False) as run_reader:
        if run_reader.has(new) or (folder / new).exists():
            raise RunConflict(f"{folder} already contains a run or folder named {new}; choose another name")
    check_not_needed([row], renaming=True)
    is_new = not folder.exists()
    with _locked(folder, run.id), _locked(folder, new):
        _mark(folder / run.id, f"rename {new}", fault)
        run_changes.rename_rows(folder, run.id, new, fault)
        _complete(folder, run.id, fault, make_page)
        remove_unused(folder / new)  # the files of a run in a database may be on another machine
    if is_new:
        with suppress(OSError):
            folder.rmdir()


def _check_not_written(row: ListedRun) -> None:
    if journal_of(row.folder).is_locked(row.run.id):
        journal_of(row.folder).lock(row.run.id).release()  # raises with the id of the process


def delete(rows: Sequence[ListedRun], fault: Fault = None) -> int:
    """Delete runs with their folders, and return by how many bytes the results folders became smaller.

    Does not check whether other runs need them: call `check_not_needed` first.
    """
    for row in rows:
        _check_not_written(row)
    folders = dict.fromkeys(row.folder for row in rows)
    new = [folder for folder in folders if not folder.exists()]  # of runs in a database, whose files are elsewhere
    before = sum(_size(folder) for folder in folders)
    for row in rows:
        with _locked(row.folder, row.run.id):
            _mark(row.folder / row.run.id, "delete", fault)
            run_changes.delete_rows(row.folder, row.run.id, fault)
            _complete(row.folder, row.run.id, fault)
    for folder in folders:
        # freeing space would make running processes wait; the next delete frees the space of this one, too
        if not any(journal_of(folder).is_locked(path.name) for path in folder.iterdir() if path.is_dir()):
            with suppress(JournalError):  # needs as much free space as the file; the rows are deleted in any case
                journal_of(folder).free_space()
    for folder in new:
        with suppress(OSError):
            folder.rmdir()
    return max(0, before - sum(_size(folder) for folder in folders))


def prunable(
    rows: Sequence[ListedRun], keep: int = 0, older_than: timedelta | None = None
) -> tuple[list[ListedRun], dict[str, str]]:
    """Return the runs to delete, and the reasons, by run id, why old runs with a tag, in progress or needed are kept.

    `rows` has the newest run first. A run is old if it began longer ago than `older_than`; None: every run is. Tagged,
    running and needed runs are kept, and the newest `keep` of the runs without tags.
    """
    chosen: list[ListedRun] = []
    kept: dict[str, str] = {}
    limit = "" if older_than is None else (datetime.now(UTC) - older_than).isoformat(timespec="milliseconds")
    candidates = 0
    for row in rows:
        is_old = not limit or row.run.created < limit
        if is_old and row.tags:
            kept[row.run.id] = f"tagged {', '.join(row.tags)}"
        elif is_old and row.run.status == "running":
            kept[row.run.id] = "running"
        elif not row.tags:
            candidates += 1
            if is_old and candidates > keep:
                chosen.append(row)
    old = list(chosen)  # a run to delete does not keep its baseline run
    while needed := _first_needed(chosen, ignored=old):
        row, reason = needed
        kept[row.run.id] = reason
        chosen.remove(row)
    return chosen, kept


def repair(folder: Path) -> None:
    """Complete the deletes and renames of processes that were killed, or undo them if nothing was committed."""
    for mark in sorted(folder.glob(f"*/{_MARK}")):
        # a mark is written under the lock; without a lock file, the folder is not that of a run
        if not (mark.parent / LOCK_NAME).exists():
            continue
        # suppressed: another process changes the run, or the folder is read-only
        with suppress(Refusal, OSError), _locked(folder, mark.parent.name):
            _complete(folder, mark.parent.name)


def _complete(folder: Path, run: str, fault: Fault = None, make_page: MakePage = page_without_charts) -> None:
    """Finish the change that the mark in a run's folder names, or undo the mark if nothing was committed."""
    own = folder / run
    action, _, new = (own / _MARK).read_text("utf-8", "replace").strip().partition(" ")
    if action not in ("delete", "rename"):
        return  # the file of another program
    if new:  # the folder may come from others
        inside(folder, safe_run_id(new, str(own / _MARK)), str(own / _MARK))
    with RunReader.open(folder, thorough=False) as run_reader:
        is_committed = not run_reader.has(run)
    if not is_committed:
        (own / _MARK).unlink()
        if new:
            remove_unused(folder / new)
        return
    if action == "rename":
        (folder / new).mkdir(mode=0o700, exist_ok=True)
    for entry in [entry for entry in own.iterdir() if entry.name not in (_MARK, LOCK_NAME)]:
        if action == "rename":
            entry.replace(folder / new / entry.name)
        elif entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
        if fault is not None:
            fault()
    if action == "rename":
        _write_reports(folder, new, make_page)
    (own / _MARK).unlink()
    remove_unused(own)


def _write_reports(folder: Path, run: str, make_page: MakePage) -> None:
    """Write the reports of a renamed run again, because they contain its name."""
    formats = [name for name, (file, _) in FORMATS.items() if (folder / run / file).exists()]
    with RunReader.open(folder, thorough=False) as run_reader:
        is_known = suite(run_reader.run(run).suite) is not None
    if formats and is_known:
        with open_stored_run([run], [folder]) as stored:
            from .gate import report_of
            from .saved_report import save_report

            report = report_of(stored)
            html = make_page(stored, report) if (folder / run / HTML_FILE).exists() else None
            write_reports(report, folder / run, formats, html)
            save_report(stored, report)


def _mark(folder: Path, text: str, fault: Fault) -> None:
    write_file(folder / _MARK, f"{text}\n")
    if fault is not None:
        fault()


@contextmanager
def _locked(folder: Path, run: str) -> Iterator[None]:
    """Hold the lock of a run while the context is open. Raise BadInput if the folder of the run is a link."""
    own = folder / run
    if own.is_symlink():
        raise BadInput(str(own), "is a symbolic link", remedy="replace it with the folder that it points to")
    lock = journal_of(folder).lock(run)
    try:
        yield
    finally:
        lock.release()


def _first_needed(
    rows: Sequence[ListedRun], *, renaming: bool = False, ignored: Sequence[ListedRun] = ()
) -> tuple[ListedRun, str] | None:
    """Return the first of `rows` that a run outside `rows` still needs, and the reason; None if there is none.

    An unfinished run needs the runs whose steps it reuses; any run needs its baseline run. A run in `ignored` does not
    count as needing its baseline run.
    """
    ids, ignored_ids = ({(row.folder, row.run.id) for row in some} for some in (rows, ignored))
    for folder in dict.fromkeys(row.folder for row in rows):
        with RunReader.open(folder, thorough=False) as run_reader:
            others = [with_current_status(one, folder) for one in run_reader.runs() if (folder, one.id) not in ids]
        for row in (row for row in rows if row.folder == folder):
            for other in others:
                keys = references(other, row.run.id)
                if keys and other.status in ("running", "partial"):
                    return row, f"run {other.id}, which is not finished, needs it"
                if not renaming and (folder, other.id) not in ignored_ids and keys.keys() & set(BASELINES):
                    return row, f"it is the baseline of run {other.id}"
    return None


def check_not_needed(rows: Sequence[ListedRun], *, renaming: bool = False) -> None:
    if needed := _first_needed(rows, renaming=renaming):
        row, reason = needed
        if renaming:
            raise RunConflict(f"run {row.run.id} cannot be renamed: {reason}; finish that run first")
        raise RunConflict(f"run {row.run.id} cannot be deleted: {reason}; delete that run first, or both together")


def _size(folder: Path) -> int:
    """Return the bytes of the results file and of the folders of the runs."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return sum(path.stat().st_size for path in files if path.parent != folder or path.name.startswith(FILE_NAME))
