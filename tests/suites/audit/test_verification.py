"""Probes that a model verifies: the defects are found, and the good ones are kept, by a model that errs."""

import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import cycle
from pathlib import Path

import pytest

from memorybench.core.conversation import Turn
from memorybench.core.errors import Lacking
from memorybench.datasets.audit import AuditDataset
from memorybench.suites.audit.answers import is_same
from memorybench.suites.audit.changes import FLAG_REQUEST
from memorybench.suites.audit.probe_file import read_probes
from memorybench.suites.audit.probes import Probe
from memorybench.suites.audit.verification import ProbeModel, calls_to_verify
from tests.doubles.scripted_model import ScriptedModel
from tests.suites.audit.probing import UnrecordedSteps, conversation, day, fact, run

ERRS = 0.05
PEOPLE = ("Ada", "Boris", "Chandra", "Dilek", "Emre", "Freya", "Goran", "Hana", "Ivo", "Jun")
TOPICS = ("bakery", "boat", "choir", "garden", "kiosk", "library", "orchard", "studio", "workshop", "stall")
VALUES = ("Larkfield", "Tarnfoot", "Oakmill", "Redfern", "Taplow", "Brightwater", "Moth", "Pixel", "Wharf", "Kestrel")
EVENTS = ("repaired the roof", "adopted a parrot", "sold the tractor", "joined the choir", "visited the mines")


@dataclass
class Candidate:
    """A probe, whether it is good, and what is true of it."""

    probe: Probe
    defect: str = ""
    told: dict[str, str] = field(default_factory=dict)
    """By turn: the answer that it gives."""
    known: str | None = None
    """The answer that anybody knows."""
    dates: dict[str, str] = field(default_factory=dict)
    both_true: bool = False
    """Whether the turns do not contradict each other: together they give all their answers."""
    worded: bool = False
    """Whether the model answers in other words than the expected answer, so that it must also compare the two."""


def turn(id: str, content: str) -> Turn:
    return Turn(role="user", content=content, id=id)


def probe(number: int, type: str, question: str, expected: str, **more: object) -> Probe:
    fields = {
        "id": f"c/{number}",
        "kind": "latest" if type == "conflict" else type,
        "conversation": "c",
        "origin": "model",
    }
    return Probe.model_validate({**fields, "type": type, "question": question, "expected_answer": expected, **more})


def recall(number: int, rng: random.Random, defect: str = "") -> Candidate:
    person, topic = rng.choice(PEOPLE), rng.choice(TOPICS)
    value, other = rng.sample(VALUES, 2)
    question = f"Who delivers to {person}'s {topic} number {number}?"
    told, known, expected = {"t2": value}, None, value
    if defect == "leak":
        question = f"Is it {value} that delivers to {person}'s {topic} number {number}?"
    elif defect == "wrong gold":
        expected = other
    elif defect == "not in evidence":
        told = {"t1": value}
    elif defect == "world knowledge":
        known = value
    elif defect == "outdated":
        told = {"t2": value, "t5": other}
    evidence = (turn("t2", f"{person} says that {value} comes to the {topic}."),)
    return Candidate(probe(number, "recall", question, expected, gold_context=evidence), defect, told, known)


def conflict(number: int, rng: random.Random, defect: str = "") -> Candidate:
    person, topic = rng.choice(PEOPLE), rng.choice(TOPICS)
    old, new = rng.sample(VALUES, 2)
    # with the defect "two questions" the old turn answers another one
    told = {"t3": new} if defect == "two questions" else {"t1": old, "t3": new}
    made = probe(
        number, "conflict", f"Who supplies {person}'s {topic} number {number} now?", new, current=new, stale=(old,),
        gold_context=(turn("t3", f"{new} supplies it now."),), stale_context=(turn("t1", f"{old} once came."),),
    )  # fmt: skip
    return Candidate(made, defect, told, both_true=defect == "both true")


