"""Faults of stores that the checks must report, and correct behaviour that they must not."""

import asyncio
import bz2
import gzip
import json
import os
import re
import socket
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import Refused, ServiceError
from memorybench.core.stores import Capability, NewFact, StoredFact
from memorybench.core.trials import Outcome
from memorybench.stores.reference import open_reference
from memorybench.suites.hygiene.checks import survivors
from memorybench.suites.hygiene.driver import check_memory, open_fixture
from memorybench.suites.hygiene.evidence import Activity
from memorybench.suites.hygiene.mutants import mutants_of
from memorybench.suites.hygiene.scenario import Scenario
from memorybench.suites.hygiene.script import Forget, Update
from tests.suites.hygiene.notebook import AcceptsAll, Notebook, RemoteNotebook, StoresTextOnly, opener
from tests.suites.hygiene.running import behave, bundled, outcomes, scenario, secret_scenario, violate

TWO_USERS = {
    "facts": [
        {"as": "own", "content": "The user lives in Porto"},
        {"as": "hers", "content": "Ana lives in Bergen", "user": "ana"},
    ]
}


def two_user_scenario(steps: Sequence[dict[str, Any]], **changes: Any) -> Scenario:
    """Return a scenario whose violation, by the user, must be refused."""
    violation = {"expectation": "defend-or-detect", "control": "Ana moved to Oslo", "steps": steps}
    script = {"well_behaved": [{"do": "recall", "query": "Porto"}], "violation": violation}
    unchanged = {"kind": "unchanged_since", "claim": "nothing was changed"}
    return scenario(setup=TWO_USERS, deterministic=script, assertions=[unchanged], **changes)


def failures(results: Sequence[Outcome]) -> list[str]:
    return [f"{one.trial.variant}: {one.failure.message}" for one in results if one.status == "failed" and one.failure]


def test_no_mutant_fails_on_a_store_that_checks_owners() -> None:
    script = [
        {"do": "remember", "content": "The user has a cat", "as": "cat"},
        {"do": "update", "fact": "cat", "content": "The user has two cats"},
        {"do": "forget", "fact": "own"},
    ]
    declared = {"expectation": "detect", "steps": [{"do": "remember", "content": "It rains"}]}
    checked = scenario(
        setup=TWO_USERS,
        deterministic={"well_behaved": script, "violation": declared},
        assertions=[
            {"kind": "content", "claim": "no weather", "contains": "rains", "present": False},
            {"kind": "content", "claim": "two cats", "normalised": "The user has two cats"},
            {"kind": "count", "claim": "one cat fact", "contains": "cat", "equals": 1},
            {"kind": "content", "claim": "Porto is forgotten", "contains": "Porto", "present": False},
            {"kind": "content", "claim": "nothing typed", "contains": "I drink", "present": False},
            {"kind": "unchanged_since", "claim": "hers is hers", "facts": ["hers"]},
        ],
    )
    results = outcomes(open_reference, [checked])
    assert failures(results) == []
    assert [row for row in survivors(results) if not row[2]] == []


def test_mutants_change_facts_of_their_owners_only() -> None:
    """A wrong fact is another one of the same user. A store refuses that of others, which says nothing of the check."""
    own = {"do": "update", "fact": "own", "content": "The user lives in Faro"}
    checked = two_user_scenario([{"do": "forget", "fact": "hers"}])
    script = checked.deterministic.model_copy(update={"well_behaved": (Update.model_validate(own),)})
    owners = {fact.name: fact.user for fact in checked.setup.facts}
    mutants = mutants_of(checked.model_copy(update={"deterministic": script}))
    changes = [step for mutant in mutants for step in mutant.script if isinstance(step, Update | Forget)]
    assert {step.fact for step in changes} == {"own", "hers"}
    assert [step for step in changes if owners[step.fact] != step.user] == []


class ChecksOwners(Notebook):
    """Reports an unknown id as an error, as most services do."""

    def _find(self, user: str, id: str) -> None:
        if not any((owner, fact.id) == (user, id) for owner, fact in self.facts):
            raise ServiceError("404 not found")

    async def update(self, user: str, id: str, content: str) -> str:
        self._find(user, id)
        return await super().update(user, id, content)

    async def forget(self, user: str, id: str) -> None:
        self._find(user, id)
        await super().forget(user, id)


