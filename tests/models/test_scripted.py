from __future__ import annotations

import asyncio
import json
import multiprocessing
from pathlib import Path

import pytest

from memorybench.core.contracts import Completion, Model
from memorybench.core.conversation import Turn
from memorybench.core.errors import ServiceError, Transient
from memorybench.core.spending import Spending, Tally
from memorybench.models.scripted import Script, ScriptedModel


def ask(model: ScriptedModel, *prompts: str) -> list[str]:
    async def each() -> list[str]:
        return [(await model.complete([Turn(role="user", content=text)])).text for text in prompts]

    return asyncio.run(each())


@pytest.mark.parametrize(
    "script",
    [
        lambda turns: turns[-1].content.upper(),
        ["TEA", "RUM"],
        {"te": "TEA", "rum": "RUM"},
        [Completion(text="TEA", finish="stop", model="m"), "RUM"],
    ],
    ids=["function", "list", "mapping", "completions"],
)
def test_a_script_is_a_function_a_list_or_a_mapping(script: Script) -> None:
    model = ScriptedModel(script)
    assert isinstance(model, Model)
    assert ask(model, "tea", "rum") == ["TEA", "RUM"]


@pytest.mark.parametrize("script", [["TEA"], {"tea": "TEA"}])
def test_a_missing_line_is_an_error(script: Script) -> None:
    with pytest.raises(ServiceError):
        ask(ScriptedModel(script), "tea", "rum")


def test_an_error_in_the_script_is_raised() -> None:
    model = ScriptedModel([Transient("busy", retry_after=1.0), "TEA"])
    with pytest.raises(Transient, match="busy"):
        ask(model, "tea")
    assert ask(model, "tea") == ["TEA"]


def test_each_call_charges_the_given_spending() -> None:
    spent = Spending(calls=1, input_tokens=10, output_tokens=2, cost=0.25)
    with Tally() as tally:
        ask(ScriptedModel(["a", "b"], spent=spent), "x", "y")
    assert tally.spent == spent + spent


def test_before_is_awaited_in_each_call() -> None:
    calls: list[str] = []

    async def wait() -> None:
        await asyncio.sleep(0)
        calls.append("before")

    ask(ScriptedModel(["a", "b"], before=wait), "x", "y")
    assert calls == ["before"] * 2


def _ask_often(ledger: Path, name: str) -> None:
    ask(ScriptedModel(lambda _: "a", name=name, ledger=ledger), *["x" * 10_000] * 50)


def test_the_ledger_contains_the_calls_of_all_processes(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_ask_often, args=(ledger, name)) for name in "ab"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    entries = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert sorted(entry["model"] for entry in entries) == ["a"] * 50 + ["b"] * 50
    assert entries[0]["turns"] == [["user", "x" * 10_000]]
