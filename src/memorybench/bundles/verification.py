"""Checks a bundle: what follows from its other parts is computed again by the code that computed it first.

Nothing is called and nothing is downloaded. What no computation can show, such as that a model really gave a recorded
reply, is listed as declared.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from pydantic import ValidationError

from memorybench.core.errors import BadInput, Lacking, MemorybenchError, Unreadable
from memorybench.core.questions import Dataset
from memorybench.core.records import canonical
from memorybench.core.trials import Outcome, Score, Subject
from memorybench.datasets.audit import AuditDataset, read_canonical_audit
from memorybench.engine.steps import step_key
from memorybench.journal.rows import Fingerprint, Run
from memorybench.judging.canaries import STEP as CANARY
from memorybench.judging.canaries import CanaryReport
from memorybench.judging.judge import Verdict, reread_verdict
from memorybench.suites.blocking import blocking
from memorybench.suites.judge_check import NOTE as JUDGE_NOTE
from memorybench.suites.judge_check import STEP as JUDGE_CHECK
from memorybench.suites.judge_check import canary_limit, check_note, prompts_digest, unchecked_note
from memorybench.suites.recorded_form import ERRORS
from memorybench.suites.registry import suite_of
from memorybench.suites.replayed_steps import (
    CannotRescore,
    Contradiction,
    RecordedRun,
    ReplayedSteps,
    Rescored,
    Rescorer,
)
from memorybench.suites.shards import SHARD
from memorybench.text.sanitize import printable, shorten

from .archive import (
    ATTEMPTS,
    CASES,
    CONTENT,
    CROISSANT,
    EVERY_EVAL_EVER,
    NOTES,
    OUTCOMES,
    REPORT,
    RO_CRATE,
    RUN,
    STEPS,
    Archive,
    open_archive,
)
from .claims import Claim, Level, Verification, claim
from .contents import Rows, opened_run, pretty, report_document, without_paths
from .documents import croissant
from .making import derived_texts, same_json
from .rows import AttemptRow, CaseRow, NoteRow, OutcomeRow, RunRow, StepRow
from .signing import PublicKey, signature_claims

_JUDGING = ("judge", CANARY, "entail", "support")
"""Steps whose result is a verdict."""
AUDIT_DATA = "dataset"
"""How the fingerprint of an audit's conversations is named, before their id."""
_REDACTED = "[redacted]"
_SIGNED = ("name", "value", "low", "high", "n")
_OTHER_INPUTS = "they follow from recorded steps, but whether these are the steps of the trial is not known here"
_NOT_SCORED = "that the trial could not be scored is not shown by a missing or unreadable reply"
_NO_RESULT = "a call of the trial has no result, so that scores may be missing"
_UNLIKE = 1e-9
"""How much a recomputed score may differ, relative to its size: other versions of numpy may round otherwise."""


def verify_bundle(
    path: Path, datasets: Mapping[str, Dataset | AuditDataset] | None = None, keys: Sequence[PublicKey] = ()
) -> Verification:
    """Check a bundle. `datasets` has the available data by benchmark; `keys` are the keys that you trust."""
    with open_archive(path) as archive:
        rows = Rows.in_archive(archive)
        changed = archive.changed_files()
        if changed:
            text = "files are not those of the manifest; nothing else was checked"
            claims = [claim("digests", "contradicted", text, changed)]
            return _verification(archive, None, claims)
        claims = [claim("digests", "proved", "each file has the digest of the manifest, and the root covers all", n=10)]
        run = rows.run()
        check = _Check(archive, rows, run, datasets or {})
        try:
            claims += check.claims()
        except (*ERRORS, RuntimeError) as error:
            raise BadInput(
                str(path), f"does not have the form that memorybench writes ({_text(str(error))})"
            ) from error
        claims += signature_claims(archive.signature, archive.manifest, run, _report(archive), keys)
        return _verification(archive, run, claims, check.same_inputs)


def _report(archive: Archive) -> Mapping[str, Any]:
    """Return the report of the bundle; it is checked elsewhere."""
    try:
        report = json.loads(archive.text(REPORT))
        for result in report["results"]:
            for measure in result["measures"]:
                _ = result["benchmark"], result["subject"], result["group"], *(measure[key] for key in _SIGNED)
    except (ValueError, TypeError, LookupError, RecursionError):
        return {"results": []}
    found: Mapping[str, Any] = report
    return found


def _verification(
    archive: Archive, run: RunRow | None, claims: Sequence[Claim], same_inputs: Iterable[str] = ()
) -> Verification:
    return Verification(
        file=printable(str(archive.path)),
        run_id=run.id if run else "",
        suite=printable(run.suite) if run else "",
        root=archive.manifest.root,
        public=archive.manifest.public,
        claims=tuple(claims),
        same_inputs=frozenset(same_inputs),
    )


