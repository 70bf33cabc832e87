"""The conversations of a run, read again from its data, because a run records the turns with evidence only.

The spec of the run names the data. It is read only if it is in this package, in the cache, or below the folder of the
viewer or of the results, and if it has the fingerprint that the run recorded. So a results file of another person
cannot make the viewer show any other file.
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
"""The largest audit dataset that is read, in bytes, because it is read into memory as a whole."""
SUITES = ("bench", "audit")
"""The suites whose questions are about conversations."""
ReadConversation = Callable[[str], Haystack]


def open_conversations(run: Run, benchmark: str, results: Path) -> ReadConversation:
    """Return a function that reads a conversation by its id. Raise BadInput if the data is missing or has changed."""
    kind = "dataset" if run.suite == "audit" else "benchmark"
    recorded = run.fingerprints.get(f"{kind} {benchmark}")
    if recorded is None:
        raise BadInput(
            f"run {run.id}",
            "it has no fingerprint to check its conversations by, so they cannot be shown",
            remedy="start a new run to record one",
        )
    folders = (results.parent, Path.cwd(), Path(catalog.__file__).parent)
    read = (_open_audit if run.suite == "audit" else _open_benchmark)(run, benchmark, recorded, folders)

    def read_conversation(id: str) -> Haystack:
        try:
            return read(id)
        except KeyError:
            raise BadInput(benchmark, f"the data has no history {id}") from None

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
            f'benchmark "{benchmark}"',
            "its conversations cannot be shown: the config needs --allow-code, and the viewer runs no code",
        ) from None


def _open_audit(run: Run, benchmark: str, recorded: Fingerprint, folders: Sequence[Path]) -> ReadConversation:
    from memorybench.datasets.audit import load_audit
    from memorybench.suites.audit.plan import Transcripts

    file = _find(run.spec.get("dataset"), folders)
    check_confined(file, folders, _LARGEST_AUDIT)
    dataset = load_audit(file)
    if Fingerprint.of_parts(dataset.canonical_parts()).digest != recorded.digest:
        raise BadInput(
            str(file), "the file was changed since the run", expected="the fingerprint that the run recorded"
        )
    return Transcripts(dataset).haystack


def _find(name: object, folders: Sequence[Path]) -> Path:
    return next(iter(_places(name, folders)), folders[0] / str(name))


def _places(name: object, folders: Sequence[Path]) -> list[Path]:
    """Return the existing files and folders that a path of a spec may mean, relative to each of `folders`.

    Paths that lead out of these folders are left out.
    """
    found = []
    for folder in folders:
        try:
            place = (folder / str(name)).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):  # missing, a loop of links, or a NUL byte
            continue
        found += [place] if any(place.is_relative_to(other.resolve()) for other in folders) else []
    return found
