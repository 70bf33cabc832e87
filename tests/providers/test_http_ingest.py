"""The number of requests of an ingest: batches if the config supports and allows them, otherwise single adds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from memorybench.suites.ingest import IngestOptions
from tests.doubles.stub import Stub, reset
from tests.providers.http_bench import SESSIONS, bench
from tests.providers.http_memory import BATCHED, MemoryService

ORDERED = BATCHED.replace("capabilities: {unordered: true}", "")
WITHOUT = BATCHED.replace("unordered: true", "unordered: true, supportsBatch: false")


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(MemoryService().behave)
    return stub


def requests(stub: Stub) -> Counter[str]:
    """Return the requests of add and batchAdd."""
    ends = [call.path.rpartition("/")[2] for call in stub.calls if call.method == "POST"]
    return Counter(end for end in ends if end in ("documents", "batch"))


def test_haystack_is_one_request_with_batches(stub: Stub, tmp_path: Path) -> None:
    ended = bench(tmp_path, stub.url, BATCHED, haystacks=4)
    assert ended.counts == {"scored": 4}
    assert [outcome.score("recall@1") for outcome in ended.outcomes] == [1.0] * 4
    assert requests(stub) == {"batch": 4}
    assert {len(call.json["documents"]) for call in stub.calls if call.path.endswith("/batch")} == {SESSIONS}


@pytest.mark.parametrize("config", [ORDERED, WITHOUT])
def test_sessions_are_sent_singly_without_batches(stub: Stub, tmp_path: Path, config: str) -> None:
    assert bench(tmp_path, stub.url, config).counts == {"scored": 2}
    assert requests(stub) == {"documents": 2 * SESSIONS}


def test_a_benchmark_may_ask_for_smaller_batches(stub: Stub, tmp_path: Path) -> None:
    assert bench(tmp_path, stub.url, BATCHED, ingest_options=IngestOptions(batch_size=2)).counts == {"scored": 2}
    assert requests(stub) == {"batch": 2, "documents": 2}, "the third session is left, and needs no batch"


def test_batch_with_a_lost_reply_is_repeated_and_reported(stub: Stub, tmp_path: Path) -> None:
    first = "/spaces/sp #1/batch"
    stub.next(reset(), path=first)
    ended = bench(tmp_path, stub.url, BATCHED, haystacks=1)
    assert requests(stub) == {"batch": 2}
    assert [call.path for call in stub.calls].count(first) == 2
    assert (ended.counts, ended.charged_twice) == ({"scored": 1}, 1)
