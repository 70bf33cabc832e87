"""`audit probes` lists, writes and verifies probes; `audit --probes` asks those of a file."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from memorybench.suites.audit.probe_file import probe_line
from tests.cli.command import Command
from tests.doubles.stub import Call, Stub, completion, status
from tests.suites.audit.probing import sample_probes

SAMPLE = Path(__file__).parents[2] / "data/sample-dataset.json"
OFFLINE = ("--model", "scripted/quote", "--judge-model", "scripted/judge")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path: Path, probes: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(probe)}\n" for probe in probes))


@pytest.fixture
def probes(command: Command) -> list[dict[str, Any]]:
    said = command("audit", "probes", str(SAMPLE), "--output", "probes.jsonl")
    assert said.code == 0, said.err
    assert "not asked" in said.out
    return rows(command.folder / "probes.jsonl")


def test_probes_carry_origin_checks_and_evidence(command: Command, probes: list[dict[str, Any]]) -> None:
    listed = command("audit", "probes", str(SAMPLE), "--json").json
    assert listed["probes"] == probes
    assert listed["rejected"]["no gap"] > 0
    assert {probe["type"] for probe in probes} == {"recall", "hallucination", "conflict", "temporal"}
    for probe in probes:
        assert probe["origin"] in ("structured", "cloze", "given")
        assert probe["checks"]
        assert probe["evidence" if probe["type"] != "hallucination" else "twin"]
    assert not (command.folder / "audit-results").exists(), "nothing is recorded without a model"


@pytest.mark.slow
def test_a_file_of_probes_is_asked_as_it_is(command: Command, probes: list[dict[str, Any]]) -> None:
    generated = command("audit", str(SAMPLE), *OFFLINE, "--json").json
    frozen = command("audit", str(SAMPLE), *OFFLINE, "--probes", "probes.jsonl", "--json").json
    assert frozen["results"] == generated["results"]
    assert frozen["probeResults"] == generated["probeResults"]


@pytest.mark.slow
def test_an_edited_probe_is_checked_again(command: Command, probes: list[dict[str, Any]]) -> None:
    tea, colour, *others = [probe for probe in probes if probe["type"] == "recall"]
    tea["question"] = f"Is it {tea['expectedAnswer']}?"
    colour["question"] = "And what about the other one, again?"
    write(command.folder / "edited.jsonl", [tea, colour, *others])
    said = command("audit", str(SAMPLE), *OFFLINE, "--probes", "edited.jsonl", "--kinds", "recall", "--json").json
    assert said["gates"]["leak"] == 1
    asked = {row["probe"]["id"]: row for row in said["probeResults"]}
    assert tea["id"] not in asked
    assert asked[colour["id"]]["origin"] == "edited"
    assert asked[others[0]["id"]]["origin"] == others[0]["origin"]
    report = next(command.folder.glob("audit-results/*/report.md")).read_text(encoding="utf-8")
    assert "1 edited in the file of probes" in report


def test_an_edited_probe_must_agree_with_the_dates_of_its_events(
    command: Command, probes: list[dict[str, Any]]
) -> None:
    """The answers of these four are wrong after the change."""
    order = next(probe_line(probe) for probe in sample_probes() if probe.kind == "order" and not probe.reversed)
    duration = next(probe for probe in probes if probe["kind"] == "duration")
    flipped = order | {"expectedAnswer": next(o for o in order["options"] if o != order["expectedAnswer"])}
    words = ("first", "last") if "happened first" in order["question"] else ("last", "first")
    asked_otherwise = order | {"question": order["question"].replace(*words), "id": f"{order['conversation']}/x/1"}
    longer = duration | {"expectedAnswer": f"{int(duration['expectedAnswer']) + 1}"}
    for wrong in (flipped, asked_otherwise, longer):
        write(command.folder / "edited.jsonl", [wrong, *(one for one in probes if one["type"] == "recall")])
        said = command("audit", "probes", str(SAMPLE), "--probes", "edited.jsonl", "--json").json
        assert (said["rejected"]["dates"], wrong["id"] in {one["id"] for one in said["probes"]}) == (1, False)
    reworded = duration | {"question": f"Please tell: {duration['question']}"}
    write(command.folder / "edited.jsonl", [reworded])
    said = command("audit", "probes", str(SAMPLE), "--probes", "edited.jsonl", "--json").json
    assert [one["origin"] for one in said["probes"]] == ["edited"]


def test_an_absent_probe_is_not_edited_into_a_question_about_a_stated_fact(
    command: Command, probes: list[dict[str, Any]]
) -> None:
    absent = next(probe for probe in probes if probe["type"] == "hallucination")
    told = next(probe for probe in probes if probe["id"] == absent["twin"])
    edited = [absent | {"question": "What is the name of the user's dog?"}, told]
    write(command.folder / "edited.jsonl", edited)
    said = command("audit", "probes", str(SAMPLE), "--probes", "edited.jsonl", "--json").json
    assert [one["id"] for one in said["probes"]] == [told["id"]]


@pytest.mark.parametrize(
    ("question", "is_asked"),
    [
        ("What does the user weigh?", False),
        ("Where does the user live?", False),
        ("What was the user allergic to on 5 March 2024?", False),
        ("What is the name of the user's dog?", True),
    ],
)
def test_an_absent_question_is_not_asked_if_a_fact_has_its_words(
    command: Command, question: str, is_asked: bool
) -> None:
    contents = ["User weighs 80 kg", "User lives in Braga", "User is allergic to penicillin"]
    told = [{"role": "user", "content": text, "timestamp": "2024-03-05"} for text in contents]
    facts = [{"id": f"f{n}", "content": text, "turn": n} for n, text in enumerate(contents, 1)]
    one = {"id": "c", "turns": told, "facts": facts, "absent": [{"id": "z", "question": question}]}
    (command.folder / "mine.json").write_text(json.dumps({"id": "mine", "conversations": [one]}))
    said = command("audit", "probes", "mine.json", "--json").json
    assert (question in {probe["question"] for probe in said["probes"]}) == is_asked


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"conversation": "moving-hose"}, "conversation"),
        ({"evidence": ["t99"]}, "evidence"),
        ({"type": "recal"}, "type"),
        ({"questoin": "What?"}, "questoin"),
        ({"question": " "}, "question"),
        ({"current": "Halifax"}, "current"),
        ({"id": "moving-house/recall/dog"}, "id"),
    ],
)
def test_a_wrong_line_of_a_probe_file_is_named(
    command: Command, probes: list[dict[str, Any]], change: dict[str, Any], where: str
) -> None:
    write(command.folder / "wrong.jsonl", [probes[1], {**probes[0], **change}])
    refused = command("audit", str(SAMPLE), *OFFLINE, "--probes", "wrong.jsonl")
    assert refused.code == 2
    assert f"wrong.jsonl:2: {where}: " in refused.err


def test_probes_that_a_person_wrote_are_paired_by_their_ids(command: Command, dataset: str) -> None:
    """The ids of probes get that of the conversation; `twin` named them without it, so that no pair had a score."""
    usual = {"conversation": "c", "evidence": ["t1", "t2"]}
    told = {**usual, "id": "told", "type": "recall", "question": "Who treats the user?", "expectedAnswer": "Mrs Bell"}
    absent = {
        "id": "absent", "conversation": "c", "type": "hallucination", "question": "Who cuts the hedge?",
        "expectedAnswer": "Nobody tells.", "twin": "told",
    }  # fmt: skip
    order = {**usual, "type": "temporal", "question": "Which came first?", "expectedAnswer": "gym", "kind": "order"}
    one = {**order, "id": "one", "options": ["gym", "park"], "twin": "two"}
    two = {**order, "id": "two", "options": ["park", "gym"], "twin": "one"}
    write(command.folder / "own.jsonl", [told, absent, one, two])
    results = command("audit", dataset, *OFFLINE, "--probes", "own.jsonl", "--json").json["results"]
    found = {measure["name"]: (measure["n"], measure["planned"]) for measure in results[0]["measures"]}
    assert (found["paired_rate"], found["temporal_accuracy"]) == ((1, 1), (1, 1))


def test_a_file_of_probes_keeps_the_twins_of_a_kind(command: Command, probes: list[dict[str, Any]]) -> None:
    """Without them, `paired_rate` had no value, although generated probes of the same kind have one."""
    kind = ("audit", str(SAMPLE), *OFFLINE, "--kinds", "hallucination", "--json")
    assert command(*kind, "--probes", "probes.jsonl").json["probes"] == command(*kind).json["probes"]


def test_a_limit_that_is_too_low_for_a_pair_is_named(command: Command) -> None:
    said = command("audit", "probes", str(SAMPLE), "--kinds", "hallucination", "--limit", "1")
    assert said.out.startswith("0 probes")
    said = command("audit", str(SAMPLE), *OFFLINE, "--kinds", "hallucination", "--limit", "1")
    assert (said.code, "--limit" in said.err, "validate" in said.err) == (2, True, False)


def test_kinds_are_still_accepted_as_probes(command: Command) -> None:
    said = command("audit", str(SAMPLE), *OFFLINE, "--probes", "recall", "conflict", "--limit", "8", "--json")
    assert {row["probe"]["type"] for row in said.json["probeResults"]} == {"recall", "conflict"}


def test_two_probe_files_are_refused_by_their_number(command: Command) -> None:
    refused = command("audit", str(SAMPLE), *OFFLINE, "--probes", "one.jsonl", "two.jsonl")
    assert refused.code == 2
    assert "--probes: 2 files" in refused.err


def test_a_dataset_may_follow_the_model(command: Command) -> None:
    said = command("audit", "--judge-model", "scripted/judge", "--limit", "2", "--model", "scripted/quote", str(SAMPLE))
    assert said.code == 0, said.err


TURNS = [
    {"role": "user", "content": "I have been seeing a new physio. She is called Mrs Bell.", "timestamp": "2024-01-10"},
    {"role": "user", "content": "We used to meet in the old gym on Tuesdays.", "timestamp": "2024-01-10"},
    {"role": "user", "content": "From now on we train in the park.", "timestamp": "2024-03-10"},
]
FACTS = [
    {"id": "physio", "content": "The user sees a physiotherapist of that name", "turn": 1},
    {"id": "old", "content": "The user trains in the gym", "turn": 2},
    {"id": "new", "content": "The user trains in the park", "turn": 3, "supersedes": "old"},
]
ANSWERS = {"Who treats the user?": "Mrs Bell", "Where does the user train at present?": "park"}


def truthful(call: Call) -> str:
    """Write and verify probes as a truthful model. The second question about an absent fact has an answer."""
    prompt = call.json["messages"][-1]["content"]
    if "that the conversation does not answer" in prompt:
        return json.dumps({"questions": ["What does the user drink?", "Where does the user train at present?"]})
    if "each replaced the one before" in prompt:
        return json.dumps({"question": "Where does the user train at present?", "answers": ["the old gym", "park"]})
    if "Write a question about the fact" in prompt:
        if "physiotherapist" not in prompt:
            return json.dumps(
                {"question": "Does the user train in the park?", "answer": "in the park", "evidence": ["t3"]}
            )
        return json.dumps({"question": "Who treats the user?", "answer": "Mrs Bell", "evidence": ["t1"]})
    if "First answer" in prompt:
        return "no"
    question = prompt.partition("Question: ")[2].partition("\n")[0]
    quotes = {
        "Mrs Bell": "She is called Mrs Bell",
        "park": "we train in the park",
        "the old gym": "meet in the old gym",
    }
    told = ANSWERS.get(question)
    if question.startswith("Where") and "park" not in prompt.partition("Question: ")[0]:
        told = "the old gym" if "old gym" in prompt else None
    if told is None or quotes[told] not in prompt:
        return '{"answer": null, "quote": null}'
    return json.dumps({"answer": told, "quote": quotes[told]})


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(completion(truthful, model="", tokens=(9, 1)))
    return stub


@pytest.fixture
def dataset(command: Command) -> str:
    conversation = {"id": "c", "turns": TURNS, "facts": FACTS}
    (command.folder / "mine.json").write_text(json.dumps({"id": "mine", "conversations": [conversation]}))
    return "mine.json"


def test_a_model_writes_and_verifies_probes_of_free_text(command: Command, stub: Stub, dataset: str) -> None:
    write_file = ("audit", "probes", dataset, "--probe-model", "gpt-4o", "--output", "written.jsonl")
    said = command(*write_file, "--json")
    assert said.code == 0, said.err
    written = {probe["question"]: probe for probe in rows(command.folder / "written.jsonl")}
    assert set(written) == {
        "Who treats the user?",
        "Where does the user train at present?",
        "What does the user drink?",
    }
    conflict = written["Where does the user train at present?"]
    assert (conflict["type"], conflict["stale"], conflict["staleEvidence"]) == ("conflict", ["the old gym"], ["t2"])
    assert {check["by"] for check in conflict["checks"]} == {"code", "gpt-4o"}
    assert said.json["rejected"] == {"no past form": 1, "leak": 1, "told": 1}
    calls = len(stub.calls)
    assert command(*write_file).code == 0
    assert len(stub.calls) == calls, "every reply is recorded"
    audit = ("audit", dataset, "--model", "scripted/quote", "--judge-model", "scripted/judge", "--json")
    frozen = command(*audit, "--probes", "written.jsonl").json
    assert frozen["counts"]["planned"] == 3
    direct = command(*audit, "--probe-model", "gpt-4o").json
    assert (direct["counts"]["scored"], direct["counts"]["skipped"]) == (3, 2)
    assert len(stub.calls) == calls, "an audit reuses the verification of its results folder"
    assert {row["origin"] for row in direct["probeResults"] if row["status"] == "scored"} == {"model"}


def test_a_fact_that_is_told_twice_is_asked_once(command: Command, stub: Stub) -> None:
    """Each statement of the fact was written as a question of its own."""
    again = [{**FACTS[0], "id": "again"}, {**FACTS[0], "id": "dot", "content": FACTS[0]["content"] + "."}]
    coded = {
        "content": "The physiotherapist is Mrs Bell",
        "turn": 1,
        "attribute": "physiotherapist",
        "value": "Mrs Bell",
    }
    repeated = [{**coded, "id": "one"}, {**coded, "id": "two", "content": "Mrs Bell treats the user"}]
    conversation = {"id": "c", "turns": TURNS, "facts": [FACTS[0], *again, *repeated]}
    (command.folder / "mine.json").write_text(json.dumps({"id": "mine", "conversations": [conversation]}))
    said = command("audit", "probes", "mine.json", "--kinds", "recall", "--probe-model", "gpt-4o", "--json")
    assert sum("Write a question" in call.json["messages"][-1]["content"] for call in stub.calls) == 1
    assert {probe["id"] for probe in said.json["probes"]} <= {"c/recall/physio", "c/recall/one"}
    assert said.json["rejected"]["asked already"] == 3


@pytest.mark.parametrize("reply", ['{"question": null}', "I would rather not."])
@pytest.mark.parametrize("refused", ["Write a question about the fact", "Question: ", "", None])
def test_a_reply_that_cannot_be_used_is_not_asked_for_again(
    command: Command, stub: Stub, dataset: str, reply: str, refused: str | None
) -> None:
    """Such replies were not recorded, so that each repetition paid for them."""

    def answer(call: Call) -> str:
        prompt = call.json["messages"][-1]["content"]
        if refused is None:  # the third of four attempts of each check
            return reply if prompt.startswith("Read it twice") else truthful(call)
        return reply if refused in prompt else truthful(call)

    stub.always(completion(answer, model="", tokens=(9, 1)))
    verify = ("audit", "probes", dataset, "--probe-model", "gpt-4o", "--json")
    first = command(*verify)
    assert first.code == 0, first.err
    calls = len(stub.calls)
    again = command(*verify)
    assert (again.code, again.json, len(stub.calls)) == (0, first.json, calls)
    command("audit", dataset, *OFFLINE, "--probe-model", "gpt-4o")
    assert len(stub.calls) == calls, "a run of the same folder does not ask, either"


def test_probes_that_could_not_be_checked_are_checked_by_the_next_command(
    command: Command, stub: Stub, dataset: str
) -> None:
    """The first command records that the checks failed; the second must not show the probes as they were then."""
    stub.always(status(400))
    assert command("audit", "probes", dataset, "--probe-model", "gpt-4o").code == 1
    stub.always(completion(truthful, model="", tokens=(9, 1)))
    resumed = command("audit", "probes", dataset, "--probe-model", "gpt-4o", "--json").json
    fresh = command("audit", "probes", dataset, "--probe-model", "gpt-4o", "--results", "other", "--json").json
    assert resumed == fresh
    assert all(probe["checks"] for probe in resumed["probes"])


def test_declared_absent_facts_are_verified_and_plans_counted(command: Command, stub: Stub) -> None:
    """With free-text facts only, `absent` was lost without a count."""
    plan = {"id": "plan", "content": "The user moves to Porto", "turn": 3, "validFrom": "2030-01-01"}
    absent = [
        {"id": "drink", "subject": "user", "attribute": "favourite drink"},
        {"id": "told", "question": "Who treats the user?"},
        {"id": "vague", "subject": "user", "attribute": "info"},
    ]
    conversation = {"id": "c", "turns": TURNS, "facts": [*FACTS, plan], "absent": absent}
    (command.folder / "mine.json").write_text(json.dumps({"id": "mine", "conversations": [conversation]}))
    said = command("audit", "probes", "mine.json", "--probe-model", "gpt-4o", "--json")
    assert [probe["id"] for probe in said.json["probes"] if probe["type"] == "hallucination"] == ["c/absent/drink"]
    rejected = said.json["rejected"]
    assert (rejected["told"], rejected["no question"], rejected["a plan"]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("said", "content", "reason"),
    [
        ("I sold the van and bought a kayak.", "The user sold the van in May", "option tells the time"),
        ("Ich habe gestern den alten Wagen verkauft.", "Der Nutzer hat den alten Wagen verkauft", "not English"),
    ],
)
def test_what_is_not_asked_about_times_is_counted_with_a_model(
    command: Command, stub: Stub, said: str, content: str, reason: str
) -> None:
    """Changes without a question about the past and events without an option were lost without a count."""
    turns = [*TURNS, {"role": "user", "content": said, "timestamp": "2024-06-10"}]
    events = [
        {"id": name, "content": content, "turn": 4, "category": "event", "validFrom": "2024-06-01"} for name in "ab"
    ]
    facts = [*(FACTS if reason != "not English" else ()), *events]
    if reason == "not English":
        turns = turns[-1:]
        events[0]["turn"] = events[1]["turn"] = 1
    conversation = {"id": "c", "turns": turns, "facts": facts}
    (command.folder / "mine.json").write_text(json.dumps({"id": "mine", "conversations": [conversation]}))
    rejected = command("audit", "probes", "mine.json", "--probe-model", "gpt-4o", "--json").json["rejected"]
    assert rejected[reason] >= 1
    assert rejected.get("no past form", 0) == (1 if reason != "not English" else 0)


def test_a_model_puts_events_in_order_that_code_does_not(command: Command, stub: Stub) -> None:
    """An event whose statement tells its time costs no other one its question."""
    days = {"The user sold the van": "2024-01-10", "The user bought a kayak": "2024-03-10"}

    def answer(call: Call) -> str:
        prompt = call.json["messages"][-1]["content"]
        event = prompt.partition("Event: ")[2].partition("\n")[0]
        return days.get(event, '{"answer": null, "quote": null}')

    stub.always(completion(answer, model="", tokens=(9, 1)))
    sold, bought = days
    events = [sold, "The user met a friend in May", bought]
    turns = [{"role": "user", "content": f"{event}.", "timestamp": "2024-06-10"} for event in events]
    facts = [
        {"id": f"f{n}", "content": event, "turn": n, "category": "event", "validFrom": "2024-01-01"}
        for n, event in enumerate(events, 1)
    ]
    dataset = {"id": "mine", "conversations": [{"id": "c", "turns": turns, "facts": facts}]}
    (command.folder / "mine.json").write_text(json.dumps(dataset))
    ask = ("audit", "probes", "mine.json", "--kinds", "temporal", "--json")
    assert command(*ask).json["rejected"] == {"needs a probe model": 2, "option tells the time": 1}
    said = command(*ask, "--probe-model", "gpt-4o").json
    assert said["rejected"] == {"option tells the time": 1}
    one, two = said["probes"]
    assert (one["options"], two["options"]) == ([*days], [*days][::-1])
    right = sold if one["question"].startswith("What happened first?") else bought
    assert one["expectedAnswer"] == two["expectedAnswer"] == right


def test_a_reason_of_code_and_of_the_model_is_counted_together(command: Command, stub: Stub) -> None:
    """The count of the model replaced that of the code."""
    absent = [{"id": "a", "question": "Who treats the user?"}, {"id": "b", "subject": "user", "attribute": "dog"}]
    told = {**FACTS[0], "question": "Who treats the user?", "value": "Mrs Bell"}
    also = {"id": "c", "question": "Where does the user train at present?"}
    conversation = {"id": "c", "turns": TURNS, "facts": [told, *FACTS[1:]], "absent": [*absent, also]}
    (command.folder / "mine.json").write_text(json.dumps({"id": "mine", "conversations": [conversation]}))
    rejected = command("audit", "probes", "mine.json", "--probe-model", "gpt-4o", "--json").json["rejected"]
    assert rejected["told"] == 2


def test_candidates_of_a_file_are_verified_by_a_model(command: Command, stub: Stub, dataset: str) -> None:
    candidate = {"id": "a", "type": "recall", "conversation": "c", "evidence": ["t1"], "expectedAnswer": "Mrs Bell"}
    write(
        command.folder / "candidates.jsonl",
        [{**candidate, "question": "Who treats the user?"}, {**candidate, "id": "b", "question": "Who else?"}],
    )
    verify = (
        "audit",
        "probes",
        dataset,
        "--probes",
        "candidates.jsonl",
        "--probe-model",
        "gpt-4o",
        "--output",
        "x.jsonl",
    )
    said = command(*verify, "--json")
    assert [probe["id"] for probe in rows(command.folder / "x.jsonl")] == ["c/a"]
    assert said.json["rejected"] == {"not answerable from its evidence": 1}


@pytest.mark.slow
def test_probes_of_a_model_that_cannot_be_reached_are_not_admitted(
    command: Command, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    said = command("audit", "probes", dataset, "--probe-model", "gpt-4o", "--output", "x.jsonl")
    assert said.code == 1
    assert rows(command.folder / "x.jsonl") == []


@pytest.mark.parametrize(
    "entry",
    [
        {"subject": "the user", "attribute": "home-town"},
        {"attribute": "home_town"},
        {"subject": "User", "attribute": "hometown"},
    ],
)
def test_a_stated_attribute_in_another_spelling_is_not_declared_absent(command: Command, entry: dict[str, str]) -> None:
    town = {
        "id": "town",
        "content": "User is from Ghent",
        "subject": "user",
        "attribute": "home town",
        "value": "Ghent",
    }
    conversation = {
        "id": "c",
        "turns": [{"role": "user", "content": "I am from Ghent."}],
        "facts": [town],
        "absent": [{"id": "x", **entry}],
    }
    (command.folder / "mine.json").write_text(json.dumps({"id": "mine", "conversations": [conversation]}))
    refused = command("audit", "probes", "mine.json")
    assert refused.code == 2
    assert "absent[0].attribute" in refused.err


def test_a_dry_run_estimates_the_calls_of_the_probe_model(command: Command, stub: Stub, dataset: str) -> None:
    said = command("audit", "probes", dataset, "--probe-model", "gpt-4o", "--dry-run", "--json")
    assert said.code == 0, said.err
    (row,) = said.json["expected"]
    assert (row["stage"], row["calls"] > 0, row["cost"] > 0) == ("probe check", True, True)
    assert not stub.calls
    assert not (command.folder / "audit-results").exists()


def test_the_estimate_grows_with_the_conversation(command: Command, stub: Stub) -> None:
    """The answer of each probe is also asked from the whole conversation."""
    tokens = []
    for extra in (0, 2_000):
        conversation = {
            "id": "c",
            "turns": [*TURNS, {"role": "user", "content": "Well. " + "word " * extra}],
            "facts": FACTS[:1],
        }
        path = command.folder / f"long{extra}.json"
        path.write_text(json.dumps({"id": "mine", "conversations": [conversation]}))
        arguments = ("--probe-model", "gpt-4o", "--kinds", "recall", "--dry-run", "--json")
        (row,) = command("audit", "probes", str(path), *arguments).json["expected"]
        tokens.append(row["input_tokens"])
    assert tokens[1] - tokens[0] > 3 * 2_000


def test_a_budget_ends_the_verification_and_a_higher_one_continues_it(
    command: Command, stub: Stub, dataset: str
) -> None:
    verify = ("audit", "probes", dataset, "--probe-model", "gpt-4o", "--concurrency", "1", "--json")
    stopped = command(*verify, "--budget", "0.00001")
    assert stopped.code == 1
    assert stopped.json["failed"] > 0
    calls = len(stub.calls)
    assert command(*verify, "--budget", "5").json["failed"] == 0
    assert len(stub.calls) > calls > 0


@pytest.mark.parametrize(("more", "problem"), [((), "no such model"), (("--budget", "0"), "--budget")])
def test_why_probes_could_not_be_checked_is_said_and_that_the_file_is_partial(
    command: Command, stub: Stub, dataset: str, more: tuple[str, ...], problem: str
) -> None:
    """Only the number of probes was said."""
    stub.always(status(404, said="no such model"))
    verify = ("audit", "probes", dataset, "--probe-model", "gpt-4o", "--output", "x.jsonl", *more)
    said = command(*verify)
    assert said.code == 1
    assert problem in said.err
    for text in (said.out, said.err):
        assert "x.jsonl" in text
        assert "partial" in text
    document = command(*verify, "--json").json
    assert document["failed"] == 5
    assert problem in document["problem"]
    stub.always(completion(truthful, model="", tokens=(9, 1)))
    complete = command("audit", "probes", dataset, "--probe-model", "gpt-4o", "--json")
    assert (complete.code, complete.json["problem"], complete.err) == (0, None, "")


def test_a_partial_check_does_not_replace_an_existing_file(command: Command, stub: Stub, dataset: str) -> None:
    """The file may be complete, or have edits that cannot be made again."""
    verify = ("audit", "probes", dataset, "--probe-model", "gpt-4o", "--output", "x.jsonl")
    stub.always(completion(truthful, model="", tokens=(9, 1)))
    assert command(*verify, "--results", "first").code == 0
    complete = Path("x.jsonl").read_bytes()
    stub.always(status(404, said="no such model"))
    said = command(*verify, "--results", "second")
    assert said.code == 1
    assert Path("x.jsonl").read_bytes() == complete
    assert "x.jsonl was not replaced" in said.err
    assert "x.jsonl" not in said.out


def test_a_reply_of_many_brackets_is_unreadable(command: Command, stub: Stub, dataset: str) -> None:
    """A search that tries every bracket takes hours."""
    stub.always(completion(lambda call: "{" * 10**6, model="", tokens=(9, 1)))
    said = command("audit", "probes", dataset, "--probe-model", "gpt-4o", "--json")
    assert (said.json["probes"], said.json["rejected"]["no question was written"]) == ([], 5)


def test_an_interrupted_check_of_probes_exits_with_130_and_writes_no_probes(
    command: Command, stub: Stub, dataset: str
) -> None:
    def interrupt(call: Call) -> str:
        if call is stub.calls[0]:  # the second signal would end the process
            os.kill(os.getpid(), signal.SIGINT)
        return "none"

    stub.always(completion(interrupt))
    (command.folder / "x.jsonl").write_text("earlier probes\n")
    said = command("audit", "probes", dataset, "--probe-model", "gpt-4o", "--concurrency", "1", "--output", "x.jsonl")
    assert said.code == 130, said.err
    assert (command.folder / "x.jsonl").read_text() == "earlier probes\n"


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("--probes", "mine.jsonl", "--output", "./mine.jsonl"), "--output"),
        (("--output", "mine.json"), "--output"),
        (("--dry-run", "--output", "x.jsonl"), "--dry-run"),
        (("--budget", "1"), "--budget"),
    ],
)
def test_a_file_that_is_read_is_not_replaced_and_flags_have_an_effect(
    command: Command, dataset: str, arguments: tuple[str, ...], where: str
) -> None:
    assert command("audit", "probes", "mine.json", "--output", "mine.jsonl").code == 0
    before = {file.name: file.read_bytes() for file in command.folder.iterdir()}
    said = command("audit", "probes", "mine.json", *arguments)
    assert (said.code, said.err.split(": ")[1]) == (2, where)
    assert {file.name: file.read_bytes() for file in command.folder.iterdir()} == before


def test_an_outdated_answer_is_an_answer(command: Command, stub: Stub, probes: list[dict[str, Any]]) -> None:
    recalls = [probe for probe in probes if probe["type"] == "recall"][:4]
    write(command.folder / "probes.jsonl", [probe | {"stale": ["Atlantis"]} for probe in recalls])
    stub.always(completion("Atlantis", model=""))
    words = ("--model", "gpt-4o", "--judge-model", "none", "--probes", "probes.jsonl", "--json")
    metrics = command("audit", str(SAMPLE), *words).json["metrics"]
    assert (metrics["recallAccuracy"], metrics["answeringRate"]) == (0, 1)
