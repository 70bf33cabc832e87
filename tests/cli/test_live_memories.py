"""Memories that others use: whatever is run against them, their facts stay byte for byte the same."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import ServiceError
from memorybench.core.stores import MemoryStore, NewFact
from memorybench.core.trials import Subject
from memorybench.files.yaml_file import parse_yaml
from memorybench.secrets.redaction import Redactor
from memorybench.stores.config_reading import read_store
from memorybench.stores.opening import open_store
from memorybench.suites.hygiene.plays import Store, new_scope, open_live

pytest.importorskip("mcp")

from tests.cli.command import Command, Said
from tests.doubles.notes_server import FACTS, NotesServer, write_notes

ROOT = Path(__file__).parents[2]
STDIO_SERVER = ROOT / "tests/doubles/mcp_server.py"
AGENT = ROOT / "tests/agents/scripted_agent.py"
SCENARIOS = ("memory-deletion-on-request", "memory-cross-user-leak", "memory-idempotent-write")
DISPOSABLE = "--store-is-disposable"
BY_URL = ("--url", "${serverUrl}")
READ = "facts: {results: $.notes, id: id, content: text}"
ONE_FOR_ALL = f"""
    remember: {{calls: [{{tool: add_note, arguments: {{text: $.content}}}}], id: $.id}}
    update: {{calls: [{{tool: change_note, arguments: {{id: $.id, text: $.content}}}}]}}
    forget: {{calls: [{{tool: delete_note, arguments: {{id: $.id}}}}]}}
    recall: {{tool: find_notes, arguments: {{query: $.query}}, {READ}}}
    list: {{tool: all_notes, {READ}}}
"""
BY_USER = f"""
    remember: {{calls: [{{tool: add_note, arguments: {{text: $.content, user: $.user}}}}], id: $.id}}
    update: {{calls: [{{tool: change_note, arguments: {{id: $.id, text: $.content, user: $.user}}}}]}}
    forget: {{calls: [{{tool: delete_note, arguments: {{id: $.id, user: $.user}}}}]}}
    recall: {{tool: find_notes, arguments: {{query: $.query, user: $.user}}, {READ}}}
    list: {{tool: all_notes, arguments: {{user: $.user}}, {READ}}}
"""
CLEARED = BY_USER + "    clear: {calls: [{tool: delete_user, arguments: {user: $.user}}]}\n"
UNLISTED = "".join(line for line in CLEARED.splitlines(keepends=True) if not line.lstrip().startswith("list:"))
"""Nothing shows that a made-up user has no facts."""
ADD_ONLY = """
    remember: {calls: [{tool: add_note, arguments: {text: $.content, user: $.user}}], id: $.id}
"""
IN_HOME = f"command: {json.dumps(['sh', '-c', f'exec {sys.executable} {STDIO_SERVER} $HOME/.notes.json'])}"
READ_HOME = "facts: {results: $.found, id: id, content: text}"
IN_HOME_FOR_ALL = f"""
    remember: {{calls: [{{tool: remember, arguments: {{scope: all, id: $.newId, text: $.content, sources: []}}}}]}}
    recall: {{tool: recall, arguments: {{scope: all, query: $.query, limit: $.limit}}, {READ_HOME}}}
    list: {{tool: everything, arguments: {{scope: all}}, {READ_HOME}}}
    clear: {{calls: [{{tool: forget, arguments: {{scope: all}}}}]}}
"""
PROVIDER = """
name: notes
type: local
adapter: builtin:mcp
mcp:
  SERVER
  tools:
    add: {tool: add_note, arguments: {text: $.content, user: $.scope}}
    search:
      tool: find_notes
      arguments: {query: $.query, user: $.scope, limit: $.limit}
      response: {results: $.notes, contentField: text, idField: id}
    list:
      tool: all_notes
      arguments: {user: $.scope}
      response: {results: $.notes, contentField: text, idField: id}
    clear: {tool: delete_user, arguments: {user: $.scope}}
"""
IN_HOME_PROVIDER = """
name: notes
type: local
adapter: builtin:mcp
mcp:
  SERVER
  tools:
    add: {tool: remember, arguments: {scope: $.scope, id: $.documentId, text: $.content, sources: []}}
    search:
      tool: recall
      arguments: {scope: $.scope, query: $.query, limit: $.limit}
      response: {results: $.found, contentField: text, idField: id}
    clear: {tool: forget, arguments: {scope: $.scope}}
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    file = tmp_path / "notes.json"
    write_notes(file, FACTS)
    return file


@pytest.fixture
def server(notes: Path) -> Iterator[NotesServer]:
    with NotesServer(notes) as server:
        yield server


