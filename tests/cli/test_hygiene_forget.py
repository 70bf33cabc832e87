"""`hygiene forget`: every hidden copy of a deleted fact is found, and a step that proves nothing does not pass."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from aiohttp import web

from memorybench.cli.main import main
from memorybench.suites.hygiene.forgetting import STEPS
from tests.cli.command import Command, Said
from tests.doubles.stub import Call, Stub
from tests.engine.workload import in_child

STORE = Path(__file__).parents[1] / "doubles/forgetful_store.py"
ALL = "[update, forget, recall, list, get, history, curate, users, files]"


def write_store(
    command: Command, fault: str, capabilities: str = ALL, elsewhere: Path | None = None, more: str = ""
) -> None:
    folder = command.folder / "stores/configs"
    folder.mkdir(parents=True, exist_ok=True)
    words = json.dumps([sys.executable, str(STORE), "${folder}", fault, str(elsewhere or command.folder / "elsewhere")])
    text = f"name: mine\ntype: command\ncapabilities: {capabilities}\ncommand: {{run: {words}, {more}}}\n"
    (folder / "mine.yaml").write_text(text)


def forget(command: Command, *arguments: str) -> Said:
    return command("hygiene", "forget", "--store", "mine", "--allow-code", "--json", *arguments)


def states(said: Said) -> dict[str, str]:
    return {step["step"]: step["state"] for step in said.json["certificate"]["steps"]}


def failures(said: Said) -> set[str]:
    return {step for step, state in states(said).items() if state == "fail"}


def places(said: Said, step: str) -> list[Mapping[str, Any]]:
    (found,) = (one["places"] for one in said.json["certificate"]["steps"] if one["step"] == step)
    return list(found)


def test_the_reference_store_passes_every_step(command: Command) -> None:
    said = command("hygiene", "forget", "--json")
    assert said.code == 0, said.err
    assert said.json["certificate"]["verdict"] == "forgets"
    assert set(states(said).values()) == {"pass"}
    assert list(states(said)) == list(STEPS)


@pytest.mark.slow
def test_a_command_store_without_a_fault_passes_every_step(command: Command) -> None:
    write_store(command, "none")
    said = forget(command)
    assert (said.code, set(states(said).values())) == (0, {"pass"}), said.out


def test_the_hint_to_test_the_store_otherwise_can_open_it(command: Command) -> None:
    """It lacked the flags that find the config and allow its program."""
    write_store(command, "none")
    (command.folder / "stores/configs").rename(command.folder / "elsewhere configs")
    configs = ("--config-dir", "elsewhere configs", "--allow-code")
    said = command("hygiene", "forget", "--store", "mine", *configs)
    assert said.code == 0, said.err
    printed = said.out.partition("What to try next:")[2].replace("\\\n", " ")
    (line,) = (line for line in printed.splitlines() if " hygiene run " in line)
    words = shlex.split(line)
    again = words[words.index("memorybench") + 1 :]
    assert command(*again[: again.index("--allow-code") + 1], "--dry-run").code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "step", "file", "encoding"),
    [
        ("log", "logs", "server.log", "plain"),
        ("free-pages", "free-pages", "facts.db", "plain"),
        ("write-ahead-log", "write-ahead-log", "facts.db-wal", "plain"),
        ("zlib-backup", "backups", "backup.dat", "zlib"),
        ("gzip-in-home", "backups", ".home/.cache/facts.gz", "gzip"),
        ("moved-copy", "backups", "../elsewhere.txt", "plain"),
        ("tombstone", "files", "facts.db", "plain"),
        ("lzma", "backups", "backup.lzma", "lzma"),
        ("deflate", "backups", "backup.bin", "deflate"),
        ("zip-in-zip", "backups", "backup.zip", "zip in zip"),
        ("zip-after-header", "backups", "backup.zip", "zip"),
        ("xor", "files", "cache.bin", "XOR 0x5a"),
        ("xor-utf16", "files", "cache.bin", "XOR 0x5a"),
        ("xor-in-row", "files", "facts.db", "XOR 0x5a"),
        ("xor-in-gzip", "backups", "cache.gz", "XOR 0x5a in gzip"),
        ("uuencoded", "files", "cache.uu", "uuencoding"),
    ],
)
def test_a_hidden_copy_is_found_with_its_file_and_offset(
    command: Command, fault: str, step: str, file: str, encoding: str
) -> None:
    write_store(command, fault)
    said = forget(command)
    assert said.code == 3, said.err
    assert said.json["certificate"]["verdict"] == "does not forget"
    assert step in failures(said)
    found = places(said, step)
    assert {(place["file"], place["encoding"]) for place in found} == {(file, encoding)}
    assert all(isinstance(place["offset"], int) for place in found)


def has_attributes(folder: Path) -> bool:
    """Return whether the system and its file system have extended attributes."""
    with contextlib.suppress(OSError):
        if sys.platform == "linux":
            os.setxattr(folder, "user.test", b"1")
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "file", "encoding", "detail"),
    [
        ("link-target", "link", "plain", "in the target of the link"),
        ("attribute", "facts.db", "zlib", "in an extended attribute"),
        ("attribute-of-folder", ".", "plain", "in an extended attribute"),
    ],
)
def test_a_copy_that_is_not_in_the_content_of_a_file_is_found(
    command: Command, fault: str, file: str, encoding: str, detail: str
) -> None:
    if fault != "link-target" and not has_attributes(command.folder):
        pytest.skip("the file system has no extended attributes")
    write_store(command, fault)
    said = forget(command)
    assert said.code == 3, said.err
    assert failures(said) == {"files"}
    found = places(said, "files")
    assert {place["text"] for place in found} >= {
        one["deleted"].split()[-1] for one in said.json["certificate"]["facts"]
    }
    assert {(place["file"].rstrip("0123456789"), place["encoding"], place["detail"]) for place in found} == {
        (file, encoding, detail)
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "step", "file"),
    [("version-before", "backups", "facts.bak"), ("copy-before-curation", "files", "facts.before")],
)
def test_a_copy_that_a_later_step_overwrites_is_found_right_after_the_deletion(
    command: Command, fault: str, step: str, file: str
) -> None:
    write_store(command, fault)
    said = forget(command, "--run-id", "r")
    assert said.code == 3, said.err
    assert failures(said) == {step}
    (evidence,) = (one["evidence"] for one in said.json["certificate"]["steps"] if one["step"] == step)
    assert evidence == f"found in {file}, right after the deletion"
    assert {(place["file"], *place["moments"]) for place in places(said, step)} == {(file, "right after the deletion")}
    assert "right after the deletion" in (command.folder / "results/r/report.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "file", "encoding"),
    [("temporary-file", "elsewhere.txt", "plain"), ("gzip-in-temporary-folder", "elsewhere/cache.bin", "gzip")],
)
def test_a_copy_in_the_temporary_folder_of_the_system_is_found(
    command: Command, monkeypatch: pytest.MonkeyPatch, fault: str, file: str, encoding: str
) -> None:
    folder = command.folder / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    (folder / "of-another-program.txt").write_text("x" * 100)
    write_store(command, fault, elsewhere=folder / "elsewhere")
    said = forget(command)
    assert failures(said) == {"backups"}
    found = places(said, "backups")
    assert {(place["file"], place["encoding"]) for place in found} == {(str(folder / file), encoding)}
    assert all(isinstance(place["offset"], int) for place in found)


@pytest.mark.slow
def test_a_large_new_file_in_the_temporary_folder_is_named_and_the_file_steps_cannot_tell(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = command.folder / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    write_store(command, "large-temporary-file", elsewhere=folder / "elsewhere")
    said = forget(command)
    assert {states(said)[step] for step in ("backups", "files")} == {"cannot tell"}
    evidence = {step["step"]: step["evidence"] for step in said.json["certificate"]["steps"]}
    assert evidence["files"] == f"not searched: {folder / 'elsewhere.bin'}: larger than 32 MB"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "file"),
    [
        ("many-streams", "cache.bin"),
        ("big-gzip", "backup.gz"),
        ("encrypted-zip", "backup.zip"),
        ("encrypted", "cache.bin"),
        ("encrypted-tombstone", "deleted.bin: packed or encrypted"),
        ("parquet", "facts.parquet: packed in a format that is not read (parquet)"),
        ("leveldb", "000005.ldb: packed in a format that is not read (LevelDB)"),
        ("snappy", "facts.sz: packed in a format that is not read (snappy)"),
        ("zstd", "backup.zst"),
        ("link-to-folder", "archive"),
    ],
)
def test_a_file_that_cannot_be_searched_is_named_and_its_step_cannot_tell(
    command: Command, fault: str, file: str
) -> None:
    write_store(command, fault)
    said = forget(command)
    assert {states(said)[step] for step in ("backups", "files")} == {"cannot tell"}
    evidence = {step["step"]: step["evidence"] for step in said.json["certificate"]["steps"]}
    assert file in evidence["backups"]


@pytest.mark.slow
def test_a_search_that_was_made_before_the_deletion_must_not_return_the_fact_again(command: Command) -> None:
    """A cache of searches is emptied by a new fact, and not by a deletion."""
    write_store(command, "search-cache")
    assert {"search-exact", "search-reworded"} <= failures(forget(command))


@pytest.mark.slow
def test_a_corrected_fact_must_not_be_readable_by_its_old_id(command: Command) -> None:
    write_store(command, "old-id")
    assert "get" in failures(forget(command))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "steps"),
    [
        ("returns-on-restart", {"restart", "files"}),
        ("returns-on-curation", {"curation", "restart", "files"}),
        ("returns-on-refeed", {"refeed", "files"}),
        ("refuses-refeed", {"refeed"}),
        ("refuses-second-deletion", {"refeed"}),
        ("readable-after-restart", {"restart", "files"}),
        ("deletes-for-others", {"other-user"}),
        ("summary", {"summaries", "list", "search-exact", "search-reworded", "curation", "restart", "files"}),
        ("for-others", {"other-user", "files"}),
        ("history", {"history", "files"}),
    ],
)
def test_a_fact_that_is_still_shown_fails_the_step_that_shows_it(command: Command, fault: str, steps: set[str]) -> None:
    write_store(command, fault)
    said = forget(command)
    assert said.code == 3, said.err
    assert steps - {"files"} <= failures(said) <= steps | {"refeed"}


@pytest.mark.slow
def test_a_curation_that_gives_facts_new_ids_loses_none(command: Command) -> None:
    """Twins that list and search returned were called lost, because they were read by their earlier ids."""
    write_store(command, "new-ids")
    said = forget(command)
    assert (said.code, set(states(said).values())) == (0, {"pass"}), said.out


@pytest.mark.slow
def test_a_store_that_forgets_everything_does_not_pass(command: Command) -> None:
    write_store(command, "forgets-all")
    said = forget(command)
    assert said.code == 3
    assert {"search-exact", "search-reworded", "list", "get"} <= failures(said)


@pytest.mark.slow
def test_a_call_that_times_out_is_no_fault_of_forgetting(command: Command) -> None:
    write_store(command, "hangs-on-refeed", more="timeout: 2000")
    said = forget(command)
    assert said.code == 1
    assert failures(said) == set()
    assert said.json["certificate"]["verdict"] == "not shown"


def test_a_store_that_shows_nothing_proves_nothing(command: Command) -> None:
    write_store(command, "deaf")
    said = forget(command)
    assert said.code == 3
    assert said.json["certificate"]["verdict"] == "not shown"
    assert states(said)["search-exact"] == states(said)["list"] == "cannot tell"


@pytest.mark.slow
def test_what_cannot_be_told_is_listed_and_fails_only_with_strict(command: Command) -> None:
    write_store(command, "none", "[forget, recall, list, files]")
    said = forget(command)
    assert said.code == 0, said.err
    unknown = {step for step, state in states(said).items() if state == "cannot tell"}
    assert unknown == {"get", "history", "curation", "other-user"}
    assert said.json["counts"]["skipped"] == len(unknown)
    assert forget(command, "--strict").code == 3


def test_waiting_for_background_jobs_lets_the_curation_step_tell(command: Command) -> None:
    write_store(command, "none", "[forget, recall, list, files]")
    assert states(forget(command, "--wait", "0.01"))["curation"] == "pass"


@pytest.mark.parametrize("wait", [(), ("--wait", "0.01")])
def test_the_page_says_if_background_jobs_were_not_waited_for(command: Command, wait: tuple[str, ...]) -> None:
    write_store(command, "none")
    said = forget(command, "--run-id", "r", *wait)
    assert (said.code, states(said)["curation"]) == (0, "pass"), said.err
    (evidence,) = (one["evidence"] for one in said.json["certificate"]["steps"] if one["step"] == "curation")
    assert ("later background jobs were not waited for" in evidence) == (not wait)
    assert ("after 0.01 s" in evidence) == bool(wait)
    page = (command.folder / "results/r/report.md").read_text()
    assert ("No time was waited for background jobs" in page) == (not wait)


def test_a_store_that_cannot_delete_gets_no_certificate(command: Command) -> None:
    write_store(command, "none", "[recall, list, files]")
    said = forget(command)
    assert said.code == 3
    assert said.json["certificate"]["verdict"] == "not shown"
    assert set(states(said).values()) == {"cannot tell"}


@pytest.mark.slow
def test_files_that_the_user_names_are_searched_too(command: Command, tmp_path: Path) -> None:
    write_store(command, "none")
    copies = tmp_path / "copies"
    copies.mkdir()
    said = forget(command, "--seed", "7")
    fact = said.json["certificate"]["facts"][0]["deleted"]
    (copies / "nightly.txt").write_text(f"x{fact}")
    said = forget(command, "--seed", "7", "--look-in", str(copies))
    assert said.code == 3
    (place,) = places(said, "files")
    assert (place["file"], place["offset"]) == (str(copies / "nightly.txt"), 1 + len(fact) - len(fact.split()[-1]))
    said = command("hygiene", "forget", "--look-in", str(tmp_path / "missing"))
    assert (said.code, said.err.count("expected")) == (2, 1)
    assert f"--look-in: {tmp_path / 'missing'}: not found" in said.err


@pytest.mark.slow
def test_the_certificate_is_one_page_and_can_be_shown_again(command: Command) -> None:
    write_store(command, "log")
    said = forget(command, "--run-id", "mine")
    assert said.code == 3
    page = (command.folder / "results/mine/report.md").read_text()
    assert "# Forgetting certificate: mine" in page
    assert "server.log" in page
    assert all(step in page for step in STEPS)
    again = command("hygiene", "forget", "--resume", "mine", "--json", "--allow-code")
    assert (again.code, again.json["certificate"]) == (3, said.json["certificate"])
    shown = command("show", "mine", "logs")
    assert shown.code == 0, shown.err
    assert "server.log" in shown.out


@pytest.mark.slow
def test_equal_seeds_plant_equal_facts(command: Command) -> None:
    first, second, other = (
        command("hygiene", "forget", "--json", "--seed", seed).json["certificate"]["facts"] for seed in ("1", "1", "2")
    )
    assert first == second != other


SERVICE = """\
name: service
type: hosted
connection: {{baseUrl: "{url}"}}
rateLimit: {{batchDelayMs: 0}}
endpoints:
  add: {{method: POST, path: /add, body: {{text: "$.content", user: "$.scope"}}, storedAs: $.id}}
  search:
    method: POST
    path: /search
    body: {{query: "$.query", user: "$.scope"}}
    response: {{results: "$.found", contentField: "$.text", idField: "$.id"}}
  list:
    method: GET
    path: /list
    query: {{user: "$.scope"}}
    response: {{results: "$.found", contentField: "$.text", idField: "$.id"}}
  forget: {{method: DELETE, path: "/memories/${{memoryId}}"}}
  clear: {{method: DELETE, path: /users, query: {{user: "$.scope"}}}}