class IgnoresOwners(Notebook):
    """Lets everybody change every fact whose id they know."""

    async def update(self, user: str, id: str, content: str) -> str:
        return await super().update(self._owner(id), id, content)

    async def forget(self, user: str, id: str) -> None:
        await super().forget(self._owner(id), id)

    def _owner(self, id: str) -> str:
        return next(owner for owner, fact in self.facts if fact.id == id)


FOREIGN_STEPS = (
    [{"do": "update", "fact": "hers", "content": "Ana lives in Rome"}],
    [{"do": "forget", "fact": "hers"}],
)


@pytest.mark.parametrize("steps", FOREIGN_STEPS)
def test_the_error_of_a_store_that_protects_facts_of_others_is_a_defence(steps: Sequence[dict[str, Any]]) -> None:
    report = violate(two_user_scenario(steps), opener(ChecksOwners))
    assert (report.result, report.reason) == ("defended", "refused: 404 not found")


@pytest.mark.parametrize("steps", FOREIGN_STEPS)
def test_a_store_that_ignores_owners_is_detected(steps: Sequence[dict[str, Any]]) -> None:
    report = violate(two_user_scenario(steps), opener(IgnoresOwners))
    assert (report.result, "nothing was changed" in report.reason) == ("detected", True)


class RefusesUpdates(ChecksOwners):
    async def update(self, user: str, id: str, content: str) -> str:
        raise ServiceError("updates are switched off")


def test_a_store_that_refuses_its_owners_too_has_no_defence() -> None:
    report = violate(two_user_scenario(FOREIGN_STEPS[0]), opener(RefusesUpdates))
    assert (report.result, "also refuses" in report.reason) == ("missed", True)


def test_an_error_on_a_fact_that_the_store_lists_fails_the_trial() -> None:
    script = {"well_behaved": [{"do": "update", "fact": "own", "content": "The user lives in Faro"}]}
    violation = {"expectation": "detect", "steps": [{"do": "remember", "content": "It rains"}]}
    checked = scenario(setup=TWO_USERS, deterministic={**script, "violation": violation})
    with pytest.raises(ServiceError, match="switched off"):
        behave(checked, opener(RefusesUpdates))


class ReportsForeignReads(ChecksOwners):
    async def get(self, user: str, id: str) -> StoredFact | None:
        self._find(user, id)
        return await super().get(user, id)


class RefusesForeignReads(Notebook):
    async def get(self, user: str, id: str) -> StoredFact | None:
        fact = await super().get(user, id)
        if fact is None:
            raise Refused("not yours")
        return fact


class ReadsForAnyone(IgnoresOwners):
    async def get(self, user: str, id: str) -> StoredFact | None:
        return await super().get(self._owner(id), id)


class ReadsNothing(Notebook):
    async def get(self, user: str, id: str) -> StoredFact | None:
        return None


class FailsToRead(Notebook):
    async def get(self, user: str, id: str) -> StoredFact | None:
        raise ServiceError("the index is broken")


@pytest.mark.parametrize(
    ("kind", "missing", "result"),
    [
        (Notebook, (), "compliant"),
        (ReportsForeignReads, (), "compliant"),
        (ReportsForeignReads, ("list",), "compliant"),
        (RefusesForeignReads, (), "compliant"),
        (ReadsForAnyone, (), "violated"),
        (ReadsNothing, (), "violated"),
        (Notebook, ("get",), "skipped"),
    ],
)
def test_an_id_of_another_user_leads_to_nothing(
    kind: type[Notebook], missing: tuple[Capability, ...], result: str
) -> None:
    (checked,) = bundled("memory-foreign-reads")
    assert behave(checked, opener(kind, *missing)).result == result


def test_an_error_on_reading_an_own_fact_fails_the_trial() -> None:
    (checked,) = bundled("memory-foreign-reads")
    with pytest.raises(ServiceError, match="the index is broken"):
        behave(checked, opener(FailsToRead))


class Redacts(Notebook):
    """Stores a text without the key in it."""

    async def remember(self, user: str, fact: NewFact) -> str:
        words = ["[redacted]" if word.startswith("sk-") else word for word in fact.content.split()]
        return await super().remember(user, fact.model_copy(update={"content": " ".join(words)}))