def write_config(command: Command, kind: str, text: str) -> None:
    folder = command.folder / kind / "configs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "notes.yaml").write_text(text)


def write_store(command: Command, server: str, operations: str) -> None:
    write_config(command, "stores", f"name: notes\ntype: mcp\nmcp:\n  {server}\n  operations:{operations}")


def hygiene(command: Command, *arguments: str, scenarios: tuple[str, ...] = SCENARIOS[:1]) -> Said:
    run = ("hygiene", "run", *scenarios, "--store", "notes", "--allow-code", "--no-mutants", "--json")
    return command(*run, *arguments)


def evaluate(command: Command, *arguments: str) -> Said:
    run = ("eval", "--providers", "notes", "--end", "2", "--answering-model", "none", "--allow-code", "--json")
    return command(*run, *arguments)


def trial_statuses(said: Said) -> Mapping[str, int]:
    return {name: n for name, n in said.json["counts"].items() if n and name != "planned"}


OURS = ("--tools", "ours")
"""The scripted agent knows no others."""
HYGIENE = ("hygiene", "run", SCENARIOS[0], "--store", "notes", "--no-mutants")
COMMANDS = {
    "scripts": HYGIENE,
    "forget": ("hygiene", "forget", "--store", "notes"),
    "corrections": ("hygiene", "corrections", "--store", "notes"),
    "agent": (*HYGIENE[:5], "--agent", "scripted", "--agent-turn", "--i-understand-model-cost", *OURS),
    "record": (
        "hygiene",
        "record",
        "--store",
        "notes",
        *OURS,
        "--",
        sys.executable,
        str(AGENT),
        "hoarding",
        "Hi",
        *BY_URL,
    ),
}


def write_agent(command: Command) -> None:
    words = json.dumps([sys.executable, str(AGENT), "hoarding", "${prompt}", *BY_URL])
    folder = command.folder / "agents/configs"
    folder.mkdir(parents=True)
    output = """{format: jsonl, text: "$[?@.type=='answer'].text"}"""
    (folder / "scripted.yaml").write_text(f"name: scripted\ntype: command\ncommand: {words}\noutput: {output}\n")


def with_flags(arguments: tuple[str, ...], *flags: str) -> tuple[str, ...]:
    """Put flags after the verb and its action: what follows `--` belongs to the agent."""
    return (*arguments[:2], *flags, *arguments[2:])


@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("operations", [ONE_FOR_ALL, ADD_ONLY, UNLISTED], ids=["one-for-all", "add-only", "unlisted"])
def test_a_url_without_a_private_scope_is_refused_before_any_request(
    command: Command, server: NotesServer, notes: Path, kind: str, operations: str
) -> None:
    before = notes.read_bytes()
    write_store(command, f"url: {server.url}", operations)
    write_agent(command)
    said = command(*with_flags(COMMANDS[kind], "--allow-code"))
    assert said.code == 2, said.err
    assert 'store "notes"' in said.err
    assert DISPOSABLE in said.err
    assert (server.calls, notes.read_bytes()) == ([], before)


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_disposable_store_that_has_entries_is_refused_with_their_number(
    command: Command, server: NotesServer, notes: Path, kind: str
) -> None:
    before = notes.read_bytes()
    write_store(command, f"url: {server.url}", ONE_FOR_ALL)
    write_agent(command)
    said = command(*with_flags(COMMANDS[kind], "--allow-code", DISPOSABLE))
    assert said.code == 2, said.err
    assert "has 2 entries" in said.err
    assert (set(server.calls), notes.read_bytes()) == ({"all_notes"}, before)


@pytest.mark.slow
@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("operations", [BY_USER, CLEARED], ids=["forget", "clear"])
def test_users_of_its_own_leave_the_facts_of_others_as_they_were(
    command: Command, server: NotesServer, notes: Path, kind: str, operations: str
) -> None:
    before = notes.read_bytes()
    write_store(command, f"url: {server.url}", operations)
    write_agent(command)
    said = command(*with_flags(COMMANDS[kind], "--allow-code"))
    assert said.code in (0, 3), said.err
    assert "add_note" in server.calls
    assert notes.read_bytes() == before


def figures(said: Said) -> Any:
    assert said.code in (0, 3), said.err
    return said.json["results"], said.json["scenarios"], said.json["counts"]


@pytest.mark.slow
def test_scenarios_on_a_live_store_do_not_see_each_other(command: Command, server: NotesServer, notes: Path) -> None:
    before = notes.read_bytes()
    write_store(command, f"url: {server.url}", BY_USER)
    at_once = hygiene(command, scenarios=SCENARIOS)
    assert figures(at_once) == figures(hygiene(command, "--concurrency", "1", scenarios=SCENARIOS))
    results = {row["scenario"]: row["phases"]["well_behaved"] for row in at_once.json["scenarios"]}
    assert results["memory-cross-user-leak"] == {"pass": 1}
    assert notes.read_bytes() == before


