"""Audits through the command: known subjects get known scores, and nothing paid is repeated."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from memorybench.cli.main import memaudit
from memorybench.suites.audit.events import asked_order
from memorybench.suites.audit.plan import Transcripts
from memorybench.suites.audit.probe_file import write_probes
from memorybench.suites.audit.probes import Probe
from tests.cli.command import Command
from tests.doubles.stub import Call, Stub, completion, reply, status
from tests.suites.audit.probing import sample, sample_probes

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "data/sample-dataset.json"
Subject = Callable[[Probe], str]

PROBES = sample_probes()
TRANSCRIPTS = Transcripts(sample())


@pytest.fixture
def from_file(command: Command) -> tuple[str, str]:
    """The arguments for a file with the probes of the sample. It has the order of events, which code does not ask."""
    write_probes(command.folder / "probes.jsonl", PROBES)
    return "--probes", "probes.jsonl"


def probe_of(call: Call) -> Probe:
    """Return the probe that a call asks after replaying its conversation."""
    *replayed, last = call.json["messages"]
    question = last["content"].partition("Question: ")[2].partition("\nAsked on:")[0]
    matches = [
        probe
        for probe in PROBES
        if probe.question == question
        and [(turn.role, turn.content) for turn in TRANSCRIPTS.replayed(probe.conversation)]
        == [(message["role"], message["content"]) for message in replayed]
    ]
    assert len(matches) == 1, f"{question!r} is asked by {[probe.id for probe in matches]}"
    return matches[0]


def perfect(probe: Probe) -> str:
    return "I don't know." if probe.abstain else probe.expected_answer


def forgetful(probe: Probe) -> str:
    return "I don't know."


def stale(probe: Probe) -> str:
    return probe.stale[0] if probe.stale else perfect(probe)


def first_option(probe: Probe) -> str:
    return "A" if probe.options else perfect(probe)


def hallucinating(probe: Probe) -> str:
    return "It was the blue one, on a Thursday in Rotterdam." if probe.abstain else perfect(probe)


def refusing(probe: Probe) -> str:
    return "Let us talk about something else."


def talkative(probe: Probe) -> str:
    """Perfect in other words, which only a judge can accept."""
    if probe.abstain:
        return "RIGHT as far as I can see: you never mentioned that, so I would only be guessing."
    if probe.options:
        return f"RIGHT: what happened before the other one was {'AB'[probe.options.index(probe.expected_answer)]!r}."
    return f"RIGHT, if you ask me: {probe.expected_answer} is what I would say, going by our talk."


def yes_sayer(probe: Probe) -> str:
    return "Yes."


def parrot(probe: Probe) -> str:
    return probe.question


def hedger(probe: Probe) -> str:
    return f"It could be {probe.expected_answer}, or {' or '.join(probe.stale) or 'something else'}."


def audited(command: Command, stub: Stub, subject: Subject, *more: str) -> dict[str, float | None]:
    stub.always(completion(lambda call: subject(probe_of(call)), model="", tokens=(9, 1)))
    said = command("audit", str(SAMPLE), "--model", "gpt-4o-mini", "--json", *more)
    assert said.code == 0, said.err
    (overall,) = (row for row in said.json["results"] if not row["group"])
    return {measure["name"]: measure["value"] for measure in overall["measures"]}


PERFECT = {
    "recall_accuracy": 1,
    "hallucinated_memory_rate": 0,
    "conflict_resolution_accuracy": 1,
    "temporal_accuracy": 1,
    "answering_rate": 1,
    "paired_rate": 1,
    "temporal_consistency": 1,
    "dating_accuracy": 1,
}


def believing(probe: Probe) -> str:
    return f"I believe that {probe.expected_answer}." if probe.options else perfect(probe)


@pytest.mark.slow
@pytest.mark.parametrize("subject", [perfect, believing])
def test_a_perfect_subject_has_a_perfect_score(
    command: Command, stub: Stub, from_file: tuple[str, str], subject: Subject
) -> None:
    """Without a judge, too: test_every_field_of_the_older_result_types_is_there."""
    assert audited(command, stub, subject, "--judge-model", "scripted/judge", *from_file) == PERFECT


NOTHING_RIGHT = {
    "recall_accuracy": 0,
    "hallucinated_memory_rate": 1,
    "conflict_resolution_accuracy": 0,
    "temporal_accuracy": 0,
    "dating_accuracy": 0,
}
KNOWN: list[tuple[Subject, dict[str, int]]] = [
    (perfect, PERFECT),
    (forgetful, {**NOTHING_RIGHT, "hallucinated_memory_rate": 0, "answering_rate": 0, "paired_rate": 0}),
    (hallucinating, {**PERFECT, "hallucinated_memory_rate": 1, "paired_rate": 0}),
    (stale, {**PERFECT, "conflict_resolution_accuracy": 0, "dating_accuracy": 0}),
    (first_option, {**PERFECT, "temporal_accuracy": 0, "temporal_consistency": 0}),
    (talkative, PERFECT),
    (refusing, NOTHING_RIGHT),
    (yes_sayer, NOTHING_RIGHT),
    (parrot, NOTHING_RIGHT),
    (hedger, NOTHING_RIGHT),
]


def asked_or_judged(subject: Subject, call: Call) -> str:
    """The subject's answer, or the verdict of a judge who knows the truth: of other words only RIGHT ones are right."""
    prompt = call.json["messages"][-1]["content"]
    if "A, B or neither" in prompt:
        return next(
            (letter for letter in "AB" if f"RIGHT: what happened before the other one was '{letter}'" in prompt),
            "neither",
        )
    if "yes or no" in prompt:
        return "yes" if "RIGHT" in prompt else "no"
    return subject(probe_of(call))


