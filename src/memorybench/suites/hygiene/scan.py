"""Scans an existing memory for problems. The memory is only read, and secrets and personal data are not recorded."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Literal

from msgspec import Struct

from memorybench.core.errors import BadInput, Lacking
from memorybench.core.records import Record, digest
from memorybench.processes.programs import temporary_folder
from memorybench.secrets.credentials import find_credentials
from memorybench.secrets.hiding import mask, spans_to_hide
from memorybench.suites.blocking import blocking
from memorybench.suites.run_costs import RunCosts
from memorybench.suites.wiring import ResolvedModel, Wiring

from .scan_injection import find_injections
from .scan_meaning import Meanings, read_meanings, relations_by_meaning
from .scan_model import Hint, Kind, MaskedTexts, ask_model, plan_asking
from .scan_personal import Severity, find_personal_data, hide_values
from .scan_statements import Related, Statement, find_relations, is_stale, statements_in
from .scan_texts import LineStarts, Reading, Text, read_paths

Category = Literal["secret", "personal data", "injection", "duplicate", "contradiction", "stale"]
_Piece = tuple[Text, int, int]
"""A text, and the offsets where a part of it starts and ends."""
SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high")
_RELATION_KINDS: Mapping[str, tuple[Category, Severity, str]] = {
    "duplicate": ("duplicate", "low", "repeats an earlier statement"),
    "near duplicate": ("duplicate", "low", "says nearly the same as an earlier statement"),
    "contradiction": ("contradiction", "medium", "may contradict an earlier statement"),
}


class ScanFinding(Record):
    category: Category
    kind: str
    severity: Severity
    file: str
    """The path as given by the user or below a given folder; `store:NAME` for a store."""
    line: int
    column: int
    pointer: str = ""
    """The place in a structured file: a JSON pointer, `table/rowid/column`, or the id of a fact. Parts with a secret or
    personal data are `****`."""
    message: str
    other: str = ""
    """The place of the earlier statement, for duplicates and contradictions; "" for other findings."""
    fingerprint: str
    """Identifies the finding in a baseline. A digest of the file and pointer, the text before it in the line, and,
    unless it is a secret or personal data, the text that was found."""

    @property
    def place(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}"
        return f"{place} ({self.pointer})" if self.pointer else place


class ScanReport(Record):
    findings: tuple[ScanFinding, ...]
    files: int
    texts: int
    skipped: Mapping[str, int]
    """By reason: the number of files, statements or other items that were not read or not compared."""
    accepted: int = 0
    """The number of findings that are in the baseline. They are left out of `findings`."""
    prompts: int = 0
    """The number of prompts for the model that were planned; 0 without a model. One more prompt follows for each
    problem that the model finds, to confirm it."""
    costs: RunCosts | None = None
    """The costs of the model's calls; None if no model was asked."""

    def at_least(self, severity: Severity) -> tuple[ScanFinding, ...]:
        lowest = SEVERITIES.index(severity)
        return tuple(one for one in self.findings if SEVERITIES.index(one.severity) >= lowest)


def scan(
    paths: Sequence[str],
    *,
    store: str | None = None,
    user: str = "user",
    baseline: Sequence[str] = (),
    wiring: Wiring,
    reader: ModelReader | None = None,
) -> ScanReport:
    """Scan files, folders and a store for problems.

    `user` is the user whose facts in `store` are scanned. `baseline` has the fingerprints of findings to leave out.
    `reader` is a model that also reads the memory; None: no model.
    """
    if not paths and store is None:
        raise BadInput("PATH", "missing", expected="files or folders, or --store NAME")
    reading = read_paths(list(paths))
    if store is not None:
        reading.texts += blocking(_read_store(store, user, wiring))
    places, today = _Places(), date.today()
    meanings = read_meanings(reading.texts, wiring)
    findings = list(_find(reading, meanings, today, places))
    prompts, costs = 0, None
    if reader is not None:
        findings, prompts, costs = _read_by_model(reader, reading, meanings, findings, places, today, wiring)
    findings.sort(key=lambda one: (-SEVERITIES.index(one.severity), one.file, one.line, one.column, one.pointer))
    known = set(baseline)
    new = tuple(one for one in findings if one.fingerprint not in known)
    return ScanReport(
        findings=new,
        files=reading.files,
        texts=len(reading.texts),
        skipped=dict(sorted(reading.skipped.items())),
        accepted=len(findings) - len(new),
        prompts=prompts,
        costs=costs,
    )