@pytest.mark.slow
def test_an_empty_disposable_store_is_used_by_one_scenario_at_a_time(
    command: Command, server: NotesServer, notes: Path
) -> None:
    scenarios = (SCENARIOS[0], SCENARIOS[2])
    before = write_notes(notes, {})
    write_store(command, f"url: {server.url}", BY_USER)
    by_user = figures(hygiene(command, scenarios=scenarios))
    write_store(command, f"url: {server.url}", ONE_FOR_ALL)
    assert figures(hygiene(command, DISPOSABLE, scenarios=scenarios)) == by_user
    assert notes.read_bytes() == before


def test_a_server_that_ignores_the_user_is_refused(command: Command, notes: Path) -> None:
    before = notes.read_bytes()
    with NotesServer(notes, separates_users=False) as server:
        write_store(command, f"url: {server.url}", BY_USER)
        said = hygiene(command)
    assert said.code == 2
    assert "has 2 entries" in said.err
    assert (set(server.calls), notes.read_bytes()) == ({"all_notes"}, before)


@pytest.mark.slow
def test_the_permission_is_needed_at_every_start(command: Command, server: NotesServer, notes: Path) -> None:
    write_notes(notes, {})
    write_store(command, f"url: {server.url}", ONE_FOR_ALL)
    run = (*HYGIENE, "--run-id", "r", "--concurrency", "1")
    assert command.killed(*run, DISPOSABLE, at=6)
    with sqlite3.connect(command.folder / "results/results.db") as db:
        (spec,) = db.execute("SELECT spec FROM runs").fetchone()
    saved = json.loads(spec)
    assert DISPOSABLE in saved.pop("started_with")["command_line"]  # a record, which gives no permission
    assert "disposable" not in json.dumps(saved)
    write_notes(notes, {})
    assert hygiene_resumed(command).code == 2
    assert hygiene_resumed(command, DISPOSABLE).code in (0, 3)


def hygiene_resumed(command: Command, *arguments: str) -> Said:
    return command("hygiene", "run", "--resume", "r", "--allow-code", "--json", *arguments)


@pytest.mark.slow
@pytest.mark.parametrize("at", [9, pytest.param(5, marks=pytest.mark.slow), pytest.param(12, marks=pytest.mark.slow)])
def test_what_a_killed_run_left_is_deleted_when_it_is_resumed(
    command: Command, server: NotesServer, notes: Path, at: int
) -> None:
    before = notes.read_bytes()
    write_store(command, f"url: {server.url}", BY_USER)
    run = (*HYGIENE, "--run-id", "r", "--concurrency", "3")
    assert command.killed(*run, at=at)
    left = {note["user"] for id, note in json.loads(notes.read_bytes()).items() if id not in FACTS}
    assert all(user.startswith("memorybench-") for user in left)
    resumed = hygiene_resumed(command)
    assert resumed.code in (0, 3), resumed.err
    assert notes.read_bytes() == before


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's home, with the facts that the stdio server keeps there."""
    home = tmp_path / "user-home"
    home.mkdir()
    fact = {"id": "ann-1", "text": "Ann lives in Porto", "sources": []}
    (home / ".notes.json").write_text(json.dumps({"scope": "all", "memory": fact}) + "\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / ".local/share"))
    return home


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), (DISPOSABLE,)], ids=["refused", "disposable"])
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_program_that_stores_in_the_home_folder_gets_a_private_one(
    command: Command, home: Path, kind: str, flags: tuple[str, ...]
) -> None:
    before = contents(home)
    write_store(command, IN_HOME, IN_HOME_FOR_ALL)
    write_agent(command)
    said = command(*with_flags(COMMANDS[kind], "--allow-code", *flags))
    assert said.code in ((0, 3) if flags else (2,)), said.err
    assert contents(home) == before


@pytest.mark.slow
def test_eval_leaves_a_live_mcp_server_as_it_was(command: Command, server: NotesServer, notes: Path) -> None:
    before, scopes = notes.read_bytes(), []
    write_config(command, "providers", PROVIDER.replace("SERVER", f"url: {server.url}"))
    for output in ("one", "two"):
        said = evaluate(command, "--run-id", "ci", "--output", output)
        assert said.code == 0, said.err
        assert trial_statuses(said) == {"scored": 2}
        with sqlite3.connect(command.folder / output / "results.db") as db:
            rows = db.execute("SELECT inputs FROM steps WHERE name = 'add'").fetchall()
        scopes.append({json.loads(inputs)["scope"] for (inputs,) in rows})
    assert notes.read_bytes() == before
    assert scopes[0], "it was used"
    assert not scopes[0] & scopes[1], "runs of one name in two folders share no scope"


