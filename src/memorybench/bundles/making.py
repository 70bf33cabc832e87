"""Makes a bundle from a stored run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.processes.programs import temporary_folder
from memorybench.suites.stored_run import StoredRun

from .archive import (
    CONTENT,
    CROISSANT,
    EVERY_EVAL_EVER,
    OUTCOMES,
    REPORT,
    RO_CRATE,
    RUN,
    Entry,
    Manifest,
    entry_of,
    write_archive,
)
from .contents import Rows, import_rows, pretty, report_document, write_rows
from .documents import croissant, every_eval_ever, ro_crate
from .rows import RunRow

Sign = Callable[[Manifest, RunRow, Mapping[str, Any]], str]
"""A function that takes the manifest, the run and its report, and returns the text of the signature."""


def make_bundle(stored: StoredRun, output: Path, *, public: bool = False, sign: Sign | None = None) -> Manifest:
    """Write the bundle of a run to `output` and return its manifest. The same run and key give the same bytes."""
    run = stored.run
    if len(stored.parts) > 1:
        raise BadInput("RUN", "the run consists of several shards", remedy="merge them first with `memorybench merge`")
    if run.status == "running":
        raise BadInput(run.id, "the run has not ended", remedy="wait until the run has ended, or resume the run")
    with temporary_folder("memorybench-bundle-") as folder:
        files = write_rows(stored.parts[0][0], run, folder, public=public)
        document = _report(folder, files, run.id, public)
        row = RunRow.model_validate_json(files[RUN].read_text(encoding="utf-8"))
        for name, text in derived_texts(row, document, {name: entry_of(file) for name, file in files.items()}).items():
            files[name] = folder / name
            files[name].write_text(text, encoding="utf-8", newline="\n")
        assert set(files) == set(CONTENT)
        envelope = None if sign is None else lambda manifest: sign(manifest, row, document)
        return write_archive(output, files, public=public, sign=envelope)


def _report(folder: Path, files: Mapping[str, Path], run: str, public: bool) -> Mapping[str, Any]:
    results = folder / "imported" / "results"
    import_rows(Rows.in_files(files), results)
    try:
        return report_document(run, results)
    except BadInput as error:
        if not public:
            raise
        raise BadInput(
            run,
            "the report of this run cannot be made without the texts that --public leaves out",
            remedy="leave out --public",
        ) from error


def derived_texts(run: RunRow, report: Mapping[str, Any], entries: Mapping[str, Entry]) -> dict[str, str]:
    """Return the texts, by name, of files that are derived from the rows: the report, and descriptions for other tools.

    `entries` are the digests and sizes of the files with rows, by name.
    """
    texts = {REPORT: pretty(report), RO_CRATE: pretty(ro_crate(run))}
    texts[EVERY_EVAL_EVER] = pretty(every_eval_ever(run, report, entries[OUTCOMES]))
    content = texts[REPORT].encode()
    described = {**entries, REPORT: Entry(sha256=hashlib.sha256(content).hexdigest(), size=len(content))}
    texts[CROISSANT] = pretty(croissant(run, described))
    return texts
