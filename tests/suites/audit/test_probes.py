"""Probes of every kind: about what holds, what changed, what is absent and what came first."""

import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from memorybench.datasets.audit import AuditConversation, AuditDataset
from memorybench.suites.audit.absent_topics import PREMISES, TOPICS
from memorybench.suites.audit.evidence import IndexedConversation
from memorybench.suites.audit.generation import generate
from memorybench.suites.audit.probes import PROBE_TYPES, Probe, Probes
from memorybench.suites.audit.words import content, keys, words
from tests.suites.audit.probing import conversation, day, fact, of_kind, probes_of, reasons
from tests.suites.audit.test_probe_gates import sample


def chain(*values: str, **more: object) -> AuditConversation:
    return conversation(
        *(
            fact(
                f"f{n}",
                f"User's favourite tea is {value}",
                attribute="favourite tea",
                value=value,
                at=day(60 * n),
                supersedes=f"f{n - 1}" if n else None,
                **more,
            )
            for n, value in enumerate(values)
        )
    )


def test_recall_asks_only_about_current_facts() -> None:
    made = probes_of(chain("Assam", "rooibos"))
    assert [probe.expected_answer for probe in of_kind(made, "recall")] == ["rooibos"]


def test_expired_facts_are_skipped_and_counted() -> None:
    made = probes_of(conversation(fact("f", "User lives in Rome", valid_to=day(0)), fact("g", "User loves chess")))
    assert reasons(made)["f"] == "no longer valid"
    assert [probe.related_facts for probe in of_kind(made, "recall")] == [("g",)]


def test_a_conflict_question_names_neither_value() -> None:
    (probe,) = of_kind(probes_of(chain("Assam", "rooibos")), "latest")
    assert probe.question == "What is the user's favourite tea now?"
    assert (probe.expected_answer, probe.stale, probe.flags) == ("rooibos", ("Assam",), False)


def test_a_chain_of_three_gives_one_probe_about_now_and_two_about_then() -> None:
    made = probes_of(chain("Assam", "rooibos", "sencha"))
    (now,) = of_kind(made, "latest")
    assert (now.expected_answer, now.stale) == ("sencha", ("Assam", "rooibos"))
    then = {probe.question: (probe.expected_answer, set(probe.stale)) for probe in of_kind(made, "as of")}
    assert then == {
        "What was the user's favourite tea in February 2024?": ("Assam", {"rooibos", "sencha"}),
        "What was the user's favourite tea in April 2024?": ("rooibos", {"Assam", "sencha"}),
    }


def test_a_flag_probe_expects_both_values() -> None:
    (probe,) = of_kind(probes_of(chain("Assam", "rooibos"), policy="flag"), "flag")
    assert probe.flags
    assert "rooibos" in probe.expected_answer
    assert "Assam" in probe.expected_answer
    assert not content(probe.question) & content("Assam rooibos")


def test_events_that_change_a_state_are_asked_about_as_the_state() -> None:
    old, new = fact("f", "User lives in Boston"), fact("g", "User moved to Seattle", supersedes="f")
    (probe,) = of_kind(probes_of(conversation(old, new)), "latest")
    assert (probe.question, probe.expected_answer, probe.stale) == (
        "Where does the user live now?",
        "Seattle",
        ("Boston",),
    )


def test_values_that_contain_each_other_are_not_a_conflict() -> None:
    made = probes_of(chain("Boston blend", "South Boston blend"))
    assert not of_kind(made, "latest")
    assert made.gates["values overlap"] == 1


def test_a_fact_with_two_successors_has_no_conflict_probe() -> None:
    forked = conversation(
        fact("f", "User's tea is Assam"),
        fact("g", "User's tea is sencha", supersedes="f"),
        fact("h", "User's tea is oolong", supersedes="f"),
    )
    assert not of_kind(probes_of(forked), "latest")


def test_undated_turns_have_no_as_of_probes() -> None:
    told = chain("Assam", "rooibos")
    undated = told.model_copy(update={"turns": tuple(replace(turn, at=None) for turn in told.turns)})
    made = probes_of(undated)
    assert not of_kind(made, "as of")
    assert made.gates["undated"] >= 1


EVENTS = (
    ("f0", "User adopted a greyhound"),
    ("f1", "User repaired the harbour crane"),
    ("f2", "User visited the salt mines"),
    ("f3", "User bought a cargo bike"),
    ("f4", "User painted the kitchen ceiling"),
)


