"""Loads scenario files, and checks everything that can be checked without a store."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path, PurePosixPath

from memorybench.core.errors import BadInput
from memorybench.files.json_text import load_json
from memorybench.files.located import Document
from memorybench.files.names import safe_name
from memorybench.files.validation import validated
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names, suggestion

from .assertions import Assertion
from .assertions_base import PHASES, Phase
from .assertions_behaviour import CallTrace
from .assertions_memory import NoNewWords, SecretFree, Sql, UnchangedSince
from .mutants import mutants_of
from .placeholders import check_placeholders, planted_names, texts_in
from .scenario import Scenario
from .script import Mark, Restart, Script, names_given_by


def load_scenario(path: Path) -> Scenario:
    """Load a scenario file. Raise BadInput with the first problem."""
    return read_scenario(load_json(path), path.name)


def read_scenario(document: Document, file: str) -> Scenario:
    """Return the scenario in a document. Its id must match the file name. Raise BadInput with the first problem."""
    scenario = validated(document, Scenario, spell=str)
    safe_name(scenario.id, document.where("id"))
    if scenario.id != Path(file).stem:
        raise BadInput(
            document.where("id"),
            f"{preview(scenario.id)} differs from the name of the file, {file}",
            expected="the name of the file without .json",
            remedy=f"rename the file to {scenario.id}.json, or change the id",
        )
    for place, text in texts_in(document.value):
        if "${" in text:
            check_placeholders(text, document.where(*place))
    _check_files(scenario, document)
    _check_violation(scenario, document)
    _check_steps(scenario, document)
    _check_assertions(scenario, document)
    mutants = [mutant.name for mutant in mutants_of(scenario)]
    for name in scenario.deterministic.equivalent:
        if name not in mutants:
            raise _unknown(document.where("deterministic", "equivalent", name), "mutant", name, mutants)
    return scenario


def load_scenarios(*folders: Path) -> tuple[Scenario, ...]:
    """Load every scenario of these folders, in the order of folders and file names.

    A file in several folders is loaded once.
    """
    paths: dict[str, Path] = {}
    scenarios = []
    files: set[Path] = set()
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(str(folder), "folder not found", remedy="check the path")
        for path in sorted(folder.glob("*.json")):
            if path.resolve() in files:
                continue
            files.add(path.resolve())
            scenario = load_scenario(path)
            if scenario.id in paths:
                raise BadInput(
                    str(path),
                    f"{preview(scenario.id)} is also the id of {paths[scenario.id]}",
                    expected="unique ids",
                    remedy="change the id in one of the files",
                )
            paths[scenario.id] = path
            scenarios.append(scenario)
    return tuple(scenarios)


def _check_files(scenario: Scenario, document: Document) -> None:
    names: dict[PurePosixPath, str] = {}
    for name in scenario.setup.files:
        path, where = PurePosixPath(name), document.where("setup", "files", name)
        if path.is_absolute() or ".." in path.parts or not path.parts or re.search(r"[\\\0:]", name):
            raise BadInput(
                where,
                f"invalid path {preview(name)}",
                expected="a relative path inside the workspace, with / as separator",
            )
        # "." is a parent of every path, and never a file
        other = next((other for other in names if other in (path, *path.parents) or path in other.parents), None)
        if other is not None:
            raise BadInput(
                where,
                f"{preview(name)} and {preview(names[other])} cannot both be files: one is equal to the other, "
                "or contains it",
                remedy="rename one of them",
            )
        names[path] = name


def _check_violation(scenario: Scenario, document: Document) -> None:
    violation, part = scenario.deterministic.violation, document.at("deterministic", "violation")
    if violation.expectation == "defend-or-detect":
        if violation.control is None:
            raise BadInput(
                part.where(),
                '"control" is missing',
                expected="harmless content for the same writes, which shows that the store does not refuse everything",
                remedy="add it",
            )
    elif violation.control is not None or violation.defended_by != "refusal":
        key = "control" if violation.control is not None else "defended_by"
        raise BadInput(
            part.where(key),
            f'{key} has no effect with the expectation "detect"',
            remedy='remove it, or set the expectation "defend-or-detect"',
        )


def _check_steps(scenario: Scenario, document: Document) -> None:
    setup_names = [fact.name for fact in scenario.setup.facts]
    for index, name in enumerate(setup_names):
        if name is not None and setup_names.count(name) > 1:
            where = document.where("setup", "facts", index, "as")
            raise BadInput(where, f"two facts have the name {preview(name)}", remedy="rename one of them")
    for place in (("well_behaved",), ("violation", "steps")):
        script = scenario.deterministic.well_behaved if len(place) == 1 else scenario.deterministic.violation.steps
        for index, step in enumerate(script):
            known = scenario.setup.fact_names | names_given_by(script[:index])
            if step.do in ("update", "forget", "get") and step.fact not in known:
                raise _unknown(document.where("deterministic", *place, index, "fact"), "fact", step.fact, known)


def _check_assertions(scenario: Scenario, document: Document) -> None:
    claims = [assertion.claim for assertion in scenario.assertions]
    for index, assertion in enumerate(scenario.assertions):
        part = document.at("assertions", index)
        if claims.index(assertion.claim) != index:
            raise BadInput(part.where("claim"), f"duplicate claim {preview(assertion.claim)}", remedy="reword one")
        if assertion.user is not None and assertion.user not in scenario.users:
            raise _unknown(part.where("user"), "user", assertion.user, scenario.users)
        _check_references(scenario, assertion, part)
        if isinstance(assertion, Sql):
            _check_sql(scenario, index, part)
        if isinstance(assertion, SecretFree):
            planted = {name.partition(":")[2] for name in planted_names(scenario.plain()) if name.startswith("secret:")}
            unknown = next((name for name in assertion.secrets if name not in planted), None)
            if unknown is not None or not planted:
                raise BadInput(
                    part.where("secrets"),
                    f"the scenario does not contain the secret {preview(unknown)}"
                    if unknown
                    else "the scenario contains no secret",
                    expected="${secret:KIND} in a step, a file or a prompt of the scenario",
                )
        if isinstance(assertion, CallTrace) and not assertion.has_bounds and assertion.rate == "restraint":
            raise BadInput(
                part.where("rate"),
                'the assertion requires a call, which "restraint" does not measure',
                remedy='add "at_most": 0, or set "rate": "adoption"',
            )
        if scenario.real_model is None and set(assertion.phases) == {"real_model"}:
            raise BadInput(
                part.where("phases"),
                "the phase real_model needs prompts",
                remedy="add real_model with prompts to the scenario",
            )
    for phase in PHASES[: 3 if scenario.real_model else 2]:
        if not scenario.assertions_for(phase):
            raise BadInput(document.where("assertions"), f"no assertion applies to the phase {phase}", remedy="add one")


def _check_references(scenario: Scenario, assertion: Assertion, part: Document) -> None:
    """Raise BadInput if the assertion refers to a fact, moment or session that is missing in one of its phases."""
    scripts: Mapping[Phase, Script] = {
        "well_behaved": scenario.deterministic.well_behaved,
        "violation": scenario.deterministic.violation.steps,
        "real_model": (),
    }
    for phase in assertion.phases:
        script, suffix = scripts[phase], f" in the phase {phase}"
        known = scenario.setup.fact_names | names_given_by(script)
        for name in assertion.fact_names():
            if name not in known:
                raise _unknown(part.where(), "fact", name, known, suffix)
        if isinstance(assertion, UnchangedSince):
            moments = _moments(script)
            for key, moment in (("moment", assertion.moment), ("until", assertion.until)):
                if moment is not None and moment not in moments:
                    raise _unknown(part.where(key), "moment", moment, moments, suffix)
        if isinstance(assertion, NoNewWords) and assertion.moment not in _moments(script):
            raise _unknown(part.where("moment"), "moment", assertion.moment, _moments(script), suffix)
        if isinstance(assertion, CallTrace) and assertion.session is not None:
            restarts = sum(isinstance(step, Restart) for step in script)
            last = len(scenario.prompts) if phase == "real_model" else 1 + restarts
            if last and assertion.session > last:
                raise BadInput(
                    part.where("session"),
                    f"there is no session {assertion.session}{suffix}",
                    expected=f"at most {last}",
                    remedy="correct it, or leave this phase out of phases",
                )


def _moments(script: Script) -> set[str]:
    return {"fixture", *(step.name for step in script if isinstance(step, Mark))}


def _check_sql(scenario: Scenario, index: int, part: Document) -> None:
    """Raise BadInput if a query is not one valid SELECT. Whether its tables exist is not checked."""
    assertion = scenario.with_planted_values(0)[0].assertions[index]  # a placeholder is not valid SQL
    assert isinstance(assertion, Sql)
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            # in brackets, where only a SELECT is valid; the line break ends a comment
            database.execute(f"EXPLAIN SELECT EXISTS ({assertion.query.rstrip().rstrip(';')}\n)")
        except (sqlite3.Error, sqlite3.Warning) as error:
            if not str(error).startswith(("no such table", "no such column")):
                raise BadInput(
                    part.where("query"), f"invalid query: {error}", expected="one SELECT in the syntax of SQLite"
                ) from None


def _unknown(where: str, noun: str, name: object, known: Collection[str], suffix: str = "") -> BadInput:
    """Return the error for an unknown name, with a suggestion or the known names."""
    return BadInput(
        where,
        f"unknown {noun} {preview(name)}{suffix}",
        expected=f"one of {join_names(known)}" if known else "",
        remedy=suggestion(str(name), known) or ('give a fact this name with "as"' if noun == "fact" else ""),
    )