@pytest.mark.slow
@pytest.mark.parametrize(("subject", "known"), KNOWN, ids=lambda one: getattr(one, "__name__", ""))
@pytest.mark.parametrize("judge", ["none", "gpt-4o"])
def test_known_subjects_get_known_scores(
    command: Command, stub: Stub, from_file: tuple[str, str], subject: Subject, known: dict[str, int], judge: str
) -> None:
    """By code they get the score that they deserve, or none; by an honest judge they get it."""
    stub.always(completion(lambda call: asked_or_judged(subject, call), model="", tokens=(9, 1)))
    offline = ("--model", "gpt-4o-mini", "--judge-model", judge, "--canaries", "off", "--limit", "60")
    said = command("audit", str(SAMPLE), *offline, *from_file, "--json")
    assert said.code in (0, 1), said.err
    (overall,) = (row for row in said.json["results"] if not row["group"])
    scores = {measure["name"]: measure["value"] for measure in overall["measures"]}
    missing = {None} if judge == "none" else set()
    assert {name: scores[name] for name in known if scores[name] not in {known[name]} | missing} == {}


@pytest.mark.slow
def test_always_taking_the_first_option_orders_nothing(
    command: Command, stub: Stub, from_file: tuple[str, str]
) -> None:
    ordered = [probe for probe in PROBES if probe.options]
    assert Counter(probe.options.index(probe.expected_answer) for probe in ordered) == {
        0: len(ordered) / 2,
        1: len(ordered) / 2,
    }
    stub.always(completion(lambda call: first_option(probe_of(call)), model="", tokens=(9, 1)))
    asked = ("--model", "gpt-4o-mini", "--judge-model", "none", "--kinds", "temporal")
    said = command("audit", str(SAMPLE), *asked, *from_file, "--json")
    pairs = [row for row in said.json["probeResults"] if row["probe"]["expectedAnswer"] in row["probe"]["question"]]
    assert Counter(row["correct"] for row in pairs) == {True: len(pairs) / 2, False: len(pairs) / 2}
    (overall,) = (row for row in said.json["results"] if not row["group"])
    scores = {measure["name"]: measure for measure in overall["measures"]}
    assert scores["temporal_consistency"]["value"] == 0
    assert scores["temporal_accuracy"]["value"] == 0


@pytest.mark.slow
def test_always_naming_the_earlier_event_is_right_in_about_half(
    command: Command, stub: Stub, from_file: tuple[str, str]
) -> None:
    """A subject that does not read which of the two is asked for."""

    def earlier(probe: Probe) -> str:
        if not probe.options:
            return perfect(probe)
        other = next(option for option in probe.options if option != probe.expected_answer)
        return probe.expected_answer if asked_order(probe) == -1 else other

    scores = audited(command, stub, earlier, "--judge-model", "none", "--kinds", "temporal", *from_file)
    assert scores["temporal_consistency"] == 1
    assert 0.3 < (scores["temporal_accuracy"] or 0) < 0.7