def events(*days: int) -> AuditConversation:
    return conversation(
        *(
            fact(id, text, category="event", at=day(at))
            for (id, text), at in zip(EVENTS, days or (0, 20, 40, 60, 80), strict=False)
        )
    )


def test_every_order_is_asked_both_ways_and_the_right_option_is_first_in_half() -> None:
    made = probes_of(events(), *(sample().conversations))
    orders = of_kind(made, "order")
    by_id = {probe.id: probe for probe in orders}
    first = Counter(probe.options.index(probe.expected_answer) for probe in orders)
    assert first[0] == first[1] == len(orders) // 2 > 10
    for probe in orders:
        twin = by_id[probe.twin or ""]
        assert (twin.twin, twin.options) == (probe.id, probe.options[::-1])
        assert twin.expected_answer == probe.expected_answer
        assert twin.reversed is not probe.reversed
        assert all(option in probe.question for option in probe.options)


def test_pairs_are_no_neighbours_in_time() -> None:
    pairs = {probe.related_facts for probe in of_kind(probes_of(events()), "order")}
    assert pairs == {("f0", "f2"), ("f1", "f3"), ("f2", "f4")}


def test_ties_are_left_out() -> None:
    made = probes_of(events(0, 0))
    assert (of_kind(made, "order"), made.gates["tie"]) == ([], 1)


def test_options_do_not_tell_when() -> None:
    dated = conversation(
        fact("f0", "User adopted a greyhound in March 2021", category="event", at=day(0)),
        fact("f1", "User repaired the harbour crane two days later", category="event", at=day(20)),
        fact("f2", "User visited the salt mines", category="event", at=day(40)),
    )
    made = probes_of(dated)
    assert {option for probe in of_kind(made, "order") for option in probe.options} == {
        "the user adopted a greyhound",
        "the user visited the salt mines",
    }
    assert made.gates["option tells the time"] == 1


def test_what_anybody_could_order_is_left_out() -> None:
    made = probes_of(
        conversation(
            fact("f", "User was born in a lighthouse", category="event", at=day(0)),
            fact("g", "User visited the salt mines", category="event", at=day(20)),
        )
    )
    assert not of_kind(made, "order")


def test_durations_are_counted_by_code() -> None:
    durations = {probe.related_facts: probe.expected_answer for probe in of_kind(probes_of(events()), "duration")}
    assert durations == {("f0", "f2"): "40", ("f1", "f3"): "40", ("f2", "f4"): "40"}


def test_a_duration_that_no_turn_tells_is_not_asked() -> None:
    made = probes_of(events(3, 23, 43, 63, 83))
    assert not of_kind(made, "duration")
    assert made.gates["undated"] == 3


def test_of_facts_that_are_no_events_the_order_of_telling_is_asked() -> None:
    made = probes_of(conversation(fact("f", "User loves alpine chess"), fact("g", "User's dog is a whippet")))
    assert {probe.question.split(":")[0] for probe in of_kind(made, "order")} == {
        "Which was mentioned first in the conversation"
    }


def test_what_was_told_before_in_other_words_has_no_order() -> None:
    told = conversation(
        fact("f", "User loves alpine chess", turn="t2"),
        fact("g", "User attended a charity evening with film trivia in the harbour hall", turn="t3"),
        said=[
            "What a charity evening that was, all that trivia about film in the harbour!", "User loves alpine chess",
            "User attended a charity evening with film trivia in the harbour hall",
        ],
    )  # fmt: skip
    made = probes_of(told)
    assert (of_kind(made, "order"), made.gates["told twice"]) == ([], 1)


def test_what_was_told_twice_has_no_order() -> None:
    told = conversation(
        fact("f", "User loves alpine chess", turn="t2"),
        fact("g", "User's dog is a whippet", turn="t3"),
        said=["That whippet again!", "User loves alpine chess", "User's dog is a whippet"],
    )
    made = probes_of(told)
    assert (of_kind(made, "order"), made.gates["told twice"]) == ([], 1)


TOLD = (
    fact("dog", "User has a dog named Biscuit"),
    fact("home", "User lives in Ghent"),
    fact("job", "User works as a glazier"),
    fact("plan", "User plans to visit Kyoto in autumn"),
    fact("tea", "User drinks oolong in the afternoon"),
    fact("ann", "Anna repairs clocks"),
)


def absent(made: Probes) -> list[Probe]:
    return [probe for probe in made.probes if probe.abstain]


