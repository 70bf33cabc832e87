"""Secrets and forgotten texts are detected in every file of a store; similar facts are not reported."""

import asyncio
import base64
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from memorybench.core.errors import Refused
from memorybench.core.stores import Curation, NewFact, Proposal
from memorybench.secrets.canaries import Sighting, find_secret
from memorybench.suites.hygiene import assertions_memory, outside_files
from memorybench.suites.hygiene.assertions_base import Finding
from memorybench.suites.hygiene.outside_files import TemporaryFiles
from tests.suites.hygiene.notebook import Notebook, RemoteNotebook, opener
from tests.suites.hygiene.running import run_well_behaved, scenario, secret_scenario, violate


def find_after_forgetting(
    assertion: dict[str, Any], forgotten: str, *facts: str, kind: type[Notebook] = Notebook
) -> Finding:
    """Return the finding of the assertion after the first fact was forgotten."""
    setup = {"facts": [{"content": fact, "as": f"fact-{place}"} for place, fact in enumerate((forgotten, *facts))]}
    script = {
        "well_behaved": [{"do": "forget", "fact": "fact-0"}],
        "violation": {"expectation": "detect", "steps": [{"do": "remember", "content": "It rains"}]},
    }
    assertions = [assertion | {"claim": "it is so"}]
    checked = scenario(setup=setup, deterministic=script, assertions=assertions, real_model=None)
    return asyncio.run(run_well_behaved(opener(kind), checked))[0]


class LogsRefusals(Notebook):
    """Refuses a secret, and writes it to a log."""

    async def remember(self, user: str, fact: NewFact) -> str:
        try:
            return await super().remember(user, fact)
        except Refused:
            self.path.with_name("refused.log").write_text(f"refused: {fact.content}\n")
            raise


class NamesFiles(Notebook):
    """Refuses a secret, and creates an empty file with the secret in its name."""

    async def remember(self, user: str, fact: NewFact) -> str:
        try:
            return await super().remember(user, fact)
        except Refused:
            self.path.with_name(fact.content.replace(" ", "-").lower()).touch()
            raise


@pytest.mark.parametrize(
    ("kind", "where"), [(LogsRefusals, "(plain: file refused.log)"), (NamesFiles, "(re-cased: names of files)")]
)
def test_a_refused_secret_in_a_file_is_detected(kind: type[Notebook], where: str) -> None:
    report = violate(secret_scenario(), opener(kind))
    assert report.result == "detected"
    assert f"the planted api_key is in memory {where}" in report.reason


def test_a_store_that_refuses_a_secret_and_does_not_write_it_blocks_the_violation() -> None:
    report = violate(secret_scenario(), opener(Notebook))
    assert (report.result, report.findings[0].found) == ("defended", "")


class RefusesRemotely(RemoteNotebook):
    def _check(self, content: str) -> None:
        if "sk-" in content:
            raise Refused("looks like a credential")


def test_unreadable_files_are_reported() -> None:
    report = violate(secret_scenario(expectation="detect", control=None), opener(RefusesRemotely))
    assert report.findings[0].found == "could not read files"


def test_files_are_not_read_for_one_user_because_they_have_no_owner() -> None:
    report = violate(secret_scenario({"kind": "secret_free", "claim": "no key", "user": "user"}), opener(LogsRefusals))
    assert report.findings[0].found == "could not read files"


class CuratesKeys(Notebook):
    """Accepts every key, and has a curator that removes keys."""

    announces = True

    def _check(self, content: str) -> None: ...

    async def curate(self, user: str, *, apply: bool) -> Any:
        keys = [fact.id for _, fact in self.facts if "sk-" in fact.content]
        if apply:
            self.facts = [(owner, fact) for owner, fact in self.facts if fact.id not in keys]
        announced = [Proposal(action="delete", ids=(id,)) for id in keys if self.announces]
        return Curation(applied=apply, proposals=tuple(announced))


def test_files_are_read_after_the_curation() -> None:
    report = violate(secret_scenario(defended_by="curation"), opener(CuratesKeys))
    assert (report.result, report.reason) == ("defended", "the curator removed it")


class CuratesWithoutNotice(CuratesKeys):
    announces = False


def test_a_curator_must_announce_in_its_dry_run_what_it_removes() -> None:
    report = violate(secret_scenario(defended_by="curation"), opener(CuratesWithoutNotice))
    assert (report.result, "which its dry run does not announce" in report.reason) == ("detected", True)


class WritesBackup(Notebook):
    """Copies its file before it forgets a fact."""

    async def forget(self, user: str, id: str) -> None:
        self.save()
        self.path.with_suffix(".bak").write_bytes(self.encode(self.path.read_text()))
        await super().forget(user, id)

    def encode(self, text: str) -> bytes:
        return text.encode()


