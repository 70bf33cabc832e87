"""Case files: what is read, and how what can not be read is told."""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import BadInput
from memorybench.suites.extraction.cases import load_cases
from tests.suites.extraction.known import ADDING, BUNDLED, CHANGING, CHATTING

Change = Callable[[dict[str, Any]], object]


def written(folder: Path, *cases: Any, name: str = "cases.json") -> Path:
    file = folder / name
    file.write_text(json.dumps(list(cases), indent=1))
    return file


def complaint(file: Path) -> str:
    with pytest.raises(BadInput) as refused:
        load_cases(file)
    text = str(refused.value)
    assert "\n" not in text
    return text


def edited(base: dict[str, Any], change: Change) -> dict[str, Any]:
    case = deepcopy(base)
    change(case)
    return case


def put(**values: Any) -> Change:
    return lambda case: case.update(values)


def without(key: str) -> Change:
    return lambda case: case.pop(key)


BROKEN: list[tuple[str, dict[str, Any], Change, str]] = [
    ("no id", ADDING, without("id"), r': \[0\]: "id" is missing; add it'),
    ("id a number", ADDING, put(id=7), r"\[0\]\.id: is 7; expected text"),
    ("id empty", ADDING, put(id=" "), r"\[0\]\.id: is empty"),
    ("no conversation", ADDING, without("conversation"), r'"conversation" is missing'),
    ("no expected_output", ADDING, without("expected_output"), r'"expected_output" is missing'),
    ("no existing_memory", ADDING, without("existing_memory"), r'"existing_memory" is missing'),
    ("no expected_facts", ADDING, without("expected_facts"), r'"expected_facts" is missing'),
    ("a misspelt key", ADDING, put(must_not_sotre=["x"]), r'unknown key .*did you mean "must_not_store"'),
    ("facts a text", ADDING, put(expected_facts="pets: dog"), r"expected_facts: is .*expected a list"),
    ("a fact that is no text", ADDING, put(expected_facts=[3]), r"expected_facts\[0\]: is 3; expected text"),
    ("a fact without category", ADDING, put(expected_facts=["Sells candles"]), r'expected "category: fact"'),
    ("a fact without text", ADDING, put(expected_facts=["costs: "]), r'expected "category: fact"'),
    ("an empty conversation", ADDING, put(conversation=[]), r"conversation: is empty"),
    ("a blank conversation", ADDING, put(conversation=" \n"), r"conversation: is empty"),
    ("nobody speaks", ADDING, put(conversation="We sell candles."), r"does not begin with who speaks"),
    ("the user is silent", ADDING, put(conversation="Assistant: Hello?"), r"the user says nothing"),
    (
        "an unknown role",
        CHANGING,
        lambda case: case["conversation"][0].update(role="usr"),
        r'conversation\[0\]\.role: is "usr".*did you mean "user"',
    ),
    ("a turn without content", CHANGING, lambda case: case["conversation"][0].pop("content"), r'"content" is missing'),
    ("a conversation of numbers", ADDING, put(conversation=5), r"conversation: is 5"),
    ("a memory that is a number", ADDING, put(existing_memory=5), r"existing_memory: is 5; expected a memory"),
    (
        "a fact that is not in the output",
        ADDING,
        lambda case: case["expected_facts"].append("costs: Rent is 900 EUR"),
        r"expected_facts\[2\]: .*is no new fact of expected_output",
    ),
    (
        "a fact in other words than in the output",
        ADDING,
        lambda case: case["expected_facts"].__setitem__(1, "costs: Stall costs 41 EUR a day"),
        r"expected_facts\[1\]: .*did you mean",
    ),
    (
        "a fact under another category than in the output",
        ADDING,
        lambda case: case["expected_facts"].__setitem__(1, "customers: Stall costs 40 EUR a day"),
        r"expected_facts\[1\]: .*is no new fact",
    ),
    (
        "an output with a fact that is not listed",
        ADDING,
        lambda case: case["expected_output"]["costs"].append("Wax costs 3 EUR"),
        r"expected_output: has the new fact .*which expected_facts does not list",
    ),
    (
        "a fact that is known already",
        ADDING,
        lambda case: case["expected_facts"].append("customers: gift shops"),
        r"expected_facts\[2\]: stands in existing_memory already",
    ),
    (
        "a fact listed twice",
        ADDING,
        lambda case: case["expected_facts"].append("Costs: The stall costs €40 per day"),
        r"expected_facts\[2\]: lists .* twice",
    ),
    (
        "an output that says a thing twice",
        ADDING,
        lambda case: case["expected_output"]["costs"].append("The stall costs €40 per day"),
        r"expected_output: says .* twice",
    ),
    (
        "facts expected, output unchanged",
        ADDING,
        put(expected_output=ADDING["existing_memory"]),
        r"expected_output: has nothing that existing_memory has not",
    ),
    (
        "none expected, output changed",
        CHATTING,
        put(expected_output={"diet": ["Does not eat meat", "Rides the tram"]}),
        r"expected_output: has the new fact .*though expected_facts is empty",
    ),
    (
        "superseded, and still there",
        CHANGING,
        lambda case: case["expected_output"]["home"].append("Lives in Bristol"),
        r"superseded\[0\]: .*still stands in expected_output",
    ),
    (
        "superseded, and never there",
        CHANGING,
        put(superseded=["home: Lives in Bath"]),
        r"superseded\[0\]: .*does not stand in existing_memory",
    ),
    ("superseded without category", CHANGING, put(superseded=["Bristol"]), r'superseded\[0\]: .*"category: fact"'),
    (
        "gone, and not superseded",
        CHANGING,
        lambda case: case["expected_output"].pop("pets"),
        r"expected_output: lacks .*Has a dog.* superseded does not list",
    ),
    (
        "forbidden, and in the output",
        CHATTING,
        put(must_not_store=["does not eat meat"]),
        r"must_not_store\[0\]: stands in expected_output",
    ),
    ("forbidden nothing", CHATTING, put(must_not_store=[""]), r"must_not_store\[0\]: is empty"),
    ("an empty scenario", ADDING, put(scenario=""), r"scenario: is empty"),
]


