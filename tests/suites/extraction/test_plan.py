"""Offline runs through the engine: steps, scores, unscored cases and exhibits."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.conversation import Turn
from memorybench.core.errors import ServiceError
from memorybench.core.extraction import Extractor, MemoryState
from memorybench.core.measures import Measure
from memorybench.core.trials import Outcome, Score, Subject, Trial
from memorybench.engine.run import Ending, perform
from memorybench.journal.rows import Run
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.journal.run_reader import RunReader
from memorybench.judging.judge import Judge
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.metrics.rates import count_selected
from memorybench.suites.extraction.cases import ExtractionCase
from memorybench.suites.extraction.measures import DEFAULT_THRESHOLDS, SELECTIVE, measures
from memorybench.suites.extraction.plan import ExtractionPlan, trial_of
from memorybench.suites.summary import Result, measure
from tests.doubles.scripted_model import ScriptedModel
from tests.suites.extraction.known import ADDING, CHANGING, CHATTING, DENYING, Extract, amnesiac, case, perfect, stale


class FunctionExtractor:
    """Returns the result of a function of the case, and counts its calls."""

    def __init__(self, extract: Extract, cases: Sequence[ExtractionCase]) -> None:
        self.subject = Subject(role="extractor", name=getattr(extract, "__name__", "function"))
        self.calls = 0
        self._extract = extract
        self._cases = {case.conversation: case for case in cases}

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
        self.calls += 1
        return self._extract(self._cases[tuple(conversation)])


@pytest.fixture
def cases(tmp_path: Path) -> list[ExtractionCase]:
    return [case(values, tmp_path) for values in (ADDING, CHANGING, CHATTING, DENYING)]


def run(
    folder: Path, cases: Sequence[ExtractionCase], extractor: Extractor, judge: EntailmentJudge | None = None
) -> Ending:
    planned = Run(id="x", suite="extraction", spec={}, planned=len(cases))
    opened = reopen_run(folder, "x", fingerprints={}) if (folder / "results.db").exists() else open_run(folder, planned)
    with opened as run_writer:
        ending = asyncio.run(
            perform(ExtractionPlan("mine", cases, extractor, judge=judge, canaries=11).plan(), run_writer)
        )
        run_writer.end(ending.status)
    return ending


def outcomes(folder: Path) -> list[Outcome]:
    with RunReader.open(folder) as run_reader:
        return list(run_reader.outcomes("x"))


def results(folder: Path) -> list[Result]:
    with RunReader.open(folder) as run_reader:
        return list(measure(run_reader.outcomes("x"), measures(), {}))


def measure_named(folder: Path, name: str) -> Measure:
    value = next(result for result in results(folder) if not result.group).measure(name)
    assert value is not None
    return value


def test_the_perfect_extractor_meets_every_threshold(tmp_path: Path, cases: list[ExtractionCase]) -> None:
    assert run(tmp_path / "r", cases, FunctionExtractor(perfect, cases)).status == "complete"
    for name, least in DEFAULT_THRESHOLDS.items():
        value = measure_named(tmp_path / "r", name).value
        assert value is not None
        assert value >= least
    assert measure_named(tmp_path / "r", "macro_f1").n == 3, "chit-chat has no F1"


def test_the_stale_extractor_is_measured_over_all_cases(tmp_path: Path, cases: list[ExtractionCase]) -> None:
    """Of five changes (two about candles, Cardiff, Bristol, no subscription) only Bristol is missing: recall 4/5."""
    run(tmp_path / "r", cases, FunctionExtractor(stale, cases))
    assert measure_named(tmp_path / "r", "precision").value == 1
    assert measure_named(tmp_path / "r", "recall").value == pytest.approx(4 / 5)
    assert measure_named(tmp_path / "r", "f1").value == pytest.approx(8 / 9)
    conflict = measure_named(tmp_path / "r", "conflict_resolution")
    assert (conflict.value, conflict.n, conflict.planned) == (0, 1, 1)
    assert measure_named(tmp_path / "r", "update_done").value == 0
    assert measure_named(tmp_path / "r", "keep_done").value == 1


def test_measures_are_grouped_by_scenario(tmp_path: Path, cases: list[ExtractionCase]) -> None:
    run(tmp_path / "r", cases, FunctionExtractor(amnesiac, cases))
    groups = {result.group["scenario"]: result for result in results(tmp_path / "r") if "scenario" in result.group}
    assert set(groups) == {"multiple_blocks", "conflict_resolution", "no_extraction", "constraint_extraction"}
    recall, minimal = groups["multiple_blocks"].measure("recall"), groups["no_extraction"].measure("minimalism")
    assert recall is not None
    assert minimal is not None
    assert (recall.value, minimal.value) == (0, 1)
    undefined = groups["no_extraction"].measure("recall")
    assert undefined is not None
    assert undefined.value is None


def test_a_resumed_run_repeats_no_extraction(tmp_path: Path, cases: list[ExtractionCase]) -> None:
    extractor = FunctionExtractor(perfect, cases)
    run(tmp_path / "r", cases, extractor)
    run(tmp_path / "r", cases, extractor)
    assert extractor.calls == len(cases)


def test_an_error_or_a_missing_memory_fails_the_case(tmp_path: Path, cases: list[ExtractionCase]) -> None:
    def extract(one: ExtractionCase) -> Any:
        if one.id == "adding":
            raise ServiceError("500")
        return None if one.id == "changing" else one.expected_output

    run(tmp_path / "r", cases, FunctionExtractor(extract, cases))
    by_case = {outcome.trial.case_id: outcome for outcome in outcomes(tmp_path / "r")}
    assert [by_case[id].status for id in ("adding", "changing", "chatting")] == ["failed", "failed", "scored"]
    failure = by_case["changing"].failure
    assert failure is not None
    assert failure.kind == "Malformed"
    assert measure_named(tmp_path / "r", "recall").n == 1, "chit-chat has no recall"


def paraphrased(one: ExtractionCase) -> Any:
    return {"constraints": ["A subscription is not the model we want"]} if one.id == "denying" else one.expected_output


def test_without_a_judge_undecided_pairs_are_counted_and_bounded(tmp_path: Path, cases: list[ExtractionCase]) -> None:
    """Four of five changes are right, one is undecided: recall at least 4/5, at most 5/5."""
    run(tmp_path / "r", cases, FunctionExtractor(paraphrased, cases))
    assert measure_named(tmp_path / "r", "undecided").value == 1
    recall = measure_named(tmp_path / "r", "recall")
    assert (recall.value, recall.n, recall.planned) == (None, 2, 4), "an undecided case is not in n"
    assert recall.low is not None
    assert recall.high is not None
    assert recall.low <= 4 / 5 < 1 <= recall.high
    assert measure_named(tmp_path / "r", "recall_least").value == pytest.approx(4 / 5)
    assert measure_named(tmp_path / "r", "recall_most").value == 1
    assert measure_named(tmp_path / "r", "precision_least").value == pytest.approx(4 / 5)


def test_bounds_have_no_value_if_all_pairs_are_decided(tmp_path: Path, cases: list[ExtractionCase]) -> None:
    run(tmp_path / "r", cases, FunctionExtractor(perfect, cases))
    assert measure_named(tmp_path / "r", "f1_least").value is None


@pytest.mark.parametrize(("verdict", "recall", "precision"), [("yes", 1, 1), ("no", 4 / 5, 4 / 5)])
def test_the_judge_decides_undecided_pairs(
    tmp_path: Path, cases: list[ExtractionCase], verdict: str, recall: float, precision: float
) -> None:
    judge = EntailmentJudge(Judge(ScriptedModel(lambda _: verdict)))
    run(tmp_path / "r", cases, FunctionExtractor(paraphrased, cases), judge)
    assert measure_named(tmp_path / "r", "undecided").value == 0
    assert measure_named(tmp_path / "r", "recall").value == pytest.approx(recall)
    assert measure_named(tmp_path / "r", "precision").value == pytest.approx(precision)


def test_an_unreadable_judge_leaves_the_pair_undecided(tmp_path: Path, cases: list[ExtractionCase]) -> None:
    """The measures are those of a run without a judge, but the case is unscored, so that a resumed run asks again."""
    run(tmp_path / "none", cases, FunctionExtractor(paraphrased, cases))
    judge = EntailmentJudge(Judge(ScriptedModel(lambda _: "Hm.")))
    run(tmp_path / "r", cases, FunctionExtractor(paraphrased, cases), judge)
    names = ("precision", "recall", "f1", "macro_f1", "recall_least", "recall_most", "undecided")
    assert [measure_named(tmp_path / "r", name) for name in names] == [
        measure_named(tmp_path / "none", name) for name in names
    ]
    assert measure_named(tmp_path / "r", "recall").n == 2
    assert measure_named(tmp_path / "r", "unreadable").value == 1
    statuses = {outcome.trial.case_id: outcome.status for outcome in outcomes(tmp_path / "r")}
    assert statuses == {"adding": "scored", "changing": "scored", "chatting": "scored", "denying": "unscored"}


def test_a_resumed_run_asks_an_unreadable_judge_again(tmp_path: Path, cases: list[ExtractionCase]) -> None:
    """Only about what has no verdict: the readable verdict on the forbidden text is not asked for twice."""
    ledger = tmp_path / "calls.jsonl"

    def extract(one: ExtractionCase) -> Any:
        return {**paraphrased(one), "diet": ["Knows 4711"]} if one.id == "chatting" else paraphrased(one)

    def judge(about_subscriptions: str) -> EntailmentJudge:
        def reply(turns: Sequence[Turn]) -> str:
            return about_subscriptions if "ubscription" in turns[0].content else "no"

        return EntailmentJudge(Judge(ScriptedModel(reply, ledger=ledger)))

    extractor = FunctionExtractor(extract, cases)
    run(tmp_path / "r", cases, extractor, judge("Hm."))
    asked = ledger.read_text().splitlines()
    run(tmp_path / "r", cases, extractor, judge("yes"))
    again = ledger.read_text().splitlines()[len(asked) :]
    assert len(again) == 2, "one question in each direction"
    assert all("ubscription" in line for line in again)
    assert extractor.calls == len(cases)
    assert measure_named(tmp_path / "r", "undecided").value == 0
    assert measure_named(tmp_path / "r", "recall").n == 3


def test_what_the_user_said_and_what_is_forbidden_is_unknown_if_it_can_not_be_read(
    tmp_path: Path, cases: list[ExtractionCase]
) -> None:
    def reply(turns: Sequence[Turn]) -> str:
        return "Hm." if "4711" in turns[0].content else "no"

    def extract(one: ExtractionCase) -> Any:
        return {"diet": ["Does not eat meat", "Knows 4711"]} if one.id == "chatting" else one.expected_output

    run(tmp_path / "r", cases, FunctionExtractor(extract, cases), EntailmentJudge(Judge(ScriptedModel(reply))))
    forbidden = measure_named(tmp_path / "r", "must_not_store")
    assert (forbidden.value, forbidden.n, forbidden.planned) == (None, 0, 1)
    assert measure_named(tmp_path / "r", "text_precision").value is None
    assert measure_named(tmp_path / "r", "hallucinated").value == 0
    assert measure_named(tmp_path / "r", "unreadable").value == 2
    assert measure_named(tmp_path / "r", "precision").value is not None, "no pair is undecided"


def test_the_check_of_the_judge_is_noted(tmp_path: Path, cases: list[ExtractionCase]) -> None:
    judge = EntailmentJudge(Judge(ScriptedModel(lambda _: "yes")))
    run(tmp_path / "r", cases, FunctionExtractor(perfect, cases), judge)
    with RunReader.open(tmp_path / "r") as run_reader:
        notes = dict(run_reader.notes("x"))
    assert "sensitivity 6 of 6, specificity 0 of 5" in notes["judge"]


def test_an_exhibit_shows_expected_and_actual_facts(tmp_path: Path, cases: list[ExtractionCase]) -> None:
    run(tmp_path / "r", cases, FunctionExtractor(stale, cases))
    shown = next(outcome.shown for outcome in outcomes(tmp_path / "r") if outcome.trial.case_id == "changing")
    assert shown.asked.endswith("User: Actually, I live in Cardiff now.\nAssistant: Noted.")
    assert shown.expected == "home: Lives in Cardiff; gone: home: Lives in Bristol"
    assert shown.got == "home: Lives in Cardiff"
    assert shown.reason == "stale: home: Lives in Bristol"


def test_selective_metrics_count_the_cases_they_apply_to(cases: list[ExtractionCase]) -> None:
    subject = Subject(role="extractor", name="any")
    assert count_selected(SELECTIVE, (trial_of(one, "mine", subject) for one in cases)) == {
        "conflict_resolution": 1,
        "minimalism": 1,
        "must_not_store": 1,
    }


def test_verdicts_and_means_over_cases_are_intervals_while_cases_are_undecided(
    tmp_path: Path, cases: list[ExtractionCase]
) -> None:
    """The case that expects an update and one of the three with facts are undecided."""

    def reword(one: ExtractionCase) -> Any:
        return {"home": ["Cardiff is home"], "pets": ["Has a dog"]} if one.id == "changing" else one.expected_output

    run(tmp_path / "r", cases, FunctionExtractor(reword, cases))
    conflict, mean = measure_named(tmp_path / "r", "conflict_resolution"), measure_named(tmp_path / "r", "macro_recall")
    assert (conflict.value, conflict.n, conflict.planned, conflict.low, conflict.high) == (None, 0, 1, 0, 1)
    assert (mean.value, mean.n) == (None, 2)
    assert mean.low is not None
    assert mean.high is not None
    assert mean.low <= 2 / 3 < 1 <= mean.high


def test_a_run_of_version_0_1_without_open_counts_is_readable() -> None:
    counts = {"tp": 1, "fp": 1, "fn": 0, "tp_open": 0, "fp_open": 0, "fn_open": 0, "supported": 1, "unsupported": 1}
    named = {**counts, "added": 1, "to_add": 2, "precision": 0.5, "must_not_store": 1, "contradiction": 1}
    trial = Trial(suite="extraction", benchmark="b", case_id="a", subject=Subject(role="extractor", name="x"))
    scores = tuple(Score(name=name, value=value) for name, value in named.items())
    [result] = measure([Outcome(trial=trial, status="scored", scores=scores)], measures(), {})
    values = {one.name: one.value for one in result.measures}
    assert (values["precision"], values["macro_precision"], values["coverage_precision"]) == (0.5, 0.5, 0.5)
    assert (values["add_done"], values["must_not_store"], values["contradiction"]) == (0.5, 1, 1)
