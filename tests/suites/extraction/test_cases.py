"""Reading of case files, and the place of each error."""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import BadInput
from memorybench.suites.extraction.cases import ExtractionCase, load_cases
from memorybench.suites.extraction.findings import findings_of, match_output
from memorybench.suites.extraction.mutants import mutants_of, run_mutants
from memorybench.suites.extraction.report import _fact_table
from tests.doubles.refusals import refused
from tests.suites.extraction.known import ADDING, BUNDLED, CHANGING, CHATTING

Change = Callable[[dict[str, Any]], object]


def write(folder: Path, *cases: Any) -> Path:
    file = folder / "cases.json"
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


INVALID: list[tuple[str, dict[str, Any], Change, str]] = [
    ("missing id", ADDING, without("id"), "[0]"),
    ("number as id", ADDING, put(id=7), "[0].id"),
    ("empty id", ADDING, put(id=" "), "[0].id"),
    ("missing conversation", ADDING, without("conversation"), "[0]"),
    ("missing expected_output", ADDING, without("expected_output"), "[0]"),
    ("missing existing_memory", ADDING, without("existing_memory"), "[0]"),
    ("missing expected_facts", ADDING, without("expected_facts"), "[0]"),
    ("a misspelt key", ADDING, put(must_not_sotre=["x"]), "[0].must_not_sotre"),
    ("text as expected_facts", ADDING, put(expected_facts="pets: dog"), "[0].expected_facts"),
    ("number as a fact", ADDING, put(expected_facts=[3]), "[0].expected_facts[0]"),
    ("a fact without category", ADDING, put(expected_facts=["Sells candles"]), "[0].expected_facts[0]"),
    ("a fact without text", ADDING, put(expected_facts=["costs: "]), "[0].expected_facts[0]"),
    ("an empty conversation", ADDING, put(conversation=[]), "[0].conversation"),
    ("a blank conversation", ADDING, put(conversation=" \n"), "[0].conversation"),
    ("a conversation without speakers", ADDING, put(conversation="We sell candles."), "[0].conversation"),
    ("a conversation without the user", ADDING, put(conversation="Assistant: Hello?"), "[0].conversation"),
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
        "a fact of existing_memory",
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
        "an output with a duplicate",
        ADDING,
        lambda case: case["expected_output"]["costs"].append("The stall costs €40 per day"),
        "[0].expected_output",
    ),
    (
        "facts expected but output unchanged",
        ADDING,
        put(expected_output=ADDING["existing_memory"]),
        "[0].expected_facts[0]",
    ),
    (
        "no facts expected but output changed",
        CHATTING,
        put(expected_output={"diet": ["Does not eat meat", "Rides the tram"]}),
        "[0].expected_output",
    ),
    (
        "superseded but still in the output",
        CHANGING,
        lambda case: case["expected_output"]["home"].append("Lives in Bristol"),
        "[0].superseded[0]",
    ),
    (
        "superseded but not in existing_memory",
        CHANGING,
        put(superseded=["home: Lives in Bath"]),
        "[0].superseded[0]",
    ),
    ("superseded without category", CHANGING, put(superseded=["Bristol"]), "[0].superseded[0]"),
    (
        "removed but not superseded",
        CHANGING,
        lambda case: case["expected_output"].pop("pets"),
        "[0].expected_output",
    ),
    (
        "forbidden but in the output",
        CHATTING,
        put(must_not_store=["does not eat meat"]),
        "[0].must_not_store[0]",
    ),
    (
        "forbidden but in the output in another case",
        CHATTING,
        put(must_not_store=["Does not eat Meat"]),
        "[0].must_not_store[0]",
    ),
    ("an empty forbidden text", CHATTING, put(must_not_store=[""]), "[0].must_not_store[0]"),
    ("an empty scenario", ADDING, put(scenario=""), "[0].scenario"),
]