def test_a_wrong_answer_about_two_events_was_not_retrieved_if_one_was_not(
    command: Command, stub: Stub, from_file: tuple[str, str]
) -> None:
    """With one memory shown, the turns of both events cannot be seen."""
    stub.always(completion(lambda call: "A", model="", tokens=(9, 1)))
    only = ("--kinds", "temporal", "--providers", "bm25", "--context-limit", "1", "--judge-model", "none")
    command("audit", str(SAMPLE), *only, *from_file, "--model", "gpt-4o-mini", "--run-id", "run")
    failures = command("results", "run", "--results", "audit-results", "--failures", "--json").json
    reasons = {row["reason"] for row in failures if "/order/" in row["command"] and "bm25" in row["command"]}
    assert reasons == {"not-retrieved"}


def test_without_a_judge_what_code_cannot_decide_makes_a_range(
    command: Command, stub: Stub, from_file: tuple[str, str]
) -> None:
    """Code recognises right answers, but hardly a wrong one: their share among the decided would be 100 %."""

    def half_right(probe: Probe) -> str:
        return perfect(probe) if len(probe.id) % 2 else "It was the blue one."

    stub.always(completion(lambda call: half_right(probe_of(call)), model="", tokens=(9, 1)))
    asked = ("--model", "gpt-4o-mini", "--judge-model", "none", *from_file)
    report = command("audit", str(SAMPLE), *asked, "--json").json
    (overall,) = (row for row in report["results"] if not row["group"])
    measures = {measure["name"]: measure for measure in overall["measures"]}
    for name, kind in (("recall_accuracy", "recall"), ("hallucinated_memory_rate", "hallucination")):
        right = [len(probe.id) % 2 for probe in PROBES if probe.type == kind]
        truth = sum(right) / len(right) if kind == "recall" else 1 - sum(right) / len(right)
        assert (measures[name]["value"], measures[name]["n"]) == (None, sum(right))
        assert measures[name]["low"] <= truth <= measures[name]["high"]
    for name in ("temporal_accuracy", "paired_rate"):
        assert (measures[name]["value"], measures[name]["high"]) == (None, 1)


def test_without_a_judge_a_wrong_answer_decides_its_pair(
    command: Command, stub: Stub, from_file: tuple[str, str]
) -> None:
    """The first option is wrong in one of the two orders. In the other one, code cannot decide the answer."""

    def subject(probe: Probe) -> str:
        if not probe.options:
            return perfect(probe)
        is_wrong = probe.options[0] != probe.expected_answer
        return probe.options[0] if is_wrong and not probe.reversed else "Hard to say, one of the two."

    stub.always(completion(lambda call: subject(probe_of(call)), model="", tokens=(9, 1)))
    asked = ("--model", "gpt-4o-mini", "--judge-model", "none", "--kinds", "temporal", "--run-id", "r")
    report = command("audit", str(SAMPLE), *asked, *from_file, "--json").json
    (overall,) = (row for row in report["results"] if not row["group"])
    (ordered,) = (measure for measure in overall["measures"] if measure["name"] == "temporal_accuracy")
    pairs = [probe for probe in PROBES if probe.options and not probe.reversed]
    wrong = sum(probe.options[0] != probe.expected_answer for probe in pairs)
    assert (ordered["value"], ordered["n"], ordered["planned"]) == (None, wrong, len(pairs))
    assert 0 < wrong < len(pairs)
    assert ordered["high"] < 1
    assert command("bundle", "r", "--results", "audit-results", "--output", "r.mbz").code == 0
    assert command("verify", "r.mbz").code == 0


