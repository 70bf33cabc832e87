"""Loading scenario files, and the place of each error."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorybench.stores.reference import open_reference
from memorybench.suites.hygiene.scenarios import load_scenario, load_scenarios
from tests.doubles.refusals import refused
from tests.suites.hygiene.running import outcomes, scenario

ROOT = Path(__file__).parents[3]


def scenario_json() -> dict[str, Any]:
    """Return the JSON of a valid scenario file."""
    value: dict[str, Any] = scenario().model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"labels"})
    return value


def write(folder: Path, value: Any, name: str = "tea") -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return path


def test_the_documented_scenario_can_be_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "adding-a-scenario.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (tmp_path / "memory-nickname.json").write_text(example, encoding="utf-8")
    results = outcomes(open_reference, load_scenarios(tmp_path))
    states = {outcome.trial.variant: outcome.shown.got for outcome in results}
    assert (states["well_behaved"], states["violation"]) == ("compliant", "detected")
    assert all(outcome.score("killed") in (None, 1) for outcome in results)


def test_a_file_is_loaded_unchanged(tmp_path: Path) -> None:
    assert load_scenario(write(tmp_path, scenario_json())) == scenario()


def test_scenarios_are_ordered_by_folder_and_name(tmp_path: Path) -> None:
    for folder, name in (("b", "milk"), ("a", "tea"), ("a", "coffee")):
        (tmp_path / folder).mkdir(exist_ok=True)
        write(tmp_path / folder, scenario_json() | {"id": name}, name)
    (tmp_path / "a" / "notes.txt").write_text("not a scenario")
    assert [one.id for one in load_scenarios(tmp_path / "a", tmp_path / "b")] == ["coffee", "tea", "milk"]


def test_one_id_in_two_folders_is_an_error(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, scenario_json())
    error = refused(load_scenarios, tmp_path / "a", tmp_path / "b")
    assert error.where == str(tmp_path / "b" / "tea.json")
    assert str(tmp_path / "a" / "tea.json") in str(error)


def test_a_folder_or_file_given_twice_is_loaded_once(tmp_path: Path) -> None:
    own, other = tmp_path / "scenarios", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    write(own, scenario_json())
    (tmp_path / "link").symlink_to(own)
    (other / "tea.json").symlink_to(own / "tea.json")
    scenarios = load_scenarios(own, own / ".." / "scenarios", tmp_path / "link", other)
    assert [one.id for one in scenarios] == ["tea"]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    assert refused(load_scenarios, tmp_path / "nowhere").where == str(tmp_path / "nowhere")


Change = Callable[[dict[str, Any]], Any]


def _set(*place: Any, to: Any) -> Change:
    def change(value: dict[str, Any]) -> None:
        part: Any = value
        for key in place[:-1]:
            part = part[key]
        if isinstance(part, list) and place[-1] == len(part):
            part.append(to)
        else:
            part[place[-1]] = to

    return change


def _drop(*place: Any) -> Change:
    def change(value: dict[str, Any]) -> None:
        part: Any = value
        for key in place[:-1]:
            part = part[key]
        del part[place[-1]]

    return change


def _without_prompts(assertion: dict[str, Any]) -> Change:
    def change(value: dict[str, Any]) -> None:
        value["real_model"] = None
        value["assertions"].append(assertion)

    return change


WELL_BEHAVED = ("deterministic", "well_behaved")
VIOLATION = ("deterministic", "violation")
INVALID: dict[str, tuple[Change, str]] = {
    "another version": (_set("schema_version", to=2), "schema_version"),
    "a missing title": (_drop("title"), ""),
    "an empty description": (_set("description", to=""), "description"),
    "an unknown contract": (_set("contract", to="stabel"), "contract"),
    "an unknown key": (_set("tittle", to="x"), "tittle"),
    "an id that differs from the file's name": (_set("id", to="coffee"), "id"),
    "a missing operation": (_drop(*WELL_BEHAVED, 0, "do"), "deterministic.well_behaved[0]"),
    "an unknown operation": (_set(*WELL_BEHAVED, 0, "do", to="rember"), "deterministic.well_behaved[0].do"),
    "a key of another operation": (_set(*WELL_BEHAVED, 0, "query", to="x"), "deterministic.well_behaved[0].query"),
    "an unknown fact": (
        _set(*WELL_BEHAVED, 1, to={"do": "forget", "fact": "citty"}),
        "deterministic.well_behaved[1].fact",
    ),
    "a fact that is named later": (
        _set(*WELL_BEHAVED, to=[{"do": "forget", "fact": "tea"}, {"do": "remember", "content": "x", "as": "tea"}]),
        "deterministic.well_behaved[0].fact",
    ),
    "one name for two facts": (_set("setup", "facts", 1, to={"content": "x", "as": "city"}), "setup.facts[0].as"),
    "trust beyond 1": (_set("setup", "facts", 0, "trust", to=1.5), "setup.facts[0].trust"),
    "a file outside the workspace": (_set("setup", "files", to={"../x": ""}), 'setup.files["../x"]'),
    "a violation without steps": (_set(*VIOLATION, "steps", to=[]), "deterministic.violation.steps"),
    "an unknown expectation": (_set(*VIOLATION, "expectation", to="defend"), "deterministic.violation.expectation"),
    "a defence without a control": (_set(*VIOLATION, "expectation", to="defend-or-detect"), "deterministic.violation"),
    "a control without a defence": (_set(*VIOLATION, "control", to="x"), "deterministic.violation.control"),
    "no prompts": (_set("real_model", "prompts", to=[]), "real_model.prompts"),
    "no assertions": (_set("assertions", to=[]), "assertions"),
    "an unknown kind": (_set("assertions", 0, "kind", to="contents"), "assertions[0].kind"),
    "an assertion without a condition": (_drop("assertions", 0, "contains"), "assertions[0]"),
    "an invalid regex": (_set("assertions", 0, "regex", to="(tea"), "assertions[0]"),
    "a count without a number": (
        _set("assertions", 0, to={"kind": "count", "claim": "x", "contains": "tea"}),
        "assertions[0]",
    ),
    "a duplicate claim": (
        _set("assertions", 1, to={"kind": "count", "claim": "no weather", "at_most": 9}),
        "assertions[1].claim",
    ),
    "a fact unknown in one phase": (
        _set("assertions", 0, to={"kind": "trust", "claim": "x", "fact": "tea", "at_least": 0.1}),
        "assertions[0]",
    ),
    "an unknown moment": (
        _set("assertions", 0, to={"kind": "unchanged_since", "claim": "x", "moment": "noon"}),
        "assertions[0].moment",
    ),
    "a phase without assertions": (_set("assertions", 0, "phases", to=["violation"]), "assertions"),
    "secret_free without a planted secret": (
        _set("assertions", 0, to={"kind": "secret_free", "claim": "x"}),
        "assertions[0].secrets",
    ),
    "an unknown secret": (
        _set(*WELL_BEHAVED, 0, "content", to="${secret:api-key}"),
        "deterministic.well_behaved[0].content",
    ),
    "an unknown form": (
        _set(*WELL_BEHAVED, 0, "content", to="${secret:api_key|base46}"),
        "deterministic.well_behaved[0].content",
    ),
    "a file and a folder of the same name": (
        _set("setup", "files", to={"notes/a.md": "", "notes": ""}),
        "setup.files.notes",
    ),
    "one file by two paths": (_set("setup", "files", to={"a.md": "", "./a.md": ""}), 'setup.files["./a.md"]'),
    "contradicting bounds": (
        _set("assertions", 0, to={"kind": "count", "claim": "x", "at_least": 3, "at_most": 2}),
        "assertions[0]",
    ),
    "a number outside of its bounds": (
        _set("assertions", 0, to={"kind": "count", "claim": "x", "equals": 1, "at_least": 2}),
        "assertions[0]",
    ),
    "a negative bound": (
        _set("assertions", 0, to={"kind": "count", "claim": "x", "at_most": -1}),
        "assertions[0].at_most",
    ),
    "a query with a user": (
        _set(
            "assertions", 0, to={"kind": "sql", "claim": "x", "query": "SELECT 1 FROM x", "equals": 1, "user": "user"}
        ),
        "assertions[0]",
    ),
    "a curation with a user": (
        _set("assertions", 0, to={"kind": "curate_report", "claim": "x", "spares": ["city"], "user": "user"}),
        "assertions[0]",
    ),
    "an invalid query": (
        _set("assertions", 0, to={"kind": "sql", "claim": "x", "query": "SELEKT 1", "equals": 1}),
        "assertions[0].query",
    ),
    "two queries": (
        _set("assertions", 0, to={"kind": "sql", "claim": "x", "query": "SELECT 1; SELECT 2", "equals": 1}),
        "assertions[0].query",
    ),
    "an unknown user": (_set("assertions", 0, "user", to="usr"), "assertions[0].user"),
    "an unknown session of a script": (
        _set("assertions", 0, to={"kind": "call_trace", "claim": "x", "op": "recall", "session": 2}),
        "assertions[0].session",
    ),
    "an unknown session of an agent": (
        _set(
            "assertions",
            1,
            to={"kind": "call_trace", "claim": "x", "op": "list", "session": 2, "phases": ["real_model"]},
        ),
        "assertions[1].session",
    ),
    "an answer in a scripted phase": (
        _set("assertions", 1, to={"kind": "answer", "claim": "x", "contains": "tea", "phases": ["violation"]}),
        "assertions[1]",
    ),
    "an answer with a rate": (
        _set("assertions", 1, to={"kind": "answer", "claim": "x", "contains": "tea", "rate": "adoption"}),
        "assertions[1]",
    ),
    "an answer without prompts": (
        _without_prompts({"kind": "answer", "claim": "x", "contains": "tea"}),
        "assertions[1].phases",
    ),
    "an unknown mutant": (
        _set("deterministic", "equivalent", to={"drop-recall-1": "why not"}),
        "deterministic.equivalent.drop-recall-1",
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_file_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    change, place = INVALID[name]
    value = scenario_json()
    change(value)
    path = write(tmp_path, value)
    assert re.fullmatch(rf"{re.escape(str(path))}:\d+(: )?{re.escape(place)}", refused(load_scenario, path).where)


@pytest.mark.parametrize("query", ["SELECT count(*) FROM entities", "SELECT '${word:x}' FROM facts WHERE user = 'x'"])
def test_a_query_may_use_tables_of_the_store(tmp_path: Path, query: str) -> None:
    assertion = {"kind": "sql", "claim": "sql", "query": query, "equals": 0}
    assert load_scenario(write(tmp_path, scenario_json() | {"assertions": [assertion]})).assertions[0].claim == "sql"


def test_a_file_without_a_scenario_is_refused(tmp_path: Path) -> None:
    assert "mapping" in refused(load_scenario, write(tmp_path, [scenario_json()])).expected
    (tmp_path / "tea.json").write_text('{"schema_version": 1,', encoding="utf-8")
    assert refused(load_scenario, tmp_path / "tea.json").where == f"{tmp_path / 'tea.json'}:1"


def test_planted_values_depend_on_seed_and_scenario_only() -> None:
    planted = scenario(real_model={"prompts": ["${secret:api_key} ${secret:password} ${word:street}"]})
    once, again, other = (planted.with_planted_values(seed)[1] for seed in (1, 1, 2))
    assert once == again
    assert not set(once.values()) & set(other.values())
    assert not set(once.values()) & set(planted.model_copy(update={"id": "coffee"}).with_planted_values(1)[1].values())
    filled, values = planted.with_planted_values(1)
    assert filled.real_model is not None
    assert filled.real_model.prompts == (
        f"{values['secret:api_key']} {values['secret:password']} {values['word:street']}",
    )
