"""The Python interface: functions that do the same as the commands, with the same journal and the same figures."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memorybench.charts.page import html_report
from memorybench.charts.run_page import make_page
from memorybench.core.errors import BadInput
from memorybench.core.measures import Measure
from memorybench.core.trials import Outcome
from memorybench.core.uses import Consent
from memorybench.files.expressions import canonical_name
from memorybench.journal.places import results_folder
from memorybench.judging.judge import Judge
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.metrics.names import ALIASES
from memorybench.reporting.export import layout, rows
from memorybench.reporting.report_files import FORMATS, write_reports
from memorybench.suites import merging
from memorybench.suites.case_view import case_document, find_case
from memorybench.suites.extraction.evaluator import MemoryExtractionEvaluator
from memorybench.suites.extraction.online import TraceJudge
from memorybench.suites.finished import find_finished, rewrite_reports, write_ci_files
from memorybench.suites.gate import Gate, check_gate, report_of
from memorybench.suites.hygiene.scan import ModelReader, ScanReport
from memorybench.suites.hygiene.scan import scan as scan_memory
from memorybench.suites.hygiene.scan_output import read_baseline
from memorybench.suites.registry import commands
from memorybench.suites.run_comparison import RunComparison, compare_runs
from memorybench.suites.spec import RunOptions, make_spec, own_options
from memorybench.suites.starting import start_run
from memorybench.suites.stored_run import find_folder, open_stored_run
from memorybench.suites.suite import default_folders
from memorybench.suites.summary import Summary
from memorybench.text.spelling import unknown_name
from memorybench.traces.paths import OF_RUNS, TracePaths
from memorybench.wiring.environment import learn_journal
from memorybench.wiring.live import LiveWiring
from memorybench.workers import placement

if TYPE_CHECKING:
    import pandas


class RunResult(Struct, frozen=True):
    """A run in a results folder. Each use of a property or method reads the journal."""

    run_id: str
    folder: Path

    @property
    def summary(self) -> Summary:
        with open_stored_run([self.run_id], [self.folder]) as stored:
            return stored.summary

    def outcomes(self) -> Iterator[Outcome]:
        """Yield the outcomes of all trials, in the order of the run's plan."""
        with open_stored_run([self.run_id], [self.folder]) as stored:
            yield from stored.outcomes()

    @property
    def gate(self) -> Gate | None:
        """The comparison with the baseline run; None if the run has no baseline."""
        with open_stored_run([self.run_id], [self.folder]) as stored:
            return check_gate(stored)

    def case(
        self, id: str, provider: str | None = None, *, benchmark: str | None = None, variant: str | None = None
    ) -> dict[str, Any]:
        """Return all data of a case, as `memorybench show --json` prints it.

        `id` is the id of the case, or a prefix that only this id has. `provider` and `variant` select trials of the
        case; None: all. `benchmark` is needed if several benchmarks have a case with this id.
        """
        with open_stored_run([self.run_id], [self.folder]) as stored:
            view = find_case(stored, id, provider=provider, benchmark=benchmark, variant=variant)
            return case_document(view)

    def measure(self, subject: str, name: str, benchmark: str | None = None) -> Measure:
        """Return a measure of a subject with its interval and sample size: `result.measure("bm25", "recall@5")`.

        `benchmark` None: the measure of the first benchmark that has it. Raise BadInput if the run has no such subject,
        benchmark or measure.
        """
        found = [result for result in self.summary.results if not result.group]
        for key, chosen in (("benchmark", benchmark), ("subject", canonical_name(subject))):
            known = list(dict.fromkeys(getattr(result, key) for result in found))
            if chosen is not None and chosen not in known:
                raise unknown_name(self.run_id, f'the run has no {key} "{chosen}"', chosen, known)
            found = [result for result in found if chosen in (None, getattr(result, key))]
        measures = [measure for result in found if (measure := result.measure(ALIASES.get(name, name)))]
        if not measures:
            names = {measure.name for result in found for measure in result.measures}
            raise unknown_name(self.run_id, f'{subject} has no measure "{name}"', name, names)
        return measures[0]

    def write_reports(self, output: str | Path | None = None, formats: Iterable[str] = FORMATS) -> list[Path]:
        """Write the reports of the run again and return the paths of their files.

        `output` is the folder to write to; None: the folder of the run. `formats` can be "json", "markdown" and "html".
        """
        formats = list(formats)
        for name in formats:
            if name not in (*FORMATS, "html"):
                raise unknown_name("formats", f'unknown format "{name}"', name, (*FORMATS, "html"))
        with open_stored_run([self.run_id], [self.folder]) as stored:
            report = report_of(stored)
            html = html_report(stored, report) if "html" in formats else None
            others = [name for name in formats if name != "html"]
            if output is not None:
                return write_reports(report, Path(output), others, html)
            return rewrite_reports(stored, report, html, others)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame with one row per trial, and the columns of `memorybench export`. Needs pandas."""
        try:
            import pandas
        except ImportError:
            raise BadInput("to_pandas", "pandas is not installed", remedy="pip install pandas") from None
        with open_stored_run([self.run_id], [self.folder]) as stored:
            columns = layout(stored.outcomes())
            frame = pandas.DataFrame(rows(stored.trials(), columns))
        for name, kind in columns.kinds.items():
            if kind == "time":
                frame[name] = pandas.to_datetime(frame[name], utc=True)
            elif kind == "number" or (kind == "integer" and frame[name].isna().all()):
                frame[name] = frame[name].astype("float64")
        frame["metadata"] = [json.dumps(value, ensure_ascii=False) for value in frame["metadata"]]
        return frame


def run(command: str, **values: Any) -> RunResult:
    """Run a command of any suite and return the finished run: `run("hygiene run", store="reference")`.

    `values` are the fields of the command's spec (`memorybench schema hygiene-run` lists them) and of RunOptions:
    output, journal, run_id, resume, concurrency, budget, ray, workers, cpus_per_worker, ray_files, ray_env, baseline,
    max_drop, tags, junit, step_summary, otel, otel_content.
    """
    matches = [(suite, one) for suite, one in commands((command.split() or [""])[0]) if one.name == command]
    if not matches:
        raise BadInput(
            "command", f'unknown command "{command}"', remedy="`memorybench list --suites` shows the commands"
        )
    names = RunOptions.model_fields.keys() - own_options(matches[0][1].spec)
    options = make_spec(RunOptions, {name: values.pop(name) for name in names if name in values})
    learn_journal(options.journal)
    wiring = LiveWiring()
    finished = find_finished(*matches[0], values, options, redact=wiring.redact, make_page=make_page)
    if finished is None:
        finished = placement.run(start_run(*matches[0], values, options, wiring))
    write_ci_files(finished, options, wiring.redact)
    if finished.ending.interrupted:
        run_id = finished.place.run_id
        raise KeyboardInterrupt(f"run {run_id} was interrupted; continue it with resume={run_id!r}")
    return RunResult(finished.place.run_id, finished.place.results)


def evaluate(
    benchmarks: str | Sequence[str] | None = None, providers: str | Sequence[str] | None = None, **values: Any
) -> RunResult:
    """Run `memorybench eval`, which compares providers on benchmarks, and return the finished run.

    `values` are the other fields of BenchSpec (limit, start, end, question_types, seed, answering_model, …) and of
    RunOptions. To continue an earlier run, pass its id as `resume` instead of fields of BenchSpec.
    """
    named = {"benchmarks": benchmarks, "providers": providers}
    lists = {
        name: (value,) if isinstance(value, str) else tuple(value) for name, value in named.items() if value is not None
    }
    return run("eval", **lists, **values)


def audit(dataset: str | Path | None = None, **values: Any) -> RunResult:
    """Run `memorybench audit`, which tests a model or memories with the conversations of a dataset; return the run.

    `values` are the other fields of AuditSpec (model, judge_model, providers, kinds, policy, limit, …) and of
    RunOptions.
    """
    return run("audit", **({} if dataset is None else {"dataset": str(dataset)}), **values)


def load_run(run_id: str, results: str | Path | None = None, *, journal: str | None = None) -> RunResult:
    """Return an existing run. `results` is the results folder; None: ./results or ./audit-results.

    `journal` is the address of the Postgres database, if the run was stored in one.
    """
    folders = default_folders() if results is None else [Path(results)]
    if journal is not None:
        folders = [results_folder(folders[0], journal)]
    run_id, (folder, *_) = find_folder(run_id, folders)
    with open_stored_run([run_id], [folder]):
        return RunResult(run_id, folder)


def merge(
    *shards: str | Path,
    run_id: str,
    results: str | Path | None = None,
    journal: str | None = None,
    allow_partial: bool = False,
    tags: Sequence[str] = (),
) -> RunResult:
    """Merge the shards of one run, such as those of `evaluate(…, shard="1/3")`, and return the merged run.

    A shard is the id of a run in the folder `results`, or FOLDER/RUN. A results folder stands for all shards in it. The
    merged run gets the id `run_id` and is stored in `results`. `allow_partial`: shards and trials may be missing.
    """
    learn_journal(journal)
    merged = merging.merge(
        [str(shard) for shard in shards],
        run_id,
        LiveWiring(),
        None if results is None else Path(results),
        journal=journal,
        allow_partial=allow_partial,
        tags=tags,
        make_page=make_page,
    )
    return RunResult(run_id, merged.place.results)


def compare(
    *sides: str,
    measures: Sequence[str] = (),
    benchmark: str | None = None,
    results: str | Path | Sequence[str | Path] | None = None,
    journal: str | None = None,
) -> RunComparison:
    """Compare runs or providers, question by question: `compare("before", "after:bm25").comparisons[0].sentence()`.

    A side is RUN, RUN:PROVIDER, FOLDER/RUN or PROVIDER, which stands for the latest run with this provider. Runs are
    looked up in `results`; None: in ./results and ./audit-results. `measures` are the measures to compare; empty: the
    main measures of the suite.
    """
    named = [results] if isinstance(results, (str, Path)) else results or default_folders()
    folders = [Path(folder) for folder in named]
    if journal is not None:
        folders = [results_folder(folders[0], journal)]
    return compare_runs(sides, folders, benchmark=benchmark, measures=tuple(measures))


def scan(
    *paths: str | Path,
    store: str | None = None,
    user: str = "user",
    baseline: str | Path | None = None,
    model: str | None = None,
    budget: float | None = None,
    results: str | Path = "hygiene-results",
    config_dirs: Sequence[str] = (),
    consent: Consent | None = None,
) -> ScanReport:
    """Scan an existing memory as `memorybench hygiene scan` does: files and folders, and the facts that a store lists.

    The memory is not changed, and the secrets and personal data that are found are not stored. `user` is the user of
    `store`. `baseline` is a file with accepted findings, which are left out. With `model`, the text of the memory is
    sent to that model, until `budget` dollars are spent; its replies are recorded in the folder `results`.
    """
    accepted = read_baseline(Path(baseline)) if baseline is not None else []
    wiring = LiveWiring(config_dirs, replace(consent or Consent(), reads_only=True))
    reader = ModelReader(wiring.model(model), Path(results), budget) if model is not None else None
    named = [str(path) for path in paths]
    return scan_memory(named, store=store, user=user, baseline=accepted, wiring=wiring, reader=reader)


def extraction_evaluator(judge_model: str, paths: Mapping[str, str] | None = None) -> MemoryExtractionEvaluator:
    """Return an evaluator for `evaluate` of LangSmith: `evaluate(…, evaluators=[extraction_evaluator("gpt-4o")])`.

    The evaluator returns precision, recall and F1 of the facts that a LangSmith run extracted. `paths` maps a role
    (conversation, existing, output) to the JSONPath at which a run has it.
    """
    judge_of_run = LiveWiring().model(judge_model)

    @asynccontextmanager
    async def open_judge() -> AsyncIterator[TraceJudge]:
        """Open the judge. Called for each LangSmith run, because LangSmith uses its own event loops and threads."""
        async with AsyncExitStack() as stack:
            model = await judge_of_run.open(stack)
            yield TraceJudge(model, EntailmentJudge(Judge(model)))

    return MemoryExtractionEvaluator(open_judge, TracePaths.of(OF_RUNS, paths or {}).judgeable)