async def _read_store(name: str, user: str, wiring: Wiring) -> list[Text]:
    """Return the texts of the facts that a store lists for the user. Calls no other operation of the store."""
    resolved = wiring.store(name)
    where = f'store "{name}"'
    if resolved.isolation == "folder":
        raise BadInput(
            where,
            "memorybench starts this store empty, so there is nothing to scan",
            remedy="name the files or the folder of your memory instead",
        )
    with temporary_folder("memorybench-scan-") as folder:
        async with resolved.open(folder) as opened:
            try:
                facts = await opened.list(user)
            except Lacking as lacking:
                raise BadInput(where, str(lacking), expected="a store with a list operation") from None
    file = f"store:{name}"
    fields = ("content", "category", "source")
    return [
        Text(file, text, key, pointer=f"{fact.id}/{key}", group=f"{file}#{key}")
        for fact in facts
        for key in fields
        if (text := getattr(fact, key))
    ]


def _find(reading: Reading, meanings: Meanings | None, today: date, places: _Places) -> Iterator[ScanFinding]:
    statements: list[Statement] = []
    for text in reading.texts:
        yield from _find_in_text(text, places)
        for statement in statements_in(text):
            statements.append(statement)
            if is_stale(statement.text, today):
                message = "may be out of date"
                end = statement.start + len(statement.text)
                yield places.finding(
                    "stale", "time that is over or unknown", "low", text, statement.start, end, message
                )
    related = find_relations(statements)
    for relation, earlier, later in [*related, *_reworded(reading, related, meanings)]:
        category, severity, message = _RELATION_KINDS[relation]
        start, end = later.start, later.start + len(later.text)
        before = (earlier.source, earlier.start, earlier.start + len(earlier.text))
        yield places.finding(category, relation, severity, later.source, start, end, message, before)


def _reworded(reading: Reading, related: Sequence[Related], meanings: Meanings | None) -> Iterator[Related]:
    """Yield related pairs that embeddings find. Leave out those whose later statement is the later one of `related`.

    Count in `reading.skipped` the statements that were not compared, because their folder has too many.
    """
    if meanings is None:
        reading.skipped["comparison of meanings, which needs memorybench[embed]"] += 1
        return
    pairs, left_out = relations_by_meaning(meanings)
    if left_out:
        reading.skipped["statements beyond the limit of a folder"] += left_out
    known: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for _, _, later in related:
        known[id(later.source)].append((later.start, later.start + len(later.text)))
    for relation, earlier, later in pairs:
        if not any(start <= later.start < end for start, end in known[id(later.source)]):
            yield relation, earlier, later


def _find_in_text(text: Text, places: _Places) -> Iterator[ScanFinding]:
    named = f"{text.key}: " if text.key else ""
    credentials = []
    for secret in find_credentials(named + text.text):
        start, end = max(secret.start - len(named), 0), max(secret.end - len(named), 0)
        if end:
            credentials.append((start, end))
            category: Category = "personal data" if secret.kind == "payment card number" else "secret"
            named_kind = f"a secret: {secret.kind}" if category == "secret" else f"{category}: {secret.kind}"
            message = f"contains {named_kind}, {end - start} characters"
            yield places.finding(category, secret.kind, "high", text, start, end, message)
    for data in find_personal_data(named + text.text):
        start, end = data.start - len(named), data.end - len(named)
        if start >= 0 and not any(at < end and start < to for at, to in credentials):
            message = f"contains personal data: {data.kind}"
            yield places.finding("personal data", data.kind, data.severity, text, start, end, message)
    for injection in find_injections(text.text):
        message = f"may instruct an agent: {injection.kind}"
        yield places.finding(
            "injection", injection.kind, injection.severity, text, injection.start, injection.end, message
        )


class ModelReader(Struct, frozen=True):
    """A model that also reads the memory, and where its replies are recorded."""

    model: ResolvedModel
    results: Path
    budget: float | None = None
    dry_run: bool = False
    """Count the prompts, but do not send them."""


_CATEGORIES: Mapping[Category, Kind] = {
    "personal data": "personal",
    "stale": "stale",
    "duplicate": "duplicate",
    "contradiction": "contradiction",
}
_KINDS: Mapping[str, Kind] = {"API key or token": "secret", "order to an agent": "injection"}
"""The model is asked about findings of these kinds and of _CATEGORIES. The format of other secrets is proof enough."""
_BY_MODEL: Mapping[Kind, tuple[Category, Severity, str]] = {
    "secret": ("secret", "high", "contains a secret"),
    "injection": ("injection", "high", "may instruct an agent"),
    "personal": ("personal data", "medium", "contains personal data"),
    "stale": ("stale", "low", "may be out of date"),
    "duplicate": ("duplicate", "low", "says the same as an earlier statement"),
    "contradiction": ("contradiction", "medium", "contradicts an earlier statement"),
}


