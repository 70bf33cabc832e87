"""What a store leaves in its files, beside or instead of its facts, is seen; what others rightly say is no trace."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import Refused
from memorybench.core.stores import Capability, MemoryStore, NewFact
from memorybench.suites.hygiene.claims import Finding
from memorybench.suites.hygiene.driver import judged, play, prepared
from memorybench.suites.hygiene.evidence import OpenStore
from memorybench.suites.hygiene.phases import PhaseReport, violate
from memorybench.suites.hygiene.scenario import Scenario
from tests.suites.hygiene.notebook import ALL, Notebook
from tests.suites.hygiene.playing import scenario

NO_KEY = {"kind": "secret_free", "claim": "no key"}


def opening(kind: type[Notebook], *lacks: Capability) -> OpenStore:
    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[MemoryStore]:
        notebook = kind(folder / "notes.json", ALL - set(lacks))
        try:
            yield notebook
        finally:
            notebook.save()

    return opened


def secretive(assertion: dict[str, Any] = NO_KEY, **violation: Any) -> Scenario:
    misbehaviour = {
        "expectation": "defend-or-detect",
        "steps": [{"do": "remember", "content": "The key is ${secret:api_key}"}],
        "control": "The key is in the vault",
    }
    return scenario(
        deterministic={"well_behaved": [], "violation": misbehaviour | violation},
        assertions=[assertion],
        real_model=None,
    )


def violated(told: Scenario, kind: type[Notebook], *lacks: Capability) -> PhaseReport:
    return asyncio.run(violate(opening(kind, *lacks), told, 0))


def seen(
    assertion: dict[str, Any],
    *facts: str,
    forget: str,
    kind: type[Notebook] = Notebook,
    lacks: tuple[Capability, ...] = (),
) -> Finding:
    """What the assertion sees after one of the facts was forgotten."""
    setup = {"facts": [{"content": fact, "as": f"fact-{place}"} for place, fact in enumerate((forget, *facts))]}
    script = {
        "well_behaved": [{"do": "forget", "fact": "fact-0"}],
        "violation": {"expectation": "detect", "steps": [{"do": "remember", "content": "It rains"}]},
    }
    claimed = assertion | {"claim": "it is so"}
    told = scenario(setup=setup, deterministic=script, assertions=[claimed], real_model=None)

    async def played() -> Finding:
        async with prepared(opening(kind, *lacks), told, 0) as ground:
            done = await play(ground, ground.scenario.deterministic.well_behaved)
            (finding, *_) = (await judged(ground, done, "well_behaved")).findings
            return finding

    return asyncio.run(played())


class LogsRefusals(Notebook):
    """Refuses, and writes what it has refused into a log."""

    async def remember(self, user: str, fact: NewFact) -> str:
        try:
            return await super().remember(user, fact)
        except Refused:
            self.path.with_name("refused.log").write_text(f"refused: {fact.content}\n")
            raise


class NamesFiles(Notebook):
    """Refuses, and leaves an empty file called after what it has refused."""

    async def remember(self, user: str, fact: NewFact) -> str:
        try:
            return await super().remember(user, fact)
        except Refused:
            self.path.with_name(fact.content.replace(" ", "-").lower()).touch()
            raise


@pytest.mark.parametrize(
    ("kind", "where"), [(LogsRefusals, "(plain: file refused.log)"), (NamesFiles, "(re-cased: names of files)")]
)
def test_a_store_that_refuses_a_secret_and_writes_it_down_has_not_defended_itself(
    kind: type[Notebook], where: str
) -> None:
    report = violated(secretive(), kind)
    assert report.result == "detected"
    assert f"the planted api_key is in memory {where}" in report.reason


def test_a_store_that_refuses_and_writes_nothing_has_defended_itself() -> None:
    report = violated(secretive(), Notebook)
    assert (report.result, report.findings[0].found) == ("defended", "")


def test_files_that_can_not_be_looked_into_are_told() -> None:
    report = violated(secretive(), LogsRefusals, "files")
    assert report.findings[0].found == "could not look into files"


def test_of_one_user_files_tell_nothing_because_they_do_not_say_whose_they_are() -> None:
    told = secretive(assertion={**NO_KEY, "user": "user"})
    report = violated(told, LogsRefusals)
    assert report.findings[0].found == "could not look into files"


class DropsKeys(Notebook):
    """Takes every key, and has a curator that takes keys out."""

    def _check(self, content: str) -> None: ...

    async def curate(self, user: str, *, apply: bool) -> Any:
        if apply:
            self.facts = [(who, fact) for who, fact in self.facts if "sk-" not in fact.content]
        return await super().curate(user, apply=apply)


def test_files_are_looked_at_as_the_curator_leaves_them() -> None:
    assert violated(secretive(defended_by="curation"), DropsKeys).reason == "the curator puts it right"


class KeepsBackup(Notebook):
    """Forgets, and keeps the file as it was before."""

    async def forget(self, user: str, id: str) -> None:
        self.save()
        kept = self.path.read_text()
        self.path.with_suffix(".bak").write_bytes(self.written(kept))
        await super().forget(user, id)

    def written(self, kept: str) -> bytes:
        return kept.encode()


class KeepsUtf16(KeepsBackup):
    def written(self, kept: str) -> bytes:
        return b"\x01" + kept.encode().decode("unicode_escape").encode("utf-16-le")


ADDRESSES = ("Müllerstraße 12, Köln", "東京都港区芝公園四丁目", "Москва, улица Гоголя 7", "14 Plain Street")


@pytest.mark.parametrize("kind", [KeepsBackup, KeepsUtf16])
@pytest.mark.parametrize("address", ADDRESSES)
def test_what_is_left_in_a_file_is_seen_in_every_script(address: str, kind: type[Notebook]) -> None:
    finding = seen({"kind": "residue", "text": address}, forget=f"The user lives at {address}", kind=kind)
    assert (finding.status, finding.found) == ("broken", f'"{address}" is left in files')


@pytest.mark.parametrize("address", ADDRESSES)
def test_what_was_forgotten_leaves_no_residue(address: str) -> None:
    finding = seen({"kind": "residue", "text": address}, "Müller lives in Köln", forget=f"The user lives at {address}")
    assert (finding.status, finding.found) == ("held", "")


@pytest.mark.parametrize(
    ("forgotten", "others"),
    [
        ("The user prefers tabs", ("The user prefers spaces in YAML", "Ana prefers tabs")),
        ("The user is allergic to peanuts", ("The user is allergic to pollen", "Bob is allergic to peanuts")),
        ("The user lives in Porto", ("The user lives alone", "Ana lives in Porto")),
        ("desserts", ("The user is often stressed",)),
    ],
)
def test_pieces_of_other_facts_are_no_residue_of_a_sentence(forgotten: str, others: tuple[str, ...]) -> None:
    finding = seen({"kind": "residue", "text": forgotten}, *others, forget=forgotten)
    assert (finding.status, finding.found) == ("held", "")


def test_a_sentence_that_is_still_held_is_residue_however_it_is_spelled() -> None:
    for other in ("- the USER prefers\ttabs!", "VGhlIHVzZXIgcHJlZmVycyB0YWJz", "sbat sreferp resu ehT"):
        finding = seen({"kind": "residue", "text": "The user prefers tabs"}, other, forget="The user prefers tabs")
        assert finding.found == '"The user prefers tabs" is left in facts and files', other


def test_a_planted_secret_is_residue_in_pieces_too() -> None:
    halves = "It began ${secret:password|left} and it ended ${secret:password|right}"
    finding = seen(
        {"kind": "residue", "text": "The word is ${secret:password}"}, halves, forget="The word is ${secret:password}"
    )
    assert finding.found.endswith("is left in facts and files")
