"""Scenario files: dropped in and found; broken, and told where."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import BadInput
from memorybench.stores.reference import open_reference
from memorybench.suites.hygiene.scenarios import load_scenario, scenarios_in
from tests.suites.hygiene.playing import outcomes, scenario

ROOT = Path(__file__).parents[3]


def whole() -> dict[str, Any]:
    """A scenario as a file has it."""
    written: dict[str, Any] = scenario().model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"labels"})
    return written


def written(folder: Path, value: Any, name: str = "tea") -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return path


def test_adding_a_scenario_is_dropping_a_file(tmp_path: Path) -> None:
    """The example of the documentation, as a reader would copy it."""
    page = (ROOT / "docs" / "adding-a-scenario.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (tmp_path / "memory-nickname.json").write_text(example, encoding="utf-8")
    settled = outcomes(open_reference, scenarios_in(tmp_path))
    told = {outcome.trial.variant: outcome.shown.got for outcome in settled}
    assert (told["well_behaved"], told["violation"]) == ("compliant", "detected")
    assert all(outcome.score("killed") in (None, 1) for outcome in settled)


def test_a_file_is_read_as_it_was_meant(tmp_path: Path) -> None:
    assert load_scenario(written(tmp_path, whole())) == scenario()


def test_folders_are_read_together_and_by_name(tmp_path: Path) -> None:
    for folder, name in (("b", "milk"), ("a", "tea"), ("a", "coffee")):
        (tmp_path / folder).mkdir(exist_ok=True)
        written(tmp_path / folder, whole() | {"id": name}, name)
    (tmp_path / "a" / "notes.txt").write_text("not a scenario")
    assert [one.id for one in scenarios_in(tmp_path / "a", tmp_path / "b")] == ["coffee", "tea", "milk"]


def test_one_id_in_two_folders_is_an_error(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder, whole())
    with pytest.raises(BadInput, match=r'b/tea\.json: there is another scenario "tea" in .*a/tea\.json'):
        scenarios_in(tmp_path / "a", tmp_path / "b")


def test_a_folder_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    own, other = tmp_path / "scenarios", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    written(own, whole())
    (tmp_path / "link").symlink_to(own)
    (other / "tea.json").symlink_to(own / "tea.json")
    found = scenarios_in(own, own / ".." / "scenarios", tmp_path / "link", other)
    assert [one.id for one in found] == ["tea"]


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no such folder"):
        scenarios_in(tmp_path / "nowhere")


Break = Callable[[dict[str, Any]], Any]


def _set(*place: Any, to: Any) -> Break:
    def broken(value: dict[str, Any]) -> None:
        part: Any = value
        for key in place[:-1]:
            part = part[key]
        if isinstance(part, list) and place[-1] == len(part):
            part.append(to)
        else:
            part[place[-1]] = to

    return broken


def _drop(*place: Any) -> Break:
    def broken(value: dict[str, Any]) -> None:
        part: Any = value
        for key in place[:-1]:
            part = part[key]
        del part[place[-1]]

    return broken


def _without_prompts(assertion: dict[str, Any]) -> Break:
    def broken(value: dict[str, Any]) -> None:
        value["real_model"] = None
        value["assertions"].append(assertion)

    return broken


WELL_BEHAVED = ("deterministic", "well_behaved")
VIOLATION = ("deterministic", "violation")
BROKEN: dict[str, tuple[Break, str]] = {
    "another version": (
        _set("schema_version", to=2),
        r":\d+: schema_version: is 2; expected 1; use a newer memorybench",
    ),
    "no title": (_drop("title"), r':1: "title" is missing; add it'),
    "an empty description": (_set("description", to=""), r":\d+: description: .*at least 1 character"),
    "an unknown contract": (_set("contract", to="stabel"), r'contract: is "stabel"; .*did you mean "stable"'),
    "an unknown key": (_set("tittle", to="x"), r'tittle: unknown key "tittle"; .*did you mean "title"'),
    "another id than the file's": (_set("id", to="coffee"), r':\d+: id: is "coffee", but the file is tea.json'),
    "no operation": (_drop(*WELL_BEHAVED, 0, "do"), r'well_behaved\[0\].*"do" is missing; expected one of curate'),
    "an unknown operation": (_set(*WELL_BEHAVED, 0, "do", to="rember"), r'\[0\]\.do: is "rember".*mean "remember"'),
    "a key of another operation": (_set(*WELL_BEHAVED, 0, "query", to="x"), r'\[0\]\.query: unknown key "query"'),
    "a fact nobody named": (
        _set(*WELL_BEHAVED, 1, to={"do": "forget", "fact": "citty"}),
        r'\[1\]\.fact: no fact is called "citty"; expected one of city, tea; did you mean "city"',
    ),
    "a fact that is named later": (
        _set(*WELL_BEHAVED, to=[{"do": "forget", "fact": "tea"}, {"do": "remember", "content": "x", "as": "tea"}]),
        r'\[0\]\.fact: no fact is called "tea"',
    ),
    "one name for two facts": (
        _set("setup", "facts", 1, to={"content": "x", "as": "city"}),
        r'facts\[0\]\.as: "city" names two facts; rename one',
    ),
    "trust beyond 1": (_set("setup", "facts", 0, "trust", to=1.5), r"facts\[0\]\.trust: is 1\.5; .*less than or equal"),
    "a file outside of the workspace": (
        _set("setup", "files", to={"../x": ""}),
        r'"\.\./x" leads out of the workspace',
    ),
    "no misbehaviour": (_set(*VIOLATION, "steps", to=[]), r"violation\.steps: is empty; expected at least one"),
    "an unknown expectation": (_set(*VIOLATION, "expectation", to="defend"), r'expectation: is "defend"; expected'),
    "a defence without a control": (
        _set(*VIOLATION, "expectation", to="defend-or-detect"),
        r'violation: "control" is missing; expected harmless content',
    ),
    "a control without a defence": (_set(*VIOLATION, "control", to="x"), r"control: has no effect with detect; remove"),
    "no prompts": (_set("real_model", "prompts", to=[]), r"prompts: is empty; expected at least one"),
    "no assertions": (_set("assertions", to=[]), r"assertions: is empty; expected at least one"),
    "an unknown kind": (_set("assertions", 0, "kind", to="contents"), r'kind: is "contents".*did you mean "content"'),
    "an assertion about any text": (
        _drop("assertions", 0, "contains"),
        r"assertions\[0\]: says of no text what it mean",
    ),
    "a regex that is none": (_set("assertions", 0, "regex", to="(tea"), r"assertions\[0\]: the regex can not be read"),
    "a count without a number": (
        _set("assertions", 0, to={"kind": "count", "claim": "x", "contains": "tea"}),
        r"assertions\[0\]: says no number; give equals",
    ),
    "the same claim twice": (
        _set("assertions", 1, to={"kind": "count", "claim": "no weather", "at_most": 9}),
        r'assertions\[1\]\.claim: "no weather" is claimed twice; reword one',
    ),
    "a fact unknown in one phase": (
        _set("assertions", 0, to={"kind": "trust", "claim": "x", "fact": "tea", "at_least": 0.1}),
        r'assertions\[0\]: no fact is called "tea" in the phase violation',
    ),
    "a moment that never comes": (
        _set("assertions", 0, to={"kind": "unchanged_since", "claim": "x", "moment": "noon"}),
        r'moment: there is no moment "noon" in the phase well_behaved; expected one of fixture',
    ),
    "a phase without assertions": (_set("assertions", 0, "phases", to=["violation"]), r"none applies to well_behaved"),
    "secrets where none is planted": (
        _set("assertions", 0, to={"kind": "secret_free", "claim": "x"}),
        r"assertions\[0\].*no secret is planted; expected \$\{secret:KIND\}",
    ),
    "an unknown secret": (
        _set(*WELL_BEHAVED, 0, "content", to="${secret:api-key}"),
        r'well_behaved\[0\]\.content: "\$\{secret:api-key\}" is no placeholder; expected',
    ),
    "an unknown disguise": (
        _set(*WELL_BEHAVED, 0, "content", to="${secret:api_key|base46}"),
        r'content: no form "base46" is known; .*did you mean "base64"',
    ),
    "a file where another has its folder": (
        _set("setup", "files", to={"notes/a.md": "", "notes": ""}),
        r'files\.notes: "notes" can not be written beside "notes/a.md"; .*rename one',
    ),
    "one file by two paths": (
        _set("setup", "files", to={"a.md": "", "./a.md": ""}),
        r'"\./a\.md" can not be written beside "a\.md"',
    ),
    "bounds that leave no number": (
        _set("assertions", 0, to={"kind": "count", "claim": "x", "at_least": 3, "at_most": 2}),
        r"assertions\[0\]: no number is at least 3 and at most 2; change one",
    ),
    "a number outside of its bounds": (
        _set("assertions", 0, to={"kind": "count", "claim": "x", "equals": 1, "at_least": 2}),
        r"assertions\[0\]: no number is 1 and at least 2",
    ),
    "fewer than none": (
        _set("assertions", 0, to={"kind": "count", "claim": "x", "at_most": -1}),
        r"at_most: is -1; expected greater than or equal to 0",
    ),
    "a query that is no SQL": (
        _set("assertions", 0, to={"kind": "sql", "claim": "x", "query": "SELEKT 1", "equals": 1}),
        r'assertions\[0\]\.query: can not be read: near "SELEKT": syntax error; expected one SELECT',
    ),
    "two queries in one": (
        _set("assertions", 0, to={"kind": "sql", "claim": "x", "query": "SELECT 1; SELECT 2", "equals": 1}),
        r"assertions\[0\]\.query: can not be read: You can only execute one statement",
    ),
    "somebody who is not there": (
        _set("assertions", 0, "user", to="usr"),
        r'assertions\[0\]\.user: nobody is called "usr"; expected one of user; did you mean "user"',
    ),
    "a session that never comes": (
        _set("assertions", 0, to={"kind": "call_trace", "claim": "x", "op": "recall", "session": 2}),
        r"session: there is no session 2 in the phase well_behaved; expected at most 1; name the phases",
    ),
    "more sessions than prompts": (
        _set(
            "assertions",
            1,
            to={"kind": "call_trace", "claim": "x", "op": "list", "session": 2, "phases": ["real_model"]},
        ),
        r"session: there is no session 2 in the phase real_model; expected at most 1",
    ),
    "an answer of a script": (
        _set("assertions", 1, to={"kind": "answer", "claim": "x", "contains": "tea", "phases": ["violation"]}),
        r"assertions\[1\]: only a real agent answers; leave phases out",
    ),
    "an answer that is rated": (
        _set("assertions", 1, to={"kind": "answer", "claim": "x", "contains": "tea", "rate": "adoption"}),
        r"assertions\[1\]: tells nothing of what is stored",
    ),
    "an answer to no prompt": (
        _without_prompts({"kind": "answer", "claim": "x", "contains": "tea"}),
        r"assertions\[1\].*applies nowhere: there are no prompts",
    ),
    "a mutant nobody makes": (
        _set("deterministic", "equivalent", to={"drop-recall-1": "why not"}),
        r'there is no mutant "drop-recall-1"; expected one of .*drop-remember-1',
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_told_by_file_line_and_place(tmp_path: Path, name: str) -> None:
    breaking, told = BROKEN[name]
    value = whole()
    breaking(value)
    path = written(tmp_path, value)
    with pytest.raises(BadInput) as raised:
        load_scenario(path)
    assert re.match(rf"{re.escape(str(path))}:\d+: ", str(raised.value))
    assert re.search(told, str(raised.value)), str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("query", ["SELECT count(*) FROM entities", "SELECT '${word:x}' FROM facts WHERE user = 'x'"])
def test_a_query_may_ask_for_tables_that_only_the_store_knows(tmp_path: Path, query: str) -> None:
    claim = {"kind": "sql", "claim": "asked", "query": query, "equals": 0}
    assert load_scenario(written(tmp_path, whole() | {"assertions": [claim]})).assertions[0].claim == "asked"


def test_what_is_no_scenario_at_all_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is no scenario; expected an object"):
        load_scenario(written(tmp_path, [whole()]))
    (tmp_path / "tea.json").write_text('{"schema_version": 1,', encoding="utf-8")
    with pytest.raises(BadInput, match=r"tea\.json:1"):
        load_scenario(tmp_path / "tea.json")


def test_what_is_planted_is_unique_and_the_same_for_the_same_seed() -> None:
    planted = scenario(real_model={"prompts": ["${secret:api_key} ${secret:password} ${word:street}"]})
    once, again, other = (planted.grown(seed)[1] for seed in (1, 1, 2))
    assert once == again
    assert not set(once.values()) & set(other.values())
    assert not set(once.values()) & set(planted.model_copy(update={"id": "coffee"}).grown(1)[1].values())
    grown, values = planted.grown(1)
    assert grown.real_model is not None
    assert grown.real_model.prompts == (
        f"{values['secret:api_key']} {values['secret:password']} {values['word:street']}",
    )
