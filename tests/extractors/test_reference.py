"""The reference extractor, over a scripted model."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import memorybench
from memorybench.core.contracts import Completion
from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, Malformed, Transient
from memorybench.core.extraction import MemoryInText
from memorybench.extractors.config_reading import read_extractor
from memorybench.extractors.reference import ReferenceExtractor, parse_prompt
from memorybench.files.yaml_file import load_yaml
from tests.doubles.scripted_model import Script, ScriptedModel
from tests.extractors import known
from tests.extractors.conversation import DIALOGUE, EXISTING, LEARNED, ask

FILE = Path(memorybench.__file__).parent / "catalog" / "extractors" / "reference.yaml"
BUNDLED = read_extractor(load_yaml(FILE)).prompt or ""


def over(script: Script, prompt: str = BUNDLED, **options: Any) -> nullcontext[ReferenceExtractor]:
    return nullcontext(
        ReferenceExtractor(ScriptedModel(script, **options), parse_prompt(prompt, "prompt"), "reference")
    )


def test_the_model_sees_memory_and_conversation_in_one_prompt(tmp_path: Path) -> None:
    ledger = tmp_path / "calls.jsonl"
    ask(over([json.dumps(LEARNED)], ledger=ledger))
    ((role, prompt),) = json.loads(ledger.read_text())["turns"]
    assert role == "user"
    assert json.dumps(EXISTING, indent=2) in prompt
    assert DIALOGUE in prompt


def test_the_prompt_shows_the_model_no_gold() -> None:
    text = FILE.read_text(encoding="utf-8").casefold()
    facts = [fact for case in known.cases() for _, fact in known.leaves(case["expected_output"])]
    assert not [fact for fact in facts if fact.casefold() in text]


@pytest.mark.parametrize(
    "contents",
    [
        json.dumps(LEARNED),
        f"```json\n{json.dumps(LEARNED, indent=2)}\n```",
        f"```\n{json.dumps(LEARNED)}\n```\n",
    ],
)
def test_json_may_be_in_a_code_fence(contents: str) -> None:
    assert ask(over([contents])) == LEARNED


@pytest.mark.parametrize(
    "contents", ["Here is the new memory: {}", "{}\nI added the dog.", "So:\n```json\n{}\n```\nDone."]
)
def test_a_memory_in_a_longer_reply_is_found(contents: str) -> None:
    assert ask(over([contents.replace("{}", json.dumps(LEARNED))])) == MemoryInText(LEARNED)


@pytest.mark.parametrize("contents", ["UNCHANGED", "unchanged.", '"UNCHANGED"', "```\nUNCHANGED\n```", "**UNCHANGED**"])
def test_unchanged_returns_the_existing_memory(contents: str) -> None:
    assert ask(over([contents])) == EXISTING


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        ("", "the output is empty"),
        ("Here is the new memory.", "invalid JSON"),
        ('Either {"a": ["x"]} or {"b": ["y"]}', "invalid JSON"),
        ("```json\n{}\n```\n```json\n{}\n```", "extra data after the value"),
        ('{"pets": [', "truncated JSON"),
        ('{"pets": [], "pets": []}', "duplicate key"),
        ("null", "invalid memory null"),
        ("It is unchanged, I think.", "invalid JSON"),
        # a search that tries every bracket or line takes hours
        ("So: " + "{" * 10**6, "invalid JSON"),
        ("So:\n```\n" + "\n" * 10**6 + "x", "invalid JSON"),
        ("```\n" + " \n" * 10**6 + "x", "invalid JSON"),
        ("<think>" * 10**5, "invalid JSON"),
    ],
)
def test_other_replies_are_malformed(contents: str, problem: str) -> None:
    with pytest.raises(Malformed, match=r"^reference: scripted: ") as raised:
        ask(over([contents]))
    assert problem in str(raised.value)
    assert "the reply was" in str(raised.value)


@pytest.mark.parametrize(
    ("finish", "problem"), [("length", "was cut off"), ("filter", "was filtered"), ("tools", "called a tool")]
)
def test_unfinished_reply_is_malformed(finish: str, problem: str) -> None:
    with pytest.raises(Malformed, match=problem):
        ask(over([Completion(text=json.dumps(LEARNED), finish=finish, model="scripted")]))


def test_model_errors_are_passed_on() -> None:
    with pytest.raises(Transient, match="busy"):
        ask(over([Transient("busy")]))


def test_memory_and_turns_cannot_use_prompt_variables(tmp_path: Path) -> None:
    ledger = tmp_path / "calls.jsonl"
    contents = (Turn(role="user", content="My shop is called ${existingMemory}."),)
    ask(over(["UNCHANGED"], ledger=ledger), {"name": "${conversation}"}, contents)
    prompt = json.loads(ledger.read_text())["turns"][0][1]
    assert "My shop is called ${existingMemory}." in prompt
    assert '"name": "${conversation}"' in prompt


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        ("Extract from ${conversation}.", "does not contain ${existingMemory}"),
        ("Update ${existingMemory}.", "does not contain ${conversation}"),
        ("${existingMemory} ${conversation} ${memory}", 'unknown variable "memory"'),
    ],
)
def test_prompt_without_a_required_variable_is_an_error(prompt: str, problem: str) -> None:
    with pytest.raises(BadInput) as raised:
        over([], prompt)
    assert problem in str(raised.value)


def test_another_prompt_and_another_model_are_other_subjects() -> None:
    async def key(name: str, prompt: str) -> str:
        async with over([], prompt, name=name) as extractor:
            return extractor.subject.key

    plain = "${existingMemory} ${conversation}"
    keys = {asyncio.run(key(name, prompt)) for name in ("a", "b") for prompt in (plain, plain + "!")}
    assert len(keys) == 4


def test_a_model_that_knows_the_gold_gets_every_bundled_case_right() -> None:
    def recite(turns: Any) -> str:
        prompt = turns[-1].content
        case = next(
            case for case in known.cases() if all(turn in prompt for turn in known.contents(case["conversation"]))
        )
        unchanged = case["expected_output"] == case["existing_memory"]
        return "UNCHANGED" if unchanged else json.dumps(case["expected_output"])

    async def all_cases() -> None:
        async with over(recite) as extractor:
            for case in known.cases():
                roles = ("user", "assistant")
                contents = [
                    Turn(role=roles[i % 2], content=text) for i, text in enumerate(known.contents(case["conversation"]))
                ]
                assert await extractor.extract(case["existing_memory"], contents) == case["expected_output"], case["id"]

    asyncio.run(all_cases())
