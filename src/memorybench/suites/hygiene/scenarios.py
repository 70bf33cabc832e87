"""Scenario files: found by folder, and read with every check that needs no store."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.files.json_text import load_json
from memorybench.files.located import Document
from memorybench.files.located import Step as Key
from memorybench.files.names import safe_name
from memorybench.files.validation import validated
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names, suggestion

from . import planted
from .about_behaviour import CallTrace
from .about_memory import SecretFree, Sql, UnchangedSince
from .assertions import KINDS, Assertion
from .claims import PHASES, Phase
from .mutants import mutants_of
from .scenario import Scenario
from .script import DOABLE, Script, bound, marked, sessions


def load_scenario(path: Path) -> Scenario:
    """The scenario in a file, or the first thing that is wrong with it."""
    return read_scenario(load_json(path), path.name)


def read_scenario(document: Document, file: str) -> Scenario:
    """The same of a document that is, or is to become, the file of that name."""
    _check_version(document)
    _check_tags(document)
    scenario = validated(document, Scenario)
    safe_name(scenario.id, document.where("id"))
    if scenario.id != Path(file).stem:
        raise BadInput(
            document.where("id"),
            f"is {preview(scenario.id)}, but the file is {file}",
            expected="the file's name without .json",
            remedy=f"rename the file to {scenario.id}.json, or the id",
        )
    for where, text in _texts(document):
        for complaint in planted.complaints(text, where):
            raise complaint
    _check_files(scenario, document)
    _check_violation(scenario, document)
    _check_steps(scenario, document)
    _check_assertions(scenario, document)
    _check_equivalents(scenario, document)
    return scenario


def scenarios_in(*folders: Path) -> tuple[Scenario, ...]:
    """Every scenario of these folders, by folder and name. A folder that is not there is an error: it was asked for.

    A folder or a file that is named twice, by whatever path, is read once.
    """
    found: dict[str, tuple[Scenario, Path]] = {}
    files: set[Path] = set()
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(str(folder), "there is no such folder", remedy="check the path")
        for path in sorted(folder.glob("*.json")):
            if path.resolve() in files:
                continue
            files.add(path.resolve())
            scenario = load_scenario(path)
            if scenario.id in found:
                raise BadInput(
                    str(path),
                    f"there is another scenario {preview(scenario.id)} in {found[scenario.id][1]}",
                    expected="each id once",
                    remedy="rename one of them",
                )
            found[scenario.id] = scenario, path
    return tuple(scenario for scenario, _ in found.values())


def _check_version(document: Document) -> None:
    """First: a file of another version would be complained about for the wrong reasons."""
    if not isinstance(document.value, dict):
        raise BadInput(document.where(), "is no scenario", expected="an object with schema_version, id, assertions …")
    version = document.value.get("schema_version", document.value.get("schemaVersion", 1))
    if version != 1:
        raise BadInput(
            document.where("schema_version"),
            f"is {preview(version)}",
            expected="1",
            remedy="use a newer memorybench, or write the file for version 1",
        )


def _check_tags(document: Document) -> None:
    """What steps and assertions are is said by one key of each; without it nothing else can be checked."""
    for place in (("deterministic", "well_behaved"), ("deterministic", "violation", "steps")):
        _check_tag(document, place, "do", DOABLE)
    _check_tag(document, ("assertions",), "kind", KINDS)


def _check_tag(document: Document, place: Sequence[Key], key: str, known: Sequence[str]) -> None:
    try:
        part = document.at(*place)
    except (KeyError, TypeError):
        return  # missing or of another kind: validation says so
    for index, item in enumerate(part.value if isinstance(part.value, list) else ()):
        if not isinstance(item, dict) or item.get(key) in known:
            continue
        if key not in item:
            problem, remedy = f'"{key}" is missing', "add it"
        else:
            problem, remedy = f"is {preview(item[key])}", suggestion(str(item[key]), known)
        raise BadInput(part.where(index, key), problem, expected=f"one of {join_names(known)}", remedy=remedy)


def _texts(document: Document) -> Iterator[tuple[str, str]]:
    """Every text in the document, and where it stands."""

    def walked(value: Any, place: tuple[Key, ...]) -> Iterator[tuple[tuple[Key, ...], str]]:
        if isinstance(value, str):
            yield place, value
        elif isinstance(value, dict):
            for key, member in value.items():
                yield from walked(member, (*place, key))
        elif isinstance(value, list):
            for index, member in enumerate(value):
                yield from walked(member, (*place, index))

    return ((document.where(*place), text) for place, text in walked(document.value, ()) if "${" in text)


def _check_files(scenario: Scenario, document: Document) -> None:
    written: dict[PurePosixPath, str] = {}
    for name in scenario.setup.files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or re.search(r"[\\\0:]", name):
            raise BadInput(
                document.where("setup", "files", name),
                f"{preview(name)} leads out of the workspace",
                expected="a path inside it, with / between folders",
            )
        # "." is a parent of all of them, and never a file
        clash = next((other for other in written if other in (path, *path.parents) or path in other.parents), None)
        if clash is not None:
            raise BadInput(
                document.where("setup", "files", name),
                f"{preview(name)} can not be written beside {preview(written[clash])}",
                expected="no file where another has its folder, or its name",
                remedy="rename one of them",
            )
        written[path] = name


def _check_violation(scenario: Scenario, document: Document) -> None:
    violation, part = scenario.deterministic.violation, document.at("deterministic", "violation")
    defending = violation.expectation == "defend-or-detect"
    if defending and violation.control is None:
        raise BadInput(
            part.where(),
            '"control" is missing',
            expected="harmless content for the same writes",
            remedy="add it: a store that refuses everything defends nothing",
        )
    if not defending and (violation.control is not None or violation.defended_by != "refusal"):
        key = "control" if violation.control is not None else "defended_by"
        raise BadInput(part.where(key), "has no effect with detect", remedy="remove it, or expect defend-or-detect")


def _check_steps(scenario: Scenario, document: Document) -> None:
    seeded = {fact.name for fact in scenario.setup.facts if fact.name is not None}
    for index, fact in enumerate(scenario.setup.facts):
        if fact.name is not None and sum(fact.name == other.name for other in scenario.setup.facts) > 1:
            raise BadInput(
                document.where("setup", "facts", index, "as"),
                f"{preview(fact.name)} names two facts",
                remedy="rename one",
            )
    scripts: Iterable[tuple[Script, tuple[Key, ...]]] = (
        (scenario.deterministic.well_behaved, ("deterministic", "well_behaved")),
        (scenario.deterministic.violation.steps, ("deterministic", "violation", "steps")),
    )
    for script, place in scripts:
        for index, step in enumerate(script):
            known = seeded | bound(script[:index])
            if step.do in ("update", "forget") and step.fact not in known:
                raise _unknown_fact(step.fact, known, document.where(*place, index, "fact"))


def _check_assertions(scenario: Scenario, document: Document) -> None:
    secrets = {name for family, _, name in map(_parted, planted.planted_in(scenario.plain())) if family == "secret"}
    claims = [assertion.claim for assertion in scenario.assertions]
    for index, assertion in enumerate(scenario.assertions):
        part = document.at("assertions", index)
        if claims.index(assertion.claim) != index:
            raise BadInput(part.where("claim"), f"{preview(assertion.claim)} is claimed twice", remedy="reword one")
        _check_user(scenario, assertion, part)
        _check_references(scenario, assertion, part)
        if isinstance(assertion, Sql):
            _check_sql(scenario, index, part)
        if isinstance(assertion, SecretFree):
            unknown = next((name for name in assertion.secrets if name not in secrets), None)
            if unknown is not None or not secrets:
                told = f"no secret {preview(unknown)} is planted" if unknown else "no secret is planted"
                raise BadInput(part.where("secrets"), told, expected="${secret:KIND} in a step, a file or a prompt")
        if isinstance(assertion, CallTrace) and not assertion.bounded and assertion.rate == "restraint":
            raise BadInput(
                part.where("rate"), "a call that must be made is no restraint", remedy='write "at_most": 0, or adoption'
            )
        if scenario.real_model is None and set(assertion.phases) == {"real_model"}:
            raise BadInput(part.where("phases"), "applies nowhere: there are no prompts", remedy="give real_model some")
    for phase in PHASES[: 3 if scenario.real_model else 2]:
        if not scenario.asserted(phase):
            raise BadInput(document.where("assertions"), f"none applies to {phase}", remedy="add one that does")


def _check_user(scenario: Scenario, assertion: Assertion, part: Document) -> None:
    if assertion.user is not None and assertion.user not in scenario.users:
        raise BadInput(
            part.where("user"),
            f"nobody is called {preview(assertion.user)}",
            expected=f"one of {join_names(scenario.users)}",
            remedy=suggestion(assertion.user, scenario.users) or "name whom a fact or a step names",
        )


def _check_sql(scenario: Scenario, index: int, part: Document) -> None:
    """That it is one statement of SQL. Which tables there are is known to the store alone."""
    grown = scenario.grown(0)[0].assertions[index]  # a placeholder is no SQL; what is planted there may be
    assert isinstance(grown, Sql)
    with closing(sqlite3.connect(":memory:")) as empty:
        try:
            empty.execute(f"EXPLAIN {grown.query}")
        except (sqlite3.Error, sqlite3.Warning) as error:
            if not str(error).startswith(("no such table", "no such column")):
                raise BadInput(
                    part.where("query"), f"can not be read: {error}", expected="one SELECT, as SQLite writes it"
                ) from None


def _check_equivalents(scenario: Scenario, document: Document) -> None:
    known = [mutant.name for mutant in mutants_of(scenario)]
    for name in scenario.deterministic.equivalent:
        if name not in known:
            raise BadInput(
                document.where("deterministic", "equivalent", name),
                f"there is no mutant {preview(name)}",
                expected=f"one of {join_names(known)}" if known else "none: no mutant is made of this script",
                remedy=suggestion(name, known),
            )


def _check_references(scenario: Scenario, assertion: Assertion, part: Document) -> None:
    scripts: Mapping[Phase, Script] = {
        "well_behaved": scenario.deterministic.well_behaved,
        "violation": scenario.deterministic.violation.steps,
        "real_model": (),
    }
    seeded = {fact.name for fact in scenario.setup.facts if fact.name is not None}
    for phase in assertion.phases:
        known = seeded | bound(scripts[phase])
        for name in assertion.refers_to():
            if name not in known:
                raise _unknown_fact(name, known, part.where(), f" in the phase {phase}")
        if isinstance(assertion, UnchangedSince):
            _check_moments(assertion, {"fixture"} | marked(scripts[phase]), phase, part)
        if isinstance(assertion, CallTrace):
            prompts = scenario.real_model.prompts if scenario.real_model else ()
            _check_session(assertion, len(prompts) if phase == "real_model" else sessions(scripts[phase]), phase, part)


def _check_moments(assertion: UnchangedSince, known: set[str], phase: Phase, part: Document) -> None:
    for key, moment in (("moment", assertion.moment), ("until", assertion.until)):
        if moment is not None and moment not in known:
            raise BadInput(
                part.where(key),
                f"there is no moment {preview(moment)} in the phase {phase}",
                expected=f"one of {join_names(known)}",
                remedy="name the phases that have it in phases",
            )


def _check_session(assertion: CallTrace, last: int, phase: Phase, part: Document) -> None:
    if assertion.session is not None and last and assertion.session > last:
        raise BadInput(
            part.where("session"),
            f"there is no session {assertion.session} in the phase {phase}",
            expected=f"at most {last}",
            remedy="name the phases that have it in phases",
        )


def _unknown_fact(name: str, known: set[str], where: str, phase: str = "") -> BadInput:
    return BadInput(
        where,
        f"no fact is called {preview(name)}{phase}",
        expected=f"one of {join_names(known)}" if known else 'a fact with "as"',
        remedy=suggestion(name, known) or 'give the fact that is meant a name with "as"',
    )


def _parted(planted_name: str) -> tuple[str, str, str]:
    return planted_name.partition(":")
