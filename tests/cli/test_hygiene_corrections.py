"""`hygiene corrections`: which of two contradictory statements search, list and answer return."""

from __future__ import annotations

import pytest

from memorybench.suites.hygiene.corrections import COLUMNS, make_topics
from tests.cli.command import Command, Said
from tests.cli.test_hygiene_forget import write_store
from tests.doubles.stub import Stub, completion


def cells(said: Said, column: str, way: str) -> set[tuple[str, str, str]]:
    """What search, list and answer returned, over all topics."""
    return {
        (cell["search"], cell["list"], cell["answer"])
        for cell in said.json["corrections"]
        if (cell["column"], cell["way"]) == (column, way)
    }


def test_the_matrix_shows_what_the_reference_store_returns(command: Command) -> None:
    said = command("hygiene", "corrections", "--json")
    assert said.code == 0, said.err
    assert {cell["column"] for cell in said.json["corrections"]} == set(COLUMNS)
    assert cells(said, "only-old", "told") == {("only old", "only old", "not asked")}
    assert cells(said, "new-after-old", "operations") == {("only new", "only new", "not asked")}
    assert cells(said, "new-retracted", "operations") == {("only old", "only old", "not asked")}
    ((_, both, _),) = cells(said, "old-repeated", "told")
    assert both == "both"


@pytest.mark.slow
def test_a_store_without_update_and_forget_skips_those_cells(command: Command) -> None:
    write_store(command, "none", "[recall, list, files]")
    said = command("hygiene", "corrections", "--store", "mine", "--allow-code", "--json")
    assert said.code == 0, said.err
    assert said.json["counts"]["skipped"] == 9
    assert cells(said, "new-retracted", "operations") == set()
    assert cells(said, "new-retracted", "told")


@pytest.mark.slow
def test_a_threshold_makes_the_matrix_a_gate(command: Command) -> None:
    assert command("hygiene", "corrections", "--threshold", "outdated_listed=0").code == 3
    assert command("hygiene", "corrections", "--threshold", "current_first=0.1").code == 0


@pytest.fixture
def stub(stub: Stub) -> Stub:
    new = make_topics(3)["town"].new_value
    stub.always(completion(lambda call: f"In {new}.", model="", tokens=(9, 1)))
    return stub


def test_a_model_answers_from_the_search_and_no_judge_is_needed(command: Command, stub: Stub) -> None:
    said = command("hygiene", "corrections", "--seed", "3", "--model", "gpt-4o-mini", "--json", "--run-id", "m")
    assert said.code == 0, said.err
    answers = {(cell["topic"], cell["answer"]) for cell in said.json["corrections"]}
    assert answers == {("town", "only new"), ("doctor", "neither"), ("project", "neither")}
    calls = len(stub.calls)
    again = command("hygiene", "corrections", "--resume", "m", "--json")
    assert (again.json["corrections"], len(stub.calls)) == (said.json["corrections"], calls)
    shown = command("show", "m", "new-after-old", "--variant", "told, town")
    assert shown.code == 0, shown.err
    assert "new before old" in shown.out or "old before new" in shown.out