@pytest.mark.parametrize(("base", "change", "told"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_case_is_refused_with_its_place(
    base: dict[str, Any], change: Change, told: str, tmp_path: Path
) -> None:
    text = complaint(written(tmp_path, edited(base, change)))
    assert re.search(told, text), text
    assert re.match(r".*cases\.json:\d+: ", text), "file and line come first"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", r"cases\.json:1: is empty"),
        ("[{", r"cases\.json:1: "),
        ('[{"id": "a", "id": "b"}]', r"id"),
        ("[]", r"cases\.json:1: holds no cases"),
        ('{"cases": []}', r"cases: holds no cases"),
        ("7", r"cases\.json:1: is 7; expected a list of cases"),
        ('{"case": []}', r'"cases" is missing.*; rename "case" to "cases"$'),
        ('{"Cases": []}', r'"cases" is missing.*; rename "Cases" to "cases"$'),
        ('{"cases": [], "author": "x"}', r'unknown key "author"'),
        ("[3]", r"\[0\]: is 3; expected a case"),
        ('{"cases": {"id": "a"}}', r"cases: is .*expected a list of cases"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(content: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text(content)
    text = complaint(file)
    assert re.search(told, text), text


def test_an_id_stands_for_one_case(tmp_path: Path) -> None:
    text = complaint(written(tmp_path, ADDING, CHANGING, {**CHATTING, "id": "adding"}))
    assert re.search(r"cases\.json:\d+: \[2\]\.id: the id \"adding\" stands on line \d+ already", text)


def test_a_bad_line_of_jsonl_is_named(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(f"{json.dumps(ADDING)}\n{json.dumps(edited(CHANGING, without('id')))}\n")
    assert complaint(file).startswith(f"{file}:2: ")


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
        told = r"expected_output: keeps none of the 2 facts of existing_memory.*; write the old facts, too, or list"
        assert re.search(told, complaint(written(tmp_path, case)))


def test_an_output_left_empty_is_not_a_request_to_forget_everything(tmp_path: Path) -> None:
    held = {"home": ["Lives in Bristol"], "pets": ["Has a dog"]}
    case = {**CHATTING, "existing_memory": held, "expected_output": {}}
    assert "keeps none of the 2 facts" in complaint(written(tmp_path, case))


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