@dataclass(slots=True)
class _Check:
    archive: Archive
    rows: Rows
    run: RunRow
    datasets: Mapping[str, Dataset | AuditDataset]
    same_inputs: set[str] = field(default_factory=set)
    _cases: dict[tuple[str, str], CaseRow] = field(default_factory=dict)
    _steps: dict[str, StepRow] = field(default_factory=dict)
    _attempted: set[str] = field(default_factory=set)
    _outcomes: list[OutcomeRow] = field(default_factory=list)
    _judge_notes: list[str] = field(default_factory=list)

    @property
    def _public(self) -> bool:
        return self.archive.manifest.public

    def claims(self) -> Iterator[Claim]:
        repeated = list(self._read())
        if repeated:
            yield claim("rows", "contradicted", "rows occur twice", repeated)
        else:
            n = len(self._cases) + len(self._steps) + len(self._outcomes)
            yield claim("rows", "proved", "every row has the form of its table, and occurs once", n=n)
        yield from self._keys()
        recorded = self._recorded()
        suite_rescorer = suite_of(recorded.run).rescorer(recorded)
        yield from self._trials(suite_rescorer)
        yield from self._fingerprints()
        rescorer = None if self._public else suite_rescorer
        yield from self._data(recorded, rescorer)
        yield from self._selection(recorded, rescorer)
        yield from self._models()
        yield from self._verdicts()
        yield from self._canaries(recorded, rescorer)
        yield from self._check_notes(recorded)
        yield from self._scores(recorded, rescorer)
        yield from self._derived_files()
        yield from self._declared()

    def _read(self) -> Iterator[str]:
        """Read all rows; yield the names of those that occur twice."""
        for case in self.rows.of(CASES, CaseRow):
            if (case.benchmark, case.id) in self._cases:
                yield f"case {case.id}"
            self._cases[case.benchmark, case.id] = case
        for step in self.rows.of(STEPS, StepRow):
            if step.key in self._steps:
                yield f"step {step.key}"
            self._steps[step.key] = step
        ids = set()
        for attempt in self.rows.of(ATTEMPTS, AttemptRow):
            if attempt.id in ids:
                yield f"attempt {attempt.id}"
            ids.add(attempt.id)
            self._attempted.add(attempt.key)
        trials = set()
        for outcome in self.rows.of(OUTCOMES, OutcomeRow):
            if outcome.trial in trials:
                yield f"outcome {outcome.trial}"
            trials.add(outcome.trial)
            self._outcomes.append(outcome)
        for note in self.rows.of(NOTES, NoteRow):
            if note.kind == JUDGE_NOTE:
                self._judge_notes.append(note.text)

    def _keys(self) -> Iterator[Claim]:
        """A step's key is the digest of its name and inputs."""
        if self._public:
            yield claim("inputs of steps", "unchecked", "left out of a public bundle", n=len(self._steps))
            return
        wrong, redacted = [], 0
        for key, step in self._steps.items():
            inputs = canonical(step.inputs)
            if step_key(step.name, inputs) != key:
                if _REDACTED in inputs:
                    redacted += 1
                else:
                    wrong.append(f"{_text(step.name)} {key}")
        proved = len(self._steps) - len(wrong) - redacted
        yield claim("inputs of steps", "proved", "the key of each step is the digest of its inputs", n=proved)
        if redacted:
            yield claim("inputs of steps", "unchecked", "a secret was removed from them", n=redacted)
        if wrong:
            yield claim("inputs of steps", "contradicted", "the key of a step is not the digest of its inputs", wrong)

    def _trials(self, rescorer: Rescorer | None) -> Iterator[Claim]:
        """Each planned trial has one outcome, which rests on recorded steps and on a recorded case."""
        wrong, unknown = [], ""
        places = set()
        for row in self._outcomes:
            outcome, name = row.body, _name(row.body)
            if outcome.trial.key != row.trial:
                wrong.append(f"{name}: its key is not the digest of the trial")
            if row.ordinal in places:
                wrong.append(f"{name}: its place is taken")
            places.add(row.ordinal)
            if outcome.trial.suite != self.run.suite:
                wrong.append(f"{name}: is of another suite")
            if outcome.status == "scored":
                if (outcome.trial.benchmark, outcome.trial.case_id) not in self._cases:
                    wrong.append(f"{name}: its case is missing")
                missing = [key for key in outcome.steps if key not in self._steps and key not in self._attempted]
                wrong += [f"{name}: its step {key} is missing" for key in missing]
                if outcome.failure is not None:
                    wrong.append(f"{name}: is scored, and failed")
            elif outcome.scores and outcome.status != "unscored":
                wrong.append(f"{name}: is {outcome.status}, and has scores")
        planned, found = self.run.planned, len(self._outcomes)
        if found > planned or (found < planned and self.run.status == "complete"):
            wrong.append(f"{found} outcomes of {planned} planned trials")
        is_whole = self.run.status == "complete" and not self.run.spec.get(SHARD)
        if is_whole and places and (len(places) != planned or max(places) >= planned):
            wrong.append("the places of the outcomes have gaps")
        if is_whole:
            try:
                wrong += self._other_subjects() or self._other_trials(rescorer)
            except CannotRescore as error:
                unknown = _text(str(error))
        asked = {(row.body.trial.benchmark, row.body.trial.case_id) for row in self._outcomes}
        wrong += [f"case {_text(id)}: has no outcome" for benchmark, id in self._cases if (benchmark, id) not in asked]
        if wrong:
            yield claim("trials", "contradicted", "outcomes do not fit the run, its cases and its steps", wrong)
        elif unknown:
            yield claim("trials", "declared", f"that no trials are missing or added ({unknown})", n=found)
        else:
            text = "each subject of the settings has an outcome for each trial of each case, with its steps"
            if found < planned:
                text = f"each outcome has its case and its steps; {planned - found} planned trials have no outcome"
            yield claim("trials", "proved", text, n=found)

    def _other_subjects(self) -> list[str]:
        """Return how the subjects of a complete run differ from those of its settings."""
        spec = self.run.spec
        benchmarks, subjects = spec.get("benchmarks"), spec.get("subjects")
        if not _are_names(benchmarks) or not _are_names(subjects):
            raise CannotRescore("the settings do not name the benchmarks and subjects")
        keys: dict[str, set[str]] = defaultdict(set)
        found: dict[tuple[str, str], int] = Counter()
        for row in self._outcomes:
            trial = row.body.trial
            keys[trial.subject.name].add(trial.subject.key)
            found[trial.benchmark, trial.subject.name] += 1
        saved = spec.get("questions")
        sizes = saved if isinstance(saved, dict) else {}
        # traces may have no operations of one kind
        named = [name for name in benchmarks if sizes.get(name) != 0 or any(own == name for own, _ in found)]
        expected = {(benchmark, subject) for benchmark in named for subject in subjects}
        wrong = [f"{_text(name)}: has several settings" for name, own in keys.items() if len(own) > 1]
        wrong += [f"{_text(one)}: {_text(name)} has no outcomes" for one, name in sorted(expected - found.keys())]
        wrong += [
            f"{_text(one)}: {_text(name)} is not named by the settings" for one, name in sorted(found.keys() - expected)
        ]
        if len(set(subjects)) != len(subjects):
            wrong.append("the settings name a subject twice")
        return wrong

    def _other_trials(self, rescorer: Rescorer | None) -> list[str]:
        """Return how the trials of a complete run differ: every subject gets every case in every repeat."""
        repeats = self.run.spec.get("repeats") or 1
        if not isinstance(repeats, int) or not 1 <= repeats <= max(1, len(self._outcomes)):
            return ["the settings have another number of repeats"]
        found: dict[tuple[str, str, str], list[tuple[str, int]]] = defaultdict(list)
        cases: dict[str, set[str]] = defaultdict(set)
        subjects = set()
        for row in self._outcomes:
            trial = row.body.trial
            found[trial.benchmark, trial.case_id, trial.subject.key].append((trial.variant, trial.repeat))
            cases[trial.benchmark].add(trial.case_id)
            subjects.add(trial.subject.key)
        if len(subjects) * sum(map(len, cases.values())) > len(self._outcomes):
            return ["a subject lacks cases that another one has"]
        wrong = []
        for benchmark, ids in cases.items():
            for id in sorted(ids):
                expected = self._trials_of_case(benchmark, id, rescorer)
                for subject in subjects:
                    own = sorted(found[benchmark, id, subject])
                    if expected is None:  # one trial per repeat; its variant is compared with the case elsewhere
                        is_same = sorted(repeat for _, repeat in own) == list(range(1, repeats + 1))
                    else:
                        is_same = own == sorted(expected)
                    if not is_same:
                        wrong.append(f"{_text(benchmark)} × {_text(id)}: a subject lacks trials, or has others")
        return wrong

    def _trials_of_case(self, benchmark: str, id: str, rescorer: Rescorer | None) -> Collection[tuple[str, int]] | None:
        """Return the variant and repeat of each trial that a case implies; None: one trial per repeat."""
        if rescorer is None or rescorer.trials_of_case is None:
            return None
        case = self._cases.get((benchmark, id))
        if case is None:  # of trials that failed
            raise CannotRescore("a case is not recorded")
        return rescorer.trials_of_case(case.body)

    def _fingerprints(self) -> Iterator[Claim]:
        wrong, proved, declared, redacted = [], [], [], []
        for name, mark in self.run.fingerprints.items():
            if mark.text is None:
                declared.append(_text(name))
            elif Fingerprint.of(mark.text).digest == mark.digest:
                proved.append(_text(name))
            elif _REDACTED in mark.text:
                redacted.append(_text(name))
            else:
                wrong.append(_text(name))
        if proved:
            text = "configs, prompts and models have the digests that the run recorded"
            yield claim("fingerprints", "proved", text, n=len(proved))
        if declared:
            yield claim("fingerprints", "declared", "only the digest is in the bundle", declared)
        if redacted:
            yield claim("fingerprints", "unchecked", "a secret was removed from the text", redacted)
        if wrong:
            yield claim("fingerprints", "contradicted", "a text does not have its digest", wrong)

    def _recorded(self) -> RecordedRun:
        """Return the run, with the available data that has the recorded fingerprint."""
        same = {name: one for name, one in self.datasets.items() if self._has_fingerprint(name, one)}
        conversations = {name: one for name, one in same.items() if isinstance(one, AuditDataset)}
        for benchmark, recorded in self._recorded_conversations():
            conversations.setdefault(benchmark, recorded)
        run = Run(**{name: getattr(self.run, name) for name in RunRow.model_fields})
        return RecordedRun(
            run,
            {key: self._cases[key].body for key in self._case_keys()},
            self._steps,
            {name: one for name, one in same.items() if not isinstance(one, AuditDataset)},
            conversations,
        )

    def _case_keys(self) -> Iterable[tuple[str, str]]:
        """Return the keys of all cases, in the order in which the run asked their questions."""
        trials = (row.body.trial for row in sorted(self._outcomes, key=lambda row: row.ordinal))
        asked = dict.fromkeys((trial.benchmark, trial.case_id) for trial in trials)
        return [*(key for key in asked if key in self._cases), *(key for key in self._cases if key not in asked)]

    def _has_fingerprint(self, name: str, dataset: Dataset | AuditDataset) -> bool:
        mark = self._data_mark(name)
        return mark is not None and _fingerprint(dataset).digest == mark.digest

    def _data_mark(self, name: str) -> Fingerprint | None:
        marks = self.run.fingerprints
        return marks.get(f"benchmark {name}") or marks.get(f"{AUDIT_DATA} {name}")

    def _recorded_conversations(self) -> Iterator[tuple[str, AuditDataset]]:
        """Yield the audit datasets that are small enough for their texts to be in the bundle."""
        for name, mark in self.run.fingerprints.items():
            kind, _, id = name.partition(" ")
            if kind == AUDIT_DATA and mark.text is not None:
                with suppress(*ERRORS):
                    dataset = read_canonical_audit(mark.text)
                    if dataset.id == id and self._has_fingerprint(id, dataset):
                        yield id, dataset

    def _data(self, recorded: RecordedRun, rescorer: Rescorer | None) -> Iterator[Claim]:
        """Check that the available data has the recorded fingerprint, and that each case is one of its questions."""
        wrong, declared, changed = [], [], []
        for benchmark in dict.fromkeys(benchmark for benchmark, _ in self._cases):
            given = self.datasets.get(benchmark)
            is_marked = self._data_mark(benchmark) is not None
            if given is not None and is_marked and not self._has_fingerprint(benchmark, given):
                wrong.append(_text(benchmark))
                continue
            others = self._changed_cases(recorded.data.get(benchmark), rescorer)
            if others:
                changed += [f"{_text(benchmark)}: {_text(one)}" for one in others]
            # conversations of the bundle itself do not show that they are those of the named data
            if others is None or given is None:
                declared.append(_text(benchmark))
                continue
            count = sum(own == benchmark for own, _ in self._cases) - len(others)
            text = "questions and gold are those of the data, which has the recorded fingerprint"
            yield claim("cases", "proved", text, n=count)
        if declared:
            text = (
                "that these are the questions, gold answers or scenarios of the named data, which is not available here"
            )
            yield claim("cases", "declared", text, declared)
        if changed:
            yield claim("cases", "contradicted", "are not the questions of the data", changed)
        if wrong:
            yield claim("cases", "contradicted", "the data here has another fingerprint than the run recorded", wrong)

    def _changed_cases(self, dataset: object, rescorer: Rescorer | None) -> Sequence[str] | None:
        """Return the ids of cases that are not those of the data; None if this is unknown."""
        if dataset is None or rescorer is None or rescorer.changed_cases is None:
            return None
        try:
            return rescorer.changed_cases(dataset)
        except CannotRescore:
            return None

    def _selection(self, recorded: RecordedRun, rescorer: Rescorer | None) -> Iterator[Claim]:
        """Check that the settings of a complete run select exactly its cases from the data."""
        wrong, proved, declared = [], 0, []
        is_whole = self.run.status == "complete" and not self.run.spec.get(SHARD)
        own: dict[str, set[str]] = defaultdict(set)
        for row in self._outcomes:
            own[row.body.trial.benchmark].add(row.body.trial.case_id)
        for benchmark in {**own, **recorded.data}:
            selected = self._selected_cases(recorded.data.get(benchmark), rescorer) if is_whole else None
            if selected is not None and selected == own[benchmark]:
                proved += len(selected)
            elif selected is not None and recorded.is_of_this_version:
                missing, added = len(selected - own[benchmark]), len(own[benchmark] - selected)
                wrong.append(f"{_text(benchmark)}: {missing} cases are missing, {added} are not selected")
            else:
                declared.append(_text(benchmark))
        if proved:
            text = "the settings select exactly these questions or probes from the data"
            yield claim("selection", "proved", text, n=proved)
        if declared:
            text = "that the settings select exactly these questions, probes or scenarios"
            yield claim("selection", "declared", text, declared)
        if wrong:
            yield claim("selection", "contradicted", "the settings select other cases from the data", wrong)

    def _selected_cases(self, dataset: object, rescorer: Rescorer | None) -> set[str] | None:
        if dataset is None or rescorer is None or rescorer.selected_cases is None:
            return None
        try:
            return set(rescorer.selected_cases(dataset))
        except (MemorybenchError, *ERRORS):
            return None

    def _models(self) -> Iterator[Claim]:
        """Check that every model that a step called is one of the settings."""
        if self._public:
            return  # the inputs of steps are left out, and listed as unchecked
        judges, answerers = (str(self.run.spec.get(key) or "").split(", ") for key in ("judge", "answerer"))
        expected = {**dict.fromkeys((*_JUDGING, JUDGE_CHECK), judges), "answer": answerers}
        wrong, proved, declared = [], 0, Counter[str]()
        for step in self._steps.values():
            model = _model_of(step)
            if model is None:
                continue
            names = expected.get(step.name, [""])
            if names == [""]:
                declared[_text(step.name)] += 1
            elif model in names:
                proved += 1
            else:
                wrong.append(f"{_text(step.name)} {step.key} asked {_text(model)}")
        if proved:
            yield claim("models", "proved", "steps asked the models that the settings name", n=proved)
        if declared:
            text = "which model these steps asked"
            yield claim("models", "declared", text, list(declared), n=declared.total())
        if wrong:
            yield claim("models", "contradicted", "steps asked other models than the settings name", wrong)

    def _canaries(self, recorded: RecordedRun, rescorer: Rescorer | None) -> Iterator[Claim]:
        """The counts of a check of the judge follow from its recorded verdicts on canaries."""
        checks = [step for step in self._steps.values() if step.name == JUDGE_CHECK]
        verdicts = [key for key, step in self._steps.items() if step.name == CANARY]
        if not checks:
            if verdicts and self.run.status == "complete":
                yield claim("canaries", "contradicted", "verdicts on canaries were not counted", verdicts)
            elif self.run.spec.get("judge"):
                yield claim("canaries", "declared", "that the judge was not checked with known answers")
            return
        for step in checks:
            level, text = self._canary_level(step, verdicts, recorded, rescorer, is_only=len(checks) == 1)
            yield claim("canaries", level, text, [step.key] if level == "contradicted" else (), n=len(verdicts))

    def _canary_level(
        self,
        step: StepRow,
        verdicts: Sequence[str],
        recorded: RecordedRun,
        rescorer: Rescorer | None,
        *,
        is_only: bool,
    ) -> tuple[Level, str]:
        if rescorer is None or rescorer.check_judge is None:
            return "declared", "how the judge decided cases with known answers"
        steps = ReplayedSteps(verdicts, self._steps, is_strict=True)
        try:
            judge, limit = Subject.model_validate(step.inputs["judge"]), int(step.inputs["limit"])
            prompts, report = blocking(rescorer.check_judge(steps, judge, limit))
        except (CannotRescore, *ERRORS) as error:
            return "declared", f"how the judge decided cases with known answers ({_text(str(error))})"
        is_same = report.plain() == step.result
        # another version may have had other prompts or canaries
        if prompts_digest(prompts) != step.inputs.get("prompts") or (report.unreadable and steps.unused()):
            return "declared", "how the judge decided cases with known answers, which are not those of this version"
        if not is_same:
            return "contradicted", "the recorded verdicts give other counts"
        expected = self._expected_canaries(rescorer)
        if recorded.is_of_this_version and limit < 1:
            return "contradicted", "the judge was checked with no known answers"
        if recorded.is_of_this_version and is_only and steps.unused():
            return "contradicted", "not all recorded verdicts on known answers are counted"
        if recorded.is_of_this_version and expected is not None and limit != expected:
            return "contradicted", f"the settings ask for {expected} known answers, and the check for {limit}"
        if report.unreadable:
            return "declared", f"that the judge gave {report.unreadable} replies that cannot be read"
        if expected != limit or steps.unused() or not report.counts:
            return "declared", "that the judge was checked with these known answers, and no others"
        return "proved", "the check of the judge counts its recorded verdicts on cases with known answers"

    def _expected_canaries(self, rescorer: Rescorer) -> int | None:
        """Return how many canaries the settings ask for; None if this is unknown."""
        asked = self.run.spec.get("canaries")
        if asked is not None:
            return asked if isinstance(asked, int) else 0
        is_whole = self.run.status == "complete" and not self.run.spec.get(SHARD)
        if not is_whole or rescorer.judge_calls is None:
            return None
        calls = 0
        try:
            for row in self._outcomes:
                case = self._cases[row.body.trial.benchmark, row.body.trial.case_id]
                calls += rescorer.judge_calls(case.body)
        except (CannotRescore, LookupError):  # cases of failed trials may be missing
            return None
        return canary_limit(None, calls)

    def _check_notes(self, recorded: RecordedRun) -> Iterator[Claim]:
        """What the report says about the check of the judge follows from its counts."""
        checks = [step for step in self._steps.values() if step.name == JUDGE_CHECK]
        if any(step.result is None for step in checks) or not recorded.is_of_this_version:
            return  # left out, or written in other words
        if checks:
            expected = {check_note(CanaryReport.model_validate(step.result)) for step in checks}
        else:
            expected = {unchecked_note(str(self.run.spec.get("judge")))}
        wrong = [_text(text) for text in self._judge_notes if text not in expected]
        if not self._judge_notes and checks:
            wrong.append("the note is missing")
        if wrong:
            yield claim("canaries", "contradicted", "a note about the judge does not follow from its check", wrong)

    def _verdicts(self) -> Iterator[Claim]:
        judged = [step for step in self._steps.values() if step.name in _JUDGING]
        if not judged:
            return
        if self._public:
            yield claim(
                "verdicts", "declared", "the replies of the judge are left out of a public bundle", n=len(judged)
            )
            return
        proved, declared, wrong = 0, 0, []
        for step in judged:
            try:
                verdict = Verdict.model_validate(step.result)
                is_same = reread_verdict(verdict)
            except ValidationError:
                wrong.append(f"{_text(step.name)} {step.key}")
                continue
            except Unreadable:
                declared += 1
                continue
            proved += is_same
            wrong += [] if is_same else [f"{_text(step.name)} {step.key}"]
        if proved:
            yield claim("verdicts", "proved", "the judge's reply, read again, gives the recorded verdict", n=proved)
        if declared:
            text = "the recorded reply is not the whole reply, and cannot be read again"
            yield claim("verdicts", "declared", text, n=declared)
        if wrong:
            yield claim("verdicts", "contradicted", "the judge's reply gives another verdict", wrong)

    def _scores(self, recorded: RecordedRun, rescorer: Rescorer | None) -> Iterator[Claim]:
        """Compute the scores of each trial again from its case and its recorded steps."""
        found = blocking(self._rescore(rescorer, is_of_this_version=recorded.is_of_this_version))
        if found.proved:
            text = f"computed again from cases and recorded steps: {_list(found.proved)}"
            yield claim("scores", "proved", text, n=sum(found.proved.values()), names=sorted(found.proved))
        for reason, names in found.declared.items():
            text = f"not computed again ({reason}): {_list(names)}"
            yield claim("scores", "declared", text, n=sum(names.values()), names=sorted(names))
        if found.wrong:
            yield claim("scores", "contradicted", "the recorded steps give another result", found.wrong)
        if found.texts:
            yield claim("texts", "proved", "what a report shows of a trial is that of its steps", n=found.texts)
        if found.texts < len(self._outcomes):
            text = "what a report shows of a trial, such as its answer or its error"
            yield claim("texts", "declared", text, n=len(self._outcomes) - found.texts)
        if found.same_inputs:
            text = "steps have exactly the inputs that the code makes from the case and earlier steps"
            yield claim("prompts", "proved", text, n=len(found.same_inputs))
        self.same_inputs.update(found.same_inputs)

    async def _rescore(self, rescorer: Rescorer | None, *, is_of_this_version: bool) -> _Rescores:
        found = _Rescores()
        for row in self._outcomes:
            outcome = row.body
            case = self._cases.get((outcome.trial.benchmark, outcome.trial.case_id))
            if outcome.status in ("failed", "blocked"):
                found.declare("the trial has no result", {outcome.status: 1})
                continue
            names = Counter(score.name for score in outcome.scores) or Counter([outcome.status])
            if rescorer is None or case is None:
                found.declare("left out of a public bundle" if self._public else "the suite cannot do that", names)
                continue
            steps = ReplayedSteps(outcome.steps, self._steps)
            try:
                rescored = await rescorer.rescore(outcome, case.body, steps)
            except CannotRescore as error:
                found.declare(printable(str(error)), names)
                continue
            except Lacking:
                if outcome.status != "skipped":
                    found.wrong.append(f"{_name(outcome)}: it would be skipped")
                else:
                    found.declare(_NOT_SCORED, {"skipped": 1})
                continue
            except Contradiction as error:
                found.wrong.append(f"{_name(outcome)}: {_text(str(error))}")
                continue
            except (
                *ERRORS,
                RuntimeError,
                MemorybenchError,
            ) as error:  # a coroutine turns StopIteration into RuntimeError
                found.wrong.append(f"{_name(outcome)}: {_text(str(error).splitlines()[0] if str(error) else '?')}")
                continue
            found.same_inputs += steps.same_inputs
            found.compare(outcome, rescored, steps, is_of_this_version=is_of_this_version)
        return found

    def _derived_files(self) -> Iterator[Claim]:
        """The report and the descriptions follow from the rows."""
        if without_paths(self.run.spec) != dict(self.run.spec):
            yield claim("report", "contradicted", "the settings have paths, which a bundle never has", [RUN])
            return
        try:
            with opened_run(self.archive) as (run_id, results):
                document = report_document(run_id, results)
        except (*ERRORS, RuntimeError, MemorybenchError) as error:
            yield claim("report", "contradicted", f"no report can be made from the rows: {_text(str(error))}")
            return
        entries = {name: self.archive.manifest.files[name] for name in CONTENT if name not in _DERIVED}
        try:
            texts = derived_texts(self.run, document, entries)
        except ERRORS as error:
            yield claim("report", "contradicted", f"no report can be made from the rows: {_text(str(error))}")
            return
        own = {name: self.archive.text(name) for name in _DERIVED}
        if same_json(texts[REPORT], own[REPORT]):
            text = "every measure, interval, comparison and sum of costs follows from the scores and rows"
            yield claim("report", "proved", text)
        else:
            places = _differences(texts[REPORT], own[REPORT])
            yield claim("report", "contradicted", "the rows give another report", places)
        # the last digits of a report may differ between machines: its own digest is expected
        texts[CROISSANT] = pretty(croissant(self.run, {**entries, REPORT: self.archive.manifest.files[REPORT]}))
        wrong = [name for name in _DERIVED[1:] if not same_json(texts[name], own[name])]
        if wrong:
            yield claim("descriptions", "contradicted", "do not follow from the rows", wrong)
        else:
            yield claim("descriptions", "proved", "RO-Crate, Croissant and Every Eval Ever follow from the rows", n=3)

    def _declared(self) -> Iterator[Claim]:
        yield claim(
            "replies",
            "declared",
            "results of steps: that providers, stores, agents, extractors and models really gave them",
            n=len(self._steps),
        )
        text = "when run, trials and calls took place, durations, tokens, costs, tries, and attempts of calls"
        yield claim("times and costs", "declared", text)
        yield claim("settings", "declared", "that the run had this name, settings, command line, versions and notes")
        yield claim("other runs", "declared", "that no other runs were made and left out")