def order(number: int, rng: random.Random, defect: str = "") -> Candidate:
    one, other = (f"{rng.choice(PEOPLE)} {event} {number}" for event in rng.sample(EVENTS, 2))
    dates = {one: "PLAN" if defect == "plan" else "2024-01-09", other: "2024-02-20"}
    evidence = (turn("t1", one), turn("t2", other))
    asked = f"What happened first? (A) {one}. (B) {other}."
    made = probe(number, "temporal", asked, one, options=(one, other), gold_context=evidence)
    known = one if defect == "known order" else None
    return Candidate(made.model_copy(update={"kind": "order"}), defect, known=known, dates=dates)


def absent(number: int, rng: random.Random, defect: str = "") -> Candidate:
    asked = f"Which colour is {rng.choice(PEOPLE)}'s {rng.choice(TOPICS)} number {number}?"
    made = probe(number, "hallucination", asked, "-", abstain=True)
    return Candidate(made, defect, {"t4": "bright green"} if defect else {})


WORDED = "as far as one can tell it is "
CONVERSATION = tuple(turn(f"t{n}", f"Turn {n} speaks of something bright green.") for n in range(1, 6))
DEFECTS = {
    "leak": recall, "wrong gold": recall, "not in evidence": recall, "world knowledge": recall, "outdated": recall,
    "plan": order, "known order": order, "two questions": conflict,
    "both true": conflict, "told": absent,
}  # fmt: skip