def test_a_pair_whose_other_call_failed_is_not_undecided(
    command: Command, stub: Stub, from_file: tuple[str, str]
) -> None:
    right, fails = completion(lambda call: perfect(probe_of(call)), model="", tokens=(9, 1)), status(400)

    async def answer(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        return await (fails if probe_of(call).reversed else right)(request, call)

    stub.always(answer)
    asked = ("--model", "gpt-4o-mini", "--judge-model", "none", "--kinds", "temporal", "--run-id", "r")
    report = command("audit", str(SAMPLE), *asked, *from_file, "--json").json
    (overall,) = (row for row in report["results"] if not row["group"])
    (ordered,) = (measure for measure in overall["measures"] if measure["name"] == "temporal_accuracy")
    assert (ordered["value"], ordered["low"], ordered["n"]) == (None, None, 0)
    assert report["counts"]["scored"] >= ordered["planned"] > 0
    command("bundle", "r", "--results", "audit-results", "--output", "r.mbz")
    assert command("verify", "r.mbz").code == 0


def test_undecided_answers_are_no_noise(command: Command, stub: Stub) -> None:
    """Each question is answered once in the expected words, once in others."""
    asked_before: set[str] = set()

    def answer(call: Call) -> str:
        probe = probe_of(call)
        if probe.id in asked_before:
            return talkative(probe)
        asked_before.add(probe.id)
        return perfect(probe)

    stub.always(completion(answer, model="", tokens=(9, 1)))
    asked = (
        "--model",
        "gpt-4o-mini",
        "--judge-model",
        "none",
        "--kinds",
        "recall",
        "--repeats",
        "2",
        "--concurrency",
        "1",
    )
    report = command("audit", str(SAMPLE), *asked, "--json").json
    assert report["counts"]["scored"] == report["counts"]["unscored"] > 0
    assert "noise" not in report


@pytest.mark.parametrize(("answer", "scored"), [("C++", 1), ("C", 0), ("C#", 0)])
def test_an_answer_that_differs_by_a_sign_is_not_right_by_code(
    answer: str, scored: int, command: Command, stub: Stub
) -> None:
    said = "My programming language is C++."
    fact = {
        "id": "f",
        "content": said,
        "subject": "user",
        "attribute": "programming language",
        "value": "C++",
        "turn": 1,
    }
    conversation = {"id": "c", "turns": [{"role": "user", "content": said}], "facts": [fact]}
    data = command.folder / "mine.json"
    data.write_text(json.dumps({"id": "d", "conversations": [conversation]}))
    stub.always(completion(lambda call: answer, model="", tokens=(9, 1)))
    report = command("audit", str(data), "--model", "gpt-4o-mini", "--judge-model", "none", "--json").json
    assert (report["counts"]["scored"], report["counts"]["unscored"]) == (scored, 1 - scored)


ASKED = ("--model", "gpt-4o-mini", "--judge-model", "gpt-4o")


def says(call: Call) -> str:
    asked = call.json["messages"][-1]["content"]
    return (
        ("yes" if len(asked) % 3 else "no")
        if "yes or no" in asked
        else "neither"
        if "A, B or neither" in asked
        else perfect(probe_of(call))
    )


@pytest.mark.slow
def test_an_audit_killed_and_resumed_repeats_no_call(command: Command, stub: Stub) -> None:
    stub.always(completion(says, model="", tokens=(200, 20)))
    limited = ("audit", str(SAMPLE), "--limit", "24", *ASKED)
    whole = command(*limited, "--run-id", "whole", "--output", "whole", "--json").json
    once = Counter(json.dumps(call.json, sort_keys=True) for call in stub.calls)
    assert set(once.values()) == {1}, "a twin's answer is asked for once, whoever looks at it"
    stub.calls.clear()
    for place in (60, 20):
        begun = (command.folder / "audit-results").exists()
        arguments = ("audit", "--resume", "r") if begun else (*limited, "--run-id", "r")
        assert command.killed(*arguments, "--concurrency", "1", at=place)
    resumed = command("audit", "--resume", "r", "--json").json
    assert resumed["results"] == whole["results"]
    again = Counter(json.dumps(call.json, sort_keys=True) for call in stub.calls)
    assert set(again) == set(once)
    assert sum(n - 1 for n in again.values()) <= resumed["possibly_charged_twice"] <= 2


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["bm25", pytest.param("hybrid", marks=pytest.mark.slow)])
def test_the_same_probes_go_through_a_memory(command: Command, from_file: tuple[str, str], provider: str) -> None:
    offline = ("--model", "scripted/quote", "--judge-model", "scripted/judge", "--provider", provider)
    said = command("audit", str(SAMPLE), *offline, *from_file, "--json")
    assert said.code in (0, 1), said.err
    counts = said.json["counts"]
    assert counts["scored"] + counts["unscored"] == counts["planned"] == len(PROBES)
    (overall,) = (row for row in said.json["results"] if not row["group"])
    figures = {measure["name"]: measure["value"] for measure in overall["measures"]}
    assert overall["subject"] == provider
    assert figures["recall_accuracy"] > 0.3, "a memory that finds what was said lets even a quoting reader answer"