def test_every_absent_probe_is_absent_and_has_an_answerable_twin() -> None:
    dataset = sample()
    made = generate(dataset, PROBE_TYPES)
    by_id = {probe.id: probe for probe in made.probes}
    tables = {topic.question: topic for topic in (*TOPICS, *PREMISES)}
    checked = Counter[str]()
    for probe in absent(made):
        twin = by_id[probe.twin or ""]
        assert (twin.type, twin.abstain, twin.conversation) == ("recall", False, probe.conversation)
        told = next(one for one in dataset.conversations if one.id == probe.conversation)
        held = {word for turn in told.turns for word in words(turn.content)}
        held |= {word for one in told.facts for word in words(one.content)}
        if probe.kind in ("complement", "false premise"):
            topic = tables[probe.question.replace("the user's", "{own}").replace("the user", "{s}")]
            new = set(words(topic.words))
            assert not held & new, f"{probe.question}: {held & new}"
        elif probe.kind == "near miss":
            new = set(words(probe.question)) - set(words(twin.question))
            assert new
            assert not held & new, f"{probe.question}: {held & new}"
        checked[probe.kind] += 1
    assert set(checked) >= {"complement", "near miss", "false premise"}


def test_kinds_of_absence_are_balanced() -> None:
    kinds = Counter(probe.kind for probe in absent(probes_of(conversation(*TOLD))))
    assert kinds == {"complement": 2, "near miss": 2, "false premise": 1, "not yet stated": 1}


def test_what_a_conversation_speaks_of_is_no_absence() -> None:
    aloud = [topic.words for topic in (*TOPICS, *PREMISES)]
    said = [one.content for one in TOLD]
    made = probes_of(conversation(*TOLD, said=[*said, *aloud]))
    assert {probe.kind for probe in absent(made)} <= {"near miss", "not yet stated"}
    assert made.gates["not absent"] >= len(aloud)


@pytest.mark.parametrize(
    ("topic", "told"),
    [
        ("team", "I've supported Arsenal since I was six."),
        ("school", "As a kid I went to St Mary's, the school on the hill."),
        ("instrument", "I play the harp every evening."),
        ("perfume", "I always wear Chanel No 5."),
        ("burglary", "Someone broke in last week and took my laptop."),
        ("shoe size", "I take a size 42 in trainers."),
        ("first pet", "My Labrador Rex came to us when I was five."),
        ("star sign", "A typical Scorpio, that's me."),
    ],
)
def test_an_answer_that_does_not_name_its_topic_is_an_answer(topic: str, told: str) -> None:
    (found,) = (one for one in (*TOPICS, *PREMISES) if one.name == topic)
    assert set(keys(found.words)) & set(keys(told)), f"{found.question} would be asked as something that is not told"


def test_a_plan_that_is_spoken_of_again_is_not_asked_about_as_open() -> None:
    said = [one.content for one in TOLD]
    open_ = of_kind(probes_of(conversation(*TOLD)), "not yet stated")
    assert [probe.question for probe in open_] == ["What happened when the user visited Kyoto?"]
    assert not of_kind(
        probes_of(conversation(*TOLD, said=[*said, "Kyoto was a dream, we walked for days."])), "not yet stated"
    )


def test_a_plan_is_still_open_when_one_of_its_words_falls_again() -> None:
    said = [one.content for one in TOLD]
    plan = fact("farm", "User hopes to restore the derelict windmill near Bruges")
    bought = fact("kayak", "User bought a kayak in May")
    made = probes_of(
        conversation(*TOLD, bought, plan, said=[*said, bought.content, plan.content, "The old windmill still stands."])
    )
    assert [probe.question for probe in of_kind(made, "not yet stated")] == [
        "What happened when the user visited Kyoto?",
        "What happened when the user restored the derelict windmill near Bruges?",
    ]


def test_a_near_miss_exchanges_nouns_of_one_kind_and_nobody_changes_gender() -> None:
    told = conversation(
        fact("tongue", "User's mother tongue is Swahili", attribute="mother tongue", value="Swahili"),
        fact("van", "User's camper van is yellow", subject="user's camper van", attribute="colour", value="yellow"),
        fact("gig", "User played a sold-out show"),
        fact("sister", "User's sister lost her first tooth in May"),
    )
    missed = {probe.question for seed in range(12) for probe in near_misses(told, seed)}
    assert missed
    assert not [asked for asked in missed if "her" in words(asked) and set(words(asked)) & {"brother", "nephew"}]
    assert not [asked for asked in missed if re.search(r"grand\w+ tongue|camper (?!van)|user painting", asked)]


