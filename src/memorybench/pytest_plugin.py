"""`pytest --memory-cases CASES --memory-extractor NAME`: one test for each case, and the targets as the last one.

Installed with the package. Without these options it does nothing, and imports nothing of the program.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from memorybench.core.trials import Outcome
    from memorybench.wiring.extraction import PreparedExtraction
    from memorybench.wiring.running import Finished

_OUR_OWN = "bundled"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("memory extraction")
    group.addoption("--memory-cases", metavar="CASES", help=f'labelled cases, JSON or JSONL; "{_OUR_OWN}": our own')
    group.addoption("--memory-extractor", metavar="NAME", help="a config, a provider, or module:function of yours")
    group.addoption("--memory-extractor-command", metavar="LINE", help="a program: JSON on stdin, JSON on stdout")
    group.addoption("--memory-extractor-model", metavar="MODEL", help="who works for the reference extractor")
    group.addoption("--memory-judge-model", metavar="MODEL", help="decides what code can not")
    group.addoption("--memory-results", metavar="DIR", help="keep the run there (default: a temporary folder)")
    group.addoption("--memory-threshold", metavar="NAME=VALUE", action="append", default=[], help="instead of a target")


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    options = config.option
    named = options.memory_extractor or options.memory_extractor_command
    if options.memory_cases is None and named is None:
        return
    if options.memory_cases is None or named is None:
        missing = "--memory-extractor" if named is None else "--memory-cases"
        raise pytest.UsageError(f"{missing} is missing; the cases and the extractor are named together")
    items.extend(MemoryCases.from_parent(session, name="memory").collect())


class MemoryCases(pytest.Collector):
    """All cases, put to the extractor in one run when the first of them is looked at."""

    _finished: Finished | None = None

    def collect(self) -> Iterator[pytest.Item]:
        from memorybench.core.errors import MemorybenchError

        try:
            self._prepared = self._prepare()
        except MemorybenchError as error:
            raise pytest.UsageError(str(error)) from error
        for case in self._prepared.cases:
            yield CaseItem.from_parent(self, name=case.id)
        yield TargetsItem.from_parent(self, name="targets")

    def _prepare(self) -> PreparedExtraction:
        from memorybench.wiring.extraction import ExtractionSpec, prepare_extraction

        options = self.config.option
        return prepare_extraction(
            ExtractionSpec(
                cases=None if options.memory_cases == _OUR_OWN else options.memory_cases,
                extractor=options.memory_extractor,
                extractor_command=options.memory_extractor_command,
                extractor_model=options.memory_extractor_model,
                judge_model=options.memory_judge_model,
                allow_code=True,  # whoever runs pytest here runs the code here
            ),
            Path(),
        )

    def outcome(self, case: str) -> Outcome:
        from memorybench.wiring.suites import find

        summary = self._run().summary
        with find([summary.run_id], [self._folder]) as found:
            return next(outcome for _, _, outcome in found.settled() if outcome.trial.case_id == case)

    def held(self) -> list[str]:
        """What keeps the extractor from its targets."""
        from memorybench.suites.extraction.measures import AT_WORST, DEFAULT_THRESHOLDS, measures
        from memorybench.wiring.thresholds import checked, hold, with_targets

        told = with_targets(self.config.option.memory_threshold, DEFAULT_THRESHOLDS, AT_WORST)
        thresholds = checked(told, measures(), [self._prepared.extractor.name])
        summary = self._run().summary
        counts = summary.counts
        unscored = counts["planned"] - counts["scored"]
        lines = [f"{unscored} of {counts['planned']} cases have no score"] if unscored else []
        return lines + [one.line for one in hold(summary, thresholds, "value", ()) if one.missed]

    def _run(self) -> Finished:
        from memorybench.wiring.running import new_run_id, run_prepared

        if self._finished is None:
            self._finished = run_prepared(self._chosen(), self._folder, new_run_id())
        return self._finished

    def _chosen(self) -> PreparedExtraction:
        """Only the cases that were asked for, as by -k; all of them where the targets are."""
        items = [item for item in self.session.items if item.parent is self]
        wanted = {item.name for item in items}
        if any(isinstance(item, TargetsItem) for item in items):
            return self._prepared
        return replace(self._prepared, cases=tuple(case for case in self._prepared.cases if case.id in wanted))

    @cached_property
    def _folder(self) -> Path:
        told = self.config.option.memory_results
        if told is not None:
            return Path(told)
        folder = tempfile.TemporaryDirectory(prefix="memorybench-")
        self.config.add_cleanup(folder.cleanup)
        return Path(folder.name)


class CaseItem(pytest.Item):
    parent: MemoryCases

    def runtest(self) -> None:
        outcome = self.parent.outcome(self.name)
        if outcome.status != "scored":
            pytest.fail(outcome.failure.message if outcome.failure else outcome.status, pytrace=False)
        if outcome.score("correct") != 1:
            shown = outcome.shown
            pytest.fail(f"{shown.reason}\nexpected: {shown.expected}\nwritten: {shown.got}", pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return Path("memory cases"), None, f"memory case {self.name}"


class TargetsItem(pytest.Item):
    parent: MemoryCases

    def runtest(self) -> None:
        from memorybench.core.errors import BadInput

        try:
            missed = self.parent.held()
        except BadInput as error:
            pytest.fail(str(error), pytrace=False)
        if missed:
            pytest.fail("\n".join(missed), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return Path("memory cases"), None, "memory targets"