@pytest.mark.slow
def test_every_field_of_the_older_result_types_is_there(
    command: Command, stub: Stub, from_file: tuple[str, str]
) -> None:
    stub.always(completion(lambda call: perfect(probe_of(call)), model="", tokens=(9, 1)))
    asked = ("--model", "gpt-4o-mini", "--judge-model", "none", "--json", "--run-id", "r")
    said = command("audit", str(SAMPLE), *asked, *from_file)
    result = json.loads((command.folder / "audit-results/r/report.json").read_text())
    assert result == said.json
    assert result["datasetId"] == "sample"
    assert result["timestamp"]
    spec = ("recallAccuracy", "hallucinatedMemoryRate", "conflictResolutionAccuracy", "temporalAccuracy")
    assert [result["metrics"][name] for name in spec] == [1, 0, 1, 1]
    (overall,) = (row for row in result["results"] if not row["group"])
    assert {measure["name"]: measure["value"] for measure in overall["measures"]} == PERFECT
    assert len(result["probeResults"]) == len(PROBES)
    for row in result["probeResults"]:
        assert set(row["probe"]) == {"id", "type", "question", "context", "expectedAnswer", "relatedFacts"}
    told = next(row for row in result["probeResults"] if row["probe"]["type"] == "recall")
    assert told["probe"]["context"][0]["role"] in ("user", "assistant")
    assert told["probe"]["relatedFacts"]


def test_a_measure_without_probes_has_no_value(command: Command, tmp_path: Path) -> None:
    turn = {"role": "user", "content": "I moved to Porto.", "timestamp": "2024-03-02"}
    fact = {"id": "city", "content": "User lives in Porto", "subject": "user", "attribute": "city", "value": "Porto"}
    dataset = {"id": "one", "conversations": [{"id": "c", "turns": [turn], "facts": [{**fact, "turn": 1}]}]}
    (tmp_path / "one.json").write_text(json.dumps(dataset))
    offline = ("--model", "scripted/quote", "--judge-model", "none")
    said = command("audit", str(tmp_path / "one.json"), *offline, "--json")
    assert said.json["metrics"]["conflictResolutionAccuracy"] is None
    assert said.json["metrics"]["temporalAccuracy"] is None


def test_a_conversation_that_does_not_fit_is_not_cut(command: Command, stub: Stub) -> None:
    declared = command(
        "audit", str(SAMPLE), "--model", "gpt-4o-mini", "--judge-model", "none", "--context-window", "1500"
    )
    assert declared.code == 2
    assert "--provider" in declared.err
    assert not stub.calls


