from __future__ import annotations

import pytest

from memorybench.core.stores import StoredFact
from memorybench.stores.curator import propose_changes


def facts(*rows: str | tuple[str, float, int]) -> list[StoredFact]:
    complete = [(row, 0.5, 0) if isinstance(row, str) else row for row in rows]
    return [
        StoredFact(id=str(n), content=content, trust=trust, retrieval_count=count)
        for n, (content, trust, count) in enumerate(complete, start=1)
    ]


def removed(*rows: str | tuple[str, float, int]) -> list[str]:
    return sorted(id for proposal in propose_changes(facts(*rows)) for id in proposal.ids)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user prefers dark mode in all editors", "User prefers dark mode in every editor."),
        ("Tests are run with make test", "The tests are run with: make test"),
        ("Ann keeps a yellow kayak in the garage", "Ann keeps her yellow kayak in the old garage"),
        ("The staging server restarts nightly", "The staging servers restart nightly"),
    ],
)
def test_facts_that_say_the_same_are_merged(one: str, other: str) -> None:
    [proposal] = propose_changes(facts(one, other))
    assert proposal.action == "merge"
    assert {*proposal.ids, proposal.kept} == {"1", "2"}


def test_a_merge_keeps_the_more_trusted_fact() -> None:
    assert removed(("Ann drinks tea daily", 0.9, 3), ("Ann drinks tea daily!", 0.4, 0)) == ["2"]
    assert removed(("Ann drinks tea daily", 0.4, 0), ("Ann drinks tea daily!", 0.9, 3)) == ["1"]
    assert removed("Ann drinks tea daily", "Ann drinks tea daily!") == ["2"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The backup runs at 3 on server alpha", "The backup runs at 4 on server alpha"),
        ("The nightly backup of billing runs on server alpha", "The nightly backup of billing runs on server beta"),
        ("Ann likes Bob", "Bob likes Ann"),
        ("Ann eats meat on Sundays", "Ann does not eat meat on Sundays"),
        ("Ann doesn't drink coffee", "Ann drinks coffee"),
        ("User prefers tabs for Go", "User prefers spaces for Python"),
        ("User prefers dark mode in the terminal", "User prefers light mode in the browser"),
        ("User prefers dark mode", "User now prefers green tea"),
        ("User uses Postgres at work", "User uses Redis at work"),
        ("Ann prefers tea", "Bob now prefers strong tea"),
    ],
)
def test_different_facts_are_not_merged(one: str, other: str) -> None:
    assert removed(one, other) == []


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("User prefers dark mode in the editor", "User now prefers light mode in the editor"),
        ("User prefers dark mode in the editor", "User prefers light mode in the editor"),
        ("The user prefers tabs for indentation", "The user now prefers spaces for indentation"),
        ("User prefers tabs over spaces", "User prefers spaces over tabs"),
        ("User prefers coffee in the morning", "User now prefers tea in the morning"),
        ("User prefers npm", "User switched from npm to pnpm"),
        ("User's favourite editor is Vim", "User's favourite editor is now Emacs"),
        ("The default branch is master", "The default branch is main"),
    ],
)
def test_a_changed_preference_deletes_the_older_fact(older: str, newer: str) -> None:
    [proposal] = propose_changes(facts(older, "The office is in Lisbon", newer))
    assert (proposal.action, proposal.ids, proposal.kept) == ("delete", ("1",), "3")
    assert "superseded" in proposal.reason


def test_protected_facts_are_removed_only_for_strong_reasons() -> None:
    protected = ("Ann keeps a yellow kayak in the garage", 0.95, 12)
    longer = "Ann keeps a yellow kayak in the old garage"
    assert removed(protected[0], longer) == ["1"]
    assert removed(protected, longer) == []
    assert removed(protected, "Ann keeps the yellow kayak in a garage") == ["2"]
    preferred = ("User prefers dark mode in the editor", 0.95, 12)
    assert removed(preferred, "User prefers light mode in the editor") == []
    assert removed(preferred, "User now prefers light mode in the editor") == ["1"]


def test_an_untrusted_fact_replaces_no_other_fact() -> None:
    assert removed("User prefers dark mode in the editor", ("User now prefers light mode in the editor", 0.1, 0)) == []
    assert removed("Ann keeps a yellow kayak there", ("Ann keeps a yellow kayak there, old", 0.1, 0)) == []


def test_a_chain_of_changes_leaves_only_the_last_fact() -> None:
    original = facts(*(f"User now prefers {theme} mode in the editor" for theme in ("dark", "light", "blue", "grey")))
    proposals = propose_changes(original)
    assert {(proposal.ids, proposal.kept) for proposal in proposals} == {(("1",), "4"), (("2",), "4"), (("3",), "4")}
    deleted = {id for proposal in proposals for id in proposal.ids}
    assert propose_changes([fact for fact in original if fact.id not in deleted]) == []
