"""Audits through the command: known subjects get known scores, and nothing paid is repeated."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memorybench.datasets.audit import load_audit
from memorybench.suites.audit.generation import generate
from memorybench.suites.audit.plan import Transcripts
from memorybench.suites.audit.probes import PROBE_TYPES, Probe
from tests.cli.command import Command
from tests.doubles.stub import Stub, completion

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "data/sample-dataset.json"
Subject = Callable[[Probe], str]

DATASET = load_audit(SAMPLE)
PROBES = generate(DATASET, PROBE_TYPES).probes
TRANSCRIPTS = Transcripts(DATASET)


def put(prompt: str) -> Probe:
    """Which probe a prompt asks."""
    question = prompt.partition("Question: ")[2].partition("\nAsked on:")[0]
    found = [
        probe
        for probe in PROBES
        if probe.question == question and TRANSCRIPTS.transcript(probe.conversation)[:200] in prompt
    ]
    assert len(found) == 1, f"{question!r} is asked by {[probe.id for probe in found]}"
    return found[0]


def perfect(probe: Probe) -> str:
    return "I don't know." if probe.abstain else probe.expected_answer


def amnesiac(probe: Probe) -> str:
    return "I don't know."


def parrot(probe: Probe) -> str:
    return probe.stale[0] if probe.stale else perfect(probe)


def first_option(probe: Probe) -> str:
    return probe.options[0] if probe.options else perfect(probe)


def confabulator(probe: Probe) -> str:
    return "It was the blue one, on a Thursday in Rotterdam." if probe.abstain else perfect(probe)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    with Stub() as stub:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        yield stub


def audited(command: Command, stub: Stub, subject: Subject, *more: str) -> dict[str, float | None]:
    stub.always(completion(lambda call: subject(put(call.json["messages"][-1]["content"])), model="", tokens=(9, 1)))
    said = command("audit", str(SAMPLE), "--model", "gpt-4o-mini", "--json", *more)
    assert said.code == 0, said.err
    (overall,) = (row for row in said.json["results"] if not row["group"])
    return {measure["name"]: measure["value"] for measure in overall["measures"]}


@pytest.mark.parametrize("judge", ["none", "scripted/judge"])
def test_a_perfect_subject_has_a_perfect_score(command: Command, stub: Stub, judge: str) -> None:
    scores = audited(command, stub, perfect, "--judge-model", judge)
    assert scores == {
        "recall_accuracy": 1,
        "hallucinated_memory_rate": 0,
        "conflict_resolution_accuracy": 1,
        "temporal_accuracy": 1,
        "answering_rate": 1,
        "paired_rate": 1,
        "temporal_consistency": 1,
        "dating_accuracy": 1,
    }


@pytest.mark.parametrize(
    ("subject", "known"),
    [
        (amnesiac, {"recall_accuracy": 0, "hallucinated_memory_rate": 0, "answering_rate": 0, "paired_rate": 0}),
        (parrot, {"recall_accuracy": 1, "conflict_resolution_accuracy": 0}),
        (confabulator, {"hallucinated_memory_rate": 1, "recall_accuracy": 1, "paired_rate": 0}),
    ],
)
def test_known_subjects_get_known_scores(command: Command, stub: Stub, subject: Subject, known: dict[str, int]) -> None:
    scores = audited(command, stub, subject, "--judge-model", "none")
    assert {name: scores[name] for name in known} == known


def test_always_taking_the_first_option_orders_nothing(command: Command, stub: Stub) -> None:
    ordered = [probe for probe in PROBES if probe.options]
    assert Counter(probe.options.index(probe.expected_answer) for probe in ordered) == {
        0: len(ordered) / 2,
        1: len(ordered) / 2,
    }
    stub.always(
        completion(lambda call: first_option(put(call.json["messages"][-1]["content"])), model="", tokens=(9, 1))
    )
    asked = ("--model", "gpt-4o-mini", "--judge-model", "none", "--probes", "temporal")
    said = command("audit", str(SAMPLE), *asked, "--json")
    pairs = [row for row in said.json["probeResults"] if row["probe"]["expectedAnswer"] in row["probe"]["question"]]
    assert Counter(row["correct"] for row in pairs) == {True: len(pairs) / 2, False: len(pairs) / 2}
    (overall,) = (row for row in said.json["results"] if not row["group"])
    scores = {measure["name"]: measure for measure in overall["measures"]}
    assert scores["temporal_consistency"]["value"] == 0
    assert scores["temporal_accuracy"]["value"] == 0
