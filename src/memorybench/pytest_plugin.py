"""A pytest plug-in that tests a memory extractor: `pytest --memory-cases CASES --memory-extractor NAME`.

It adds one test per case, and the test `targets`, which compares the measures with thresholds. It is installed with the
package. Without these options it does nothing and imports nothing else of memorybench.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from memorybench.core.trials import Outcome
    from memorybench.suites.finished import FinishedRun
    from memorybench.suites.starting import Start

_BUNDLED = "bundled"
_OPTIONS = ("extractor", "extractor_command", "extractor_model", "judge_model")
"""Fields of ExtractionSpec that are also pytest options: `judge_model` is `--memory-judge-model`."""
_CLI_OPTION = re.compile(
    r"(?<![\w-])--(?=(?:extractor|extractor-command|extractor-model|judge-model|config-dir|threshold)(?![\w-]))"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("memory extraction")
    group.addoption("--memory-cases", metavar="CASES", help=f'test on these cases; "{_BUNDLED}" uses ours')
    group.addoption("--memory-extractor", metavar="NAME", help="test this config, provider or module:function")
    group.addoption("--memory-extractor-command", metavar="LINE", help="test a program that reads and writes JSON")
    group.addoption("--memory-extractor-model", metavar="MODEL", help="set the reference extractor's model")
    group.addoption("--memory-judge-model", metavar="MODEL", help="decide open cases with this model")
    group.addoption("--memory-config-dir", metavar="DIR", action="append", default=[], help="add a folder with configs")
    group.addoption("--memory-results", metavar="DIR", help="keep the run here (default: a temporary folder)")
    group.addoption(
        "--memory-threshold", metavar="NAME=VALUE", action="append", default=[], help="replace a default target"
    )


def pytest_configure(config: pytest.Config) -> None:
    options = config.option
    extractor = options.memory_extractor or options.memory_extractor_command
    if options.memory_cases is None and extractor is None:
        return
    if options.memory_cases is None or extractor is None:
        missing = "--memory-extractor" if extractor is None else "--memory-cases"
        raise pytest.UsageError(f"{missing}: missing; expected both cases and an extractor; add it")
    if config.getoption("dist", "no") != "no" and config.getoption("tx", None):
        raise pytest.UsageError(
            "--memory-cases: each process of pytest-xdist would run, and pay for, all cases; memorybench runs several"
            " cases at the same time anyway; add -n 0"
        )


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.memory_cases is not None:
        items.extend(MemoryCases.from_parent(session, name="memory").collect())


class MemoryCases(pytest.Collector):
    """Collects the cases as tests. All selected cases are run together when the first of them is tested."""

    _error: Exception | None = None
    """Why the run could not be performed; None if it was performed, or not begun yet."""

    def collect(self) -> Iterator[pytest.Item]:
        from memorybench.core.errors import MemorybenchError
        from memorybench.suites.extraction.prepare import select_cases
        from memorybench.suites.extraction.spec import ExtractionSpec
        from memorybench.suites.spec import make_spec
        from memorybench.wiring.live import LiveWiring

        try:
            self._start()  # reports an invalid extractor, judge or threshold before any test
            cases = select_cases(make_spec(ExtractionSpec, self._fields), LiveWiring())
        except MemorybenchError as error:
            raise pytest.UsageError(_own_options(str(error))) from error
        for case in cases:
            yield CaseItem.from_parent(self, name=case.id)
        yield TargetsItem.from_parent(self, name="targets")

    @property
    def _fields(self) -> dict[str, Any]:
        options = vars(self.config.option)
        fields = {name: options[f"memory_{name}"] for name in _OPTIONS if options[f"memory_{name}"] is not None}
        if options["memory_cases"] != _BUNDLED:
            fields["cases"] = options["memory_cases"]
        if options["memory_config_dir"]:
            fields["config_dirs"] = tuple(options["memory_config_dir"])
        return {**fields, "allow_code": True}  # pytest runs the project's code anyway

    def _start(self, case_ids: tuple[str, ...] | None = None) -> Start:
        from memorybench.suites.registry import commands
        from memorybench.suites.spec import RunOptions
        from memorybench.suites.starting import start_run
        from memorybench.wiring.live import LiveWiring

        suite, command = next(pair for pair in commands("extraction") if pair[1].name == "extraction run")
        fields = self._fields if case_ids is None else {**self._fields, "case_ids": case_ids}
        thresholds = self.config.option.memory_threshold
        return start_run(suite, command, fields, RunOptions(output=self._folder), LiveWiring(), thresholds)

    @cached_property
    def _run(self) -> tuple[Start, FinishedRun]:
        """The run of the cases that pytest selected, such as by -k; if it selected `targets`, of all cases."""
        from memorybench.suites import running

        if self._error is not None:
            raise self._error  # another run would be paid for again
        items = [item for item in self.session.items if item.parent is self]
        whole = any(isinstance(item, TargetsItem) for item in items)
        try:
            start = self._start(None if whole else tuple(item.name for item in items))
            finished = running.run(start)
        except Exception as error:
            self._error = error
            raise
        if finished.ending.interrupted:
            raise KeyboardInterrupt
        return start, finished

    def outcome(self, case_id: str) -> Outcome:
        if case_id not in self._outcomes:
            pytest.fail(self._run[1].ending.paused, pytrace=False)  # the run stopped before this case
        return self._outcomes[case_id]

    @cached_property
    def _outcomes(self) -> dict[str, Outcome]:
        """The outcomes of the run, by case id."""
        from memorybench.suites.stored_run import open_stored_run

        start, _ = self._run
        with open_stored_run([start.place.run_id], [self._folder]) as stored:
            return {outcome.trial.case_id: outcome for outcome in stored.outcomes()}

    def missed_targets(self) -> list[str]:
        from memorybench.suites.thresholds import threshold_checks

        start, finished = self._run
        counts = finished.summary.counts
        unscored = counts["planned"] - counts["scored"]
        lines = [f"{unscored} of {counts['planned']} cases have no score"] if unscored else []
        checks = threshold_checks(finished.summary, start.thresholds, "value", start.prepared.subjects)
        return lines + [check.text for check in checks if check.missed]

    @cached_property
    def _folder(self) -> Path:
        chosen = self.config.option.memory_results
        if chosen is not None:
            return Path(chosen)
        folder = tempfile.TemporaryDirectory(prefix="memorybench-")
        self.config.add_cleanup(folder.cleanup)
        return Path(folder.name)


def _own_options(text: str) -> str:
    """Return an error message with the names of pytest options instead of those of memorybench's command line."""
    return _CLI_OPTION.sub("--memory-", text)


class _Item(pytest.Item):
    parent: MemoryCases

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from memorybench.core.errors import MemorybenchError

        if isinstance(excinfo.value, MemorybenchError):
            return _own_options(str(excinfo.value))
        return super().repr_failure(excinfo, style)


class CaseItem(_Item):
    def runtest(self) -> None:
        outcome = self.parent.outcome(self.name)
        if outcome.status != "scored":
            pytest.fail(outcome.failure.message if outcome.failure else outcome.status, pytrace=False)
        if outcome.score("correct") != 1:
            shown = outcome.shown
            pytest.fail(f"{shown.reason}\nexpected: {shown.expected}\nwritten: {shown.got}", pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return Path("memory cases"), None, f"memory case {self.name}"


class TargetsItem(_Item):
    def runtest(self) -> None:
        missed = self.parent.missed_targets()
        if missed:
            pytest.fail(_own_options("\n".join(missed)), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return Path("memory cases"), None, "memory targets"