_DERIVED = (REPORT, RO_CRATE, EVERY_EVAL_EVER, CROISSANT)


@dataclass(slots=True)
class _Rescores:
    proved: Counter[str] = field(default_factory=Counter)
    """By name: scores that were computed again."""
    declared: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By reason and name: scores that were not."""
    wrong: list[str] = field(default_factory=list)
    same_inputs: list[str] = field(default_factory=list)
    texts: int = 0
    """Trials whose texts were made again."""

    def declare(self, reason: str, names: Mapping[str, int]) -> None:
        self.declared[reason].update(names)

    def compare(self, outcome: Outcome, rescored: Rescored, steps: ReplayedSteps, *, is_of_this_version: bool) -> None:
        name, performed = _name(outcome), rescored.performed
        if steps.missing and rescored.are_inputs_known and is_of_this_version:
            self.wrong.append(f"{name}: lacks steps: {_text(', '.join(steps.missing))}")
        elif steps.missing or steps.failed:
            self.declare(_NO_RESULT, {"missing": 1})
        if rescored.trial is not None and rescored.trial.plain() != outcome.trial.plain():
            self.wrong.append(f"{name}: the trial has other labels than its case")
        if rescored.are_inputs_known and steps.other_inputs:
            self.wrong.append(f"{name}: {steps.other_inputs} steps have other inputs than the code makes")
        if rescored.is_whole and (unused := steps.unused()):
            self.wrong.append(f"{name}: unused steps: {_text(', '.join(unused))}")
        if (performed.unscored is not None) != (outcome.status == "unscored"):
            self.wrong.append(f"{name}: is {outcome.status}, and would not be")
            return
        if outcome.status == "skipped":
            self.wrong.append(f"{name}: is skipped, and would have scores")
            return
        # otherwise, a step of another trial may have been put in its place
        is_proof = rescored.are_inputs_known and not steps.other_inputs
        unproved: Counter[str] = Counter()
        expected = {score.name: score for score in performed.scores}
        recorded = {score.name: score for score in outcome.scores}
        if len(recorded) != len(outcome.scores):
            self.wrong.append(f"{name}: has a score twice")
        for score in expected.values():
            if score.name not in recorded or not _is_same(score, recorded[score.name]):
                own = recorded[score.name].value if score.name in recorded else "missing"
                self.wrong.append(f"{name}: {_text(score.name)} is {own}, recomputed {score.value:g}")
            elif is_proof:
                self.proved[score.name] += 1
            else:
                unproved[score.name] += 1
        if unproved:
            self.declare(_OTHER_INPUTS, unproved)
        others = {own: 1 for own in recorded if own not in expected}
        if others and rescored.is_whole:
            self.wrong.append(f"{name}: {_text(', '.join(others))} would have no value")
        elif others:
            self.declare("the data is not available here", others)
        if rescored.is_whole and performed.shown != outcome.shown:
            self.wrong.append(f"{name}: shows other texts than its steps")
        self.texts += rescored.is_whole and is_proof
        if outcome.status == "unscored":
            self.declare(_NOT_SCORED, {"unscored": 1})


def _is_same(first: Score, second: Score) -> bool:
    difference = abs(first.value - second.value)
    return difference <= _UNLIKE * max(abs(first.value), abs(second.value)) and first.reason == second.reason


def _differences(first: str, second: str) -> list[str]:
    try:
        return list(_different(json.loads(first), json.loads(second), ""))[:20] or ["its text"]
    except (ValueError, RecursionError):
        return ["it is not JSON"]


def _different(first: Any, second: Any, place: str) -> Iterator[str]:
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted(first.keys() | second.keys()):
            if key in first and key in second:
                yield from _different(first[key], second[key], f"{place}.{key}" if place else key)
            else:
                yield _text(f"{place}.{key}")
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _different(one, other, f"{place}[{number}]")
    elif first != second:
        yield _text(place)


def _fingerprint(dataset: Dataset | AuditDataset) -> Fingerprint:
    if isinstance(dataset, AuditDataset):
        return Fingerprint.of_parts(dataset.canonical_parts())
    return Fingerprint.of(dataset.fingerprint)


def _are_names(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _model_of(step: StepRow) -> str | None:
    """Return the name of the model that a step asked; None if it asked none."""
    model = step.inputs.get("model") or step.inputs.get("judge") if isinstance(step.inputs, dict) else None
    return Subject.model_validate(model).name if isinstance(model, dict) else None


def _name(outcome: Outcome) -> str:
    trial = outcome.trial
    parts = (trial.benchmark, trial.case_id, trial.subject.name, trial.variant, trial.repeat_name)
    return _text(" × ".join(part for part in parts if part))


def _list(names: Iterable[str]) -> str:
    return shorten(_text(", ".join(sorted(names))), 300)


def _text(text: str) -> str:
    """Return a text of the bundle for messages."""
    return shorten(printable(text), 400)
