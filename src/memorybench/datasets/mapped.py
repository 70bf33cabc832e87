"""Datasets described by a benchmark config: LoCoMo, LongMemEval and users' own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path as FilePath
from typing import NamedTuple

from memorybench.core.conversation import Haystack
from memorybench.core.errors import BadInput
from memorybench.core.garbage import garbage_collected_rarely
from memorybench.core.questions import EvidenceLevel, Question
from memorybench.core.records import digest
from memorybench.files.located import Document
from memorybench.files.parquet import BinaryValues
from memorybench.text.sanitize import preview

from .config import BenchmarkConfig
from .evidence import Evidence, resolve
from .fingerprints import fingerprint_of, settings_of
from .ids import DuplicateId
from .index import Index, index_file, load_index, save_index
from .item_context import ItemContext
from .item_reader import ItemReader
from .items import Item, Selection, Span, read_items, read_span
from .joins import ItemStream
from .sources import Source
from .survey import Survey

_CACHED_HAYSTACKS = 32
"""Number of haystacks in memory; more than a run processes at the same time."""
_MARK = re.compile(r'["|]\s*@\w')
"""Matches a name such as `@key` at the beginning of a path or of an alternative in it, in the JSON of a schema."""
_MOST_ERRORS = 100
"""After this number of items with errors, the other items are not read."""


class MappedDataset:
    """A Dataset with its questions in memory, which reads haystacks from the file on demand."""

    def __init__(
        self,
        config: BenchmarkConfig,
        fingerprint: str,
        questions: tuple[Question, ...],
        notes: tuple[str, ...],
        contexts: Mapping[str, Callable[[], ItemContext]],
        cached: int = _CACHED_HAYSTACKS,
    ) -> None:
        assert config.mapping is not None
        self.name = config.name
        self.fingerprint = fingerprint
        self.evidence: EvidenceLevel = config.mapping.evidence_level
        self.questions = questions
        self.notes = notes
        """The irregularities of the data, one text with a count each."""
        self._format = config.mapping.evidence_format
        self._context = lru_cache(maxsize=cached)(lambda id: contexts[id]())

    def haystack(self, id: str) -> Haystack:
        return Haystack(id, self._context(id).sessions, fingerprint=digest([self.fingerprint, id]))

    def resolve_evidence(self, question: Question, ids: Sequence[str]) -> Evidence:
        """Resolve ids of the data to turns and sessions of the question's haystack."""
        return resolve(ids, self._context(question.haystack), self.evidence, self._format)


def index_of(config: BenchmarkConfig, files: Sequence[FilePath], indexes: FilePath) -> FilePath | None:
    """Return the path of the index of a dataset, whether it exists or not; None if the dataset has none."""
    if len(files) > 1 or _is_assembled(config):
        return None
    return index_file(indexes, files[0], digest([*settings_of(config)]))


def _is_assembled(config: BenchmarkConfig) -> bool:
    """Return whether questions depend on more than their item: on joined files, its position, or a `prefixField`."""
    mapping = config.mapping
    assert mapping is not None
    is_prefix = mapping.questions is not None and mapping.questions.prefix_field is not None
    return is_prefix or bool(config.data.join) or _MARK.search(mapping.model_dump_json()) is not None


def open_mapped(
    config: BenchmarkConfig,
    source: Source,
    checksum: Callable[[], str],
    indexes: FilePath | None = None,
    *,
    cached: int = _CACHED_HAYSTACKS,
    survey: Survey | None = None,
) -> MappedDataset:
    """Open the data files of a source as a dataset; raise BadInput if they cannot be read.

    If there is one large file, an index is written to the folder `indexes`, which makes the next opening fast.
    `checksum` returns the checksum of all files, or raises BadInput if it is not the expected one. `cached` is the
    number of haystacks that stay in memory; `survey` collects what was read.
    """
    assert config.mapping is not None
    files = source.item_files
    stream = ItemStream(config.data, files, source.joined, source.folder) if _is_assembled(config) else None
    binary: BinaryValues = {} if stream is None else stream.binary
    selection = Selection(config.data.where, f"{config.name}: data.where") if stream is None else stream.selection
    reader = ItemReader(config, config.mapping, stream, survey)
    index_at = index_of(config, files, indexes) if indexes is not None else None
    if index_at is not None and index_at.exists():
        index = load_index(index_at, fingerprint_of(config, checksum()))
        if index is not None:
            contexts = {id: reader.again(partial(read_span, files[0], span)) for id, span in index.spans.items()}
            return MappedDataset(config, index.fingerprint, index.questions, index.notes, contexts, cached)
    with ThreadPoolExecutor(max_workers=1) as thread, garbage_collected_rarely():
        checking = thread.submit(checksum)  # while the file is parsed
        try:
            reader.find_cuts()
            data = config.data
            plain = (read_items(one, data.format, data.items, binary, selection) for one in files)
            items = _read_all(reader, stream or selection.of(chain.from_iterable(plain)))
        except BadInput:
            checking.result()  # an unexpected file is the cause, and says more
            raise
        fingerprint = fingerprint_of(config, checking.result())
    questions = tuple(items.questions)
    if not questions:
        is_filtered = selection.left_out or selection.filtered
        raise BadInput(
            str(files[0]),
            "the data has no questions",
            expected="at least one item",
            remedy=f"correct data.{'where' if selection.left_out else 'items'}" if is_filtered else "check the file",
        )
    reader.check_used(str(files[0]), has_answers=not all(question.abstain for question in questions))
    notes = (*selection.notes(), *reader.notes(), *_binary_notes(binary))
    places = {id: span for id, span in items.spans.items() if span is not None}
    if index_at is not None and len(places) == len(items.spans):
        save_index(index_at, Index(fingerprint=fingerprint, questions=questions, notes=notes, spans=places))
    return MappedDataset(config, fingerprint, questions, notes, items.contexts, cached)


class _ReadItems(NamedTuple):
    """The questions of all items, and how to read their histories again."""

    questions: list[Question]
    contexts: dict[str, Callable[[], ItemContext]]
    """For each haystack, a function that reads its history again."""
    spans: dict[str, Span | None]
    """For each haystack, the place of its item in the file; None if the item cannot be read alone."""


def _read_all(reader: ItemReader, items: Iterable[Item]) -> _ReadItems:
    """Read all items. If items have errors, raise BadInput with the first one and the number of the others.

    An error before the first question is raised at once, because the config may be wrong.
    """
    read = _ReadItems([], {}, {})
    errors: list[tuple[BadInput, Document]] = []
    for item in items:
        try:
            parts = reader.read(item.document)
        except BadInput as error:
            if not read.questions:
                raise  # the config may be wrong; after other items, the item is
            errors.append((error, item.document))
            if isinstance(error, DuplicateId) or len(errors) == _MOST_ERRORS:
                break
            continue
        for part in parts:
            if part.haystack not in read.contexts:
                read.contexts[part.haystack] = reader.again(item.again, part)
                read.spans[part.haystack] = item.span
        # in the order of the data
        numbered = sorted((one for part in parts for one in part.questions), key=lambda pair: pair[0])
        read.questions.extend(question for _, question in numbered)
    if errors:
        raise reader.broken_item(*errors[0], len(errors) - 1)
    return read


def _binary_notes(binary: BinaryValues) -> Iterator[str]:
    for column, count in sum(binary.values(), Counter()).items():
        yield f"binary values of the column {preview(column)}, not read: {count:,}"
