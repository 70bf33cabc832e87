"""Traces are fetched once, whole or not at all, and read one by one."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, JournalError, Transient
from memorybench.core.extraction import Trace, TraceSource
from memorybench.core.trials import Subject
from memorybench.traces.paths import OF_RUNS, TracePaths, UnusableTrace
from memorybench.traces.spool import Spool, spool
from tests.standins.base import running
from tests.standins.langsmith import LangSmithServer

from .opening import opened


class Told:
    """A source of what it is told to give; counts how often it is asked."""

    subject = Subject(role="traces", name="told")

    def __init__(self, *traces: Trace | Exception) -> None:
        self._traces = traces
        self.asked = 0

    async def traces(self) -> AsyncIterator[Trace]:
        self.asked += 1
        for trace in self._traces:
            if isinstance(trace, Exception):
                raise trace
            yield trace


def trace(id: str, text: str = "I sell bikes.") -> Trace:
    return Trace(id=id, conversation=(Turn(role="user", content=text),), existing={"shop": []}, output="bikes")


def unfound(id: str, option: str = "--output-path") -> UnusableTrace:
    return UnusableTrace(id=id, conversation=(), problem=f"run {id}: $.out finds no output", missing=option)


def kept(source: TraceSource, path: Path) -> Spool:
    return asyncio.run(spool(source, path))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "traces.jsonl"


def test_what_was_fetched_is_read_as_it_was(file: Path) -> None:
    given = [trace("a"), unfound("b"), trace("ü", "line\nbreak\u2028and 😀")]
    spooled = kept(Told(*given), file)
    assert list(spooled) == given
    assert list(spooled) == given, "and a second time"
    assert len(spooled) == 3
    assert spooled.problems == {"b": "run b: $.out finds no output"}
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_resumed_run_fetches_nothing(file: Path) -> None:
    kept(Told(trace("a")), file)
    another = Told(trace("b"))
    assert [one.id for one in kept(another, file)] == ["a"]
    assert another.asked == 0


def test_a_fetch_that_was_cut_off_leaves_nothing_and_is_done_anew(file: Path) -> None:
    with pytest.raises(Transient):
        kept(Told(trace("a"), Transient("the connection was lost")), file)
    assert list(file.parent.iterdir()) == []
    assert len(kept(Told(trace("a"), trace("b")), file)) == 2


def test_half_a_file_of_a_killed_process_is_not_read(file: Path) -> None:
    file.with_name("traces.jsonl.part").write_text('{"id": "half')
    assert [one.id for one in kept(Told(trace("a")), file)] == ["a"]


def test_a_run_that_comes_on_two_pages_is_kept_once(file: Path) -> None:
    assert [one.id for one in kept(Told(trace("a"), trace("b"), trace("a")), file)] == ["a", "b"]


def test_no_traces_are_refused(file: Path) -> None:
    with pytest.raises(BadInput):
        kept(Told(), file)
    assert not file.exists()


def test_a_path_that_finds_nothing_in_any_trace_is_refused(file: Path) -> None:
    with pytest.raises(BadInput, match=r"all 2 traces; set --output-path"):
        kept(Told(unfound("a"), unfound("b")), file)
    assert not file.exists()


def test_paths_that_miss_here_and_there_are_no_reason_to_refuse(file: Path) -> None:
    assert len(kept(Told(unfound("a"), unfound("b", "--conversation-path")), file)) == 2


def test_a_folder_that_can_not_be_written_to_is_named(tmp_path: Path) -> None:
    with pytest.raises(JournalError):
        kept(Told(trace("a")), tmp_path / "none" / "traces.jsonl")


@pytest.mark.parametrize("count", [500, 5000])
def test_memory_stays_flat(count: int, file: Path) -> None:
    class Many(Told):
        async def traces(self) -> AsyncIterator[Trace]:
            for number in range(count):
                yield trace(str(number), "word " * 400)

    tracemalloc.start()
    try:
        read = sum(1 for _ in kept(Many(), file))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read == count
    assert peak < 3 * 2**20, "2 kB a trace, of which none are kept"


def test_runs_of_langsmith_are_spooled_over_pages(file: Path) -> None:
    async def fetch(server: LangSmithServer) -> Spool:
        async with opened(server) as source:
            return await spool(source, file)

    with running(LangSmithServer()) as server:
        for number in range(230):
            server.add(inputs={"messages": [["user", f"{number}"]]}, outputs={"memory": [number]} if number else None)
        spooled = asyncio.run(fetch(server))
    assert [one.output for one in spooled] == [None, *([n] for n in range(1, 230))]
    assert len(spooled.problems) == 1


def test_a_wrong_path_is_noticed_before_anything_is_judged(file: Path) -> None:
    async def fetch(server: LangSmithServer) -> Spool:
        async with opened(server, paths=TracePaths.of(OF_RUNS, {"output": "$.outputs.wrong"})) as source:
            return await spool(source, file)

    with running(LangSmithServer()) as server:
        server.add(inputs={"conversation": "x"}, outputs={"output": "y"})
        with pytest.raises(BadInput, match=r"\$\.outputs\.wrong finds no output"):
            asyncio.run(fetch(server))
