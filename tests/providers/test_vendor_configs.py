"""The bundled vendor configs, through the HTTP provider, against strict stand-ins of their vendors."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from memorybench.core.contracts import Batching, Listing, Provider, Scope
from memorybench.core.conversation import Session, Turn
from memorybench.core.errors import Denied, ServiceError, Transient
from memorybench.providers.config.reading import needed_variables
from memorybench.providers.http.provider import HttpProvider
from memorybench.testing import ProviderContract
from tests.doubles.stub import Call, reply, status
from tests.standins.base import FAILING, StandIn, running
from tests.standins.memos import Memos
from tests.standins.openapi import problems
from tests.standins.vendors import VENDORS, open_vendor, shipped

SAID_AT = datetime(2024, 3, 2, 9, 30, tzinfo=UTC)
WITH_KEY = [name for name, vendor in VENDORS.items() if vendor.needs_key]
DESCRIBED = Path(__file__).parents[2] / "../shared/data/openapi"
"""OpenAPI documents that vendors publish."""

Work = Callable[[HttpProvider], Awaitable[object]]


@pytest.fixture(params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stand_in(vendor: str) -> Iterator[StandIn]:
    with running(VENDORS[vendor].stand_in()) as server:
        yield server


def with_provider(vendor: str, stand_in: StandIn, work: Work, key: str | None = None) -> None:
    async def opened() -> None:
        opening = open_vendor(vendor, stand_in) if key is None else open_vendor(vendor, stand_in, key)
        async with opening as provider:
            await work(provider)

    asyncio.run(opened())


def scope(haystack: str = "home") -> Scope:
    return Scope(run="run-1", benchmark="shipped", provider="vendor", haystack=haystack)


def session(name: str, *contents: str) -> Session:
    turns = [Turn(role="user" if n % 2 == 0 else "assistant", content=text) for n, text in enumerate(contents)]
    return Session(id=name, turns=tuple(turns), at=SAID_AT)


def test_bundled_config_has_api_version_and_checked_against(vendor: str) -> None:
    config = shipped(vendor)
    first, second = (
        (Path(__file__).parents[2] / f"src/memorybench/catalog/providers/{vendor}.yaml").read_text().split("\n")[:2]
    )
    assert first.startswith("# Written for ")
    assert second.startswith("# Checked against ")
    assert config.api_version
    assert "stand-in" in config.checked_against


def test_bundled_config_needs_only_its_key(vendor: str) -> None:
    key = [f"{VENDORS[vendor].prefix}_API_KEY"] if VENDORS[vendor].needs_key else []
    assert needed_variables(shipped(vendor), {}) == dict.fromkeys(key, False)


def test_added_session_is_searchable_in_its_scope_until_cleared(vendor: str, stand_in: StandIn) -> None:
    async def live(provider: HttpProvider) -> None:
        here, there = scope("here"), scope("there")
        for place, pet in ((here, "zebrafinch"), (there, "tortoise")):
            receipts = [await provider.add(place, session("topic", f"My pet is a {pet}.", "How lovely!"))]
            await provider.wait_until_searchable(place, receipts)
        assert "zebrafinch" in (await provider.search(here, "Which pet?", 5))[0].content
        assert not [memory for memory in await provider.search(there, "zebrafinch pet", 5) if "finch" in memory.content]
        await provider.clear(here)
        assert not await provider.search(here, "Which pet?", 5)
        assert await provider.search(there, "Which pet?", 5)

    with_provider(vendor, stand_in, live)


@pytest.mark.parametrize("vendor", [name for name in VENDORS if name not in ("graphiti", "memobase")], indirect=True)
def test_results_name_the_session_they_came_from(vendor: str, stand_in: StandIn) -> None:
    async def live(provider: HttpProvider) -> None:
        sessions = [session("finch", "My pet is a zebrafinch.", "Oh!"), session("boat", "I sail a dinghy.", "Ah!")]
        await provider.wait_until_searchable(scope(), [await provider.add(scope(), one) for one in sessions])
        for word, source in (("zebrafinch", "finch"), ("dinghy", "boat")):
            best = (await provider.search(scope(), word, 1))[0]
            assert best.sources is not None
            assert source in best.sources

    with_provider(vendor, stand_in, live)


def test_session_time_is_sent(vendor: str, stand_in: StandIn) -> None:
    async def live(provider: HttpProvider) -> None:
        await provider.wait_until_searchable(
            scope(), [await provider.add(scope(), session("topic", "My pet is a zebrafinch."))]
        )
        memories = await provider.search(scope(), "zebrafinch", 1)
        assert "2024-03-02" in memories[0].content

    with_provider(vendor, stand_in, live)
    dated = {document.at for document in stand_in.documents.values() if any("finch" in text for text in document.texts)}
    assert dated == {str(int(SAID_AT.timestamp())) if vendor == "mem0" else SAID_AT.isoformat()}


def test_session_without_a_date_is_added(vendor: str, stand_in: StandIn) -> None:
    async def live(provider: HttpProvider) -> None:
        undated = replace(session("topic", "My pet is a zebrafinch."), at=None)
        await provider.wait_until_searchable(scope(), [await provider.add(scope(), undated)])
        assert await provider.search(scope(), "zebrafinch", 1)

    with_provider(vendor, stand_in, live)


@pytest.mark.parametrize("vendor", [name for name in VENDORS if name not in ("graphiti", "letta")], indirect=True)
def test_document_that_fails_later_fails_while_waiting(vendor: str, stand_in: StandIn) -> None:
    async def live(provider: HttpProvider) -> None:
        receipt = await provider.add(scope(), session("topic", f"This is {FAILING}."))
        with pytest.raises(ServiceError, match=r"failed|FAILED|\"500\"") as caught:
            await provider.wait_until_searchable(scope(), [receipt])
        assert not isinstance(caught.value, Transient)

    with_provider(vendor, stand_in, live)


@pytest.mark.parametrize("vendor", ["letta"], indirect=True)
def test_document_that_cannot_be_stored_fails_at_once(vendor: str, stand_in: StandIn) -> None:
    async def live(provider: HttpProvider) -> None:
        with pytest.raises(ServiceError, match="422"):
            await provider.add(scope(), session("topic", f"This is {FAILING}."))

    with_provider(vendor, stand_in, live)


def test_429_reports_the_retry_after(vendor: str, stand_in: StandIn) -> None:
    async def live(provider: HttpProvider) -> None:
        await provider.wait_until_searchable(
            scope(), [await provider.add(scope(), session("topic", "My pet is a zebrafinch."))]
        )
        stand_in.stub.next(status(429, headers={"Retry-After": "7"}))
        with pytest.raises(Transient) as caught:
            await provider.search(scope(), "zebrafinch", 1)
        assert caught.value.retry_after == 7
        assert await provider.search(scope(), "zebrafinch", 1)

    with_provider(vendor, stand_in, live)


@pytest.mark.parametrize("vendor", WITH_KEY, indirect=True)
def test_wrong_key_is_denied(vendor: str, stand_in: StandIn) -> None:
    async def live(provider: HttpProvider) -> None:
        with pytest.raises(Denied) as caught:
            await provider.add(scope(), session("topic", "My pet is a zebrafinch."))
        assert "another-key" not in str(caught.value)

    with_provider(vendor, stand_in, live, key="another-key-0123456789")


def test_a_slow_delete_is_waited_for(vendor: str, stand_in: StandIn) -> None:
    stand_in.slow_delete = True

    async def live(provider: HttpProvider) -> None:
        await provider.wait_until_searchable(
            scope(), [await provider.add(scope(), session("topic", "My pet is a zebrafinch."))]
        )
        await provider.clear(scope())

    with_provider(vendor, stand_in, live)
    assert not stand_in.documents


@pytest.mark.parametrize("vendor", ["supermemory", "letta"], indirect=True)
def test_a_batch_is_one_request(vendor: str, stand_in: StandIn) -> None:
    async def live(provider: HttpProvider) -> None:
        assert isinstance(provider, Batching)
        receipt = await provider.add_batch(scope(), [session(f"s{n}", f"Pet {n} is a zebrafinch.") for n in range(9)])
        await provider.wait_until_searchable(scope(), [receipt])
        assert len(await provider.search(scope(), "zebrafinch", 50)) == 9

    with_provider(vendor, stand_in, live)
    assert len([call for call in stand_in.stub.calls if call.path.endswith("/batch")]) == 1


def test_stand_in_rejects_requests_that_the_vendor_rejects(vendor: str, stand_in: StandIn) -> None:
    async def live(provider: HttpProvider) -> None:
        await provider.wait_until_searchable(
            scope(), [await provider.add(scope(), session("topic", "My pet is a zebrafinch."))]
        )
        await provider.search(scope(), "zebrafinch", 5)

    with_provider(vendor, stand_in, live)
    for call in list(stand_in.stub.calls):
        if call.body:
            surprising = dataclasses.replace(call, body=json.dumps({**call.json, "surprise": 1}).encode())
            assert answered(stand_in, surprising) == 422, call.path
        if VENDORS[vendor].needs_key:
            assert answered(stand_in, dataclasses.replace(call, headers={})) == 401, call.path
        if call.method == "GET" and not call.query:
            assert answered(stand_in, dataclasses.replace(call, path=with_another_id(call.path))) == 404, call.path


def answered(stand_in: StandIn, call: Call) -> int:
    """Return the status of a rejected request; the reply must contain a reason."""
    sent_headers = {name: call.headers[name] for name in ("Authorization", "Content-Type") if name in call.headers}
    request = Request(stand_in.url + call.path, call.body or None, sent_headers, method=call.method)
    with pytest.raises(HTTPError) as caught:
        urlopen(request).close()
    with caught.value as rejection_status:
        assert json.load(rejection_status)["error"]
        return rejection_status.code


def with_another_id(path: str) -> str:
    """Return the last part of a path, which is the polled id; some paths end with a slash."""
    return re.sub(r"[^/]+(?=/?$)", "no-such-id", path)


@pytest.mark.parametrize("vendor", ["mem0", "hindsight"], indirect=True)
def test_every_request_matches_the_api_description_of_the_vendor(vendor: str, stand_in: StandIn) -> None:
    described = description(vendor)

    async def live(provider: HttpProvider) -> None:
        await provider.wait_until_searchable(
            scope(), [await provider.add(scope(), session("topic", "My pet is a zebrafinch.", "Oh!"))]
        )
        await provider.search(scope(), "zebrafinch", 5)
        if isinstance(provider, Listing):
            await provider.list(scope())
        await provider.clear(scope())

    with_provider(vendor, stand_in, live)
    assert len(stand_in.stub.calls) >= 4
    assert [problem for call in stand_in.stub.calls for problem in problems(described, call)] == []


@pytest.mark.parametrize(
    ("changed", "expected_problem"),
    [
        ({"memo": "x"}, "unknown field memo"),
        ({"messages": None}, "is no array"),
        ({"timestamp": "yesterday"}, "is no integer"),
        ({"messages": [{"role": "user"}]}, "content is missing"),
        ({"messages": [{"role": "pirate", "content": "Arr"}]}, "is none of"),
    ],
)
def test_request_outside_the_api_description_fails_the_check(changed: dict[str, Any], expected_problem: str) -> None:
    sent = {"messages": [{"role": "user", "content": "Hello"}], "user_id": "home", **changed}
    call = Call("POST", "/v3/memories/add/", {}, {}, json.dumps(sent).encode())
    memories = problems(description("mem0"), call)
    assert [expected_problem in problem for problem in memories] == [True]


def description(vendor: str) -> Any:
    file = DESCRIBED / f"{vendor}.json"
    if not file.exists():
        pytest.skip(f"the OpenAPI document of {vendor} is not here: shared/data/openapi/{vendor}.json")
    return json.loads(file.read_bytes())


class VendorContract(ProviderContract):
    vendor = ""
    immediate = False
    # whole sessions are stored, so results name no turn: test_results_name_the_session_they_came_from
    test_memories_tell_their_session_and_turn = None  # type: ignore[assignment]

    def setup_method(self) -> None:
        self._stack = ExitStack()
        self._stand_in = self._stack.enter_context(running(VENDORS[self.vendor].stand_in()))

    def teardown_method(self) -> None:
        self._stack.close()

    def open_provider(self, folder: Path) -> AbstractAsyncContextManager[Provider]:
        return open_vendor(self.vendor, self._stand_in)


class TestSupermemory(VendorContract):
    vendor = "supermemory"


class TestSupermemoryV4(VendorContract):
    vendor = "supermemory-v4"


class TestMem0(VendorContract):
    vendor = "mem0"


class TestZep(VendorContract):
    vendor = "zep"


class TestLetta(VendorContract):
    vendor = "letta"
    immediate = True
    test_memories_tell_their_session_and_turn = ProviderContract.test_memories_tell_their_session_and_turn

    def test_adding_a_session_again_changes_nothing(self, tmp_path: Path) -> None:
        """Letta does not support our ids, so a session that is added again is stored twice."""

        async def twice() -> None:
            async with self.open_provider(tmp_path) as provider:
                for _ in range(2):
                    await provider.add(scope(), session("topic", "My pet is a zebrafinch."))
                assert len(await provider.search(scope(), "zebrafinch", 10)) == 2

        asyncio.run(twice())


class TestHindsight(VendorContract):
    vendor = "hindsight"


class TestGraphiti(VendorContract):
    vendor = "graphiti"


class TestMemos(VendorContract):
    vendor = "memos"

    def open_provider(self, folder: Path) -> AbstractAsyncContextManager[Provider]:
        # the contract searches for more results than the service returns
        assert isinstance(self._stand_in, Memos)
        self._stand_in.most = 50
        return open_vendor(self.vendor, self._stand_in, max_results=50)


def test_a_failure_of_memos_with_status_200_fails_the_add() -> None:
    async def live() -> None:
        with running(Memos()) as stand_in:
            stand_in.stub.next(reply({"code": 40001, "message": "quota used up", "data": None}))
            async with open_vendor("memos", stand_in) as provider:
                with pytest.raises(Transient, match="quota used up"):
                    await provider.add(scope(), session("topic", "My pet is a zebrafinch."))

    asyncio.run(live())


class TestMemobase(VendorContract):
    vendor = "memobase"
    # its users have ids of the server and no names: another process needs the receipts
    test_an_unused_scope_is_empty = None  # type: ignore[assignment]
    test_store_id_changes_if_and_only_if_data_is_lost = None  # type: ignore[assignment]