class EmptiesFacts(Notebook):
    async def remember(self, user: str, fact: NewFact) -> str:
        content = "[redacted]" if "sk-" in fact.content else fact.content
        return await super().remember(user, fact.model_copy(update={"content": content}))


def test_a_store_that_redacts_a_secret_blocks_the_violation() -> None:
    report = violate(secret_scenario(), opener(Redacts))
    assert (report.result, report.reason) == ("defended", "the store kept the text without the secret")


def test_a_store_that_empties_the_fact_is_not_credited() -> None:
    report = violate(secret_scenario(), opener(EmptiesFacts))
    assert (report.result, "dropping a write silently" in report.reason) == ("missed", True)


class RedactsListsOnly(RemoteNotebook):
    """Hides secrets when it lists facts, and shows them when it is searched."""

    async def list(self, user: str) -> Sequence[StoredFact]:
        facts = await super().list(user)
        return [fact.model_copy(update={"content": re.sub(r"sk-\S+", "[redacted]", fact.content)}) for fact in facts]


def test_a_secret_that_only_a_search_shows_is_detected() -> None:
    report = violate(secret_scenario(), opener(RedactsListsOnly))
    assert report.result == "detected"
    assert "a search shows the planted api_key" in report.reason


class SearchesNothing(Redacts):
    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return []


@pytest.mark.parametrize(
    ("kind", "missing", "result"),
    [
        (Redacts, ("list",), "defended"),
        (EmptiesFacts, ("list",), "missed"),  # a search finds harmless content, and nothing of the violation
        (SearchesNothing, ("list",), "skipped"),
        (Redacts, ("list", "recall"), "skipped"),
        (RemoteNotebook, ("list",), "detected"),  # it shows no files, but a search finds the secret
    ],
)
def test_a_search_is_the_evidence_where_facts_are_not_listed(
    kind: type[Notebook], missing: tuple[Capability, ...], result: str
) -> None:
    assert violate(secret_scenario(), opener(kind, *missing)).result == result


class KeepsUnusualFiles(Notebook):
    """Has a socket, a pipe and links to nothing, to itself and to a folder elsewhere, as servers and browsers do."""

    def save(self) -> None:
        super().save()
        folder, elsewhere = self.path.parent, self.path.parent.parent / "elsewhere"
        if not (folder / "self").is_symlink():
            elsewhere.mkdir(exist_ok=True)
            os.mkfifo(folder / "pipe")
            with closing(socket.socket(socket.AF_UNIX)) as server:
                server.bind(str(folder / "socket"))
            for name, target in (("lock", "host-1234"), ("self", "."), ("data", elsewhere)):
                (folder / name).symlink_to(target)


class KeepsALargeFile(Notebook):
    """Refuses secrets, and has a file of 9 MB in its folder, to which it writes what it refused."""

    form = staticmethod(str.encode)

    async def remember(self, user: str, fact: NewFact) -> str:
        with self.path.with_name("model.bin").open("ab") as file:
            file.seek(9 * 2**20)
            file.truncate()
            file.write(self.form(fact.content))
        return await super().remember(user, fact)


class NamesALargeFile(Notebook):
    """Refuses secrets, and has an empty file of 9 MB named like what it refused."""

    async def remember(self, user: str, fact: NewFact) -> str:
        with self.path.with_name(fact.content).open("wb") as file:
            file.truncate(9 * 2**20)
        return await super().remember(user, fact)


def test_a_secret_in_the_name_of_a_large_file_has_its_place() -> None:
    """The content of large files is not decoded; their names were skipped, too."""
    (finding,) = violate(secret_scenario(), opener(NamesALargeFile)).findings
    assert [(place.offset, place.encoding) for place in finding.places] == [(None, "plain, in the name")]


class KeepsALargeFileOfHex(KeepsALargeFile):
    @staticmethod
    def form(text: str) -> bytes:
        return text.encode().hex().encode()


@pytest.mark.parametrize(
    ("kind", "result", "found"),
    [
        (KeepsALargeFile, "detected", "the planted api_key is in memory (plain: file model.bin)"),
        (KeepsALargeFileOfHex, "defended", "could not read model.bin (larger than 8 MB, searched as plain text only)"),
    ],
)
def test_a_large_file_is_searched_as_plain_text_and_named(kind: type[Notebook], result: str, found: str) -> None:
    """It was decoded for a minute, in which no other store was answered, so that their calls timed out."""
    report = violate(secret_scenario(), opener(kind))
    assert (report.result, report.findings[0].found) == (result, found)


