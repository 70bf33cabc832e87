"""Case files: what is read, and how what can not be read is told."""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from memorybench.suites.extraction.cases import load_cases
from tests.doubles.refusals import refused
from tests.suites.extraction.known import ADDING, BUNDLED, CHANGING, CHATTING

Change = Callable[[dict[str, Any]], object]


def written(folder: Path, *cases: Any, name: str = "cases.json") -> Path:
    file = folder / name
    file.write_text(json.dumps(list(cases), indent=1))
    return file


def edited(base: dict[str, Any], change: Change) -> dict[str, Any]:
    case = deepcopy(base)
    change(case)
    return case


def put(**values: Any) -> Change:
    return lambda case: case.update(values)


def without(key: str) -> Change:
    return lambda case: case.pop(key)


BROKEN: list[tuple[str, dict[str, Any], Change, str]] = [
    ("no id", ADDING, without("id"), "[0]"),
    ("id a number", ADDING, put(id=7), "[0].id"),
    ("id empty", ADDING, put(id=" "), "[0].id"),
    ("no conversation", ADDING, without("conversation"), "[0]"),
    ("no expected_output", ADDING, without("expected_output"), "[0]"),
    ("no existing_memory", ADDING, without("existing_memory"), "[0]"),
    ("no expected_facts", ADDING, without("expected_facts"), "[0]"),
    ("a misspelt key", ADDING, put(must_not_sotre=["x"]), "[0].must_not_sotre"),
    ("facts a text", ADDING, put(expected_facts="pets: dog"), "[0].expected_facts"),
    ("a fact that is no text", ADDING, put(expected_facts=[3]), "[0].expected_facts[0]"),
    ("a fact without category", ADDING, put(expected_facts=["Sells candles"]), "[0].expected_facts[0]"),
    ("a fact without text", ADDING, put(expected_facts=["costs: "]), "[0].expected_facts[0]"),
    ("an empty conversation", ADDING, put(conversation=[]), "[0].conversation"),
    ("a blank conversation", ADDING, put(conversation=" \n"), "[0].conversation"),
    ("nobody speaks", ADDING, put(conversation="We sell candles."), "[0].conversation"),
    ("the user is silent", ADDING, put(conversation="Assistant: Hello?"), "[0].conversation"),
    (
        "an unknown role",
        CHANGING,
        lambda case: case["conversation"][0].update(role="usr"),
        "[0].conversation[0].role",
    ),
    ("a turn without content", CHANGING, lambda case: case["conversation"][0].pop("content"), "[0].conversation[0]"),
    ("a conversation of numbers", ADDING, put(conversation=5), "[0].conversation"),
    ("a memory that is a number", ADDING, put(existing_memory=5), "[0].existing_memory"),
    (
        "a fact that is not in the output",
        ADDING,
        lambda case: case["expected_facts"].append("costs: Rent is 900 EUR"),
        "[0].expected_facts[2]",
    ),
    (
        "a fact in other words than in the output",
        ADDING,
        lambda case: case["expected_facts"].__setitem__(1, "costs: Stall costs 41 EUR a day"),
        "[0].expected_facts[1]",
    ),
    (
        "a fact under another category than in the output",
        ADDING,
        lambda case: case["expected_facts"].__setitem__(1, "customers: Stall costs 40 EUR a day"),
        "[0].expected_facts[1]",
    ),
    (
        "an output with a fact that is not listed",
        ADDING,
        lambda case: case["expected_output"]["costs"].append("Wax costs 3 EUR"),
        "[0].expected_output",
    ),
    (
        "a fact that is known already",
        ADDING,
        lambda case: case["expected_facts"].append("customers: gift shops"),
        "[0].expected_facts[2]",
    ),
    (
        "a fact listed twice",
        ADDING,
        lambda case: case["expected_facts"].append("Costs: The stall costs €40 per day"),
        "[0].expected_facts[2]",
    ),
    (
        "an output that says a thing twice",
        ADDING,
        lambda case: case["expected_output"]["costs"].append("The stall costs €40 per day"),
        "[0].expected_output",
    ),
    (
        "facts expected, output unchanged",
        ADDING,
        put(expected_output=ADDING["existing_memory"]),
        "[0].expected_output",
    ),
    (
        "none expected, output changed",
        CHATTING,
        put(expected_output={"diet": ["Does not eat meat", "Rides the tram"]}),
        "[0].expected_output",
    ),
    (
        "superseded, and still there",
        CHANGING,
        lambda case: case["expected_output"]["home"].append("Lives in Bristol"),
        "[0].superseded[0]",
    ),
    (
        "superseded, and never there",
        CHANGING,
        put(superseded=["home: Lives in Bath"]),
        "[0].superseded[0]",
    ),
    ("superseded without category", CHANGING, put(superseded=["Bristol"]), "[0].superseded[0]"),
    (
        "gone, and not superseded",
        CHANGING,
        lambda case: case["expected_output"].pop("pets"),
        "[0].expected_output",
    ),
    (
        "forbidden, and in the output",
        CHATTING,
        put(must_not_store=["does not eat meat"]),
        "[0].must_not_store[0]",
    ),
    ("forbidden nothing", CHATTING, put(must_not_store=[""]), "[0].must_not_store[0]"),
    ("an empty scenario", ADDING, put(scenario=""), "[0].scenario"),
]


