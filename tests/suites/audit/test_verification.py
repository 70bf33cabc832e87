"""Probes that a model verifies: the defects are found, and the good ones are kept, by a model that errs."""

import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from hashlib import sha256

import pytest

from memorybench.core.conversation import Turn
from memorybench.core.errors import Lacking
from memorybench.models.scripted import ScriptedModel
from memorybench.suites.audit.answers import is_same
from memorybench.suites.audit.probes import Probe
from memorybench.suites.audit.verification import ProbeModel
from tests.suites.audit.probing import UnrecordedSteps, run

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
    evidence = (turn("t2", f"{person} says that {value} comes to the {topic}."),)
    return Candidate(probe(number, "recall", question, expected, gold_context=evidence), defect, told, known)


def conflict(number: int, rng: random.Random, defect: str = "") -> Candidate:
    person, topic = rng.choice(PEOPLE), rng.choice(TOPICS)
    old, new = rng.sample(VALUES, 2)
    told = {"t3": new} if defect else {"t1": old, "t3": new}  # the old turn answers another question
    made = probe(
        number, "conflict", f"Who supplies {person}'s {topic} number {number} now?", new, current=new, stale=(old,),
        gold_context=(turn("t3", f"{new} supplies it now."),), stale_context=(turn("t1", f"{old} once came."),),
    )  # fmt: skip
    return Candidate(made, defect, told)


def order(number: int, rng: random.Random, defect: str = "") -> Candidate:
    one, other = (f"{rng.choice(PEOPLE)} {event} {number}" for event in rng.sample(EVENTS, 2))
    dates = {one: "2024-01-09" if not defect else "PLAN", other: "2024-02-20"}
    evidence = (turn("t1", one), turn("t2", other))
    asked = f"What happened first: (A) {one}, or (B) {other}?"
    made = probe(number, "temporal", asked, one, options=(one, other), gold_context=evidence)
    return Candidate(made.model_copy(update={"kind": "order"}), defect, dates=dates)


def absent(number: int, rng: random.Random, defect: str = "") -> Candidate:
    asked = f"Which colour is {rng.choice(PEOPLE)}'s {rng.choice(TOPICS)} number {number}?"
    made = probe(number, "hallucination", asked, "-", abstain=True)
    return Candidate(made, defect, {"t4": "bright green"} if defect else {})


CONVERSATION = tuple(turn(f"t{n}", f"Turn {n} speaks of something bright green.") for n in range(1, 6))
DEFECTS = {
    "leak": recall, "wrong gold": recall, "not in evidence": recall, "world knowledge": recall,
    "plan": order, "two questions": conflict, "told": absent,
}  # fmt: skip


def candidates(count: int) -> list[Candidate]:
    rng = random.Random(20)
    good = [(recall, conflict, order, absent)[n % 4](n, rng) for n in range(count // 2)]
    names = list(DEFECTS)
    bad = [DEFECTS[names[n % 7]](count + n, rng, names[n % 7]) for n in range(count // 2)]
    return good + bad


class TruthfulModel:
    """Answers from the truth, and errs in a fixed share of its replies."""

    def __init__(self, known: Sequence[Candidate], errs: float) -> None:
        self._candidates = known
        self._errs = errs
        self.calls = 0

    def __call__(self, turns: Sequence[Turn]) -> str:
        self.calls += 1
        prompt = turns[-1].content
        errs = int(sha256(prompt.encode()).hexdigest()[:8], 16) / 16**8 < self._errs
        if "Event: " in prompt:
            event = prompt.partition("Event: ")[2].partition("\n")[0]
            date = next(one.dates[event] for one in self._candidates if event in one.dates)
            return "2023-12-31" if errs and date == "PLAN" else "UNKNOWN" if errs else date
        one = next(one for one in self._candidates if f"{one.probe.question}\n" in prompt)
        if "First answer: " in prompt:
            first = prompt.partition("First answer: ")[2].partition("\n")[0]
            second = prompt.partition("Second answer: ")[2].partition("\n")[0]
            return "yes" if is_same(first, second) != errs else "no"
        ids = re.findall(r"^(t\d+) ", prompt, re.MULTILINE)
        answer = one.known if not ids else next((one.told[id] for id in reversed(ids) if id in one.told), None)
        if errs:
            answer = one.probe.expected_answer if answer != one.probe.expected_answer else None
        quoted = answer if one.probe.abstain and answer == "bright green" else None
        return f"Here you are: {json.dumps({'answer': answer, 'quote': quoted})}"


def admitted(known: Sequence[Candidate], errs: float) -> tuple[list[Candidate], Counter[str]]:
    model = ProbeModel(ScriptedModel(TruthfulModel(known, errs)))
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


@pytest.mark.parametrize("errs", [0.0, ERRS])
def test_defects_are_found_and_good_probes_kept(errs: float) -> None:
    known = candidates(300)
    found, reasons = admitted(known, errs)
    defects = [one.defect for one in found if one.defect]
    assert len(defects) <= 0.02 * 150, Counter(defects)
    assert len(found) - len(defects) >= (0.85 if errs else 1) * 150, reasons
    if not errs:
        assert not defects
        assert reasons.keys() == {
            "leak", "not answerable from its evidence", "answerable without the conversation", "told",
            "not two dated events", "the facts do not answer one question",
        }  # fmt: skip


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


def test_one_unfounded_answer_does_not_reject_what_is_absent() -> None:
    replies = iter(['{"answer": "red", "quote": "it is red"}', *['{"answer": null, "quote": null}'] * 3])
    model = ProbeModel(ScriptedModel(lambda turns: next(replies)))
    run(model.verify(UnrecordedSteps(), absent(1, random.Random(4)).probe, CONVERSATION))


@pytest.mark.parametrize(
    ("dates", "is_admitted"),
    [
        (["2024-01-09", "2024-02-20"] * 2, True),
        (["UNKNOWN", "2024-02-20", *["2024-01-09", "2024-02-20"] * 2], True),
        (["PLAN", "2024-02-20", *["2024-01-09", "2024-02-20"] * 2], False),
        (["2024-01-09", "2024-02-20", "2024-01-09", "PLAN", "2024-01-09", "2024-02-20"], False),
    ],
)
def test_an_event_that_one_reply_calls_a_plan_is_not_put_in_order(dates: list[str], is_admitted: bool) -> None:
    replies = iter(dates)
    model = ProbeModel(ScriptedModel(lambda turns: next(replies)))
    with nullcontext() if is_admitted else pytest.raises(Lacking, match="not two dated events"):
        run(model.verify(UnrecordedSteps(), order(1, random.Random(4)).probe, CONVERSATION))


@pytest.mark.parametrize("reply", ["", "I cannot help with that.", '{"answer": ["a"]}', "null", '{"quote": "x"}'])
def test_a_reply_that_cannot_be_read_admits_nothing(reply: str) -> None:
    model = ProbeModel(ScriptedModel(lambda turns: reply))
    rng = random.Random(1)
    for one in (recall(1, rng), conflict(2, rng), order(3, rng), absent(4, rng)):
        with pytest.raises(Lacking):
            run(model.verify(UnrecordedSteps(), one.probe, CONVERSATION))