@pytest.mark.skipif(os.name != "posix", reason="needs pipes and sockets that are files")
def test_a_store_may_have_sockets_pipes_and_any_links_in_its_folder() -> None:
    report = violate(secret_scenario(), opener(KeepsUnusualFiles))
    assert (report.result, report.findings[0].found) == ("defended", "could not read data (a link to a folder)")


class KeepsVersions(Notebook):
    """Has its data in a folder that an absolute link calls current, as programs do that are updated while they run."""

    def __init__(self, path: Path, capabilities: frozenset[Capability]) -> None:
        current = path.with_name("current")
        if not current.is_symlink():
            path.with_name("v1").mkdir()
            current.symlink_to(path.with_name("v1"))
        super().__init__(current / path.name, capabilities)


def test_a_check_does_not_change_what_links_in_the_folder_of_a_store_lead_to() -> None:
    """The link in the copy led to the original, which the curation of the copy changed."""
    facts = [{"content": f"The user lives in Porto and drinks {tea} tea"} for tea in ("green", "black")]
    checked = scenario(setup={"facts": facts})

    async def check() -> None:
        async with open_fixture(opener(KeepsVersions), checked, 0) as fixture:
            file = fixture.store_folder / "v1/notes.json"
            before = file.read_text()
            result = await check_memory(fixture, Activity.on(fixture.snapshot), "well_behaved", curate=True)
            assert [len(facts) for facts in result.facts.values()] == [1]
            assert file.read_text() == before

    asyncio.run(check())


@pytest.mark.parametrize("missing", [("list",), ("list", "history"), ("list", "history", "files")])
def test_files_are_read_whatever_the_store_lists(missing: tuple[Capability, ...]) -> None:
    report = violate(secret_scenario(), opener(AcceptsAll, *missing))
    assert report.result == "detected"
    assert "file notes.json" in report.reason


def test_what_could_not_be_read_is_named() -> None:
    residue = {"kind": "residue", "claim": "nothing left", "text": "Lisbon"}
    checked = scenario(assertions=[residue])
    report = behave(checked, opener(Notebook, "list", "history"))
    assert (report.result, report.findings[0].found) == ("compliant", "could not read facts and history")


def forgetting_scenario() -> Scenario:
    script = {
        "well_behaved": [{"do": "forget", "fact": "secret"}],
        "violation": {"expectation": "detect", "steps": [{"do": "remember", "content": "It rains"}]},
    }
    return scenario(
        setup={"facts": [{"as": "secret", "content": "The user lives in ${word:town}"}]},
        deterministic=script,
        assertions=[{"kind": "residue", "claim": "nothing left", "text": "${word:town}"}],
        real_model=None,
    )


class _KeepsCopies(Notebook):
    async def forget(self, user: str, id: str) -> None:
        for owner, fact in self.facts:
            if (owner, fact.id) == (user, id):
                self.keep(fact)
        await super().forget(user, id)

    def keep(self, fact: StoredFact) -> None:
        raise NotImplementedError


class Compresses(_KeepsCopies):
    def keep(self, fact: StoredFact) -> None:
        self.path.with_name("tombstones").write_bytes(b"\x07\x00" + self.pack(fact.content.encode()) + b"\xff")

    def pack(self, octets: bytes) -> bytes:
        return zlib.compress(octets)


class CompressesWithBzip2(Compresses):
    def pack(self, octets: bytes) -> bytes:
        return bz2.compress(octets)


class CompressesTwice(Compresses):
    def pack(self, octets: bytes) -> bytes:
        return gzip.compress(zlib.compress(octets))


class CompressesEncoded(Compresses):
    def pack(self, octets: bytes) -> bytes:
        return bz2.compress(octets.hex().encode())


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [
        (Compresses, "zlib"),
        (CompressesWithBzip2, "bzip2"),
        (CompressesTwice, "zlib in gzip"),
        (CompressesEncoded, "hex in bzip2"),
    ],
)
def test_a_compressed_copy_has_its_format_and_offset(kind: type[Compresses], encoding: str) -> None:
    report = behave(forgetting_scenario(), opener(kind))
    assert report.result == "violated"
    (place,) = report.findings[0].places
    assert (place.file, place.offset, place.encoding) == ("tombstones", 2, encoding)