def candidates(count: int) -> list[Candidate]:
    rng = random.Random(20)
    good = [(recall, conflict, order, absent)[n % 4](n, rng) for n in range(count // 2)]
    bad = [DEFECTS[name](count + n, rng, name) for n, name in zip(range(count // 2), cycle(DEFECTS))]
    return [replace(one, worded=rng.random() < 0.5) for one in good + bad]


class TruthfulModel:
    """Answers from the truth, and errs in a share of its replies, each time in the way that does most harm."""

    def __init__(self, known: Sequence[Candidate], errs: float, seed: int = 0) -> None:
        self._candidates = known
        self._errs = errs
        self._seed = seed

    def __call__(self, turns: Sequence[Turn]) -> str:
        prompt = turns[-1].content
        errs = int(sha256(f"{self._seed} {prompt}".encode()).hexdigest()[:8], 16) / 16**8 < self._errs
        if "Event: " in prompt:
            event = prompt.partition("Event: ")[2].partition("\n")[0]
            date = next(one.dates[event] for one in self._candidates if event in one.dates)
            return "2023-12-31" if errs and date == "PLAN" else "PLAN" if errs else date
        one = next(one for one in self._candidates if f"{one.probe.question}\n" in prompt)
        if "First answer: " in prompt:
            first, second = (
                prompt.partition(f"{name} answer: ")[2].partition("\n")[0].removeprefix(WORDED)
                for name in ("First", "Second")
            )
            return "yes" if is_same(first, second) != errs else "no"
        ids = re.findall(r"^(t\d+) ", prompt, re.MULTILINE)
        answers = [one.told[id] for id in ids if id in one.told] if ids else [one.known]
        answer = " and ".join(map(str, answers)) if one.both_true and ids else answers[-1] if answers else None
        if errs:
            wanted = one.probe.stale[0] if ids == ["t1"] and one.probe.stale else one.probe.expected_answer
            answer = wanted if answer != wanted else None
        quoted = "something bright green" if one.probe.abstain and answer else None
        worded = f"{WORDED}{answer}" if answer and one.worded else answer
        return f"Here you are: {json.dumps({'answer': worded, 'quote': quoted})}"


def admitted(known: Sequence[Candidate], errs: float, seed: int = 0) -> tuple[list[Candidate], Counter[str]]:
    model = ProbeModel(ScriptedModel(TruthfulModel(known, errs, seed)))
    found: list[Candidate] = []
    reasons: Counter[str] = Counter()
    for one in known:
        try:
            verified = run(model.verify(UnrecordedSteps(), one.probe, CONVERSATION))
        except Lacking as lacking:
            reasons[str(lacking).partition(":")[0]] += 1
            continue
        assert all(check.name and check.by for check in verified.checks)
        found.append(one)
    return found, reasons


@pytest.mark.slow
def test_a_truthful_model_finds_every_defect_and_keeps_every_good_probe() -> None:
    found, reasons = admitted(candidates(300), 0.0)
    assert [one.defect for one in found] == [""] * 150
    assert reasons.keys() == {
        "leak", "not answerable from its evidence", "answerable without the conversation", "told",
        "not two dated events", "the facts do not answer one question", "both values may be true",
        "the conversation gives another answer",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_defects_are_found_and_good_probes_kept_by_a_model_that_errs(seed: int) -> None:
    found, reasons = admitted(candidates(300), ERRS, seed)
    defects = Counter(one.defect for one in found if one.defect)
    assert defects.total() <= 0.02 * 150, defects
    assert len(found) - defects.total() >= 0.85 * 150, reasons


WRONG, RIGHT = '{"answer": "Wharf", "quote": "Wharf"}', '{"answer": "Larkfield", "quote": "Larkfield"}'
NONE = '{"answer": null, "quote": null}'


@pytest.mark.parametrize(
    ("replies", "is_admitted"),
    [
        ([*[NONE] * 3, *[RIGHT] * 6], True),
        ([*[NONE] * 3, NONE, *[RIGHT] * 6], True),
        ([*[NONE] * 3, *[RIGHT] * 5, *[WRONG, "no", "no"] * 2], False),  # the conversation gives two answers
        ([*[NONE] * 3, RIGHT, RIGHT, NONE, NONE], False),  # answered from the evidence in two of four replies
        ([RIGHT, NONE, NONE, NONE, *[RIGHT] * 6], True),
        ([NONE, NONE, RIGHT, RIGHT], False),  # known without the conversation in two of four
        ([*[NONE] * 3, WRONG, *["yes"] * 3, *[RIGHT] * 5], True),  # in other words
        ([*[NONE] * 3, WRONG, "yes", "yes", "no", "no", WRONG, "yes", "no", "no"], False),
        ([WRONG, *["no"] * 3, NONE, NONE, *[RIGHT] * 6], True),  # a wrong guess
        ([WRONG, "no", "no", "yes", "yes", NONE, NONE, WRONG, "no", "yes", "yes"], False),
    ],
)
def test_a_check_passes_by_three_of_four_replies(replies: list[str], is_admitted: bool) -> None:
    left = iter(replies)
    model = ProbeModel(ScriptedModel(lambda turns: next(left)))
    evidence = (turn("t2", "Larkfield comes to the kiosk."),)
    made = probe(1, "recall", "Who delivers to the kiosk?", "Larkfield", gold_context=evidence)
    with nullcontext() if is_admitted else pytest.raises(Lacking):
        run(model.verify(UnrecordedSteps(), made, CONVERSATION))
    assert next(left, None) is None  # no reply more than it takes


@pytest.mark.parametrize(
    ("question", "expected", "is_admitted"),
    [
        ("How many days was Larkfield shut?", "18 days", True),
        ("How many days was Larkfield shut, 18 or more?", "18 days", False),
        ("Wie viele Tage war Larkfield geschlossen?", "18 Tage", True),
        ("How long was Larkfield shut?", "18 days", True),
    ],
)
def test_a_duration_is_admitted_by_the_same_rule_with_a_model_and_from_a_file(
    question: str, expected: str, is_admitted: bool, tmp_path: Path
) -> None:
    path, data = _shut_for_18_days(question, expected, tmp_path)
    from_file = read_probes(path, data)
    assert (len(from_file.probes), from_file.gates.get("leak", 0)) == (is_admitted, not is_admitted)

    (made,) = read_probes(path, data, verify=False).probes
    reply = json.dumps({"answer": expected, "quote": None})
    model = ProbeModel(ScriptedModel(lambda turns: reply if "t1 [" in turns[-1].content else NONE))
    with nullcontext() if is_admitted else pytest.raises(Lacking, match="leak"):
        run(model.verify(UnrecordedSteps(), made, data.conversations[0].turns))


def _shut_for_18_days(question: str, expected: str, folder: Path) -> tuple[Path, AuditDataset]:
    """Write a file with one probe about two events that are 18 days apart; return its path and the dataset."""
    said = [f"Larkfield is shut from today on. ({expected} in all.)", "It is open again."]
    shut, opened = (fact(f"f{n}", text, valid_from=day(18 * n), category="event") for n, text in enumerate(said))
    line = {
        "id": "c1/1", "type": "temporal", "kind": "duration", "conversation": "c1", "question": question,
        "expectedAnswer": expected, "evidence": ["t1", "t2"], "relatedFacts": ["f0", "f1"],
    }  # fmt: skip
    path = folder / "probes.jsonl"
    path.write_text(json.dumps(line))
    return path, AuditDataset(id="d", conversations=(conversation(shut, opened, said=said),))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many weeks was Larkfield shut?", "18 weeks"),
        ("Wie viele Wochen war Larkfield geschlossen?", "18 Wochen"),
        ("By how many days is Larkfield early?", "-18 days"),
    ],
)
def test_a_duration_in_another_unit_is_not_admitted_from_a_file(question: str, expected: str, tmp_path: Path) -> None:
    from_file = read_probes(*_shut_for_18_days(question, expected, tmp_path))
    assert (len(from_file.probes), from_file.gates["dates"]) == (0, 1)


def test_an_answer_with_another_sign_is_compared_by_the_model() -> None:
    def reply(turns: Sequence[Turn]) -> str:
        prompt = turns[-1].content
        if "First answer: " in prompt:
            return "no"
        return '{"answer": "A-", "quote": "My blood group is A-"}' if "t2 " in prompt else NONE

    evidence = (turn("t2", "My blood group is A-, my sister's is A+."),)
    made = probe(1, "recall", "Which blood group does the user have?", "A+", gold_context=evidence)
    with pytest.raises(Lacking, match="not answerable"):
        run(ProbeModel(ScriptedModel(reply)).verify(UnrecordedSteps(), made, CONVERSATION))


@pytest.mark.parametrize("stale", [("Oakmill",), ("Oakmill", "Redfern")])
def test_the_estimated_calls_are_those_of_a_model_that_agrees_with_itself(stale: tuple[str, ...]) -> None:
    rng = random.Random(7)
    values = {f"t{n}": value for n, value in enumerate((*stale, "Larkfield"), 1)}
    *old, newest = (turn(id, f"{value} supplies the kiosk.") for id, value in values.items())
    changed = probe(
        9, "conflict", "Who supplies the kiosk now?", "Larkfield", current="Larkfield", stale=stale,
        gold_context=(newest,), stale_context=tuple(old),
    )  # fmt: skip
    for one in (recall(1, rng), Candidate(changed, told=values), order(3, rng), absent(4, rng)):
        steps = UnrecordedSteps()
        run(ProbeModel(ScriptedModel(TruthfulModel([one], 0.0))).verify(steps, one.probe, CONVERSATION))
        assert len(steps.names) == calls_to_verify(one.probe)


@pytest.mark.parametrize("defect", ["", "an old turn answers another question"])
def test_each_outdated_value_is_answered_from_its_own_turns(defect: str) -> None:
    values = {"t1": "Larkfield", "t2": "Oakmill", "t3": "Redfern"}
    *old, newest = (turn(id, f"{value} supplies the kiosk.") for id, value in values.items())
    question = "Who supplies the kiosk now?"
    made = probe(
        1, "conflict", question, "Redfern", current="Redfern", stale=("Larkfield", "Oakmill"),
        gold_context=(newest,), stale_context=tuple(old),
    )  # fmt: skip
    told = {id: value for id, value in values.items() if not defect or id != "t1"}
    found, reasons = admitted([Candidate(made, defect, told)], 0.0)
    assert bool(found) == (not defect)
    assert not defect or reasons == {"the facts do not answer one question": 1}


def test_two_facts_that_are_both_true_are_no_change() -> None:
    """The question what the user paid has two answers if the user bought two things."""
    rng = random.Random(5)
    found, reasons = admitted([conflict(n, rng, "both true") for n in range(30)], 0.0)
    assert found == []
    assert reasons == {"both values may be true": 30}


def test_a_value_that_changes_later_in_the_conversation_is_not_asked_for() -> None:
    """Its evidence gives the old value, and no fact says that it was replaced."""
    rng = random.Random(8)
    found, reasons = admitted([recall(n, rng, "outdated") for n in range(30)], 0.0)
    assert found == []
    assert reasons == {"the conversation gives another answer": 30}


def test_a_probe_that_asks_for_both_values_is_verified_without_that_request() -> None:
    plain = conflict(1, random.Random(6))
    flagging = plain.probe.model_copy(update={"question": plain.probe.question + FLAG_REQUEST})
    asked = Candidate(flagging, told=plain.told, both_true=True)  # it is right to name both if that is asked for
    assert admitted([asked, plain], 0.0)[0] == [asked, plain]


def test_no_told_fact_is_asked_as_absent() -> None:
    """A4: 100 conversations with an answer in odd wording."""
    rng = random.Random(4)
    told = [absent(n, rng, "told") for n in range(100)]
    for errs in (0.0, ERRS):
        assert admitted(told, errs)[0] == []


@pytest.mark.parametrize(("overlooked", "is_admitted"), [(1, False), (2, False), (3, True)])
def test_a_told_fact_is_asked_as_absent_only_if_three_replies_overlook_it(overlooked: int, is_admitted: bool) -> None:
    found = '{"answer": "bright green", "quote": "something bright green"}'
    replies = iter([*(['{"answer": null, "quote": null}'] * overlooked), *[found] * 4])
    model = ProbeModel(ScriptedModel(lambda turns: next(replies)))
    one = absent(1, random.Random(4), "told")
    with nullcontext() if is_admitted else pytest.raises(Lacking, match="told"):
        run(model.verify(UnrecordedSteps(), one.probe, CONVERSATION))


def test_the_day_that_code_adds_to_a_question_is_no_leak() -> None:
    asked = "Fill the gap in this note about the user, as things stood on 2 March 2024. Birthday: ____."
    made = probe(1, "recall", asked, "5 March", gold_context=(turn("t1", "My birthday is on 5 March."),))
    found, _ = admitted([Candidate(made.model_copy(update={"origin": "structured"}), told={"t1": "5 March"})], 0.0)
    assert found


def test_a_reply_that_says_it_does_not_know_is_silence() -> None:
    model = ProbeModel(ScriptedModel(lambda turns: json.dumps({"answer": "I don't know.", "quote": None})))
    run(model.verify(UnrecordedSteps(), absent(1, random.Random(4)).probe, CONVERSATION))


def test_one_unfounded_answer_does_not_reject_what_is_absent() -> None:
    replies = iter(['{"answer": "red", "quote": "it is red"}', *['{"answer": null, "quote": null}'] * 3])
    model = ProbeModel(ScriptedModel(lambda turns: next(replies)))
    run(model.verify(UnrecordedSteps(), absent(1, random.Random(4)).probe, CONVERSATION))


EARLY, LATE = "2024-01-09", "2024-02-20"


@pytest.mark.parametrize(
    ("dates", "is_admitted"),
    [
        ([EARLY, LATE] * 3, True),
        (["UNKNOWN", LATE, *[EARLY, LATE] * 3], True),
        (["PLAN", LATE, *[EARLY, LATE] * 3], True),
        (["PLAN", LATE, EARLY, LATE, EARLY, "PLAN"], False),
        ([EARLY, LATE, EARLY, LATE, LATE, EARLY, LATE, EARLY], False),
        ([LATE, EARLY] * 3, False),
        ([EARLY, EARLY] * 2, False),
    ],
)
def test_two_events_are_put_in_order_by_three_of_four_replies(dates: list[str], is_admitted: bool) -> None:
    replies = iter([*dates, *[NONE] * 3] if is_admitted else dates)  # then it is asked without the conversation
    model = ProbeModel(ScriptedModel(lambda turns: next(replies)))
    with nullcontext() if is_admitted else pytest.raises(Lacking, match="not two dated events"):
        run(model.verify(UnrecordedSteps(), order(1, random.Random(4)).probe, CONVERSATION))
    assert next(replies, None) is None


@pytest.mark.parametrize(("question", "wanted"), [("What happened first?", EARLY), ("What happened last?", LATE)])
def test_the_expected_event_is_the_one_that_the_question_asks_for(question: str, wanted: str) -> None:
    one = order(1, random.Random(4))
    dates = {date: event for event, date in one.dates.items()}
    for date, event in dates.items():
        asked = f"{question} (A) {one.probe.options[0]}. (B) {one.probe.options[1]}."
        made = one.probe.model_copy(update={"question": asked, "expected_answer": event})
        found, _ = admitted([replace(one, probe=made)], 0.0)
        assert bool(found) == (date == wanted)


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("Was geschah zuerst?", EARLY),
        ("Which was earlier?", EARLY),
        ("Which of these is more recent?", LATE),
        ("Before which event did the other happen?", LATE),
        ("Which of the two was not the first?", LATE),
    ],
)
def test_a_question_about_order_in_other_words_is_answered_from_its_evidence(question: str, wanted: str) -> None:
    """The words that it shares with a generated question do not say which event it asks for."""
    one = order(1, random.Random(4))
    right = next(event for event, date in one.dates.items() if date == wanted)
    for event in one.probe.options:
        asked = f"{question} (A) {one.probe.options[0]}. (B) {one.probe.options[1]}."
        made = one.probe.model_copy(update={"question": asked, "expected_answer": event})
        known = replace(one, probe=made, told=dict.fromkeys(("t1", "t2"), right))
        assert bool(admitted([known], 0.0)[0]) == (event == right)


@pytest.mark.parametrize("reply", ["", "I cannot help with that.", '{"answer": ["a"]}', "null", '{"quote": "x"}'])
def test_a_reply_that_cannot_be_read_admits_nothing(reply: str) -> None:
    model = ProbeModel(ScriptedModel(lambda turns: reply))
    rng = random.Random(1)
    for one in (recall(1, rng), conflict(2, rng), order(3, rng), absent(4, rng)):
        with pytest.raises(Lacking):
            run(model.verify(UnrecordedSteps(), one.probe, CONVERSATION))


def test_whether_a_question_needs_the_conversation_is_asked_without_a_source() -> None:
    """A model that is told to answer from an empty source only would find that every question needs it."""
    prompts: list[str] = []

    def reply(turns: Sequence[Turn]) -> str:
        prompts.append(turns[-1].content)
        return json.dumps({"answer": None, "quote": None})

    asked = probe(1, "recall", "What is the capital of France?", "Paris", gold_context=(turn("t1", "Paris"),))
    with pytest.raises(Lacking):
        run(ProbeModel(ScriptedModel(reply)).verify(UnrecordedSteps(), asked, CONVERSATION))
    without = [prompt for prompt in prompts if "<source" not in prompt]
    assert without
    assert all("general knowledge" in prompt and "nothing else. " not in prompt for prompt in without)