"""


class Service:
    """A memory service in memory. Its `deletes` is False for one that only confirms a deletion."""

    def __init__(self, *, deletes: bool) -> None:
        self.deletes = deletes
        self.memories: dict[str, tuple[str, str]] = {}

    async def __call__(self, _: web.BaseRequest, call: Call) -> web.StreamResponse:
        match call.method, call.path.split("/")[1:]:
            case "POST", ["add"]:
                id = f"m{len(self.memories)}"
                self.memories[id] = (call.json["user"], call.json["text"])
                return web.json_response({"id": id})
            case "POST", ["search"]:
                words = set(call.json["query"].lower().split())
                found = self.of(call.json["user"])
                return web.json_response({"found": [one for one in found if words & set(one["text"].lower().split())]})
            case "GET", ["list"]:
                return web.json_response({"found": self.of(call.query["user"])})
            case "DELETE", ["memories", id]:
                if self.deletes:
                    self.memories[id] = ("", "")
            case "DELETE", ["users"]:
                self.memories = {id: one for id, one in self.memories.items() if one[0] != call.query["user"]}
        return web.json_response({})

    def of(self, user: str) -> list[dict[str, str]]:
        return [{"id": id, "text": text} for id, (owner, text) in self.memories.items() if owner == user]


@pytest.mark.parametrize("deletes", [True, False])
def test_a_service_with_a_delete_endpoint_is_certified_as_far_as_it_shows(command: Command, deletes: bool) -> None:
    service = Service(deletes=deletes)
    service.memories["other"] = ("someone", "My neighbour's cat is called Tom")
    with Stub() as stub:
        stub.always(service)
        for kind, name, text in (
            ("providers", "service", SERVICE.format(url=stub.url)),
            ("stores", "mine", "name: mine\ntype: provider\nprovider: service\n"),
        ):
            (command.folder / kind / "configs").mkdir(parents=True)
            (command.folder / kind / "configs" / f"{name}.yaml").write_text(text)
        said = forget(command)
    assert said.code == (0 if deletes else 3), said.err
    wanted = "pass" if deletes else "fail"
    assert {states(said)[step] for step in ("search-exact", "search-reworded", "list")} == {wanted}
    assert states(said)["files"] == "cannot tell"
    assert states(said)["restart"] == ("cannot tell" if deletes else "fail")
    left = {one for one in service.memories.values() if one[0]}
    assert ("someone", "My neighbour's cat is called Tom") in left
    assert (len(left) == 1) == deletes
    assert ("leaked scope" in said.out) != deletes


def test_a_delete_endpoint_needs_the_id(command: Command) -> None:
    (command.folder / "service.yaml").write_text(SERVICE.format(url="https://x").replace("${memoryId}", "all"))
    said = command("validate", "service.yaml")
    assert said.code == 2
    assert "endpoints.forget" in said.err + said.out


@pytest.mark.parametrize("verb", ["forget", "corrections"])
def test_a_killed_run_is_continued_to_its_report(command: Command, verb: str) -> None:
    assert command.killed("hygiene", verb, "--run-id", "r", at=4)
    said = command("hygiene", verb, "--resume", "r", "--json")
    assert said.code == 0, said.err
    assert said.json["counts"]["scored"] == said.json["counts"]["planned"]


@pytest.mark.slow
def test_a_signal_ends_the_search_of_files_and_the_run_can_be_resumed(command: Command) -> None:
    write_store(command, "stops-the-run")
    arguments = ["hygiene", "forget", "--store", "mine", "--allow-code", "--run-id", "r"]
    code = in_child(lambda: os._exit(main(arguments)))
    assert code == 130
    # once to learn its version, and once for the procedure: the search before the restart did not come to its end
    assert (command.folder / "elsewhere").read_text().splitlines() == ["opened"] * 2
    said = command("hygiene", "forget", "--resume", "r", "--json", "--allow-code")
    assert (said.code, set(states(said).values())) == (0, {"pass"}), said.err


@pytest.mark.slow
def test_a_failed_step_is_a_failure_in_results_and_junit(command: Command) -> None:
    write_store(command, "log")
    assert forget(command, "--run-id", "r", "--junit", "junit.xml").code == 3
    failed = [
        case.get("name") for case in ElementTree.parse("junit.xml").iter("testcase") if case.find("failure") is not None
    ]
    assert len(failed) == 1
    assert "server.log" in command("results", "r", "--failures").out
