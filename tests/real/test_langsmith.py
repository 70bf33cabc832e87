"""LangSmith's own client judges the stand-in, and our requests: what it sends for a job is what we send.

DIFFERENCES lists every header, query and body field that is not equal, and why.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from fnmatch import fnmatch
from typing import Any
from uuid import UUID

import pytest

from memorybench.judging.judge import Judge
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.suites.extraction.evaluator import MemoryExtractionEvaluator
from memorybench.suites.extraction.online import TraceJudge
from memorybench.traces.langsmith import LangSmith
from memorybench.traces.paths import OF_RUNS, TracePaths
from tests.doubles.scripted_model import ScriptedModel
from tests.doubles.stub import Call
from tests.standins.base import KEY, running
from tests.standins.langsmith import NOW, PROJECT, TAG, LangSmithServer
from tests.standins.requests import flat
from tests.suites.extraction.listing import lister, user_says
from tests.suites.extraction.test_losses import oracle
from tests.traces.opening import open_langsmith, read_all

pytestmark = [
    pytest.mark.real,
    pytest.mark.usefixtures("leftovers_collected"),
    pytest.mark.filterwarnings("default"),  # the older query is deprecated, and the client says so
]

SINCE = NOW - timedelta(days=2)
NEWER, OLDER = "/api/v2/runs/query", "/runs/query"
DIFFERENCES = {
    "header user-agent": "each names itself",
    "header accept": "the client says what it can read; we read JSON whatever is asked for",
    "header accept-encoding": "we take gzip only, which is unpacked under a cap",
    "header connection": "the pool's affair",
    "header content-length": "bodies differ in blanks and in the fields below",
    "header host": "two stand-ins, two ports",
    "header x-stainless-*": "tells which machine the client runs on",
    "query.include_stats": "False with a capital in the client's older half; a boolean in either case",
    "body.select[[]5]": "name: the client's own Run insists on it, and nobody here reads it",
    "body.select[[]6]": "run_type: as the name",
    "body.created_at": "when it was posted: the server knows",
    "body.modified_at": "when it was posted: the server knows",
    "body.extend_trace_retention": "the client's default keeps every judged trace longer, at a price; we do not",
}


@pytest.fixture(autouse=True)
def _no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(name, "false")
    for name in ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY", "LANGSMITH_WORKSPACE_ID", "LANGSMITH_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[LangSmithServer]:
    with running(LangSmithServer()) as server:
        for number in range(5):
            inputs = {"conversation": f"I sell {number} bikes.", "existing_memory": {}}
            server.add(inputs=inputs, outputs={"output": {"stock": [f"{number} bikes"]}})
        server.add(inputs={"conversation": "x"}, outputs={"output": "x"}, tags=["chat"])
        yield server


@pytest.fixture
def client(server: LangSmithServer) -> Iterator[Any]:
    langsmith = pytest.importorskip("langsmith")
    client = langsmith.Client(api_url=server.url, api_key=KEY, auto_batch_tracing=False)
    yield client
    client.close()


async def gone_through(client: Any, runs: Any) -> list[Any]:
    """All of them. The newer half of the client has connections of its own, which its `close` leaves open."""
    found = [run async for run in runs]
    await client.runs._client.close()
    return found


def filter_of(call: Call) -> str:
    asked: str = call.json["filter"]
    return asked


def last(server: LangSmithServer, path: str) -> list[Call]:
    return [call for call in server.stub.calls if call.path == path]


def test_the_client_lists_the_runs_of_the_older_query(server: LangSmithServer, client: Any) -> None:
    server.newer = False
    runs = list(client.list_runs(project_name=PROJECT, filter=f'has(tags, "{TAG}")'))
    assert [run.inputs["conversation"] for run in runs] == [f"I sell {n} bikes." for n in range(5)]


def test_the_client_turns_the_pages_of_the_older_query(server: LangSmithServer, client: Any) -> None:
    for number in range(200):
        server.add(inputs={"conversation": f"{number}"}, outputs={"output": "x"})
    assert len(list(client.list_runs(project_name=PROJECT, filter=f'has(tags, "{TAG}")'))) == 205


def test_the_client_turns_the_pages_of_the_newer_query(server: LangSmithServer, client: Any) -> None:
    async def pages() -> list[Any]:
        asked = client.runs.query(
            project_ids=[server.project],
            filter=f'has(tags, "{TAG}")',
            min_start_time=SINCE,
            page_size=2,
            selects=["ID", "INPUTS", "OUTPUTS", "START_TIME"],
        )
        return await gone_through(client, asked)

    runs = asyncio.run(pages())
    assert [run.outputs["output"]["stock"] for run in runs] == [[f"{n} bikes"] for n in range(5)]
    assert len(last(server, NEWER)) == 3


def test_the_clients_feedback_and_ours_are_the_same_to_the_server(server: LangSmithServer, client: Any) -> None:
    run = server.runs[0]["id"]
    asyncio.run(_posted(server, run))
    [ours] = last(server, "/feedback")
    given = ours.json
    client.create_feedback(
        run,
        key=given["key"],
        score=given["score"],
        comment=given["comment"],
        extra=given["extra"],
        feedback_id=given["id"],
        session_id=given["session_id"],
        feedback_source_type=given["feedback_source"]["type"],
        source_info=given["feedback_source"]["metadata"],
    )
    [_, theirs] = last(server, "/feedback")
    assert server.repeated == [given["id"]], "the same id takes the same place"
    assert_alike(theirs, ours)


async def _posted(server: LangSmithServer, run: str) -> None:
    async with open_langsmith(server) as sink:
        await sink.post(run, "f1", 0.5, {"matched": 1.0}, "1 of 2 facts")


def test_our_question_for_the_project_is_the_clients(server: LangSmithServer, client: Any) -> None:
    ours = requests_of_ours(server, newer=True)
    client.read_project(project_name=PROJECT)
    [_, theirs] = last(server, "/sessions")
    assert_alike(theirs, ours[0])


def test_our_newer_queries_are_the_clients(server: LangSmithServer, client: Any) -> None:
    first, second = requests_of_ours(server, newer=True)[1:]
    before = len(server.stub.calls)

    async def query() -> None:
        asked = client.runs.query(
            project_ids=first.json["project_ids"],
            filter=filter_of(first),
            min_start_time=datetime.fromisoformat(first.json["min_start_time"]),
            page_size=first.json["page_size"],
            selects=first.json["selects"],
        )
        assert len(await gone_through(client, asked)) == 105

    asyncio.run(query())
    theirs = [call for call in server.stub.calls[before:] if call.path == NEWER]
    for their, our in zip(theirs, (first, second), strict=True):
        assert_alike(their, our)


def test_our_older_queries_are_the_clients(server: LangSmithServer, client: Any) -> None:
    refused, first, second = requests_of_ours(server, newer=False)[1:]
    assert refused.path == NEWER
    before = len(server.stub.calls)
    runs = client.list_runs(
        project_id=first.json["session"][0],
        filter=filter_of(first),
        start_time=datetime.fromisoformat(first.json["start_time"]),
        select=[*first.json["select"], "name", "run_type"],
        limit=first.json["limit"],
    )
    # the client takes `limit` for the length of a page and for the end of the list: it turns no second page
    assert len(list(runs)) == 100
    [theirs] = [call for call in server.stub.calls[before:] if call.path == OLDER]
    assert_alike(theirs, first)
    assert second.json == {**first.json, "cursor": second.json["cursor"]}


def test_the_evaluator_works_inside_the_clients_evaluate(client: Any) -> None:
    """Its examples are local, and nothing is uploaded."""
    schemas = pytest.importorskip("langsmith.schemas")
    stated = ("pricing: 20 dollars a month", "constraint: no subscription model")
    examples = [
        schemas.Example(id=UUID(int=n), dataset_id=UUID(int=9), inputs={"conversation": user_says(*stated[:n])})
        for n in range(1, 3)
    ]

    def extract(inputs: dict[str, Any]) -> dict[str, Any]:
        return {"output": {"pricing": ["20 dollars a month"]}}

    @asynccontextmanager
    async def opening() -> AsyncIterator[TraceJudge]:
        yield TraceJudge(ScriptedModel(lister), EntailmentJudge(Judge(ScriptedModel(oracle))))

    evaluator = MemoryExtractionEvaluator(opening, TracePaths.of(OF_RUNS).judgeable)
    rows = client.evaluate(extract, data=examples, evaluators=[evaluator], upload_results=False)
    found = {
        str(row["example"].id): {result.key: result.score for result in row["evaluation_results"]["results"]}
        for row in rows
    }
    assert found == {
        str(UUID(int=1)): {"precision": 1.0, "recall": 1.0, "f1": 1.0},
        str(UUID(int=2)): {"precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3)},
    }


def requests_of_ours(server: LangSmithServer, *, newer: bool) -> list[Call]:
    """The project, and two pages of runs."""
    for number in range(100):
        server.add(inputs={"conversation": f"{number}"}, outputs={"output": "x"})
    server.newer = newer

    async def fetch(source: LangSmith) -> int:
        return len(await read_all(source))

    async def ask() -> int:
        async with open_langsmith(server, since=SINCE) as source:
            return await fetch(source)

    assert asyncio.run(ask()) == 105
    return list(server.stub.calls)


def assert_alike(theirs: Call, ours: Call) -> None:
    assert (theirs.method, theirs.path) == (ours.method, ours.path)
    assert theirs.headers["x-api-key"] == ours.headers["x-api-key"]
    for name in {name for name, _ in set(flat(theirs)) ^ set(flat(ours))}:
        assert any(fnmatch(name, entry) for entry in DIFFERENCES), f"{name} differs, and no reason is given"
