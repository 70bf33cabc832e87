"""The matrix of faulty stores and scenarios in docs/hygiene-faults.md is what the scenarios find."""

import pytest

from tests.stores.faulty import FAULTY
from tests.suites.hygiene.fault_matrix import CLEAN, FILE, render_row, run_matrix
from tests.suites.hygiene.running import bundled
from tests.suites.hygiene.test_bundled import DETECTED_BY


def test_each_of_at_least_thirty_faults_has_a_scenario() -> None:
    assert len(FAULTY) >= 30
    assert set(DETECTED_BY) == set(FAULTY)
    assert {scenario for scenario, _, _ in DETECTED_BY.values()} <= {scenario.id for scenario in bundled()}


def test_the_page_names_every_fault_and_scenario() -> None:
    page = FILE.read_text(encoding="utf-8")
    for fault, (scenario, _, _) in DETECTED_BY.items():
        assert f"| {fault} | {scenario} |" in page, "run python -m tests.suites.hygiene.fault_matrix"
    assert all(f"\n{number}. {scenario.id}\n" in page for number, scenario in enumerate(bundled(), 1))


@pytest.mark.slow
@pytest.mark.parametrize("fault", [CLEAN, *FAULTY])
def test_the_page_shows_what_the_scenarios_find(fault: str) -> None:
    row = run_matrix([fault])[fault]
    if fault == CLEAN:
        assert set(row.values()) == {"✓"}
    else:
        assert row[DETECTED_BY[fault][0]] == "✗"
    assert render_row(fault, row) in FILE.read_text(encoding="utf-8").splitlines()
