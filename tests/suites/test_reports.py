"""Stored runs as reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from memorybench.core.errors import BadInput
from memorybench.core.report_sections import Notes, Table
from memorybench.core.spending import Spending
from memorybench.core.trials import Exhibit, Outcome, Score, Subject, Trial
from memorybench.journal.run_reader import Stage
from memorybench.reporting.formatting import cell_text
from memorybench.suites import report_parts
from memorybench.suites.hygiene import report as hygiene
from memorybench.suites.registry import suite_of
from memorybench.suites.stored_run import open_stored_run
from memorybench.suites.summary import Summary
from tests.suites.recorded import record, scored


def outcome(phase: str, got: str, **scores: float) -> Outcome:
    return Outcome(
        trial=Trial(
            suite="hygiene",
            benchmark="scenarios",
            case_id="no-secrets",
            subject=Subject(role="store", name="toy"),
            labels={"phase": phase},
            variant=phase,
            cluster="no-secrets",
        ),
        status="scored",
        scores=tuple(Score(name=name, value=value) for name, value in scores.items()),
        shown=Exhibit(asked="", expected="", got=got),
    )


def test_a_bench_report_has_full_measure_names_and_a_document(tmp_path: Path) -> None:
    record(tmp_path, [scored("q1", 1.0), scored("q2", 0.0)])
    with open_stored_run(["r"], [tmp_path]) as stored:
        report = suite_of(stored.run).report(stored)
    table = next(section for section in report.sections if isinstance(section, Table))
    assert [column.heading for column in table.columns] == [
        "provider",
        "accuracy [95%]",
        "recall@5",
        "recall@1",
        "n",
    ]
    assert report.document["run_id"] == "r"
    assert report.document["lifts"] == report.document["differences_from_baseline"]


def test_a_run_of_another_suite_has_no_report(tmp_path: Path) -> None:
    record(tmp_path, [scored("q1", 1.0)])
    with open_stored_run(["r"], [tmp_path]) as stored:
        other = stored.run.model_copy(update={"suite": "calibration"})
    with pytest.raises(BadInput) as caught:
        suite_of(other)
    assert caught.value.where == "r"


@pytest.mark.parametrize("name", ["settle", "wait_until_searchable"])
def test_waiting_is_shown_as_time_to_searchable_under_both_names(name: str) -> None:
    stage = Stage(name=name, subject="toy", steps=1, seconds=(0.5,), spent=Spending(), reused=0)
    counts = dict.fromkeys(("planned", "scored", "unscored", "failed", "skipped", "blocked"), 0)
    summary = Summary(run_id="r", suite="bench", status="complete", counts=counts, results=(), stages=(stage,))
    (table,) = report_parts.step_tables(summary)
    assert table.rows[0][0] == "time to searchable"
    assert report_parts.document(summary)["circumstances"]["stages"][0]["label"] == "time to searchable"


def test_the_mark_before_a_clear_is_not_shown_as_a_step() -> None:
    stages = tuple(
        Stage(name=name, subject=subject, steps=1, seconds=(0.5,), spent=Spending(), reused=0)
        for name, subject in (("clear", "toy"), ("clearing", ""))
    )
    counts = dict.fromkeys(("planned", "scored", "unscored", "failed", "skipped", "blocked"), 0)
    summary = Summary(run_id="r", suite="bench", status="complete", counts=counts, results=(), stages=stages)
    (table,) = report_parts.step_tables(summary)
    assert [row[0] for row in (*table.rows, *table.detail_rows)] == ["clear"]


def test_hygiene_states_have_plain_names_marks_and_definitions() -> None:
    outcomes = [
        outcome("well_behaved", "compliant", passed=1),
        outcome("violation", "defended", passed=1, caught=1),
        outcome("violation", "missed", passed=0, caught=0),
        outcome("mutant", "", killed=1),
    ]
    table = hygiene._scenario_table(outcomes, {"no-secrets": "Secrets stay out"})
    assert [cell_text(cell) for cell in table.rows[0]] == [
        "no-secrets",
        "✗ fail",
        "✓ pass",
        "✓ blocked by store 1, ✗ missed 1",
        "1 of 1",
        "Secrets stay out",
    ]
    assert {"pass", "fail", "blocked by store", "detected", "accepted", "missed"} <= hygiene.STATES.keys()


def test_a_hygiene_document_has_new_states_and_the_old_words() -> None:
    document = hygiene._scenario_document("no-secrets", [outcome("well_behaved", "compliant", passed=1)])
    assert document["phases"] == {"well_behaved": {"pass": 1}}
    assert document["well-behaved"] == "compliant"
    assert document["violation"] == "–"
    assert document["mutants killed"] == "–"


def test_self_judged_runs_say_so_in_the_title_and_first() -> None:
    counts = dict.fromkeys(("planned", "scored", "unscored", "failed", "skipped", "blocked"), 0)
    notes = (("self-judged", "gpt judges itself"),)
    summary = Summary(run_id="r", suite="bench", status="complete", counts=counts, results=(), notes=notes)
    assert report_parts.title("Toy", summary) == "Toy (self-judged)"
    assert report_parts.self_judged_notes(summary) == [Notes(("self-judged: gpt judges itself",), warning=True)]
    assert report_parts.warnings(summary) == ()


@pytest.mark.parametrize("finished", [0, 2])
def test_a_run_that_has_not_ended_has_figures_of_the_trials_finished_so_far(finished: int) -> None:
    counts = dict.fromkeys(("unscored", "failed", "skipped", "blocked"), 0) | {"planned": 5, "scored": finished}
    summary = Summary(run_id="r", suite="bench", status="partial", counts=counts, results=())
    (line,) = report_parts.warnings(summary)
    assert line.startswith("The run is partial")
    assert ("figures" in line) == (finished > 0)


def test_a_skipped_phase_is_neither_good_nor_bad() -> None:
    table = hygiene._scenario_table([outcome("well_behaved", "skipped")], {})
    assert [cell_text(cell) for cell in table.rows[0][1:3]] == ["– skipped", "– skipped"]


def test_a_violation_that_the_store_had_to_block_is_bad_when_only_detected() -> None:
    table = hygiene._scenario_table([outcome("violation", "detected", passed=0, caught=1)], {})
    assert [cell_text(cell) for cell in table.rows[0][1:4]] == ["✗ fail", "–", "✗ accepted"]