def test_eval_gives_a_program_a_private_home(command: Command, home: Path) -> None:
    before = contents(home)
    write_config(command, "providers", IN_HOME_PROVIDER.replace("SERVER", IN_HOME))
    said = evaluate(command)
    assert said.code == 0, said.err
    assert trial_statuses(said) == {"scored": 2}
    assert contents(home) == before


def test_eval_adds_nothing_to_a_scope_that_has_entries(command: Command, notes: Path) -> None:
    before = notes.read_bytes()
    with NotesServer(notes, separates_users=False) as server:
        write_config(command, "providers", PROVIDER.replace("SERVER", f"url: {server.url}"))
        said = evaluate(command)
    assert said.code == 2
    assert "has 2 memories" in said.err
    assert (set(server.calls), notes.read_bytes()) == ({"all_notes"}, before)


@pytest.mark.slow
@pytest.mark.parametrize("at", [20, pytest.param(8, marks=pytest.mark.slow), pytest.param(40, marks=pytest.mark.slow)])
def test_a_killed_eval_is_resumed_and_cleared(command: Command, server: NotesServer, notes: Path, at: int) -> None:
    before = notes.read_bytes()
    write_config(command, "providers", PROVIDER.replace("SERVER", f"url: {server.url}"))
    run = ("eval", "--providers", "notes", "--end", "2", "--answering-model", "none", "--allow-code")
    assert command.killed(*run, "--run-id", "r", at=at)
    said = command("eval", "--resume", "r", "--allow-code", "--json")
    assert said.code == 0, said.err
    assert notes.read_bytes() == before


def test_only_facts_of_its_own_are_changed(tmp_path: Path, server: NotesServer, notes: Path) -> None:
    """An agent may guess the id of a fact, or get it from a search that ignores users."""
    text = f"name: notes\ntype: mcp\nmcp:\n  url: {server.url}\n  operations:{BY_USER}"
    config = read_store(parse_yaml(text, "notes.yaml"), {})
    before, leaks = notes.read_bytes(), []

    async def report_leak(text: str) -> None:
        leaks.append(text)

    def open_notes(folder: Path) -> AbstractAsyncContextManager[MemoryStore]:
        return open_store(config, folder, environment={}, redactor=Redactor([]))

    async def play() -> None:
        live = Store(Subject(role="store", name="notes"), open_notes, "user")
        async with open_live(live, new_scope(), report_leak) as open_played, open_played(tmp_path) as store:
            id = await store.remember("user", NewFact(content="The user sails"))
            with pytest.raises(ServiceError, match="unknown fact id"):
                await store.forget("user", "ann-1")
            with pytest.raises(ServiceError, match="unknown fact id"):
                await store.update("user", "ann-1", "Ann lives in Faro")
            assert await store.update("user", id, "The user rows") == id

    asyncio.run(play())
    assert (notes.read_bytes(), leaks) == (before, [])


LIST_ONLY = f"""
    remember: {{calls: [{{tool: add_note, arguments: {{text: $.content}}}}], id: $.id}}
    list: {{tool: all_notes, {READ}}}
"""


@pytest.mark.parametrize("operations", [ONE_FOR_ALL, BY_USER, LIST_ONLY], ids=["one-for-all", "by-user", "list-only"])
def test_a_scan_finds_a_secret_in_a_live_memory_and_only_lists(
    command: Command, server: NotesServer, notes: Path, operations: str
) -> None:
    secret = "My password is Kestrel-7h4Zq!"
    before = write_notes(notes, {**FACTS, "ann-3": {"user": "ann", "text": secret}})
    write_store(command, f"url: {server.url}", operations)
    said = command("hygiene", "scan", "--store", "notes", "--user", "ann", "--allow-code", "--json")
    assert said.code == 3, said.err
    (found,) = said.json["findings"]
    assert (found["category"], found["file"], found["pointer"]) == ("secret", "store:notes", "ann-3/content")
    assert "Kestrel" not in said.out + said.err
    assert set(server.calls) == {"all_notes"}
    assert notes.read_bytes() == before


def test_a_store_that_cannot_list_cannot_be_scanned(command: Command, server: NotesServer, notes: Path) -> None:
    before = notes.read_bytes()
    write_store(command, f"url: {server.url}", ADD_ONLY)
    said = command("hygiene", "scan", "--store", "notes", "--allow-code")
    assert said.code == 2
    assert 'store "notes"' in said.err
    assert "list" in said.err
    assert notes.read_bytes() == before