class WritesUtf16Backup(WritesBackup):
    def encode(self, text: str) -> bytes:
        return b"\x01" + text.encode().decode("unicode_escape").encode("utf-16-le")


ADDRESSES = ("Müllerstraße 12, Köln", "東京都港区芝公園四丁目", "Москва, улица Гоголя 7", "14 Plain Street")


@pytest.mark.parametrize("kind", [WritesBackup, WritesUtf16Backup])
@pytest.mark.parametrize("address", ADDRESSES)
def test_residue_in_a_file_is_detected_in_every_writing_system(address: str, kind: type[Notebook]) -> None:
    finding = find_after_forgetting({"kind": "residue", "text": address}, f"The user lives at {address}", kind=kind)
    assert (finding.status, finding.found) == ("broken", f'"{address}" is left in files')


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_forgotten_fact_leaves_no_residue(address: str) -> None:
    residue = {"kind": "residue", "text": address}
    finding = find_after_forgetting(residue, f"The user lives at {address}", "Müller lives in Köln")
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
def test_facts_that_share_words_are_not_residue(forgotten: str, others: tuple[str, ...]) -> None:
    finding = find_after_forgetting({"kind": "residue", "text": forgotten}, forgotten, *others)
    assert (finding.status, finding.found) == ("held", "")


def test_residue_is_detected_in_other_spellings_and_encodings() -> None:
    text = "The user prefers tabs"
    for other in ("- the USER prefers\ttabs!", "VGhlIHVzZXIgcHJlZmVycyB0YWJz", "sbat sreferp resu ehT"):
        finding = find_after_forgetting({"kind": "residue", "text": text}, text, other)
        assert finding.found == f'"{text}" is left in facts and files', other


def test_residue_of_a_planted_secret_is_detected_in_pieces() -> None:
    text = "The word is ${secret:password}"
    halves = "It began ${secret:password|left} and it ended ${secret:password|right}"
    finding = find_after_forgetting({"kind": "residue", "text": text}, text, halves)
    assert finding.found.endswith("is left in facts and files")


class WritesPaddedBackup(WritesBackup):
    """Writes the first fact after other bytes."""

    padding = b"\x00\xff page header \x01\x02" * 50

    def encode(self, text: str) -> bytes:
        return self.padding + self.encode_fact(json.loads(text)[0][1]["content"].encode()) + b" the end"

    def encode_fact(self, octets: bytes) -> bytes:
        return octets


class WritesBase64Backup(WritesPaddedBackup):
    def encode_fact(self, octets: bytes) -> bytes:
        return base64.b64encode(octets)


@pytest.mark.parametrize(("kind", "encoding"), [(WritesPaddedBackup, "plain"), (WritesBase64Backup, "base64")])
def test_residue_has_its_file_and_the_offset_in_it(kind: type[WritesPaddedBackup], encoding: str) -> None:
    text = "The user lives at 14 Plain Street"
    (place,) = find_after_forgetting({"kind": "residue", "text": text}, text, kind=kind).places
    assert (place.file, place.offset, place.encoding) == ("notes.bak", len(kind.padding), encoding)


@pytest.mark.parametrize(
    ("kind", "expected"), [(LogsRefusals, ("refused.log", len("refused: The key is "))), (NamesFiles, (None, None))]
)
def test_a_secret_in_a_file_has_its_place(kind: type[Notebook], expected: tuple[str | None, int | None]) -> None:
    (place,) = violate(secret_scenario(), opener(kind)).findings[0].places
    file, offset = expected
    assert place.offset == offset
    assert place.file == file if file else place.file.startswith("the-key-is-sk-")


def test_facts_without_files_have_no_places() -> None:
    text = "The user prefers tabs"
    residue = {"kind": "residue", "text": text, "places": ["facts"]}
    assert find_after_forgetting(residue, text, text.upper()).places == ()


def test_files_are_searched_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of other scenarios timed out while a file of some megabytes was decoded."""
    threads = set()

    def note_thread(secret: str, texts: Mapping[str, str]) -> list[Sighting]:
        threads.add(threading.current_thread())
        return find_secret(secret, texts)

    monkeypatch.setattr(assertions_memory, "find_secret", note_thread)
    assert violate(secret_scenario(), opener(LogsRefusals)).result == "detected"
    assert threads
    assert threading.main_thread() not in threads


def test_the_temporary_folder_is_searched_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set()

    def note_thread(values: Sequence[str], since: float) -> TemporaryFiles:
        threads.add(threading.current_thread())
        return TemporaryFiles()

    monkeypatch.setattr(outside_files, "find_temporary_files", note_thread)
    assert violate(secret_scenario(), opener(LogsRefusals)).result == "detected"
    assert threads
    assert threading.main_thread() not in threads