@pytest.mark.parametrize(("base", "change", "place"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_case_is_refused_with_its_place(
    base: dict[str, Any], change: Change, place: str, tmp_path: Path
) -> None:
    file = written(tmp_path, edited(base, change))
    assert re.fullmatch(rf"{re.escape(f'{file}')}:\d+: {re.escape(place)}", refused(load_cases, file).where)


@pytest.mark.parametrize(
    ("content", "place", "detail"),
    [
        ("", ":1", "empty"),
        ("[{", ":1", ""),
        ('[{"id": "a", "id": "b"}]', ".id", '"id"'),
        ("[]", ":1", "cases"),
        ('{"cases": []}', ": cases", "cases"),
        ("7", ":1", "7"),
        ('{"case": []}', ":1", '"cases"'),
        ('{"Cases": []}', ":1", '"cases"'),
        ('{"cases": [], "author": "x"}', ": author", '"author"'),
        ("[3]", ": [0]", "3"),
        ('{"cases": {"id": "a"}}', ": cases", ""),
    ],
)
def test_a_broken_file_is_refused_with_its_place(content: str, place: str, detail: str, tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text(content)
    error = refused(load_cases, file)
    assert error.where.endswith(place)
    assert detail in error.problem


def test_an_id_stands_for_one_case(tmp_path: Path) -> None:
    error = refused(load_cases, written(tmp_path, ADDING, CHANGING, {**CHATTING, "id": "adding"}))
    assert error.where.endswith(": [2].id")
    assert '"adding"' in error.problem


def test_a_bad_line_of_jsonl_is_named(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(f"{json.dumps(ADDING)}\n{json.dumps(edited(CHANGING, without('id')))}\n")
    assert refused(load_cases, file).where.startswith(f"{file}:2")


def test_the_three_forms_of_a_file_hold_the_same(tmp_path: Path) -> None:
    rows = [ADDING, CHANGING, CHATTING]
    listed = load_cases(written(tmp_path, *rows))
    (tmp_path / "wrapped.json").write_text(json.dumps({"cases": rows}))
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert load_cases(tmp_path / "wrapped.json") == listed
    assert load_cases(tmp_path / "rows.jsonl") == listed


def test_what_is_gone_is_superseded_where_a_case_does_not_say(tmp_path: Path) -> None:
    """As in cases of the specification, which has no such key."""
    (one,) = load_cases(written(tmp_path, edited(CHANGING, without("superseded"))))
    assert one.superseded == ("home: Lives in Bristol",)


@pytest.mark.parametrize("superseded", [None, ["home: Lives in Bristol", "pets: Has a dog"]])
def test_only_what_is_new_is_not_the_whole_memory(superseded: list[str] | None, tmp_path: Path) -> None:
    """Every old fact would have to be deleted: that must be said, not concluded."""
    case = {
        **edited(CHANGING, without("superseded")),
        "existing_memory": {"home": ["Lives in Bristol"], "pets": ["Has a dog"]},
        "expected_output": {"home": ["Lives in Cardiff"]},
        "expected_facts": ["home: Lives in Cardiff"],
    }
    if superseded:
        (one,) = load_cases(written(tmp_path, {**case, "superseded": superseded}))
        assert len(one.gold.removed) == 2
    else:
        assert refused(load_cases, written(tmp_path, case)).where.endswith(".expected_output")


def test_an_output_left_empty_is_not_a_request_to_forget_everything(tmp_path: Path) -> None:
    held = {"home": ["Lives in Bristol"], "pets": ["Has a dog"]}
    case = {**CHATTING, "existing_memory": held, "expected_output": {}}
    assert refused(load_cases, written(tmp_path, case)).where.endswith(".expected_output")


def test_speakers_are_known_by_several_names(tmp_path: Path) -> None:
    said = "Human: We sell handmade candles in Lyon.\nThe stall costs 40 EUR a day.\nExpert: Noted.\n**User:** Thanks."
    (one,) = load_cases(written(tmp_path, {**ADDING, "conversation": said}))
    assert [turn.role for turn in one.conversation] == ["user", "assistant", "user"]
    assert one.conversation[0].content == "We sell handmade candles in Lyon.\nThe stall costs 40 EUR a day."


def test_the_bundled_cases_cover_ten_scenarios_six_times_or_more() -> None:
    cases = load_cases(BUNDLED)
    scenarios = [case.labels["scenario"] for case in cases]
    assert len(cases) >= 60
    assert min(scenarios.count(scenario) for scenario in set(scenarios)) >= 6
    assert len(set(scenarios)) == 10
    assert [case.id for case in cases[:10]] == [f"test_{n:03}" for n in range(1, 11)]
