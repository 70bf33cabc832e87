"""The suites: five of our own, and those of installed packages (entry point group `memorybench.suites`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from memorybench.core.errors import BadInput

if TYPE_CHECKING:
    from memorybench.core.trials import Outcome
    from memorybench.journal.rows import Run

    from .suite import Command, Suite

GROUP = "memorybench.suites"
BUILT_IN = {
    "bench": {
        "eval": "compare memory providers on benchmarks",
        "score": "judge the recorded answers of an eval run again",
    },
    "audit": {"audit": "check what a model or memory recalls of conversations"},
    "extraction": {"extraction": "test which facts a memory extractor stores"},
    "online": {"online": "measure recorded searches and writes of an agent's memory"},
    "hygiene": {"hygiene": "check a store or agent for noise, secrets, duplicates and lost facts"},
}
"""By suite: the first words of its commands, each with its help text.

The suite is SUITE in suites/<name>/suite.py, which is imported when it is needed.
"""


def suite(name: str) -> Suite | None:
    if name in BUILT_IN:
        found: Suite = import_module(f"memorybench.suites.{name}.suite").SUITE
        return found
    return next((plugin for plugin in _plugins() if plugin.name == name), None)


def suites() -> Iterator[Suite]:
    for name in BUILT_IN:
        built_in = suite(name)
        assert built_in is not None
        yield built_in
    yield from _plugins()


def commands(verb: str) -> list[tuple[Suite, Command]]:
    """Return the commands whose first word is `verb`, each with its suite."""
    owner = next((name for name, verbs in BUILT_IN.items() if verb in verbs), None)
    candidates = [suite(owner)] if owner else _plugins()
    return [
        (candidate, command)
        for candidate in candidates
        if candidate is not None
        for command in candidate.commands
        if command.name.split()[0] == verb
    ]


def verb_of(suite_name: str) -> str:
    """Return the command by which users know a suite, such as `eval` for the suite bench."""
    return next(iter(BUILT_IN.get(suite_name, (suite_name,))))


def suite_of(run: Run) -> Suite:
    """Return the suite of a saved run."""
    found = suite(run.suite)
    if found is None:
        raise BadInput(
            run.id,
            f'no report can be made for a run of the suite "{run.suite}"',
            expected=f"a run of {', '.join(one.name for one in suites())}",
        )
    return found


def named_as_in_reports(outcome: Outcome) -> Outcome:
    """Return an outcome with its expected and actual result renamed as the reports of its suite name them."""
    found = suite(outcome.trial.suite)
    return outcome if found is None else found.named_as_in_reports(outcome)


def _plugins() -> Iterator[Suite]:
    return load_plugins(GROUP, "suite")


def load_plugins(group: str, kind: str) -> Iterator[Any]:
    """Yield the objects that other installed packages register in an entry point group.

    An object that cannot be loaded is skipped with a warning on standard error; `kind` names it there.
    """
    from memorybench.files.entry_points import third_party_points

    for point in third_party_points(group):
        try:
            yield point.load()
        except Exception as error:  # third-party code must not stop other commands
            origin = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
            print(f"{kind} {point.name} of {origin}: skipped: {error}", file=sys.stderr)