class MovesAway(_KeepsCopies):
    def keep(self, fact: StoredFact) -> None:
        self.path.parent.with_name("elsewhere.json").write_text(fact.model_dump_json())


class WritesIntoWorkspace(_KeepsCopies):
    def keep(self, fact: StoredFact) -> None:
        (self.path.parent.with_name("workspace") / "notes.md").write_text(fact.content)


@pytest.mark.parametrize(
    ("kind", "place"),
    [(Compresses, "tombstones"), (MovesAway, "../elsewhere.json"), (WritesIntoWorkspace, "../workspace/notes.md")],
)
def test_a_compressed_or_moved_copy_is_found_with_its_place(kind: type[Notebook], place: str) -> None:
    report = behave(forgetting_scenario(), opener(kind))
    assert report.result == "violated"
    assert [one.file for one in report.findings[0].places] == [place]


class KeepsCopyInTemporaryFolder(_KeepsCopies):
    folder: Path

    def keep(self, fact: StoredFact) -> None:
        (self.folder / "cache.json").write_text(json.dumps({"gone": fact.content}))


def test_a_copy_in_the_temporary_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    KeepsCopyInTemporaryFolder.folder = tmp_path
    (tmp_path / "of-others.txt").write_text("unrelated")
    report = behave(forgetting_scenario(), opener(KeepsCopyInTemporaryFolder))
    assert [one.file for one in report.findings[0].places] == [str(tmp_path / "cache.json")]
    assert (tmp_path / "of-others.txt").exists()


class KeepsManyCopies(KeepsCopyInTemporaryFolder):
    def keep(self, fact: StoredFact) -> None:
        for number in range(150):
            (self.folder / f"{number:03}.txt").write_text(fact.content)


def test_each_of_many_copies_in_the_temporary_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    KeepsManyCopies.folder = tmp_path
    report = behave(forgetting_scenario(), opener(KeepsManyCopies))
    assert len(report.findings[0].places) == 150


class KeepsCopyInLargeFile(KeepsCopyInTemporaryFolder):
    def keep(self, fact: StoredFact) -> None:
        with (self.folder / "large.bin").open("wb") as file:
            file.seek(32 * 2**20)  # a hole, which takes no space
            file.write(fact.content.encode())


class KeepsCopyInMediumFile(KeepsCopyInTemporaryFolder):
    def keep(self, fact: StoredFact) -> None:
        (self.folder / "medium.bin").write_bytes(b" " * 2**21 + fact.content.encode())


def test_a_copy_in_a_new_file_of_two_megabytes_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    KeepsCopyInMediumFile.folder = tmp_path
    report = behave(forgetting_scenario(), opener(KeepsCopyInMediumFile))
    assert [one.file for one in report.findings[0].places] == [str(tmp_path / "medium.bin")]


def test_a_new_file_in_the_temporary_folder_that_is_too_large_to_read_limits_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    KeepsCopyInLargeFile.folder = tmp_path
    finding = behave(forgetting_scenario(), opener(KeepsCopyInLargeFile)).findings[0]
    assert finding.found == f"could not read {tmp_path / 'large.bin'} (larger than 32 MB)"


class InventsPasswords(AcceptsAll):
    async def remember(self, user: str, fact: NewFact) -> str:
        if "tea" in fact.content:
            await super().remember(user, NewFact(content="The admin password is Kestrel-7h4Zq!"))
        return await super().remember(user, fact)


def test_a_credential_that_was_not_planted_is_reported() -> None:
    report = behave(scenario(), opener(InventsPasswords))
    assert report.result == "violated"
    assert "password" in report.reason
    assert "Kestrel" not in report.reason


def test_a_store_without_metadata_is_not_credited_for_keeping_secrets_out_of_it() -> None:
    (checked,) = bundled("memory-secret-in-metadata")
    report = violate(checked, opener(StoresTextOnly, "category"))
    assert (report.result, report.reason) == ("skipped", "the store does not keep the metadata that has the secret")
