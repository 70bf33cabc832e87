"""What a run shows while it works, to its own terminal and to `results --watch` in another one."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.doubles.stub import Stub, completion

ADAPTER = """\
import os


class Gated:
    '''With the environment variable GATE, writes to one pipe after its first session and waits for another.'''

    def __init__(self):
        self.added = 0

    def add(self, scope, session):
        if self.added == 1 and "GATE" in os.environ:
            reached, gate = map(int, os.environ["GATE"].split())
            os.write(reached, b"reached")
            os.read(gate, 1)
        self.added += 1

    def search(self, scope, query, limit):
        if len(query) % 2:
            raise RuntimeError(f"index {len(query)} is not loaded")
        return ["nothing"]

    def clear(self, scope):
        pass
"""
EVAL = ("eval", "--providers", "gated", "bm25", "--end", "10", "--allow-code", "--run-id", "r", "--concurrency", "1")


@pytest.fixture
def gated(command: Command) -> Command:
    """A provider that fails on some questions and can be made to wait between its first two sessions."""
    folder = command.folder / "providers" / "configs"
    folder.mkdir(parents=True)
    (folder / "gated.yaml").write_text("name: gated\ntype: local\nadapter: ./gated.py:Gated\n")
    (folder / "gated.py").write_text(ADAPTER)
    return command


class Waiting:
    """A run in another process, which waits in its ingest."""

    def __init__(self, folder: Path, stderr: int | None = None) -> None:
        reached, theirs = os.pipe()
        gate, self._gate = os.pipe()
        with (folder / "out").open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "memorybench", *EVAL],
                cwd=folder,
                stdout=out,
                stderr=out if stderr is None else stderr,
                pass_fds=(theirs, gate),
                env={**os.environ, "GATE": f"{theirs} {gate}"},
            )
        os.close(theirs)
        os.close(gate)
        is_reached = os.read(reached, 7) == b"reached"  # empty if the process has ended
        os.close(reached)
        if not is_reached:
            self.process.wait()
            raise AssertionError((folder / "out").read_text())

    def go_on(self) -> None:
        os.close(self._gate)


@pytest.fixture
def waiting(gated: Command) -> Iterator[Waiting]:
    run = Waiting(gated.folder)
    yield run
    run.process.kill()
    run.process.wait()


@contextmanager
def watch(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Watch in another process; yield it and the first line that it writes to standard error."""
    command = [sys.executable, "-m", "memorybench", "results", "--watch", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        yield process, process.stderr.readline()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("run", [("r",), ("latest",), ()])
def test_a_running_run_is_followed_to_its_end(gated: Command, waiting: Waiting, run: tuple[str, ...]) -> None:
    """U16"""
    with watch(gated.folder, *run) as (watching, first):
        assert first.startswith("starter × gated: adding 1/22 sessions"), first
        waiting.go_on()
        out, _ = watching.communicate()
    assert waiting.process.wait() == 1, "some trials failed"
    assert watching.returncode == 0
    assert "gated" in out
    assert not (gated.folder / "results" / "r" / ".progress").exists()


@pytest.mark.slow
def test_a_watched_run_that_is_killed_is_reported_with_the_command_that_resumes_it(
    gated: Command, waiting: Waiting
) -> None:
    with watch(gated.folder, "r") as (watching, _):
        waiting.process.kill()
        out, _ = watching.communicate()
    assert watching.returncode == 1
    assert "was killed" in out
    assert "memorybench eval --resume r" in out
    assert gated("eval", "--resume", "r", "--allow-code").code == 1, "some trials failed"
    said = gated("results", "--watch", "r", "--json")
    assert said.code == 0
    assert said.json["status"] == "complete"


@pytest.mark.slow
def test_a_watch_leaves_the_files_of_the_run_as_they_are(gated: Command, waiting: Waiting) -> None:
    results = gated.folder / "results"
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*") if path.name in ("results.db", ".lock")}
    with watch(gated.folder, "r"):
        assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize(("arguments", "where"), [(("r", "s"), "--watch"), (("absent",), "results")])
def test_only_one_known_run_is_watched(command: Command, arguments: tuple[str, ...], where: str) -> None:
    assert command("eval", "--providers", "bm25", "--limit", "1", "--run-id", "r").code == 0
    said = command("results", "--watch", *arguments)
    assert said.code == 2
    assert said.err.startswith(f"memorybench: {where}")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_terminal_shows_adds_and_waiting_providers_while_sessions_are_added(
    gated: Command, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    """U4"""
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    monkeypatch.setenv("COLUMNS", "80")
    terminal, end = pty.openpty()
    waiting = Waiting(gated.folder, end)
    os.close(end)
    shown = b""
    for _ in range(400):  # it is drawn four times per second
        shown += os.read(terminal, 4096)
        if b" 1/22 adding sessions" in shown and b"waiting" in shown:
            break
    waiting.go_on()
    while waiting.process.poll() is None:  # an unread terminal would stop the process
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the process has closed it
            break
    waiting.process.wait()
    os.close(terminal)
    text = shown.decode(encoding)
    assert " 1/22 adding sessions" in text
    assert "waiting" in text
    assert ("starter × bm25" if encoding == "utf-8" else "starter x bm25") in text


def test_lines_in_a_pipe_tell_the_end_of_each_stage_and_the_most_frequent_reason(gated: Command) -> None:
    """U4, U13"""
    said = gated(*EVAL)
    lines = said.err.splitlines()
    assert lines[0] == "starter × gated: added 22 sessions"
    failed = next(line for line in lines if line.startswith("starter × gated: 10/10"))
    assert " failed: " in failed
    assert "is not loaded" in failed
    assert any(line.startswith("starter × bm25: 10/10") and "failed" not in line for line in lines)


def test_failures_are_marked_in_the_final_table_with_their_reason(gated: Command) -> None:
    """U13"""
    said = gated(*EVAL, "--json")
    assert said.code == 1
    (failures,) = said.json["failures"]
    assert (failures["benchmark"], failures["subject"]) == ("starter", "gated")
    assert failures["failed"] == failures["times"] == said.json["counts"]["failed"] > 1, "numbers do not matter"
    assert "is not loaded" in failures["reason"]
    shown = gated("results", "r").out
    heading = next(line for line in shown.splitlines() if "provider" in line)
    assert "failed" in heading
    row = next(line for line in shown.splitlines() if "│ gated" in line)
    assert f"✗ {failures['failed']}" in row
    assert "is not loaded" in shown


def test_a_run_without_failures_has_no_column_for_them(command: Command) -> None:
    said = command("eval", "--providers", "bm25", "--end", "2")
    assert "failed" not in next(line for line in said.out.splitlines() if "provider" in line)


def test_an_audit_shows_the_sessions_that_its_memory_gets(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """U4"""
    dataset = str(Path(__file__).parents[2] / "data" / "sample-dataset.json")
    with Stub() as stub:
        stub.always(completion("I don't know.", tokens=(10, 1)))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        said = command("audit", dataset, "--provider", "bm25", "--limit", "2", "--model", "gpt-4o")
    assert ": added " in said.err


def test_the_command_that_lists_failed_trials_finds_a_run_in_another_folder(gated: Command) -> None:
    for said in (gated(*EVAL, "--output", "my runs"), gated("results", "r", "--results", "my runs")):
        shown = said.out.replace("\\\n", " ")
        commands = {
            " ".join(one.split()) for one in re.findall(r"memorybench results r --failures.*?(?=\n|    \w)", shown)
        }
        assert [gated(*shlex.split(command)[1:]).code for command in commands] == [0]