@pytest.mark.parametrize(("base", "change", "place"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID])
def test_an_invalid_case_raises_an_error_with_its_place(
    base: dict[str, Any], change: Change, place: str, tmp_path: Path
) -> None:
    file = write(tmp_path, edited(base, change))
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
        ('{"case": []}', ": case", '"case"'),
        ('{"Cases": []}', ": Cases", '"Cases"'),
        ('{"cases": [], "author": "x"}', ": author", '"author"'),
        ("[3]", ": [0]", "3"),
        ('{"cases": {"id": "a"}}', ": cases", ""),
    ],
)
def test_an_invalid_file_raises_an_error_with_its_place(content: str, place: str, detail: str, tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text(content)
    error = refused(load_cases, file)
    assert error.where.endswith(place)
    assert detail in error.problem


def test_a_duplicate_id_is_an_error(tmp_path: Path) -> None:
    error = refused(load_cases, write(tmp_path, ADDING, CHANGING, {**CHATTING, "id": "adding"}))
    assert error.where.endswith(": [2].id")
    assert '"adding"' in error.problem


def test_an_error_in_jsonl_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(f"{json.dumps(ADDING)}\n{json.dumps(edited(CHANGING, without('id')))}\n")
    assert refused(load_cases, file).where.startswith(f"{file}:2")


def test_list_mapping_and_jsonl_contain_the_same_cases(tmp_path: Path) -> None:
    rows = [ADDING, CHANGING, CHATTING]
    cases = load_cases(write(tmp_path, *rows))
    (tmp_path / "wrapped.json").write_text(json.dumps({"cases": rows}))
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert load_cases(tmp_path / "wrapped.json") == cases
    assert load_cases(tmp_path / "rows.jsonl") == cases


def test_superseded_is_derived_if_missing(tmp_path: Path) -> None:
    """The specification has no such key."""
    (one,) = load_cases(write(tmp_path, edited(CHANGING, without("superseded"))))
    assert one.superseded == ("home: Lives in Bristol",)


@pytest.mark.parametrize("superseded", [None, ["home: Lives in Bristol", "pets: Has a dog"]])
def test_removing_several_facts_requires_superseded(superseded: list[str] | None, tmp_path: Path) -> None:
    case = {
        **edited(CHANGING, without("superseded")),
        "existing_memory": {"home": ["Lives in Bristol"], "pets": ["Has a dog"]},
        "expected_output": {"home": ["Lives in Cardiff"]},
        "expected_facts": ["home: Lives in Cardiff"],
    }
    if superseded:
        (one,) = load_cases(write(tmp_path, {**case, "superseded": superseded}))
        assert len(one.gold.removed) == 2
    else:
        assert refused(load_cases, write(tmp_path, case)).where.endswith(".expected_output")


def test_an_empty_output_is_an_error_unless_superseded_lists_all_facts(tmp_path: Path) -> None:
    memory = {"home": ["Lives in Bristol"], "pets": ["Has a dog"]}
    case = {**CHATTING, "existing_memory": memory, "expected_output": {}}
    assert refused(load_cases, write(tmp_path, case)).where.endswith(".expected_output")


FAMILY: dict[str, Any] = {
    "id": "family",
    "scenario": "multiple_blocks",
    "existing_memory": {"family": {"Ines": {"town": "Ghent"}, "Paul": {"town": "Bruges"}}, "town": "Bruges"},
    "conversation": "User: My brother Paul moved to Ghent, and so did I.",
    "expected_output": {"family": {"Ines": {"town": "Ghent"}, "Paul": {"town": "Ghent"}}, "town": "Ghent"},
    "expected_facts": ["town: Ghent", "town: Ghent"],
    "superseded": ["town: Bruges", "town: Bruges"],
}


def test_the_same_fact_of_several_owners_is_no_duplicate(tmp_path: Path) -> None:
    (case,) = load_cases(write(tmp_path, FAMILY))
    assert [fact.categories for fact in case.gold.kept] == [("family", "Ines", "town")]
    paths = [("family", "Paul", "town"), ("town",)]
    assert [fact.categories for fact in case.gold.added] == [fact.categories for fact in case.gold.removed] == paths
    assert case.gold.replaces == {0: 0, 1: 1}
    thrice = edited(FAMILY, put(expected_facts=["town: Ghent"] * 3))
    assert refused(load_cases, write(tmp_path, thrice)).where.endswith("expected_facts[2]")


def test_a_reference_may_begin_with_an_outer_key_of_its_fact(tmp_path: Path) -> None:
    texts = ["anna: owes the other 50 euros"]
    owing = put(
        existing_memory={},
        expected_output={"anna": {"ben": texts}, "passwords": {"wifi": ["Three Cats"]}},
        expected_facts=[f"ben: {texts[0]}", "wifi: Three Cats"],
        superseded=[],
    )
    (case,) = load_cases(write(tmp_path, edited(FAMILY, owing)))
    assert [fact.text for fact in case.gold.added] == [*texts, "Three Cats"]


def test_a_remark_names_the_owner_of_a_fact(tmp_path: Path) -> None:
    (case,) = load_cases(write(tmp_path, FAMILY))
    without_ines = {"family": {"Paul": {"town": "Ghent"}}, "town": "Ghent"}
    findings = findings_of(case.gold, match_output(case, without_ines))
    assert list(map(str, findings.remarks)) == ["lost: family / Ines / town: town: Ghent"]


def states(case: ExtractionCase, memory: Any, remarks: str) -> list[tuple[Any, ...]]:
    [table] = _fact_table(case, memory, remarks)
    rows: Any = table.rows
    return [(to_do, expected, state.name) for to_do, expected, _, [state] in rows]


def test_the_table_shows_a_wrong_fact_under_the_singular_of_an_expected_key(tmp_path: Path) -> None:
    change = put(
        existing_memory={},
        expected_output={"Roberts": ["Pays late"]},
        expected_facts=["Roberts: Pays late"],
        superseded=[],
    )
    (case,) = load_cases(write(tmp_path, edited(FAMILY, change)))
    remarks = "missed: Roberts: Pays late; hallucinated: robert: Pays late"
    assert states(case, {"robert": ["Pays late"]}, remarks) == [
        ("add", "Roberts: Pays late", "FN: missed"),
        (None, None, "FP: hallucinated"),
    ]


def test_the_table_tells_keys_in_the_singular_and_the_plural_apart(tmp_path: Path) -> None:
    both = {"robert": ["Pays late"], "Roberts": ["Pays late"]}
    change = put(existing_memory=both, expected_output=both, expected_facts=[], superseded=[])
    (case,) = load_cases(write(tmp_path, edited(FAMILY, change)))
    lost = states(case, {"Roberts": ["Pays late"]}, "lost: robert: Pays late")
    assert sorted(lost) == [("keep", "Roberts: Pays late", "kept"), ("keep", "robert: Pays late", "FP: lost")]


def test_the_table_of_a_run_of_an_earlier_version_shows_its_failures(tmp_path: Path) -> None:
    """Its remarks name categories in lower case and the singular, or the last category only."""
    family = {"family": {"Eva": {"town": "Lund"}}}
    after = {"family": {"Eva": {"town": "Lund"}, "Paul": {"town": "Ghent"}}}
    change = put(existing_memory=family, expected_output=after, expected_facts=["town: Ghent"], superseded=[])
    (case,) = load_cases(write(tmp_path, edited(FAMILY, change)))
    lost, missed = "family / Eva / town: town: Lund", "family / Paul / town: town: Ghent"
    expected = [("keep", lost, "FP: lost"), ("add", missed, "FN: missed")]
    for remarks in (f"lost: {lost}; missed: {missed}", f"lost: {lost}; missed: {missed}".lower()):
        assert states(case, {}, remarks.replace("lund", "Lund").replace("ghent", "Ghent")) == expected
    assert states(case, {}, "lost: town: town: Lund; missed: town: town: Ghent") == expected
    mistakes = states(case, after, "hallucinated: town: town: Ghent; stale: town: Ghent (town: town: Ghent)")
    assert mistakes[2:] == [(None, None, "FP: hallucinated"), (None, None, "FP: stale")]
    undecided = states(case, {}, "undecided: town: town: Gent (town: town: Ghent)")
    assert undecided[1] == ("add", missed, "undecided")


def test_the_table_tells_the_fact_of_the_user_from_that_of_another_owner(tmp_path: Path) -> None:
    (case,) = load_cases(write(tmp_path, FAMILY))
    added = states(case, case.expected_output, "missed: town: town: Ghent")[1:3]
    assert [state for *_, state in added] == ["TP", "FN: missed"]


def test_exchanged_values_of_two_owners_are_two_updates(tmp_path: Path) -> None:
    case = edited(
        FAMILY,
        put(
            existing_memory={"family": {"Ines": {"town": "Ghent"}, "Paul": {"town": "Bruges"}}},
            expected_output={"family": {"Ines": {"town": "Bruges"}, "Paul": {"town": "Ghent"}}},
            expected_facts=["town: Bruges", "town: Ghent"],
            superseded=["town: Bruges", "town: Ghent"],
        ),
    )
    (loaded,) = load_cases(write(tmp_path, case))
    assert loaded.gold.replaces == {0: 0, 1: 1}
    kept = findings_of(loaded.gold, match_output(loaded, loaded.existing_memory))
    assert (kept.tp, kept.fn, kept.operations.update.done) == (0, 4, 0)


GHENT = {"family": {"Paul": ["Likes tea a lot", "Lives in Ghent now"]}}


@pytest.mark.parametrize(
    ("before", "after", "listed"),
    [
        ({"family": {"Paul": ["Likes tea a lot"]}}, GHENT, "family: Lives in Ghent now"),
        ({"family": {"Paul": ["Likes tea a lot"]}}, GHENT, "Paul: lives in ghent now"),
        ({}, {"diet": ["Eats Fish daily"]}, "diet: eats fish daily"),
    ],
    ids=["outer key", "inner key in another case", "another case"],
)
def test_a_fact_may_be_listed_in_any_case_and_under_any_key_of_its_path(
    before: Any, after: Any, listed: str, tmp_path: Path
) -> None:
    memories = put(existing_memory=before, expected_output=after, expected_facts=[listed], superseded=[])
    (case,) = load_cases(write(tmp_path, edited(FAMILY, memories)))
    assert (len(case.gold.added), case.gold.removed) == (1, ())


def test_a_listed_fact_that_differs_in_case_only_is_an_update(tmp_path: Path) -> None:
    change = put(
        existing_memory={"plant": ["Produces 3 mW", "Is in Bath"]},
        expected_output={"plant": ["Produces 3 MW", "Is in Bath"]},
        expected_facts=["plant: Produces 3 MW"],
        superseded=["plant: Produces 3 mW"],
    )
    (case,) = load_cases(write(tmp_path, edited(FAMILY, change)))
    assert [fact.text for fact in case.gold.targets] == ["Is in Bath", "Produces 3 MW", "Produces 3 mW"]
    assert (case.gold.valid, case.gold.replaces) == (2, {0: 0})


@pytest.mark.parametrize(("memory", "listed"), [({"power": "3 mW"}, "power: power: 3 mW"), (["3 mW"], "memory: 3 mW")])
def test_a_listed_change_of_case_may_begin_with_its_key(memory: Any, listed: str, tmp_path: Path) -> None:
    after = json.loads(json.dumps(memory).replace("mW", "MW"))
    lines = {"expected_facts": [listed.replace("mW", "MW")], "superseded": [listed]}
    change = put(existing_memory=memory, expected_output=after, **lines)
    (case,) = load_cases(write(tmp_path, edited(FAMILY, change)))
    assert (case.gold.kept, len(case.gold.added)) == ((), 1)


@pytest.mark.parametrize(
    "after", [{"diet": ["eats no fish"]}, {"profile": {"diet": ["Eats no Fish"]}}], ids=["other case", "other path"]
)
def test_a_kept_fact_is_written_as_in_the_memory_before(after: Any, tmp_path: Path) -> None:
    change = put(existing_memory={"diet": ["Eats no Fish"]}, expected_output=after, expected_facts=[], superseded=[])
    with pytest.raises(BadInput) as refused:
        load_cases(write(tmp_path, edited(FAMILY, change)))
    assert refused.value.where.endswith("expected_output")
    assert "as in existing_memory" in refused.value.remedy


def test_a_removed_fact_may_be_listed_under_any_key_of_its_path(tmp_path: Path) -> None:
    """Ines has the same fact, but keeps it."""
    both = {"family": {"Ines": ["Lives in Ghent now"], "Paul": ["Lives in Ghent now"]}}
    left = {"family": {"Ines": ["Lives in Ghent now"], "Paul": []}}
    change = put(
        existing_memory=both, expected_output=left, expected_facts=[], superseded=["family: lives in Ghent now"]
    )
    (case,) = load_cases(write(tmp_path, edited(FAMILY, change)))
    assert [fact.categories for fact in case.gold.removed] == [("family", "Paul")]


def test_a_fact_that_two_owners_have_must_be_listed_twice(tmp_path: Path) -> None:
    after = {"family": {"Ines": ["Lives in Ghent now"], "Paul": ["Lives in Ghent now"]}}
    change = put(
        existing_memory={}, expected_output=after, expected_facts=["family: Lives in Ghent now"], superseded=[]
    )
    error = refused(load_cases, write(tmp_path, edited(FAMILY, change)))
    assert error.where.endswith(".expected_output")


def test_values_exchanged_between_the_user_and_an_owner_are_no_moves(tmp_path: Path) -> None:
    change = put(
        existing_memory={"town": "Bruges", "sister": {"town": "Ghent"}},
        expected_output={"town": "Ghent", "sister": {"town": "Bruges"}},
        expected_facts=["town: Ghent", "town: Bruges"],
        superseded=["town: Bruges", "town: Ghent"],
    )
    (case,) = load_cases(write(tmp_path, edited(FAMILY, change)))
    assert (case.gold.kept, len(case.gold.added), len(case.gold.removed)) == ((), 2, 2)


def test_a_fact_of_another_owner_is_no_move(tmp_path: Path) -> None:
    change = put(
        existing_memory={"family": {"Ines": {"town": "Ghent"}}},
        expected_output={"family": {"Paul": {"town": "Ghent"}}},
        expected_facts=["paul: Ghent"],
        superseded=["ines: Ghent"],
    )
    (case,) = load_cases(write(tmp_path, edited(FAMILY, change)))
    assert (case.gold.kept, len(case.gold.added), len(case.gold.removed)) == ((), 1, 1)


BIKE = "Repairs old bicycles at night"


@pytest.mark.parametrize(
    ("before", "after", "listed", "superseded"),
    [
        ({"aunt": {"hobby": [BIKE]}}, {"hobby": [BIKE]}, "hobby", "aunt"),
        ({"hobby": [BIKE]}, {"aunt": {"hobby": [BIKE]}}, "aunt", "hobby"),
        ([{"fact": BIKE, "name": "Ines"}], [{"fact": BIKE, "name": "Paul"}], "Paul", "Ines"),
        ([{"fact": BIKE, "user_id": "ines"}], [{"fact": BIKE, "user_id": "paul"}], "paul", "ines"),
    ],
)
def test_a_listed_fact_may_be_that_of_another_owner(
    before: Any, after: Any, listed: str, superseded: str, tmp_path: Path
) -> None:
    change = put(
        existing_memory=before,
        expected_output=after,
        expected_facts=[f"{listed}: {BIKE}"],
        superseded=[f"{superseded}: {BIKE}"],
    )
    (case,) = load_cases(write(tmp_path, edited(FAMILY, change)))
    assert (case.gold.kept, len(case.gold.added), len(case.gold.removed)) == ((), 1, 1)
    assert findings_of(case.gold, match_output(case, after)).flawless
    stale = findings_of(case.gold, match_output(case, before))
    assert (stale.tp, stale.fn + stale.fn_open) == (0, 2)


def owned(*owners: str) -> list[dict[str, str]]:
    return [{"memory": BIKE, "user_id": owner} for owner in owners]


def test_two_users_may_have_the_same_fact(tmp_path: Path) -> None:
    both = owned("ines", "paul")
    change = put(existing_memory=[], expected_output=both, expected_facts=[f"bike: {BIKE}"] * 2, superseded=[])
    (case,) = load_cases(write(tmp_path, edited(FAMILY, change)))
    assert findings_of(case.gold, match_output(case, both)).flawless
    assert findings_of(case.gold, match_output(case, owned("ines"))).fn == 1
    assert {len(output) for kind, output in mutants_of(case) if kind == "drop"} == {1}
    assert not run_mutants(case)["survived"]
    assert "drop" in run_mutants(case)["killed"]


@pytest.mark.parametrize(
    ("output", "tp", "tp_open"),
    [(owned("ines"), 1, 0), ([BIKE], 1, 0), (owned("ines", "paul"), 0, 1), ([*owned("ines"), "Sings"], 0, 1)],
)
def test_the_only_user_of_a_memory_need_not_be_named_in_the_other(
    output: Any, tp: int, tp_open: int, tmp_path: Path
) -> None:
    change = put(existing_memory=[], expected_output=[BIKE], expected_facts=[f"bike: {BIKE}"], superseded=[])
    (case,) = load_cases(write(tmp_path, edited(FAMILY, change)))
    findings = findings_of(case.gold, match_output(case, output))
    assert (findings.tp, findings.tp_open) == (tp, tp_open)


def test_a_speaker_may_have_several_names(tmp_path: Path) -> None:
    text = "Human: We sell handmade candles in Lyon.\nThe stall costs 40 EUR a day.\nExpert: Noted.\n**User:** Thanks."
    (one,) = load_cases(write(tmp_path, {**ADDING, "conversation": text}))
    assert [turn.role for turn in one.conversation] == ["user", "assistant", "user"]
    assert one.conversation[0].content == "We sell handmade candles in Lyon.\nThe stall costs 40 EUR a day."


def test_there_are_ten_bundled_scenarios_with_at_least_six_cases_each() -> None:
    cases = load_cases(BUNDLED)
    scenarios = [case.labels["scenario"] for case in cases]
    assert len(cases) >= 60
    assert min(scenarios.count(scenario) for scenario in set(scenarios)) >= 6
    assert len(set(scenarios)) == 10
    assert [case.id for case in cases[:10]] == [f"test_{n:03}" for n in range(1, 11)]
