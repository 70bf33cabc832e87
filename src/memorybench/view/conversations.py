"""The conversations of a run, read again from its data, because a run records the turns with evidence only.

The data is that which the spec of the run names. It is read only if it is in this package, in the cache, or below the
folder of the viewer or of the results, and if its fingerprint is the one that the run recorded: a results file from
others makes no other file appear on a page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from memorybench import catalog
from memorybench.core.conversation import Haystack
from memorybench.core.errors import BadInput, ConsentRequired
from memorybench.files.reading import check_confined
from memorybench.journal.rows import Fingerprint, Run

_LARGEST_AUDIT = 16 * 2**20
"""Bytes of an audit dataset, which is read into memory as a whole."""
SUITES = ("bench", "audit")
"""Those whose questions are about conversations: a scenario or a transcript is none."""
ReadConversation = Callable[[str], Haystack]


def open_conversations(run: Run, benchmark: str, results: Path) -> ReadConversation:
    """Return the function that reads a conversation; raise BadInput if the data is not here or has changed."""
    kind = "dataset" if run.suite == "audit" else "benchmark"
    recorded = run.fingerprints.get(f"{kind} {benchmark}")
    if recorded is None:
        raise BadInput(f"run {run.id}", "no fingerprint of its conversations was recorded")
    folders = (results.parent, Path.cwd(), Path(catalog.__file__).parent)
    read = (_open_audit if run.suite == "audit" else _open_benchmark)(run, benchmark, recorded, folders)

    def read_conversation(id: str) -> Haystack:
        try:
            return read(id)
        except KeyError:
            raise BadInput(benchmark, f"history {id} not found in the data") from None

    return read_conversation


def _open_benchmark(run: Run, benchmark: str, recorded: Fingerprint, folders: Sequence[Path]) -> ReadConversation:
    from memorybench.wiring.live import LiveWiring

    named = run.spec.get("data_files")
    file = named.get(benchmark) if isinstance(named, Mapping) else None
    places = [place for name in run.spec.get("config_dirs") or () for place in _places(name, folders)[:1]]
    wiring = LiveWiring([str(place) for place in places if place.is_dir()])
    try:
        return wiring.reopen_dataset(benchmark, recorded, _find(file, folders) if file else None, folders).haystack
    except ConsentRequired:
        raise BadInput(
            f'benchmark "{benchmark}"', "its config needs consent (--allow-code), which the viewer never gives"
        ) from None


def _open_audit(run: Run, benchmark: str, recorded: Fingerprint, folders: Sequence[Path]) -> ReadConversation:
    from memorybench.datasets.audit import load_audit
    from memorybench.suites.audit.plan import Transcripts

    file = _find(run.spec.get("dataset"), folders)
    check_confined(file, folders, _LARGEST_AUDIT)
    dataset = load_audit(file)
    if Fingerprint.of_parts(dataset.canonical_parts()).digest != recorded.digest:
        raise BadInput(str(file), "changed since the run", expected="the recorded fingerprint")
    return Transcripts(dataset).haystack


def _find(name: object, folders: Sequence[Path]) -> Path:
    return next(iter(_places(name, folders)), folders[0] / str(name))


def _places(name: object, folders: Sequence[Path]) -> list[Path]:
    """Return where a path of a spec may lead to below these folders; in one of them the run was probably started."""
    found = []
    for folder in folders:
        try:
            place = (folder / str(name)).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):  # missing, a loop of links, or a NUL byte
            continue
        found += [place] if any(place.is_relative_to(other.resolve()) for other in folders) else []
    return found
