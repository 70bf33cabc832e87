"""Score against cost: what a provider costs per question, from all steps of its trials but those of the judge."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
import yaml
from aiohttp import web

from tests.cli.command import Command
from tests.doubles.stub import Call, Stub, completion

TOKENS = (1000, 100)
EVAL = ("eval", "--end", "3", "--answering-model", "acme", "--judge-model", "judge", "--run-id", "paid")
COST = (1000 * 2 + 100 * 10) / 10**6


@pytest.fixture
def stub(command: Command) -> Iterator[Stub]:
    """A server of two models; the judge is dear. Long prompts, those of full-context, are answered without usage."""

    def answer(request: web.BaseRequest, call: Call) -> Awaitable[web.StreamResponse]:
        is_long = len(str(call.json["messages"])) > 20_000
        return completion("yes", tokens=None if is_long else TOKENS)(request, call)

    with Stub() as stub:
        stub.always(answer)
        prices = {"acme": {"input": 2, "output": 10}, "judge": {"input": 500, "output": 500}}
        cards = [{"name": name, "baseUrl": f"{stub.url}/v1", "price": price} for name, price in prices.items()]
        (command.folder / "models.yaml").write_text(yaml.safe_dump({"models": cards}))
        yield stub


def chart(command: Command) -> dict[str, Any]:
    said = command("plot", "paid", "score-cost", "--spec")
    assert said.code == 0, said.err
    return dict(said.json)


def costs(spec: dict[str, Any]) -> dict[str, float]:
    return {row["name"]: row["cost"] for row in spec["layer"][1]["data"]["values"]}


def test_paid_answers_are_costs_of_their_provider(command: Command, stub: Stub) -> None:
    said = command(*EVAL, "--providers", "bm25", "none")
    assert said.code in (0, 1), said.err
    assert costs(chart(command)) == pytest.approx({"bm25": COST, "none": COST})


def test_a_provider_of_unknown_cost_is_left_out_and_named(command: Command, stub: Stub) -> None:
    said = command(*EVAL, "--providers", "bm25", "none", "full-context")
    assert said.code in (0, 1), said.err
    spec = chart(command)
    assert set(costs(spec)) == {"bm25", "none"}
    assert any("full-context" in line for line in spec["title"]["text"])
