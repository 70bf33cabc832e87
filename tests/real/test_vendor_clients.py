"""The vendors' own clients judge stand-ins and configs: what a client sends for an operation is what our config sends.

Each client does what the provider did, with the values that the provider sent, against a fresh stand-in of the same
kind; so ids that a server makes are the same on both sides. DIFFERENCES lists every request that is not equal, and why.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.contracts import Batching, Listing, Scope
from memorybench.core.conversation import Session, Turn
from memorybench.providers.http.provider import HttpProvider
from tests.doubles.stub import Call
from tests.standins.base import KEY, StandIn, running
from tests.standins.requests import flat
from tests.standins.vendors import VENDORS, open_vendor

pytestmark = [
    pytest.mark.real,
    pytest.mark.usefixtures("leftovers_collected"),
    pytest.mark.filterwarnings("default"),  # what clients warn of is their vendors' affair
]

EVERYWHERE = {
    "header user-agent": "each names itself",
    "header accept": "clients say what they can read; we read JSON whatever is asked for",
    "header accept-encoding": "we take gzip only, which is unpacked under a cap",
    "header connection": "the pool's affair",
    "header content-length": "bodies differ in blanks",
    "header host": "two stand-ins, two ports",
}
FERN = {
    "header x-fern-*": "tells which machine the client runs on",
}
STAINLESS = {
    "header x-stainless-*": "tells which machine the client runs on",
}
NULL = "null where nothing is given; we leave the field out"
DIFFERENCES: Mapping[str, Mapping[str, str]] = {
    "supermemory": FERN,
    "supermemory-v4": STAINLESS,
    "mem0": {
        "header mem0-user-id": "a digest of the key, for statistics",
        "header x-mem0-client": "names the client",
    },
    "zep": {
        **FERN,
        "header idempotency-key": "random in the client; ours is the document's id, so that a repeated add changes "
        "nothing; requests that may be repeated without harm carry none",
    },
    "memobase": {
        "header content-type": "ours sends one with a POST that has no body",
        "query.wait_process": "True in the client, true in ours",
        "body.id": NULL,
        "body.fields": NULL,
    },
    "memos": {
        **dict.fromkeys(
            (f"body.{name}" for name in ("info", "source", "app_id", "agent_id", "tags", "filter", "conversation_id")),
            NULL,
        ),
        **dict.fromkeys(
            (f"body.{name}" for name in ("allow_knowledgebase_ids", "allow_memory_view", "knowledgebase_ids")), NULL
        ),
        "body.include_memory_view": NULL,
        **dict.fromkeys(
            (
                f"body.{name}"
                for name in (
                    "allow_public",
                    "context_format",
                    "include_preference",
                    "include_skill",
                    "include_tool_memory",
                    "skill_limit_number",
                    "tool_memory_limit_number",
                )
            ),
            "the default, written out",
        ),
    },
    "letta": {
        **STAINLESS,
        "header content-type": "the client sends one with a DELETE that has no body",
    },
    "hindsight": {
        "header content-type": "the client sends one with a GET or DELETE that has no body",
        "body.items[0].resolve_entities": "the default, written out; it concerns entities, and none are sent",
        "body.tags_match": "the default, written out; it concerns tags, and none are sent",
        "body.trace": "the default, written out",
        "body.include.entities": "null: the client wants none; ours come beside the results and are not read",
        "body.items[0].context": NULL,
        "body.items[0].entities": NULL,
        "body.items[0].tags": NULL,
        "body.items[0].observation_scopes": NULL,
        "body.items[0].strategy": NULL,
        "body.items[0].update_mode": NULL,
        "body.document_tags": NULL,
        "body.types": NULL,
        "body.prefer_observations": NULL,
        "body.query_timestamp": NULL,
        "body.tags": NULL,
        "body.tag_groups": NULL,
        "body.min_scores": NULL,
        "body.temporal_window": NULL,
        "body.include.chunks": NULL,
        "body.include.source_facts": NULL,
    },
}

SCOPE = Scope(run="run-1", benchmark="clients", provider="vendor", haystack="home")
TOLD = Session(
    id="told",
    turns=(Turn(role="user", content="My pet is a zebrafinch."),),
    at=datetime(2024, 3, 2, 9, 30, tzinfo=UTC),
)
SNAKE = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Operation:
    """A request of ours, found by method and path, and how the client is told to make it."""

    method: str
    path: str
    perform: Callable[[Any, Call], object]

    def is_made_by(self, call: Call) -> bool:
        return call.method == self.method and re.fullmatch(self.path, call.path) is not None


@pytest.fixture(autouse=True)
def _no_telemetry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path))
    monkeypatch.setenv("MEMOS_BASE_PATH", str(tmp_path))  # of its log file
    monkeypatch.setenv("DO_NOT_TRACK", "1")


def fields(call: Call) -> dict[str, Any]:
    """Our body as the arguments of a client; one that the client does not know makes it complain."""
    return {SNAKE.sub("_", name).lower(): value for name, value in call.json.items()}


def requests_of_ours(vendor: str) -> list[Call]:
    async def live(provider: HttpProvider) -> None:
        await provider.wait_until_searchable(SCOPE, [await provider.add(SCOPE, TOLD)])
        if isinstance(provider, Batching):
            batch = [replace(TOLD, id="another")]
            await provider.wait_until_searchable(SCOPE, [await provider.add_batch(SCOPE, batch)])
        await provider.search(SCOPE, "Which pet?", 5)
        if isinstance(provider, Listing):
            await provider.list(SCOPE)
        await provider.clear(SCOPE)

    async def opened(stand_in: StandIn) -> None:
        async with open_vendor(vendor, stand_in) as provider:
            await live(provider)

    with running(VENDORS[vendor].stand_in()) as stand_in:
        asyncio.run(opened(stand_in))
        return stand_in.stub.calls


def requests_of_client(client: Any, stand_in: StandIn, ours: list[Call], *operations: Operation) -> Iterator[Call]:
    """What the client sends for each of our requests."""
    for call in ours:
        [operation] = [operation for operation in operations if operation.is_made_by(call)]
        before = len(stand_in.stub.calls)
        answer = operation.perform(client, call)
        if "search" in call.path or "recall" in call.path:
            assert "zebrafinch" in str(answer), "the client can not read what the stand-in found"
        yield stand_in.stub.calls[before]


def unjustified(vendor: str, theirs: Iterator[Call], ours: list[Call]) -> list[str]:
    """Differences between a client's requests and ours for which no reason is given, and reasons for which there is
    no difference."""
    expected = {**EVERYWHERE, **DIFFERENCES[vendor]}
    seen, found = set(), []
    for their, our in zip(theirs, ours, strict=True):
        assert (their.method, their.path) == (our.method, our.path)
        assert their.headers["Authorization"] == our.headers["Authorization"]
        for difference in differences(their, our):
            reasons = [entry for entry in expected if fnmatch(difference, entry.replace("[", "[[]"))]
            seen.update(reasons)
            found += [] if reasons else [f"{our.method} {our.path}: {difference} differs"]
    return found + [f"{entry} is listed as different, but equal" for entry in DIFFERENCES[vendor].keys() - seen]


def differences(their: Call, our: Call) -> set[str]:
    return {name for name, _ in set(flat(their)) ^ set(flat(our))}


def test_supermemory() -> None:
    supermemory = supermemory_client(since=5)
    ours = requests_of_ours("supermemory")
    namespace = ours[0].path.split("/")[2]
    with running(VENDORS["supermemory"].stand_in()) as stand_in:
        client = supermemory.Supermemory(api_key=KEY, base_url=stand_in.url)
        theirs = requests_of_client(
            client,
            stand_in,
            ours,
            Operation("POST", r"/ns/[^/]+/document", lambda c, our: c.add(namespace, **fields(our))),
            Operation("POST", r"/ns/.+/batch", lambda c, our: c.documents.batch_add(namespace, **fields(our))),
            Operation("GET", r"/ns/.+", lambda c, our: c.documents.get(namespace, our.path.split("/")[-1])),
            Operation("POST", r"/ns/.+/search", lambda c, our: c.search(namespace, **fields(our))),
            Operation("DELETE", r"/ns/.+", lambda c, our: c.namespaces.delete(namespace)),
        )
        assert unjustified("supermemory", theirs, ours) == []


def test_supermemory_v4() -> None:
    supermemory = supermemory_client(since=3)
    ours = requests_of_ours("supermemory-v4")
    with running(VENDORS["supermemory-v4"].stand_in()) as stand_in:
        client = supermemory.Supermemory(api_key=KEY, base_url=stand_in.url)
        theirs = requests_of_client(
            client,
            stand_in,
            ours,
            Operation("POST", r"/v3/documents", lambda c, our: c.documents.add(**fields(our))),
            Operation("GET", r"/v3/documents/.+", lambda c, our: c.documents.get(our.path.split("/")[-1])),
            Operation("POST", r"/v4/search", lambda c, our: c.search.memories(**fields(our))),
            Operation("DELETE", r"/v3/documents/bulk", lambda c, our: c.documents.delete_bulk(**fields(our))),
        )
        assert unjustified("supermemory-v4", theirs, ours) == []


def supermemory_client(since: int) -> Any:
    """Its versions 3 and 5 speak different APIs, and can not be installed together."""
    client = pytest.importorskip("supermemory")
    installed = metadata.version("supermemory")
    if installed.split(".")[0] != str(since):
        pytest.skip(f"supermemory {installed} is installed; this API is spoken by version {since}")
    return client


def test_mem0() -> None:
    mem0 = pytest.importorskip("mem0")
    ours = requests_of_ours("mem0")
    with running(VENDORS["mem0"].stand_in()) as stand_in:
        client = mem0.MemoryClient(api_key=KEY, host=stand_in.url)
        theirs = requests_of_client(
            client,
            stand_in,
            ours,
            Operation("POST", r"/v3/memories/add/", lambda c, our: c.add(**fields(our))),
            # the client has no method for events: this path is checked against the OpenAPI document only
            Operation("GET", r"/v1/event/.+/", lambda c, our: c.client.get(our.path).raise_for_status()),
            Operation("POST", r"/v3/memories/search/", lambda c, our: c.search(**fields(our))),
            Operation("DELETE", r"/v1/memories/", lambda c, our: c.delete_all(**our.query)),
        )
        assert unjustified("mem0", theirs, ours) == []


def test_zep() -> None:
    zep = pytest.importorskip("zep_cloud")
    ours = requests_of_ours("zep")
    with running(VENDORS["zep"].stand_in()) as stand_in:
        client = zep.Zep(api_key=KEY, base_url=f"{stand_in.url}{VENDORS['zep'].base}")
        theirs = requests_of_client(
            client,
            stand_in,
            ours,
            Operation("POST", r".*/users", lambda c, our: c.user.create(**fields(our))),
            Operation("POST", r".*/users/lookup", lambda c, our: c.user.lookup(**fields(our))),
            Operation(
                "POST", r".*/episodes", lambda c, our: c.graph.episode.add(our.path.split("/")[-2], **fields(our))
            ),
            Operation("GET", r".*/tasks/.+", lambda c, our: c.task.get(our.path.split("/")[-1])),
            Operation(
                "POST",
                r".*/search/edges",
                lambda c, our: c.graph.search_edges(
                    our.path.split("/")[-3], page_size=int(our.query["page_size"]), **fields(our)
                ),
            ),
            Operation("DELETE", r".*/users/.+", lambda c, our: c.user.delete(our.path.split("/")[-1])),
        )
        assert unjustified("zep", theirs, ours) == []


def test_letta() -> None:
    letta = pytest.importorskip("letta_client")
    ours = requests_of_ours("letta")
    with running(VENDORS["letta"].stand_in()) as stand_in:
        client = letta.Letta(api_key=KEY, base_url=stand_in.url)
        theirs = requests_of_client(
            client,
            stand_in,
            ours,
            Operation("POST", r"/v1/archives/", lambda c, our: c.archives.create(**fields(our))),
            Operation("GET", r"/v1/archives/", lambda c, our: c.archives.list(**our.query)),
            Operation(
                "POST", r".*/passages", lambda c, our: c.archives.passages.create(our.path.split("/")[3], **fields(our))
            ),
            Operation(
                "POST",
                r".*/batch",
                lambda c, our: c.archives.passages.create_many(our.path.split("/")[3], **fields(our)),
            ),
            Operation("POST", r"/v1/passages/search", lambda c, our: c.passages.search(**fields(our))),
            Operation("DELETE", r"/v1/archives/.+", lambda c, our: c.archives.delete(our.path.split("/")[-1])),
        )
        assert unjustified("letta", theirs, ours) == []


def test_memobase() -> None:
    memobase = pytest.importorskip("memobase")
    ours = requests_of_ours("memobase")

    def user(client: Any, our: Call) -> Any:
        """The user of a request, whose id is in its path."""
        [id] = [part for part in our.path.split("/") if re.fullmatch(r"[0-9a-f-]{36}", part)]
        return client.get_user(id, no_get=True)

    def insert(client: Any, our: Call) -> object:
        blob = memobase.ChatBlob(messages=our.json["blob_data"]["messages"])
        return user(client, our).insert(blob, sync=our.query["wait_process"].lower() == "true")

    def search(client: Any, our: Call) -> object:
        numbers = {"topk": int(our.query["topk"]), "time_range_in_days": int(our.query["time_range_in_days"])}
        threshold = float(our.query["similarity_threshold"])
        return user(client, our).search_event_gist(our.query["query"], similarity_threshold=threshold, **numbers)

    with running(VENDORS["memobase"].stand_in()) as stand_in:
        client = memobase.MemoBaseClient(project_url=stand_in.url, api_key=KEY)
        theirs = requests_of_client(
            client,
            stand_in,
            ours,
            Operation("POST", r".*/users", lambda c, our: c.add_user(our.json["data"])),
            Operation("POST", r".*/insert/.+", insert),
            Operation("POST", r".*/buffer/.+", lambda c, our: user(c, our).flush(sync=True)),
            Operation("GET", r".*/search/.+", search),
            Operation("DELETE", r".*/users/.+", lambda c, our: c.delete_user(our.path.split("/")[-1])),
        )
        assert unjustified("memobase", theirs, ours) == []
        client.client.close()


def test_memos() -> None:
    memos = pytest.importorskip("memos.api.client")
    ours = requests_of_ours("memos")
    with running(VENDORS["memos"].stand_in()) as stand_in:
        client = memos.MemOSClient(api_key=KEY, base_url=f"{stand_in.url}{VENDORS['memos'].base}")
        theirs = requests_of_client(
            client,
            stand_in,
            ours,
            Operation("POST", r".*/add/message", lambda c, our: c.add_message(**fields(our))),
            Operation("POST", r".*/get/status", lambda c, our: c.get_task_status(**fields(our))),
            Operation("POST", r".*/search/memory", lambda c, our: c.search_memory(**fields(our))),
            Operation("POST", r".*/delete/memory", lambda c, our: c.delete_memory(**fields(our))),
        )
        assert unjustified("memos", theirs, ours) == []


def test_hindsight() -> None:
    hindsight = pytest.importorskip("hindsight_client")
    ours = requests_of_ours("hindsight")
    bank = ours[0].path.split("/")[-1]

    with running(VENDORS["hindsight"].stand_in()) as stand_in, asyncio.Runner() as runner:
        client = hindsight.Hindsight(stand_in.url, KEY)

        def operation(method: str, path: str, work: Callable[[Call], Coroutine[Any, Any, Any]]) -> Operation:
            return Operation(method, path, lambda _, our: runner.run(work(our)))

        def status(our: Call) -> Any:
            return client.operations.get_operation_status(bank, our.path.split("/")[-1])

        def retain(our: Call) -> Any:
            return client.aretain_batch(bank, items=our.json["items"], retain_async=our.json["async"])

        theirs = requests_of_client(
            client,
            stand_in,
            ours,
            operation("PUT", r".*", lambda _: client.acreate_bank(bank)),
            operation("POST", r".*/memories", retain),
            operation("GET", r".*/operations/.+", status),
            operation("POST", r".*/recall", lambda our: client.arecall(bank, **fields(our))),
            operation("GET", r".*/list", lambda our: client.alist_memories(bank, **integers(our.query))),
            operation("DELETE", r".*", lambda _: client.adelete_bank(bank)),
        )
        assert unjustified("hindsight", theirs, ours) == []
        runner.run(client.aclose())


def integers(query: Mapping[str, str]) -> dict[str, int]:
    return {name: int(value) for name, value in query.items()}