def near_misses(told: AuditConversation, seed: int) -> list[Probe]:
    made = generate(AuditDataset(id="d", conversations=(told,)), PROBE_TYPES, seed=seed)
    return of_kind(made, "near miss")


def test_a_premise_that_is_partly_true_is_not_false() -> None:
    stood = fact("office", "User ran a campaign for the town council")
    for seed in range(8):
        dataset = AuditDataset(id="d", conversations=(conversation(*TOLD, stood),))
        assert not [probe for probe in generate(dataset, PROBE_TYPES, seed=seed).probes if "election" in probe.id]


def test_the_cost_per_conversation_does_not_grow_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = 0
    original = IndexedConversation.has_any

    def has_any(self: IndexedConversation, texts: Iterable[str]) -> bool:
        nonlocal searches
        searches += 1
        return original(self, texts)

    def searches_for(count: int) -> int:
        nonlocal searches
        searches = 0
        probes_of(*(conversation(*TOLD, id=f"c{n}") for n in range(count)))
        return searches

    monkeypatch.setattr(IndexedConversation, "has_any", has_any)
    assert searches_for(12) <= 5 * searches_for(3)  # the questions of each differ


def test_there_are_never_more_absent_probes_than_recall_probes() -> None:
    for count in range(1, len(TOLD) + 1):
        made = probes_of(conversation(*TOLD[:count]))
        assert len(absent(made)) <= len(of_kind(made, "recall"))


def test_what_other_conversations_speak_of_is_asked_first() -> None:
    chess = conversation(fact("f", "User's chess rating is 1840"), id="c2")
    made = probes_of(conversation(*TOLD), chess)
    asked = [probe.question for probe in of_kind(made, "complement") if probe.conversation == "c1"]
    assert asked[0] == "What is the user's chess rating?"


def test_only_the_requested_kinds_and_twins_are_generated() -> None:
    dataset = AuditDataset(id="d", conversations=(conversation(*TOLD),))
    made = generate(dataset, ["hallucination"])
    twins = {probe.twin for probe in absent(made)}
    assert {probe.id for probe in made.probes if not probe.abstain} == twins


@pytest.mark.parametrize("limit", [1, 2, 7, 20, 61])
def test_a_limit_splits_no_pair(limit: int) -> None:
    made = generate(sample(), PROBE_TYPES, limit=limit)
    ids = {probe.id for probe in made.probes}
    assert limit - 1 <= len(ids) <= limit
    assert all(probe.twin in ids for probe in made.probes if probe.twin)
    assert made.gates["beyond the limit"] > 0
    if limit == 20:
        assert {probe.type for probe in made.probes} == set(PROBE_TYPES)


def test_the_same_dataset_gives_the_same_probes_whatever_the_order_of_its_facts() -> None:
    dataset = sample()
    assert generate(dataset, PROBE_TYPES) == generate(dataset, reversed(PROBE_TYPES))
    shuffled = dataset.model_copy(
        update={
            "conversations": tuple(
                one.model_copy(update={"facts": tuple(random.Random(1).sample(one.facts, len(one.facts)))})
                for one in dataset.conversations
            )
        }
    )
    ours, theirs = generate(dataset, ["recall", "conflict"]), generate(shuffled, ["recall", "conflict"])
    assert {(probe.id, probe.question) for probe in ours.probes} == {
        (probe.id, probe.question) for probe in theirs.probes
    }
    assert ours.gates == theirs.gates


def test_questions_of_one_conversation_differ_and_ids_are_unique() -> None:
    made = generate(sample(), PROBE_TYPES)
    assert len({probe.id for probe in made.probes}) == len(made.probes)
    assert max(Counter((probe.conversation, probe.question) for probe in made.probes).values()) == 1


def test_a_probe_has_the_age_of_its_evidence() -> None:
    (probe, *_) = [probe for probe in probes_of(conversation(*TOLD)).probes if probe.related_facts == ("dog",)]
    assert (probe.age_turns, probe.age_days) == (5, 100)
    assert (probe.labels["turns_back"], probe.labels["days_back"]) == ("0-9", "31-180")


def test_every_fact_is_probed_or_skipped_with_a_reason() -> None:
    dataset = sample()
    made = generate(dataset, PROBE_TYPES)
    probed = {(probe.conversation, id) for probe in made.probes for id in probe.related_facts}
    left = {(skipped.conversation, skipped.fact) for skipped in made.skipped}
    every = {(one.id, fact.id) for one in dataset.conversations for fact in one.facts}
    assert probed | left == every