@pytest.mark.parametrize("key", ["", "key-of-the-server\n"])
def test_the_context_window_that_a_server_reports_is_used(
    command: Command, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", key)
    with Stub() as stub:
        stub.always(reply({"data": [{"id": "small", "max_model_len": 1200}]}), path="/v1/models")
        stub.always(completion(lambda call: "yes", model="", tokens=(9, 1)), path="/v1/chat/completions")
        monkeypatch.setenv("VLLM_BASE_URL", f"{stub.url}/v1")
        said = command("audit", str(SAMPLE), "--model", "vllm/small", "--judge-model", "none", "--json")
        asked = [call for call in stub.calls if call.path.endswith("completions")]
    assert said.code == 1
    assert said.json["counts"]["failed"] == said.json["counts"]["planned"]
    assert not asked
    assert "--provider" in said.json["probeResults"][0]["reason"]


def test_format_selects_the_reports(command: Command) -> None:
    offline = ("--model", "scripted/quote", "--judge-model", "none", "--kinds", "recall", "--limit", "5")
    command("audit", str(SAMPLE), *offline, "--format", "markdown", "--run-id", "r")
    written = sorted(path.name for path in (command.folder / "audit-results/r").iterdir() if path.suffix)
    assert written == ["report.md"]


def test_verify_probes_finds_questions_that_need_no_memory(command: Command, stub: Stub) -> None:
    def knows(call: Call) -> str:
        asked = call.json["messages"][-1]["content"]
        question = asked.partition("Question: ")[2].partition("\nAsked on:")[0]
        return next(probe.expected_answer for probe in PROBES if probe.question == question and probe.type == "recall")

    stub.always(completion(knows, model="", tokens=(9, 1)))
    offline = ("--judge-model", "none", "--kinds", "recall", "--limit", "6", "--verify-probes")
    said = command("audit", str(SAMPLE), "--model", "gpt-4o-mini", *offline, "--json")
    assert said.json["counts"]["skipped"] == 6


def test_an_order_that_is_wrong_only_with_exchanged_options_is_a_failure(
    command: Command, stub: Stub, from_file: tuple[str, str]
) -> None:
    def errs_the_second_time(call: Call) -> str:
        asked = call.json["messages"][-1]["content"]
        question = asked.partition("Question: ")[2].partition("\nAsked on:")[0]
        probe = next(probe for probe in PROBES if probe.question == question)
        right = probe.expected_answer
        return next(text for text in probe.options if text != right) if probe.reversed else right

    stub.always(completion(errs_the_second_time, model="", tokens=(9, 1)))
    words = ("--kinds", "temporal", "--model", "gpt-4o-mini", "--judge-model", "none", "--run-id", "r", "--json")
    metrics = command("audit", str(SAMPLE), *words, *from_file).json["metrics"]
    assert (metrics["temporalAccuracy"], metrics["datingAccuracy"]) == (0, 1)
    report = (command.folder / "audit-results/r/report.md").read_text()
    assert "of the questions about durations and past values" in report.partition("## ")[0]
    failures = report.partition("## Worst failures")[2].partition("\n## ")[0]
    shown = [probe for probe in PROBES if probe.id in failures]
    assert shown
    assert all(probe.reversed for probe in shown)


def test_memaudit_is_the_same_program(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert memaudit(["validate", str(SAMPLE)]) == 0
    assert "155 facts" in capsys.readouterr().out
    offline = ("--model", "scripted/quote", "--judge-model", "scripted/judge", "--kinds", "recall", "--limit", "3")
    assert memaudit(["audit", str(SAMPLE), *offline]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("audit",), "DATASET"),
        (("audit", str(SAMPLE), "--kinds", "recal"), "recall"),
        (("audit", str(SAMPLE), "--probes", "recal"), "recall"),
        (("audit", str(SAMPLE), "--model", "scripted/quote", "--provider", "bm26"), "bm25"),
        (
            (
                "audit",
                str(SAMPLE),
                "--model",
                "scripted/quote",
                "--judge-model",
                "none",
                "--threshold",
                "recall_acuracy=1",
            ),
            "recall",
        ),
        (("audit", "nowhere.json"), "nowhere.json"),
    ],
)
def test_a_wrong_command_line_names_the_flag_or_the_nearest_name(
    command: Command, arguments: tuple[str, ...], said: str
) -> None:
    refused = command(*arguments)
    assert refused.code == 2
    assert said in refused.err
    assert not (command.folder / "audit-results").exists()


@pytest.mark.slow
def test_locomo_is_converted_and_audited(command: Command) -> None:
    file = ROOT / "../shared/data/locomo/locomo10.json"
    if not file.exists():
        pytest.skip("LoCoMo is not here")
    assert command("data", "convert", "locomo", str(file), "--to", "loc.json").code == 0
    assert command("data", "convert", "locomo", str(file), "--to", "loc.json").code == 2, "nothing is written over"
    offline = ("--model", "scripted/quote", "--judge-model", "none", "--provider", "bm25", "--limit", "40")
    said = command("audit", "loc.json", *offline, "--json")
    assert said.code in (0, 1), said.err
    assert said.json["counts"]["failed"] == 0


@pytest.mark.slow
def test_the_report_of_an_audit_has_plain_words_and_fits_the_screen(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    arguments = ("audit", str(SAMPLE), "--model", "scripted/quote", "--judge-model", "scripted/judge", "--limit", "6")
    arguments += ("--canaries", "1")
    first = command(*arguments, "--run-id", "a")
    second = command(*arguments, "--run-id", "b", "--baseline", "a")
    for said in (first, second):
        assert [line for line in said.out.splitlines() if len(line) > 80 and str(SAMPLE) not in line] == []
    for riddle in ("no twin", "not absent", "option tells the time", "no shape fits", "beyond the limit", "0 of 0"):
        assert riddle not in first.out
    gates = json.loads((command.folder / "audit-results/a/report.json").read_text())["gates"]
    assert gates["beyond the limit"] > 0, "the keys of the document stay"
    assert f"{gates['beyond the limit']} " in first.out.partition("not asked")[2]
