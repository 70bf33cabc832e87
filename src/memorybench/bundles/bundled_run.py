"""The run of a bundle, read into memory to be checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from msgspec import Struct, field

from memorybench.core.questions import Dataset
from memorybench.datasets.audit import AuditDataset, read_canonical_audit
from memorybench.journal.rows import Fingerprint, Run
from memorybench.suites.judge_check import NOTE as JUDGE_NOTE
from memorybench.suites.recorded_form import ERRORS
from memorybench.suites.replayed_steps import RecordedRun
from memorybench.suites.shards import SHARD

from .archive import ATTEMPTS, CASES, NOTES, OUTCOMES, STEPS, Archive
from .contents import KeptRows
from .rows import AttemptRow, CaseRow, NoteRow, OutcomeRow, RunRow, StepRow

AUDIT_DATA = "dataset"
"""The first word in the name of an audit dataset's fingerprint, such as `dataset orders`; the id of the dataset
follows."""


class BundledRun(Struct):
    """The run of a bundle, read into memory, and the benchmark data that is available on this machine."""

    archive: Archive
    rows: KeptRows
    run: RunRow
    datasets: Mapping[str, Dataset | AuditDataset]
    """The benchmark data that is available on this machine, by benchmark."""
    known_config: Callable[[str], str | None] = lambda _: None
    """A function that returns the text of a benchmark's config on this machine, or None if it is unknown here."""
    cases: dict[tuple[str, str], CaseRow] = field(default_factory=dict)
    """The cases, by benchmark and case id."""
    steps: dict[str, StepRow] = field(default_factory=dict)
    attempted: set[str] = field(default_factory=set)
    """The keys of steps that were attempted, whether or not they have a result."""
    outcomes: list[OutcomeRow] = field(default_factory=list)
    judge_notes: list[str] = field(default_factory=list)
    same_inputs: set[str] = field(default_factory=set)
    """The keys of steps whose recorded inputs equal the recomputed ones; `judge_claims` and `score_claims` add them."""

    @property
    def is_public(self) -> bool:
        return self.archive.manifest.public

    @property
    def is_whole(self) -> bool:
        """Whether the run is complete and not a shard, so that it has all trials of its settings."""
        return self.run.status == "complete" and not self.run.spec.get(SHARD)

    def read(self) -> Iterator[str]:
        """Read all rows into memory; yield the names of rows that occur twice."""
        for case in self.rows.of(CASES, CaseRow):
            if (case.benchmark, case.id) in self.cases:
                yield f"case {case.id}"
            self.cases[case.benchmark, case.id] = case
        for step in self.rows.of(STEPS, StepRow):
            if step.key in self.steps:
                yield f"step {step.key}"
            self.steps[step.key] = step
        ids = set()
        for attempt in self.rows.of(ATTEMPTS, AttemptRow):
            if attempt.id in ids:
                yield f"attempt {attempt.id}"
            ids.add(attempt.id)
            self.attempted.add(attempt.key)
        trials = set()
        for outcome in self.rows.of(OUTCOMES, OutcomeRow):
            if outcome.trial in trials:
                yield f"outcome {outcome.trial}"
            trials.add(outcome.trial)
            self.outcomes.append(outcome)
        for note in self.rows.of(NOTES, NoteRow):
            if note.kind == JUDGE_NOTE:
                self.judge_notes.append(note.text)

    def recorded(self) -> RecordedRun:
        """Return the run for rescoring, with those available datasets whose fingerprint the run recorded."""
        same = {name: one for name, one in self.datasets.items() if self.has_fingerprint(name, one)}
        conversations = {name: one for name, one in same.items() if isinstance(one, AuditDataset)}
        for benchmark, recorded in self._recorded_conversations():
            conversations.setdefault(benchmark, recorded)
        run = Run(**{name: getattr(self.run, name) for name in RunRow.model_fields})
        return RecordedRun(
            run,
            {key: self.cases[key].body for key in self._case_keys()},
            self.steps,
            {name: one for name, one in same.items() if not isinstance(one, AuditDataset)},
            conversations,
        )

    def _case_keys(self) -> Iterable[tuple[str, str]]:
        """Return benchmark and id of all cases: first those with an outcome, in the order of the report."""
        trials = (row.body.trial for row in sorted(self.outcomes, key=lambda row: row.ordinal))
        asked = dict.fromkeys((trial.benchmark, trial.case_id) for trial in trials)
        return [*(key for key in asked if key in self.cases), *(key for key in self.cases if key not in asked)]

    def has_fingerprint(self, name: str, dataset: Dataset | AuditDataset) -> bool:
        mark = self.data_mark(name)
        return mark is not None and _fingerprint(dataset).digest == mark.digest

    def data_mark(self, name: str) -> Fingerprint | None:
        marks = self.run.fingerprints
        return marks.get(f"benchmark {name}") or marks.get(f"{AUDIT_DATA} {name}")

    def _recorded_conversations(self) -> Iterator[tuple[str, AuditDataset]]:
        """Yield (id, dataset) of each audit dataset whose text is in the bundle. A run keeps only short texts."""
        for name, mark in self.run.fingerprints.items():
            kind, _, id = name.partition(" ")
            if kind == AUDIT_DATA and mark.text is not None:
                with suppress(*ERRORS):
                    dataset = read_canonical_audit(mark.text)
                    if dataset.id == id and self.has_fingerprint(id, dataset):
                        yield id, dataset


def _fingerprint(dataset: Dataset | AuditDataset) -> Fingerprint:
    if isinstance(dataset, AuditDataset):
        return Fingerprint.of_parts(dataset.canonical_parts())
    return Fingerprint.of(dataset.fingerprint)
