"""Models that write their reasoning into the reply, through the command."""

import json

import pytest

from memorybench.suites.audit.probe_file import write_probes
from tests.cli.command import Command
from tests.cli.test_audit import PROBES, SAMPLE, asked_or_judged, perfect, probe_of, talkative
from tests.doubles.stub import Call, Stub, completion

OPENINGS = (
    "<think>\nMaybe Oslo. Or I don't know?\n</think>\n\n",
    "Maybe Oslo?\n</think>\n",
    "<thinking>No.</thinking>",
)


@pytest.mark.parametrize("reasoning", OPENINGS)
def test_the_reasoning_of_a_model_is_no_part_of_its_answer(command: Command, stub: Stub, reasoning: str) -> None:
    stub.always(completion(lambda call: reasoning + perfect(probe_of(call)), model=""))
    words = ("--model", "gpt-4o-mini", "--judge-model", "none", "--limit", "12", "--json")
    said = command("audit", str(SAMPLE), *words).json
    assert {(row["correct"], row["status"]) for row in said["probeResults"]} == {(True, "scored")}
    assert not [row for row in said["probeResults"] if "Oslo" in row["response"]]


def test_the_reasoning_of_a_probe_model_is_no_part_of_its_reply(command: Command, stub: Stub) -> None:
    fact = {"id": "f", "content": "User lives in Porto", "turn": 1}
    turn = {"role": "user", "content": "I moved to Porto.", "timestamp": "2024-03-02"}
    dataset = {"id": "mine", "conversations": [{"id": "c", "turns": [turn], "facts": [fact]}]}
    (command.folder / "mine.json").write_text(json.dumps(dataset))

    def replies(call: Call) -> str:
        prompt = call.json["messages"][-1]["content"]
        reply = {"question": "Where does the user live?", "answer": "Porto", "evidence": ["t1"]}
        if "Write a question" not in prompt:
            reply = {"answer": "Porto" if "I moved to Porto" in prompt else None}
        return f'<think>They want {{"answer": "…"}}. So {{"answer": "Faro"}}?</think>\n{json.dumps(reply)}'

    stub.always(completion(replies, model=""))
    said = command("audit", "probes", "mine.json", "--probe-model", "gpt-4o", "--kinds", "recall", "--json")
    assert [probe["expectedAnswer"] for probe in said.json["probes"]] == ["Porto"], said.out


@pytest.mark.parametrize("finish", [None, "eos_token"])
def test_a_verdict_on_an_order_is_read_whatever_the_server_calls_its_end(
    command: Command, stub: Stub, finish: str | None
) -> None:
    write_probes(command.folder / "probes.jsonl", [probe for probe in PROBES if probe.options])
    stub.always(completion(lambda call: asked_or_judged(talkative, call), model="", finish=finish))
    words = ("--model", "gpt-4o-mini", "--judge-model", "gpt-4o", "--canaries", "off", "--probes", "probes.jsonl")
    counts = command("audit", str(SAMPLE), *words, "--json").json["counts"]
    assert counts["scored"] == counts["planned"] > 0


def test_a_wrong_answer_about_an_order_is_judged_once(command: Command, stub: Stub) -> None:
    """Whether it says that it does not know has no effect on its scores."""
    write_probes(command.folder / "probes.jsonl", [probe for probe in PROBES if probe.options])
    stub.always(completion(lambda call: asked_or_judged(lambda _: "Hard to say.", call), model=""))
    words = ("--model", "gpt-4o-mini", "--judge-model", "gpt-4o", "--canaries", "off", "--probes", "probes.jsonl")
    said = command("audit", str(SAMPLE), *words, "--json").json
    assert said["metrics"]["temporalAccuracy"] == 0
    judged = [call for call in stub.calls if "Hard to say." in call.json["messages"][-1]["content"]]
    assert len(judged) == said["counts"]["planned"]
