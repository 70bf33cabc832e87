"""Runs whose judge fails, or gives replies that cannot be read: the bundle of an honest run is not contradicted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from memorybench.core.conversation import Turn
from memorybench.core.records import digest
from memorybench.models import rehearsal
from tests.cli.command import Command
from tests.doubles.stub import Call, Stub, completion, status

DATASET = Path(__file__).parents[2] / "data" / "sample-dataset.json"
ANSWERS = ("--answering-model", "scripted/quote")
RUNS = {
    "eval": ("eval", "--providers", "bm25", "none", "--end", "12", "--repeats", "2", *ANSWERS),
    "audit": ("audit", str(DATASET), "--model", "scripted/quote", "--providers", "bm25", "--limit", "24"),
    "extraction": ("extraction", "run", "--extractor", "hoarder", "--limit", "20", "--no-targets"),
}


async def judge_badly(request: web.BaseRequest, call: Call) -> web.StreamResponse:
    """Refuse some prompts, reply to others with a text that cannot be read, once or each time, and judge the rest."""
    prompt = call.json["messages"][-1]["content"]
    kind = int(digest(prompt), 16) % 10
    verdict = rehearsal.judge([Turn(role="user", content=prompt)])
    long = "I have compared both texts.\n\n" * 20
    behaviour = {
        0: status(400),
        1: completion("maybe, in part"),
        2: completion("perhaps"),
        3: completion(long + verdict),
    }
    return await behaviour.get(kind, completion(verdict))(request, call)


async def refuse_all(request: web.BaseRequest, call: Call) -> web.StreamResponse:
    return await status(400)(request, call)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with Stub() as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_judge_that_fails_at_times_contradicts_nothing(command: Command, stub: Stub, name: str) -> None:
    stub.always(judge_badly)
    found = verify(command, stub, name)
    assert "unscored" in found["declared"], "the run has trials without a verdict"
    assert "scores" in found["proved"]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_judge_that_always_fails_contradicts_nothing(command: Command, stub: Stub, name: str) -> None:
    """No step records which settings the judge has."""
    stub.always(refuse_all)
    assert "scores" in verify(command, stub, name)["declared"]


def verify(command: Command, stub: Stub, name: str) -> dict[str, set[str]]:
    said = command(*RUNS[name], "--judge-model", f"judge@{stub.url}/v1", "--run-id", "bad", "--output", "results")
    assert said.code == 1, said.err
    assert command("bundle", "bad", "--output", "bad.mbz").code == 0
    said = command("verify", "bad.mbz", "--json")
    assert said.code == 0, [claim for claim in said.json["claims"] if claim["level"] == "contradicted"]
    levels: dict[str, set[str]] = {"proved": set(), "declared": set(), "unchecked": set()}
    for claim in said.json["claims"]:
        levels[claim["level"]] |= {claim["name"], *claim["names"]}
    return levels
