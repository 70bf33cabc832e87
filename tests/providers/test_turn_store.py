import asyncio
import multiprocessing
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memorybench.core.conversation import Session, Turn
from memorybench.core.errors import BadInput
from memorybench.providers.bm25 import Bm25
from memorybench.providers.storage.turns import StoredTurn, TurnStore, stored_turns
from tests.providers.embedded import HOME, session, sessions_of

DIES_AFTER_ADDING = """
import asyncio, os, signal, sys
from pathlib import Path
from memorybench.providers.bm25 import Bm25
from tests.providers.embedded import HOME, session

async def main():
    async with Bm25.open_file(Path(sys.argv[1])) as provider:
        for n in range(3):
            await provider.add(HOME, session(f"s{n}", f"The zebrafinch number {n} sings."))
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""

ADDS_UNTIL_THE_DISK_IS_FULL = """
import asyncio, resource, sys
from pathlib import Path
from memorybench.providers.bm25 import Bm25
from memorybench.core.errors import ServiceError
from tests.providers.embedded import HOME, session

async def main():
    async with Bm25.open_file(Path(sys.argv[1])) as provider:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        for n in range(100):
            try:
                await provider.add(HOME, session(f"s{n}", "The zebrafinch sings. " * 1_000))
            except ServiceError as error:
                print(n, error)
                return

asyncio.run(main())
"""


def run_child(program: str, file: Path) -> subprocess.CompletedProcess[str]:
    child = [sys.executable, "-c", program, str(file)]
    return subprocess.run(child, capture_output=True, text=True, env={"PYTHONPATH": os.pathsep.join(sys.path)})


def held_sessions(file: Path) -> list[str]:
    async def add_and_list() -> list[str]:
        async with Bm25.open_file(file) as provider:
            return sessions_of(await provider.list(HOME))

    return asyncio.run(add_and_list())


def raw_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.mark.slow
def test_finished_add_survives_a_killed_process(tmp_path: Path) -> None:
    died = run_child(DIES_AFTER_ADDING, tmp_path / "killed.db")
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert held_sessions(tmp_path / "killed.db") == ["s0", "s1", "s2"]


@pytest.mark.slow
def test_full_disk_fails_the_add_and_keeps_earlier_data(tmp_path: Path) -> None:
    file = tmp_path / "full.db"
    filled = run_child(ADDS_UNTIL_THE_DISK_IS_FULL, file)
    count, problem = filled.stdout.strip().split(" ", 1)
    assert problem.startswith(f"{file}: "), filled.stderr
    assert int(count) > 0
    assert sorted(held_sessions(file)) == sorted(f"s{n}" for n in range(int(count)))


def test_session_added_again_is_replaced(tmp_path: Path) -> None:
    store = TurnStore(tmp_path / "turns.db")
    store.replace("scope", "s1", stored_turns(session("s1", "I own a dog.", "And a cat.")))
    store.replace("scope", "s1", stored_turns(session("s1", "I own a horse.")))
    assert [stored.text for stored in store.entries("scope")] == ["I own a horse."]
    store.close()


def test_cleared_text_is_not_in_the_raw_files(tmp_path: Path) -> None:
    store = TurnStore(tmp_path / "turns.db")
    store.replace("scope", "s1", stored_turns(session("s1", "The zebrafinch sings.")))
    store.replace("other", "s1", stored_turns(session("s1", "The tortoise sleeps.")))
    assert b"zebrafinch" in raw_bytes(tmp_path)
    store.clear("scope")
    assert b"zebrafinch" not in raw_bytes(tmp_path)
    assert b"tortoise" in raw_bytes(tmp_path)
    store.close()


def test_memory_contains_date_speaker_and_text() -> None:
    at = datetime(2024, 3, 2, 23, 5, tzinfo=UTC)
    turns = (
        Turn(
            role="user", speaker="Caroline", content="I adopted a cat.", at=datetime(2024, 3, 5, tzinfo=UTC), id="D1:1"
        ),
        Turn(role="assistant", content="How lovely!"),
    )
    first, second = [stored.as_memory() for stored in stored_turns(Session(id="s1", turns=turns, at=at))]
    assert (first.content, first.sources) == ("[2024-03-05] Caroline: I adopted a cat.", ("s1", "D1:1"))
    assert (second.content, second.sources) == ("[2024-03-02] assistant: How lovely!", ("s1", "s1:2"))


def test_without_a_date_a_memory_has_none() -> None:
    undated = Session(id="s1", turns=(Turn(role="user", content="Hello."),))
    assert stored_turns(undated)[0].as_memory().content == "user: Hello."


def test_empty_turn_is_not_stored_but_counts_in_the_numbering() -> None:
    assert [stored.turn for stored in stored_turns(session("s1", "One.", " ", "Three."))] == ["s1:1", "s1:3"]


def test_lone_surrogates_do_not_stop_an_ingest(tmp_path: Path) -> None:
    store = TurnStore(tmp_path / "turns.db")
    store.replace("scope", "s1", stored_turns(session("s1", "A broken \ud800 letter.")))
    assert [stored.text for stored in store.entries("scope")] == ["A broken ? letter."]
    store.close()


def test_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    TurnStore(tmp_path / "turns.db").close()
    assert stat.S_IMODE((tmp_path / "turns.db").stat().st_mode) == 0o600


def test_each_new_file_has_its_own_lasting_store_id(tmp_path: Path) -> None:
    incarnations = []
    for name in ("a.db", "b.db", "a.db"):
        store = TurnStore(tmp_path / name)
        incarnations.append(store.store_id)
        store.close()
    assert incarnations[0] == incarnations[2] != incarnations[1]


def _text(folder: Path) -> Path:
    (folder / "notes.txt").write_text("no database at all, but long enough to be read as one " * 30)
    return folder / "notes.txt"


def _anothers(folder: Path) -> Path:
    with sqlite3.connect(folder / "other.db") as db:
        db.execute("CREATE TABLE turns (mine TEXT)")
    db.close()
    return folder / "other.db"


def _newer(folder: Path) -> Path:
    TurnStore(folder / "newer.db").close()
    with sqlite3.connect(folder / "newer.db") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    return folder / "newer.db"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (_text, "not a database"),
        (_anothers, "another program"),
        (_newer, "has format 99"),
        (lambda folder: folder, "Is a directory"),
        (lambda folder: folder / "missing" / "turns.db", "No such file"),
    ],
    ids=["text", "another program's", "newer", "folder", "no folder"],
)
def test_file_of_another_program_is_rejected_and_unchanged(tmp_path: Path, make, problem: str) -> None:
    file = make(tmp_path)
    before = file.read_bytes() if file.is_file() else None
    with pytest.raises(BadInput, match=problem.replace("(", r"\(")) as refused:
        TurnStore(file)
    assert "\n" not in str(refused.value)
    assert (file.read_bytes() if file.is_file() else None) == before


def _open_and_write(file: Path, n: int) -> None:
    store = TurnStore(file)
    for m in range(20):
        store.replace(f"scope-{n}", f"s{m}", [StoredTurn(f"s{m}", 1, "t", "", f"said {n} {m}")])
    store.close()


@pytest.mark.slow
def test_processes_share_one_new_file(tmp_path: Path) -> None:
    file = tmp_path / "shared.db"
    spawning = multiprocessing.get_context("spawn")
    writers = [spawning.Process(target=_open_and_write, args=(file, n)) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 3
    store = TurnStore(file)
    assert [len(store.entries(f"scope-{n}")) for n in range(3)] == [20] * 3
    store.close()
