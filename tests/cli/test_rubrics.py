"""Rubrics, answer modes and excluded texts: scores computed by hand, on data of BEAM's shape."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from memorybench.judging.canaries import PARTIAL, RIGHT, choose_canaries
from memorybench.judging.prompts import named_prompt
from tests.cli.command import Command
from tests.doubles.stub import Call, Stub, completion

CHAT = {
    "id": "chat-1",
    "messages": [
        {"id": "m1", "role": "user", "content": "The first sprint ends on 29 March and covers the login."},
        {"id": "m2", "role": "assistant", "content": "Noted."},
        {"id": "m3", "role": "user", "content": "I never wrote a Flask route, and my homepage route works."},
    ],
}
ORDERED = "The database, then the login, then the export."
QUESTIONS = [
    {
        "question": "When does my first sprint end?",
        "type": "information_extraction",
        "rubric": ["states: 29 March", "names the login"],
        "evidence": ["m1"],
    },
    {
        "question": "Did I write Flask routes?",
        "type": "contradiction_resolution",
        "rubric": ["says that it is contradictory", "mentions: never", "mentions: homepage", "asks which is right"],
        "evidence": ["m3"],
    },
    {"question": "What did my aunt say?", "type": "abstention", "rubric": ["says that it is unknown"]},
]
ANSWERS = {
    "When does my first sprint end?": "It ends on 29 March.",
    "Did I write Flask routes?": "You said never, and then you mentioned a homepage.",
    "What did my aunt say?": "",
}
SCORES = {
    "states: 29 March": "1",
    "names the login": "0",
    "says that it is contradictory": "0.5",
    "mentions: never": "1",
    "mentions: homepage": "1",
    "asks which is right": "0",
}
BY_HAND = {"information_extraction": 1 / 2, "contradiction_resolution": 2.5 / 4, "abstention": 0.0}
"""(1 + 0) / 2; (0.5 + 1 + 1 + 0) / 4; an empty answer meets nothing."""


def config(questions: Mapping[str, str], **more: Any) -> dict[str, Any]:
    return {
        "name": "chats",
        "data": {"type": "local", "path": "./datasets/chats.json"},
        "schema": {
            "itemId": "id",
            "evidenceLevel": "turn",
            "questions": {"field": "probes", "questionField": "question", "categoryField": "type", **questions},
            "context": {"field": "messages", "itemSchema": {"role": "role", "content": "content", "dialogId": "id"}},
            **more.pop("schema", {}),
        },
        "evaluation": {"method": "llm-judge", **more},
    }


def write(command: Command, questions: list[dict[str, Any]], config: dict[str, Any]) -> None:
    folder = command.folder / "benchmarks"
    (folder / "datasets").mkdir(parents=True, exist_ok=True)
    (folder / "configs").mkdir(exist_ok=True)
    (folder / "datasets/chats.json").write_text(json.dumps([CHAT | {"probes": questions}]), encoding="utf-8")
    (folder / "configs/chats.yaml").write_text(json.dumps(config), encoding="utf-8")


def part(prompt: str, name: str) -> str:
    found = re.search(rf"<{name} (\w+)>\n(.*)\n</{name} \1>", prompt, re.DOTALL)
    return found[2] if found else ""


def replies(call: Call) -> str:
    prompt = call.json["messages"][-1]["content"]
    if call.json["model"] == "gpt-4o":
        return SCORES[part(prompt, "requirement")] if "0, 0.5 or 1" in prompt else "yes"
    return next(answer for question, answer in ANSWERS.items() if question in prompt)


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(completion(replies, model="", tokens=(200, 2)))
    return stub


RUN = ("eval", "--benchmarks", "chats", "--providers", "bm25", "--answering-model", "gpt-4o-mini", "--run-id", "r")
JUDGED = (*RUN, "--judge-model", "gpt-4o", "--canaries", "off")
RUBRIC = {"rubricField": "rubric", "evidenceField": "evidence"}


def measure(document: Mapping[str, Any], name: str, kind: str | None = None) -> dict[str, Any]:
    group = {} if kind is None else {"question_type": kind}
    (result,) = (one for one in document["results"] if one["group"] == group)
    return next((one for one in result["measures"] if one["name"] == name), {"value": None, "n": 0})


def test_rubric_scores_are_those_computed_by_hand(command: Command, stub: Stub) -> None:
    write(command, QUESTIONS, config(RUBRIC))
    document = command(*JUDGED, "--json").json
    assert document["counts"]["scored"] == document["counts"]["planned"] == 3
    for kind, expected in BY_HAND.items():
        assert measure(document, "rubric_score", kind)["value"] == pytest.approx(expected)
    overall = measure(document, "rubric_score")
    assert overall["value"] == pytest.approx(sum(BY_HAND.values()) / 3)
    assert overall["n"] == overall["planned"] == 3
    assert measure(document, "rubric_met")["value"] == 0
    assert measure(document, "accuracy")["value"] is None, "a rubric is a degree, not a verdict"
    judged = [call for call in stub.calls if call.json["model"] == "gpt-4o"]
    assert len(judged) == 6, "one call per item, and none for an empty answer"
    assert all(len(part(call.json["messages"][-1]["content"], "requirement").splitlines()) == 1 for call in judged)


def test_half_points_count_nothing_without_partial_credit(command: Command, stub: Stub) -> None:
    write(command, QUESTIONS, config(RUBRIC, partialCredit=False))
    document = command(*JUDGED, "--json").json
    assert measure(document, "rubric_score", "contradiction_resolution")["value"] == pytest.approx(2 / 4)


def test_items_weigh_as_the_data_says(command: Command, stub: Stub) -> None:
    weighted = [{"criterion": "states: 29 March", "points": 3}, {"criterion": "names the login", "points": 1}]
    schema = {"rubricItem": {"text": "criterion", "weight": "points"}}
    write(command, [{**QUESTIONS[0], "rubric": weighted}], config(RUBRIC, schema=schema))
    assert measure(command(*JUDGED, "--json").json, "rubric_score")["value"] == pytest.approx(3 / 4)


def test_answers_can_be_the_rubric(command: Command, stub: Stub) -> None:
    write(command, QUESTIONS, config({"answerField": "rubric"}, schema={"answerMode": "rubric"}))
    document = command(*JUDGED, "--json").json
    assert measure(document, "rubric_score")["value"] == pytest.approx(sum(BY_HAND.values()) / 3)


@pytest.mark.parametrize(("mode", "words"), [("any", "Any one of these"), ("all", "All of these"), (None, "Any one")])
def test_the_judge_is_told_whether_any_or_all_answers_are_needed(
    command: Command, stub: Stub, mode: str | None, words: str
) -> None:
    question = {"question": "When does my first sprint end?", "gold": ["29 March", "the login"]}
    schema = {} if mode is None else {"answerMode": mode}
    write(command, [question], config({"answerField": "gold"}, schema=schema))
    command(*JUDGED)
    (call,) = (call for call in stub.calls if call.json["model"] == "gpt-4o")
    gold = part(call.json["messages"][-1]["content"], "correct-answer")
    assert gold.startswith(words)
    assert ("All" in gold) == (mode == "all")


@pytest.mark.parametrize(("mode", "right"), [("any", 1.0), ("all", 0.0)])
def test_any_and_all_differ_without_a_judge(command: Command, stub: Stub, mode: str, right: float) -> None:
    question = {"question": "When does my first sprint end?", "gold": ["29 March", "the login"]}
    described = config({"answerField": "gold"}, schema={"answerMode": mode}, method="contains")
    write(command, [question], described)
    assert measure(command(*RUN, "--json").json, "accuracy")["value"] == right


@pytest.mark.parametrize(
    ("required", "excluded", "right"),
    [
        (["29 March"], [], 1.0),
        (["29 march", "login"], [], 0.0),
        ([], ["30 March"], 1.0),
        (["29 March"], ["ends"], 0.0),
        ([], ["arch"], 1.0),
    ],
)
def test_required_and_excluded_texts_decide_without_a_judge(
    command: Command, stub: Stub, required: list[str], excluded: list[str], right: float
) -> None:
    question = {"question": "When does my first sprint end?", "yes": required, "no": excluded}
    fields = {"mustContainField": "yes", "mustNotContainField": "no"}
    write(command, [question], config(fields))
    document = command(*JUDGED, "--json").json
    assert measure(document, "accuracy")["value"] == right
    assert not [call for call in stub.calls if call.json["model"] == "gpt-4o"]


@pytest.mark.parametrize("arguments", [RUN, JUDGED])
@pytest.mark.parametrize("excluded", ["30 March", "29 March"])
def test_texts_beside_a_rubric_do_not_make_an_answer_right_or_wrong(
    command: Command, stub: Stub, excluded: str, arguments: tuple[str, ...]
) -> None:
    """Of answers that met a rubric in full, those without an excluded text had no accuracy, and the others 0."""
    question = {**QUESTIONS[0], "no": [excluded]}
    write(command, [question], config({"rubricField": "rubric", "mustNotContainField": "no"}))
    document = command(*arguments, "--json").json
    assert measure(document, "accuracy")["n"] == 0
    assert measure(document, "excluded_in_answer")["value"] == (excluded == "29 March")


def test_parts_of_one_run_of_which_one_has_excluded_texts_are_read_as_one(command: Command, stub: Stub) -> None:
    question = {"question": "When does my first sprint end?"}
    write(command, [question, question, *[{**question, "no": ["29 March"]}] * 2], config({"mustNotContainField": "no"}))
    for run, start, end in (("a", "1", "2"), ("b", "3", "4")):
        assert command(*RUN, "--start", start, "--end", end, "--run-id", run).code == 0
    for parts in (("a", "b"), ("b", "a")):
        document = command("results", *parts, "--json").json
        excluded = measure(document, "excluded_in_answer")
        assert (document["counts"]["planned"], excluded["n"], excluded["value"]) == (4, 2, 1.0)


def test_an_empty_answer_is_wrong_though_it_contains_nothing_excluded(command: Command, stub: Stub) -> None:
    question = {"question": "What did my aunt say?", "no": ["hello"]}
    write(command, [question], config({"mustNotContainField": "no"}))
    assert measure(command(*RUN, "--json").json, "accuracy")["value"] == 0


def test_an_unreadable_item_leaves_the_question_unscored(
    command: Command, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCORES, "mentions: homepage", "0.75")
    write(command, QUESTIONS, config(RUBRIC))
    document = command(*JUDGED, "--json").json
    assert document["counts"]["unscored"] == 1
    assert measure(document, "rubric_score")["n"] == 2
    rows = json.loads(command("export", "r", "--format", "json").out)
    assert [row["rubric_item_scores"] for row in rows] == [[1.0, 0.0], None, None]


def test_items_are_shown_and_exported(command: Command, stub: Stub) -> None:
    write(command, QUESTIONS, config(RUBRIC))
    command(*JUDGED)
    trial = command("show", "r", "chat-1:q1", "--json").json["trials"][0]
    assert [(one["item"], one["score"], one["weight"]) for one in trial["rubric"]] == [
        (item, float(SCORES[item]), 1.0) for item in QUESTIONS[1]["rubric"]
    ]
    shown = command("show", "r", "chat-1:q1", "--provider", "bm25").out
    assert all(item in shown for item in QUESTIONS[1]["rubric"])
    row = json.loads(command("export", "r", "--format", "json").out)[1]
    assert row["rubric_items"] == QUESTIONS[1]["rubric"]
    assert row["rubric_item_scores"] == [0.5, 1.0, 1.0, 0.0]
    assert row["rubric_weights"] == [1.0] * 4
    assert row["score"] == row["rubric_score"] == pytest.approx(2.5 / 4)


def test_a_rubric_that_is_not_met_in_full_is_listed_as_a_failure(command: Command, stub: Stub) -> None:
    write(command, QUESTIONS, config(RUBRIC))
    command(*JUDGED)
    failures = command("results", "r", "--failures", "--json").json
    assert {failure["trial"]["case_id"] for failure in failures} == {"chat-1:q0", "chat-1:q1", "chat-1:q2"}


def test_the_dry_run_counts_a_call_per_item(command: Command, stub: Stub) -> None:
    write(command, QUESTIONS, config(RUBRIC))
    expected = command(*JUDGED, "--dry-run", "--json").json["expected"]
    assert sum(row["calls"] for row in expected if row["stage"] == "judge") == 7
    assert stub.calls == []


def test_a_choice_that_is_clear_needs_no_judge(command: Command, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    question = {"question": "Which month?", "options": ["May", "March"], "gold": "(b)"}
    write(command, [question], config({"answerField": "gold", "choicesField": "options"}))
    for answer, right, calls in (("(b)", 1.0, 0), ("(a)", 0.0, 0), ("It could be either.", 1.0, 1)):
        monkeypatch.setitem(ANSWERS, "Which month?", answer)
        stub.calls.clear()
        document = command(*JUDGED[:-4], "--judge-model", "gpt-4o", "--canaries", "off", "--json").json
        assert measure(document, "accuracy")["value"] == right
        assert sum(call.json["model"] == "gpt-4o" for call in stub.calls) == calls
        command("runs", "delete", "r", "--yes")


CANARIES = {
    canary.response: (canary.kind, "1" if canary.kind in RIGHT else "0.5" if canary.kind == PARTIAL else "0")
    for canary in choose_canaries([named_prompt("rubric-item")])
}


@pytest.mark.parametrize(
    ("lenient", "specificity"),
    [({}, 16), ({"vague": "0.5"}, 12), ({"partial": "1"}, 12), ({"partial": "0"}, 16), ({"refusal": "1"}, 12)],
)
def test_canaries_measure_a_judge_of_items(
    command: Command, stub: Stub, lenient: Mapping[str, str], specificity: int
) -> None:
    def judge(call: Call) -> str:
        kind, score = CANARIES.get(part(call.json["messages"][-1]["content"], "response"), ("", ""))
        return lenient.get(kind, score) or replies(call)

    stub.always(completion(judge, model="", tokens=(200, 2)))
    write(command, QUESTIONS, config(RUBRIC))
    (check,) = command(*JUDGED[:-1], "24", "--json").json["judge_checks"]
    assert (check["sensitivity"]["agreed"], check["sensitivity"]["n"]) == (8, 8)
    assert (check["specificity"]["agreed"], check["specificity"]["n"]) == (specificity, 16)
    assert check["corrected"] == [], "the correction is for verdicts, not for degrees"


@pytest.mark.parametrize(
    ("described", "meaning", "asks_for"),
    [
        (config(RUBRIC), "each item of a rubric: 0, 0.5 or 1", "0.5:"),
        (config(RUBRIC, partialCredit=False), "0 or 1", "0.5:"),
        (config({"answerField": "rubric"}, schema={"answerMode": "all"}), "all of", "answer yes"),
        (config({"answerField": "rubric"}), "any of", "answer yes"),
    ],
)
def test_describe_shows_the_prompts_and_what_a_right_answer_is(
    command: Command, described: dict[str, Any], meaning: str, asks_for: str
) -> None:
    write(command, QUESTIONS, described)
    document = command("describe", "chats", "--json").json
    assert meaning in document["right answer"]
    assert asks_for in document["prompts"]["judge prompt"]
    assert "${question}" in document["prompts"]["answer prompt"]
    shown = command("describe", "chats").out
    assert document["prompts"]["judge prompt"].splitlines()[0] in shown


def test_another_judge_agrees_on_an_item_only_by_the_same_score(command: Command, stub: Stub) -> None:
    write(command, QUESTIONS, config(RUBRIC))
    assert command(*JUDGED).code == 0
    assert command("bundle", "r").code == 0
    stub.always(completion("0.5"))
    found = command("verify", "r.mbz", "--rejudge", "gpt-4.1", "--json").json["rejudge"]
    assert found["compared"] == len(SCORES)
    assert found["agreed"] == [*SCORES.values()].count("0.5")
    assert found["verdicts"]["recorded_yes"] == [*SCORES.values()].count("1"), "half a point does not meet an item"


def test_a_threshold_leaves_out_benchmarks_without_such_questions(command: Command) -> None:
    write(command, QUESTIONS, config({"rubricField": "rubric"}))
    models = ("--answering-model", "scripted/quote", "--judge-model", "scripted/judge", "--end", "2")
    gate = ("--threshold", "accuracy=0", "--threshold", "rubric_score=0")
    said = command("eval", "--benchmarks", "starter", "chats", "--providers", "bm25", *models, *gate, "--json")
    checked = {(check["where"], check["name"]) for check in said.json["checks"]}
    assert checked == {("starter × bm25", "threshold accuracy"), ("chats × bm25", "threshold rubric_score")}
    assert said.code == 0
