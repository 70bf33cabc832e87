"""Traces are fetched once into a complete file, and read one by one."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, JournalError, Transient
from memorybench.core.extraction import Trace, TraceSource, UnusableTrace
from memorybench.core.trials import Subject
from memorybench.secrets.redaction import Redactor
from memorybench.traces.paths import OF_RUNS, TracePaths
from memorybench.traces.spool import RecordFile, parse_trace, spool
from tests.standins.base import running
from tests.standins.langsmith import LangSmithServer

from .opening import open_langsmith


class ListSource:
    """Yields the given traces or raises the given errors, and counts its reads."""

    subject = Subject(role="traces", name="list")

    def __init__(self, *traces: Trace | Exception) -> None:
        self._traces = traces
        self.reads = 0

    async def traces(self) -> AsyncIterator[Trace]:
        self.reads += 1
        for trace in self._traces:
            if isinstance(trace, Exception):
                raise trace
            yield trace


def trace(id: str, text: str = "I sell bikes.") -> Trace:
    return Trace(id=id, conversation=(Turn(role="user", content=text),), existing={"shop": []}, output="bikes")


def unusable(id: str, option: str = "--output-path") -> UnusableTrace:
    return UnusableTrace(id=id, conversation=(), problem=f"run {id}: $.out: no output found", missing=option)


def fetch_into(source: TraceSource, path: Path) -> RecordFile[Trace]:
    return asyncio.run(spool(source, path))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "traces.jsonl"


def test_a_spool_returns_the_fetched_traces_on_each_iteration(file: Path) -> None:
    traces = [trace("a"), unusable("b"), trace("ü", "line\nbreak\u2028and 😀")]
    spooled = fetch_into(ListSource(*traces), file)
    assert list(spooled) == traces
    assert list(spooled) == traces
    assert len(spooled) == 3
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_resumed_run_fetches_nothing(file: Path) -> None:
    fetch_into(ListSource(trace("a")), file)
    another = ListSource(trace("b"))
    assert [one.id for one in fetch_into(another, file)] == ["a"]
    assert another.reads == 0


def test_a_failed_fetch_leaves_no_file_and_is_repeated(file: Path) -> None:
    with pytest.raises(Transient):
        fetch_into(ListSource(trace("a"), Transient("the connection was lost")), file)
    assert list(file.parent.iterdir()) == []
    assert len(fetch_into(ListSource(trace("a"), trace("b")), file)) == 2


def test_an_incomplete_file_is_not_read(file: Path) -> None:
    file.with_name("traces.jsonl.part").write_text('{"id": "half')
    assert [one.id for one in fetch_into(ListSource(trace("a")), file)] == ["a"]


def test_a_run_on_two_pages_is_stored_once(file: Path) -> None:
    assert [one.id for one in fetch_into(ListSource(trace("a"), trace("b"), trace("a")), file)] == ["a", "b"]


def test_an_empty_source_is_an_error(file: Path) -> None:
    with pytest.raises(BadInput):
        fetch_into(ListSource(), file)
    assert not file.exists()


def test_a_path_without_a_match_in_any_trace_is_an_error(file: Path) -> None:
    with pytest.raises(BadInput, match=r"all 2 traces .*; set --output-path"):
        fetch_into(ListSource(unusable("a"), unusable("b")), file)
    assert not file.exists()


def test_different_missing_paths_are_not_an_error(file: Path) -> None:
    assert len(fetch_into(ListSource(unusable("a"), unusable("b", "--conversation-path")), file)) == 2


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError):
        fetch_into(ListSource(trace("a")), tmp_path / "none" / "traces.jsonl")


@pytest.mark.parametrize("count", [500, 5000])
def test_memory_use_does_not_grow_with_the_traces(count: int, file: Path) -> None:
    class Many(ListSource):
        async def traces(self) -> AsyncIterator[Trace]:
            for number in range(count):
                yield trace(str(number), "word " * 400)

    tracemalloc.start()
    try:
        read = sum(1 for _ in fetch_into(Many(), file))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read == count
    assert peak < 3 * 2**20, "2 kB per trace, one in memory at a time"


def test_all_pages_of_langsmith_are_fetched(file: Path) -> None:
    async def fetch(server: LangSmithServer) -> RecordFile[Trace]:
        async with open_langsmith(server) as source:
            return await spool(source, file)

    with running(LangSmithServer()) as server:
        for number in range(230):
            server.add(inputs={"messages": [["user", f"{number}"]]}, outputs={"memory": [number]} if number else None)
        spooled = asyncio.run(fetch(server))
    assert [one.output for one in spooled] == [None, *([n] for n in range(1, 230))]
    assert sum(isinstance(one, UnusableTrace) for one in spooled) == 1


def test_a_wrong_path_is_an_error_before_any_trace_is_judged(file: Path) -> None:
    async def fetch(server: LangSmithServer) -> RecordFile[Trace]:
        async with open_langsmith(server, paths=TracePaths.of(OF_RUNS, {"output": "$.outputs.wrong"})) as source:
            return await spool(source, file)

    with running(LangSmithServer()) as server:
        server.add(inputs={"conversation": "x"}, outputs={"output": "y"})
        with pytest.raises(BadInput, match=r"\$\.outputs\.wrong: no output found"):
            asyncio.run(fetch(server))


def test_secrets_in_traces_are_not_written(tmp_path: Path) -> None:
    asyncio.run(
        spool(ListSource(trace("a", "My key is sk-Sentinel.")), tmp_path / "t", Redactor(["sk-Sentinel"]).clean)
    )
    assert "sk-Sentinel" not in (tmp_path / "t").read_text()
    assert [one.id for one in RecordFile.open(tmp_path / "t", parse_trace)] == ["a"]