def _read_by_model(
    reader: ModelReader,
    reading: Reading,
    meanings: Meanings | None,
    findings: Sequence[ScanFinding],
    places: _Places,
    today: date,
    wiring: Wiring,
) -> tuple[list[ScanFinding], int, RunCosts | None]:
    """Return the findings without those that the model denies, followed by those that only the model found.

    Also return the number of planned prompts, and the costs. In a dry run, the model is not asked.
    """
    texts = MaskedTexts(reading.texts)
    candidates = {
        one.fingerprint: Hint(kind=kind, spans=tuple(texts.span_of(*piece) for piece in places.spans[one.fingerprint]))
        for one in findings
        if (kind := _CATEGORIES.get(one.category) or _KINDS.get(one.kind))
    }
    asked = plan_asking(texts, meanings, tuple(candidates.values()))
    prompts = sum(one.prompts for one in asked)
    if reader.dry_run:
        return list(findings), prompts, None
    if meanings is None and sum(bool(one.lines) for one in asked) > 1:
        reading.skipped["comparison of files by the model, which needs memorybench[embed]"] += 1
    found = ask_model(texts, asked, reader.model, wiring, today=today, results=reader.results, budget=reader.budget)
    if found.failed:
        why = f" ({found.problem})" if found.problem else ""
        reading.skipped[f"parts that the model did not read{why}; repeat the command"] += found.failed
    if found.unread:
        reading.skipped["replies of the model that could not be read"] += found.unread
    kept = [one for one in findings if candidates.get(one.fingerprint) not in found.denied]
    for hint in found.confirmed:
        category, severity, message = _BY_MODEL[hint.kind]
        *before, (text, start, end) = ((reading.texts[span.text], span.start, span.end) for span in hint.spans)
        if not any(one.category == category and places.is_at(one, (*before, (text, start, end))) for one in kept):
            earlier = before[0] if before else None
            kept.append(places.finding(category, "found by a model", severity, text, start, end, message, earlier))
    return kept, prompts, found.costs


def _text_for_fingerprint(category: Category, text: str, start: int, end: int) -> str:
    """Return the found text as part of a fingerprint: if it changes, an accepted finding is reported again.

    Empty for secrets and personal data, which could be guessed from the digest.
    """
    if category in ("secret", "personal data"):
        return ""
    if category == "injection":  # what it orders, and the address it names, are after the words that were found
        stop = text.find("\n", end)
        line = text[start : stop if stop >= 0 else len(text)]
        return mask(line, spans_to_hide(line))
    return hide_values(text[start:end])


class _Places:
    """Creates findings with lines, columns and fingerprints."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._text: Text | None = None
        self._lines = LineStarts("")
        self.spans: dict[str, tuple[_Piece, ...]] = {}
        """By fingerprint of a finding: the part of a text that it is about, after the earlier statement if there is
        one."""

    def position(self, text: Text, offset: int) -> tuple[int, int]:
        if text.pointer:
            return text.line, text.column
        if text is not self._text:
            self._text, self._lines = text, LineStarts(text.text)
        return self._lines.position(offset)

    def place(self, text: Text, offset: int) -> str:
        line, column = self.position(text, offset)
        return f"{text.file}:{line}:{column}" + (f" ({text.shown_pointer})" if text.pointer else "")

    def is_at(self, finding: ScanFinding, spans: Sequence[_Piece]) -> bool:
        """Return whether every part of a finding overlaps one of the parts of texts in `spans`."""
        return all(
            any(text is other and start < to and at < end for other, at, to in spans)
            for text, start, end in self.spans[finding.fingerprint]
        )

    def finding(
        self,
        category: Category,
        kind: str,
        severity: Severity,
        text: Text,
        start: int,
        end: int,
        message: str,
        earlier: _Piece | None = None,
    ) -> ScanFinding:
        line, column = self.position(text, start)
        around = text.text[text.text.rfind("\n", 0, start) + 1 : start]
        hidden = [(one.start, one.end) for one in find_credentials(around)]
        for at, to in reversed(hidden):
            around = around[:at] + around[to:]
        found = _text_for_fingerprint(category, text.text, start, end)
        identity = digest([category, kind, text.file, text.shown_pointer, around, found])
        self._seen[identity] += 1
        fingerprint = digest([identity, self._seen[identity]])
        self.spans[fingerprint] = (*((earlier,) if earlier else ()), (text, start, end))
        return ScanFinding(
            category=category,
            kind=kind,
            severity=severity,
            file=text.file,
            line=line,
            column=column,
            pointer=text.shown_pointer,
            message=message,
            other="" if earlier is None else self.place(*earlier[:2]),
            fingerprint=fingerprint,
        )
