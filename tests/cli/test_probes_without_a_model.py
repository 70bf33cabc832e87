"""What `audit probes` asks without a model, and what it leaves out and counts."""

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from tests.cli.command import Command

Fact = dict[str, Any]
OTHER = ("I keep bees behind the old mill.", "The bees are fine, thanks.")


class Listing(NamedTuple):
    probes: list[dict[str, Any]]
    rejected: dict[str, int]

    def of_type(self, type: str) -> dict[str, str]:
        """Return the expected answer to each question of that type."""
        return {probe["question"]: probe["expectedAnswer"] for probe in self.probes if probe["type"] == type}

    @property
    def recall(self) -> dict[str, str]:
        return self.of_type("recall")

    @property
    def as_of(self) -> dict[str, str]:
        return self.of_type("temporal")


Listed = Callable[..., Listing]


@pytest.fixture
def listed(command: Command) -> Listed:
    """List the probes of one conversation: a turn per text, each on the date given or a month after the one before.

    A turn whose date is "" has none.
    """

    def list_probes(turns: Sequence[str], *facts: Fact, dates: Sequence[str] = (), more: Sequence[str] = ()) -> Listing:
        dates = dates or [f"2024-0{number}-09" for number in range(1, len(turns) + 1)]
        told = [
            {"role": "user", "content": text, **({"timestamp": at} if at else {})}
            for text, at in zip(turns, dates, strict=True)
        ]
        numbered = [{"id": f"f{number}", "turn": number, **fact} for number, fact in enumerate(facts, 1)]
        dataset = {"id": "mine", "conversations": [{"id": "c", "turns": told, "facts": numbered}]}
        (command.folder / "mine.json").write_text(json.dumps(dataset), "utf-8")
        said = command("audit", "probes", "mine.json", "--json", *more)
        assert said.code == 0, said.err
        return Listing(said.json["probes"], said.json["rejected"])

    return list_probes


def structured(attribute: str, value: str, content: str = "", **more: Any) -> Fact:
    content = content or f"The {attribute} of the user is {value}"
    return {"subject": "user", "attribute": attribute, "value": value, "content": content, **more}


@pytest.mark.parametrize(
    "value",
    ["tomorrow at noon", "next week", "last Friday", "today", "in three days", "two weeks ago", "this evening"],
)
def test_a_value_that_depends_on_when_it_was_said_is_not_asked(listed: Listed, value: str) -> None:
    made = listed([f"The plumber comes {value}, I was told."], structured("plumber visit", value))
    assert (made.probes, made.rejected) == ([], {"relative time": 1})


@pytest.mark.parametrize(
    ("turn", "question", "value", "is_asked"),
    [
        (
            "Der Klempner kommt übermorgen um neun, sagt die Verwaltung.",
            "Wann kommt der Klempner?",
            "übermorgen",
            False,
        ),
        ("Ich habe den Schlüssel heute im Keller wiedergefunden.", "Wann fand er den Schlüssel?", "heute", False),
        ("Der Klempner kommt immer am Morgen um neun zu uns.", "Wann kommt der Klempner?", "am Morgen", True),
        ("水管工说他明天上午来我家修水管。", "水管工什么时候来？", "明天上午", False),
        ("Le plombier passe demain matin pour la chaudière.", "Quand passe le plombier ?", "demain matin", False),
    ],
)
def test_relative_times_are_known_in_the_language_of_the_conversation(
    listed: Listed, turn: str, question: str, value: str, is_asked: bool
) -> None:
    made = listed([turn], {"content": turn, "question": question, "value": value})
    assert (len(made.probes), made.rejected.get("relative time", 0)) == (int(is_asked), int(not is_asked))


def test_a_change_to_or_from_a_relative_time_is_not_asked(listed: Listed) -> None:
    made = listed(
        ["The fair opens tomorrow.", "The fair opens on 4 March, not before."],
        structured("opening of the fair", "tomorrow"),
        structured("opening of the fair", "4 March", supersedes="f1"),
    )
    assert not made.of_type("conflict")
    assert made.rejected["relative time"] == 1


@pytest.mark.parametrize("attribute", ["next dentist appointment", "upcoming_exam", "scheduledInspection"])
@pytest.mark.parametrize(
    ("value", "end", "is_asked"),
    [("May 3", "2024-04-20", False), ("May 3", "2024-03-09", True), ("at the harbour clinic", "2024-03-09", True)],
)
def test_a_plan_is_asked_only_on_the_day_it_was_told(
    listed: Listed, attribute: str, value: str, end: str, is_asked: bool
) -> None:
    """Later it may be past, moved or dropped, even if its date is still to come."""
    made = listed([f"Mine is {value}, they wrote.", OTHER[0]], structured(attribute, value), dates=["2024-03-09", end])
    assert (len(made.probes), made.rejected.get("a plan", 0)) == (int(is_asked), int(not is_asked))


def test_a_replaced_plan_is_asked_for_the_day_on_which_it_was_made(listed: Listed) -> None:
    """Only the last plan may be outdated; when it was made does not tell for when."""
    turns = ["The next stop is Brittany.", "We drive to Asturias first.", OTHER[0]]
    made = listed(
        turns,
        structured("next stop", "Brittany", validFrom="2024-01-09"),
        structured("next stop", "Asturias", validFrom="2024-02-09", supersedes="f1"),
    )
    assert (list(made.as_of.values()), made.of_type("conflict"), made.recall) == (["Brittany"], {}, {})
    assert made.rejected["a plan"] == 1


def test_next_of_kin_is_not_a_plan(listed: Listed) -> None:
    made = listed(["My next of kin is Oona.", OTHER[0]], structured("next of kin", "Oona"))
    assert list(made.recall.values()) == ["Oona"]


def test_a_plan_that_a_model_might_ask_about_is_left_out_too(listed: Listed) -> None:
    """The own question of a fact about the next appointment is outdated like its attribute."""
    own = {"content": "The next exam is on May 3", "question": "When is the next exam?", "value": "May 3"}
    made = listed(["The exam is on May 3.", OTHER[0]], own, dates=["2024-03-09", "2024-05-12"])
    assert (made.probes, made.rejected) == ([], {"a plan": 1})


def test_a_past_value_is_asked_for_the_day_on_which_it_was_stated(listed: Listed) -> None:
    """Nothing tells whether the weight was still the same on a day between the two statements."""
    turns = ["I weigh 94 kilos.", "Down to 88 kilos now!", "Only 85 kilos today."]
    facts = [
        structured("weight", value, validFrom=f"2024-0{number}-09", supersedes=f"f{number - 1}" if number > 1 else None)
        for number, value in enumerate(("94 kilos", "88 kilos", "85 kilos"), 1)
    ]
    made = listed(turns, *facts)
    assert list(made.as_of.values()) == ["94 kilos", "88 kilos"]
    assert ["9 January 2024" in question for question in made.as_of] == [True, False]
    assert ["9 February 2024" in question for question in made.as_of] == [False, True]


def test_a_date_may_share_a_numeral_with_a_value(listed: Listed) -> None:
    made = listed(
        ["I work from ten to six.", "Now I work from two to nine."],
        structured("shift", "ten to six", validFrom="2024-01-10"),
        structured("shift", "two to nine", validFrom="2024-02-09", supersedes="f1"),
        dates=["2024-01-10", "2024-02-09"],
    )
    assert list(made.as_of.values()) == ["ten to six"]
    made = listed(
        ["The wine is of 2024.", "No, that one is empty, this is of 2019."],
        structured("vintage", "2024", validFrom="2024-01-10"),
        structured("vintage", "2019", validFrom="2024-02-09", supersedes="f1"),
        dates=["2024-01-10", "2024-02-09"],
    )
    assert (made.as_of, made.rejected["leak"]) == ({}, 1)


def test_two_values_of_one_day_have_no_past_question(listed: Listed) -> None:
    made = listed(
        ["The reading was 140 at six.", "The reading was 151 at nine."],
        structured("reading", "140", validFrom="2024-01-09T06:00"),
        structured("reading", "151", validFrom="2024-01-09T09:00", supersedes="f1"),
        dates=["2024-01-09", "2024-01-09"],
    )
    assert (made.as_of, made.rejected["same date"]) == ({}, 1)


def test_a_changed_fact_is_asked_once(listed: Listed) -> None:
    """The question of a plain recall is as true of the old value."""
    turns = ["I drink Assam in the morning.", "I have switched to rooibos."]
    facts = (structured("morning tea", "Assam"), structured("morning tea", "rooibos", supersedes="f1"))
    made = listed(turns, *facts)
    assert list(made.of_type("conflict").values()) == ["rooibos"]
    assert (made.recall, "asked as a change" in made.rejected) == ({}, False)
    recall = listed(turns, *facts, more=("--kinds", "recall"))
    assert (recall.probes, recall.rejected) == ([], {"asked as a change": 1})


def test_a_changed_fact_is_the_twin_of_an_absent_one_if_there_is_no_other(command: Command, listed: Listed) -> None:
    turns = ["I drink Assam in the morning.", "I have switched to rooibos."]
    listed(turns, structured("morning tea", "Assam"), structured("morning tea", "rooibos", supersedes="f1"))
    path = command.folder / "mine.json"
    dataset = json.loads(path.read_text())
    dataset["conversations"][0]["absent"] = [{"id": "x", "subject": "user", "attribute": "shoe size"}]
    path.write_text(json.dumps(dataset))
    said = command("audit", "probes", "mine.json", "--json", "--kinds", "hallucination").json
    absent, twin = sorted(said["probes"], key=lambda probe: probe["type"], reverse=True)
    assert (absent["type"], absent["twin"], twin["type"]) == ("hallucination", twin["id"], "conflict")


@pytest.mark.parametrize(("dates", "time"), [((), "on 9 February 2024"), (("", ""), "at the end of the conversation")])
def test_a_changed_fact_without_a_question_about_the_change_is_asked_as_of_its_day(
    listed: Listed, dates: Sequence[str], time: str
) -> None:
    """The old value is not in its turn, so that the change cannot be asked about."""
    made = listed(
        ["I have something hot in the morning.", "I have switched to rooibos."],
        structured("morning tea", "Assam"),
        structured("morning tea", "rooibos", supersedes="f1"),
        dates=dates,
    )
    assert not made.of_type("conflict")
    asked = f"Fill the gap in this note about the user, as things stood {time}. Morning tea: ____."
    assert made.recall == {asked: "rooibos"}


@pytest.mark.parametrize(("date", "time"), [("2024-01-09", ", as things stood on 9 January 2024"), ("", "")])
def test_a_fact_is_asked_for_the_day_on_which_it_was_stated_also_if_that_is_the_last(
    listed: Listed, date: str, time: str
) -> None:
    """`Now` could be the day of the question. Without dates, the fact may have ended at the end."""
    made = listed(["I drink rooibos."], structured("morning tea", "rooibos"), dates=[date])
    assert made.recall == {f"Fill the gap in this note about the user{time}. Morning tea: ____.": "rooibos"}


@pytest.mark.parametrize(
    ("old", "new", "is_asked"),
    [
        ("User walks 20 km a day with the dog", "User walks 16 km a day", False),
        ("User walks 20 km a day with the dog", "User now walks 16 km a day", False),
        ("User wants to be on the road until dusk", "User walks 16 km a day", True),
    ],
)
def test_a_gap_that_the_old_fact_fills_as_well_is_not_asked(listed: Listed, old: str, new: str, is_asked: bool) -> None:
    made = listed([old, new], {"content": old}, {"content": new, "supersedes": "f1"})
    assert list(made.recall.values()) == (["16"] if is_asked else [])
    assert made.rejected.get("fits an earlier fact", 0) == int(not is_asked)


def test_a_change_is_asked_for_the_day_on_which_it_was_stated(listed: Listed) -> None:
    """The last turn ends the fact, which neither code nor the dataset sees."""
    made = listed(
        [
            "Our account holds 3,650 pounds.",
            "It holds 4,102 pounds.",
            "The piano cost us 2,600, paid from the account.",
        ],
        structured("account balance", "3,650 pounds"),
        structured("account balance", "4,102 pounds", supersedes="f1"),
    )
    assert made.of_type("conflict") == {
        "Fill the gap in this note about the user, as things stood on 9 February 2024. Account balance: ____.": (
            "4,102 pounds"
        )
    }


def test_the_current_boss_is_asked_for_the_day_on_which_he_was(listed: Listed) -> None:
    made = listed(["Petra is my current boss.", "Petra has left us."], structured("current boss", "Petra"))
    asked = "Fill the gap in this note about the user, as things stood on 9 January 2024. Current boss: ____."
    assert made.recall == {asked: "Petra"}


def test_a_change_is_not_asked_for_a_day_that_tells_one_of_its_values(listed: Listed) -> None:
    made = listed(
        ["The rehearsal is on 4 March.", "It is on 9 February now.", *OTHER],
        structured("rehearsal date", "4 March"),
        structured("rehearsal date", "9 February", supersedes="f1"),
    )
    assert (made.of_type("conflict"), made.recall, made.rejected) == ({}, {}, {"leak": 2})


@pytest.mark.parametrize(
    ("statement", "kind", "value"),
    [
        ("User's biggest client is Tessel", "name", "Tessel"),
        ("User's mortgage is fixed until 2033", "year", "2033"),
        ("User swam 2000 metres in the lake", "number", "2000"),
        ("The farm was sold to a neighbour for 1950", "number", "1950"),
        ("User pays $450 a month for the berth", "number", "$450"),
        ("User swam the short distance in 19:02", "time", "19:02"),
        ("User's flight to the islands leaves on April 3", "date", "April 3"),
        ("The pilot of the sensors began in March", "month", "March"),
        ("User rows with the choir on Fridays", "day of the week", "Fridays"),
    ],
)
def test_a_gap_says_which_kind_of_text_fills_it(listed: Listed, statement: str, kind: str, value: str) -> None:
    made = listed([statement], {"content": statement})
    [(question, answer)] = made.recall.items()
    assert (question.partition(":")[0], answer) == (f"Fill the gap with a {kind} in a note of 9 January 2024", value)


@pytest.mark.parametrize(
    "statement",
    [
        "User met the author on Zoom",
        "The pilot of the sensors began in Swindon",
        "User's boat was built at Kvik Yard",
        "User's sister moved to Swindon",
        "User's brother came back from Swindon",
        "User saw a flock of geese off Swindon",
        "User rents a cabin near Swindon",
        "User's cousin drives a Berlingo",
        "User's cousin prepares the AGM",
    ],
)
def test_a_name_that_others_could_replace_gets_no_gap(listed: Listed, statement: str) -> None:
    """A house, its town and its country fit a gap after `in`, and so does a month; `the AGM` is no name."""
    made = listed([statement], {"content": statement})
    assert (made.probes, made.rejected) == ([], {"no gap": 1})


@pytest.mark.parametrize("season", ["in Q3", "at Easter", "for the whole of Lent", "until Labour Day"])
def test_a_time_of_the_year_is_not_asked_for_as_a_name(listed: Listed, season: str) -> None:
    statement = f"The new office is open to visitors {season}"
    assert listed([statement], {"content": statement}).probes == []


@pytest.mark.parametrize(
    ("statement", "value", "asked"),
    [
        ("User sang with Anna and her aunt, then with Ines", "Ines", ["Ines"]),
        ("User sang with Anna and her aunt, then with Ines", "Anna", ["Anna"]),
        ("User has 3 cats and a client called Tessel", "Tessel", ["Tessel"]),
        ("User drinks rooibos in the morning", "rooibos", []),
        ("User sang with Anna in the morning", "the morning", []),
    ],
)
def test_the_value_of_a_free_text_fact_chooses_its_gap(
    listed: Listed, statement: str, value: str, asked: list[str]
) -> None:
    """Only a name, a number or a time gets a gap: many words fit `User drinks ____ in the morning`."""
    made = listed([statement], {"content": statement, "value": value})
    assert list(made.recall.values()) == asked
    assert made.rejected.get("no gap", 0) == int(not asked)


@pytest.mark.parametrize("more", ["", " every Monday"])
def test_a_gap_replaces_no_part_of_a_name_that_ends_in_a_possessive(listed: Listed, more: str) -> None:
    statement = f"User's wife is a nurse at St Luke's{more}"
    assert "St Luke" not in listed([statement], {"content": statement}).recall.values()


OWN_QUESTIONS = [
    ("Die Probe ist dienstags um acht im Gemeindehaus.", "Die Probe ist jetzt mittwochs um acht.",
     "Wann ist die Probe?", "dienstags", "mittwochs",
     "Stand jetzt: ", "Stand 9. Februar 2024: "),
    ("La répétition est le mardi soir à la mairie.", "La répétition est maintenant le jeudi soir.",
     "Quand répète la chorale ?", "mardi", "jeudi", "À ce jour : ", "Au 9 février 2024 : "),
    ("合唱团每周二晚上在社区中心排练。", "合唱团改到每周四晚上排练了。",
     "合唱团什么时候排练？", "周二", "周四", "目前：", "截至2024年2月9日："),
    ("The choir meets on Tuesdays in the parish hall.", "The choir meets on Wednesdays these days.",
     "When does the choir meet?", "Tuesdays", "Wednesdays",
     "As things stand now: ", "As of 9 February 2024: "),
    ("Kuoro harjoittelee aina tiistaisin seurakuntatalolla.", "Kuoro harjoittelee nyt keskiviikkoisin.",
     "Milloin kuoro harjoittelee?", "tiistaisin", "keskiviikkoisin", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "question", "old", "new", "now", "later"), OWN_QUESTIONS)
@pytest.mark.parametrize("dates", [(), ("", "")])
def test_an_own_question_about_a_change_stays_in_its_language(
    listed: Listed,
    before: str,
    after: str,
    question: str,
    old: str,
    new: str,
    now: str,
    later: str,
    dates: Sequence[str],
) -> None:
    """It is asked for the day on which the last value was stated; without dates, for the end."""
    made = listed(
        [before, after],
        {"content": before, "question": question, "value": old},
        {"content": after, "question": question, "value": new, "supersedes": "f1"},
        dates=dates,
    )
    assert made.of_type("conflict") == {f"{now if dates else later}{question}": new}
    assert (made.as_of, made.rejected) == ({}, {"undated" if dates else "no past form": 1})
    assert not made.recall


@pytest.mark.parametrize(
    ("attribute", "shown"),
    [
        ("HbA1c", "HbA1c"),
        ("vitamin_D", "Vitamin D"),
        ("Vitamin D", "Vitamin D"),
        ("pH", "pH"),
        ("eReader", "eReader"),
        ("shoeSize", "Shoe size"),
        ("FavouriteDish", "Favourite dish"),
        ("favourite_dish", "Favourite dish"),
    ],
)
def test_an_attribute_keeps_its_letters(listed: Listed, attribute: str, shown: str) -> None:
    made = listed(["It is 7.4, since you ask."], structured(attribute, "7.4", "It is 7.4"))
    assert [question.rpartition(". ")[2] for question in made.recall] == [f"{shown}: ____."]


@pytest.mark.parametrize(
    ("turn", "value"),
    [
        ("No meat for me, I eat lentils.", "eat lentils"),
        ("We will rent a barge.", "rent a barge"),
        ("She doesn't like cheese.", "like cheese"),
        ("The menu? Not decided, sorry.", "Not decided"),
        ("The menu is never printed.", "never printed"),
    ],
)
def test_a_value_that_is_a_verb_or_a_negation_does_not_fit_a_note(listed: Listed, turn: str, value: str) -> None:
    made = listed([turn], structured("menu", value, turn))
    assert (made.probes, made.rejected) == ([], {"value does not fit": 1})


@pytest.mark.parametrize(
    ("turn", "value"),
    [
        ("I cook lentils on Mondays.", "lentils"),
        ("I cook two pies on Mondays.", "two pies"),
        ("She eats fish since the summer.", "eats fish"),
    ],
)
def test_a_noun_or_a_verb_with_an_ending_fits_a_note(listed: Listed, turn: str, value: str) -> None:
    made = listed([turn], structured("menu", value))
    assert list(made.recall.values()) == [value]


@pytest.mark.parametrize(
    ("statement", "asked"),
    [
        ("User is 58", []),
        ("User is Galician", []),
        ("User's aunt is 58", []),
        ("User's dog is Argo", ["Argo"]),
        ("User's aunt turned 58 in the war", ["58"]),
        ("User's family is with Ines from July 12 to 19", ["Ines"]),
        ("User's family is with Ines from 12 to 19 July", ["Ines"]),
        ("User is away between July 12 and 19", []),
    ],
)
def test_a_statement_with_a_gap_shows_what_is_asked(listed: Listed, statement: str, asked: list[str]) -> None:
    made = listed([statement, *OTHER], {"content": statement})
    assert list(made.recall.values()) == asked


def test_a_change_from_a_kind_of_place_to_a_name_has_one_question(listed: Listed) -> None:
    made = listed(
        ["I work at the tannery.", "I moved on to Tamar & Sons."],
        structured("workplace", "tannery"),
        structured("workplace", "Tamar & Sons", supersedes="f1"),
    )
    assert list(made.of_type("conflict").values()) == ["Tamar & Sons"]


@pytest.mark.parametrize(
    ("subject", "label"),
    [
        ("vicar's bicycle", '"vicar\'s bicycle"'),
        ("Anna's bicycle", '"Anna\'s bicycle"'),
        ("the bicycle", '"the bicycle"'),
        ("Regatta", '"Regatta"'),
        ("user's bicycle", "the user's bicycle"),
        ("my bicycle", "the user's bicycle"),
    ],
)
def test_a_subject_is_quoted_because_it_may_need_an_article(listed: Listed, subject: str, label: str) -> None:
    made = listed([f"It is green, {subject} I mean."], structured("colour", "green") | {"subject": subject}, dates=[""])
    assert list(made.recall) == [f"Fill the gap in this note about {label}. Colour: ____."]


@pytest.mark.parametrize("attribute", ["one of the boats", "some of the tools", "another boat"])
def test_an_attribute_that_several_values_fit_is_not_asked(listed: Listed, attribute: str) -> None:
    made = listed(["I own a red canoe and more."], structured(attribute, "red canoe", "User owns a red canoe"))
    assert (made.probes, made.rejected) == ([], {"no gap": 1})


@pytest.mark.parametrize(
    ("turns", "evidence"),
    [
        (["Who came? I was at the pool Mon/Wed.", "I take Mondays, and the pool is full."], None),
        (["Which day is the pool yours?", "Mondays."], ["t1", "t2"]),
        (["The pool is mine on Mondays.", "I take Mondays, and the pool is full."], ["t1"]),
    ],
)
def test_the_value_stands_in_the_turn_that_the_dataset_names(
    listed: Listed, turns: list[str], evidence: list[str] | None
) -> None:
    """The turn after it counts only if the named turn ends with a question."""
    made = listed(turns, structured("day at the pool", "Mondays"))
    assert [probe["evidence"] for probe in made.probes] == ([evidence] if evidence else [])
    assert made.rejected.get("unanswerable", 0) == int(evidence is None)


def test_a_value_replaced_on_the_day_from_which_it_was_to_hold_is_not_asked_for_that_day(listed: Listed) -> None:
    turns = ["The oven goes into the cellar.", "I changed my mind: it goes into the attic.", OTHER[0]]
    made = listed(
        turns,
        structured("place of the oven", "cellar", validFrom="2024-02-09"),
        structured("place of the oven", "attic", validFrom="2024-02-12", supersedes="f1"),
    )
    assert (made.as_of, made.rejected["a plan"]) == ({}, 2)


def test_a_change_to_one_weekday_is_not_asked(listed: Listed) -> None:
    """Another week has the same day."""
    turns = ["The fitter comes on Friday.", "He moved it: he comes on Monday."]
    made = listed(
        turns,
        structured("fitting day", "Friday", turns[0]),
        structured("fitting day", "Monday", turns[1], supersedes="f1"),
    )
    assert (made.probes, made.rejected) == ([], {"relative time": 2})


def test_a_change_is_not_asked_about_if_it_was_stated_before_its_day(listed: Listed) -> None:
    """The move may have been put off: nothing says that it took place on that day."""
    home = structured("home", "Saltmarsh House", validFrom="2024-02-15")
    made = listed(["I move to Saltmarsh House on the 15th of February.", OTHER[0], OTHER[1]], home)
    assert (made.probes, made.rejected) == ([], {"a plan": 1})


@pytest.mark.parametrize("own", [{}, {"question": "Where does the user live?"}])
def test_a_change_that_was_stated_before_its_day_is_no_conflict(listed: Listed, own: Fact) -> None:
    turns = ["I live in Rye.", "I move to Deal on the 15th of March.", OTHER[0], OTHER[1]]
    later = structured("home", "Deal", validFrom="2024-03-15", supersedes="f1", **own)
    made = listed(turns, structured("home", "Rye", **own), later)
    assert (made.of_type("conflict"), made.recall) == ({}, {})


def test_a_fact_in_the_past_tense_is_asked_about_as_it_was_written(listed: Listed) -> None:
    """The user's wife was not called Aase on the day of the note: she had died before."""
    wife = {"subject": "user's wife", "attribute": "name", "value": "Aase", "content": "User's wife was called Aase"}
    [(question, answer)] = listed(["My late wife was called Aase.", OTHER[0]], wife).recall.items()
    asked = "Fill the gap with a name in a note of 9 January 2024: User's wife was called ____."
    assert (question, answer) == (asked, "Aase")


@pytest.mark.parametrize(
    ("second_day", "asked"),
    [
        ("2024-02-09", {"How many days lie between these two events? The café was flooded. The café welcomed guests."}),
        ("2024-01-09", set()),  # the events are of one day
        ("2024-02-08", set()),  # no turn tells the day of the second event
    ],
)
def test_the_order_of_events_is_left_to_a_probe_model(listed: Listed, second_day: str, asked: set[str]) -> None:
    """A café welcomes guests after a flood: that can be answered without the conversation. The days cannot."""
    turns = ["The café was flooded today.", "The café opened its doors to guests.", OTHER[0]]
    events = [
        {"content": text, "category": "event", "validFrom": day}
        for text, day in (("The café was flooded", "2024-01-09"), ("The café welcomed guests", second_day))
    ]
    made = listed(turns, *events)
    assert set(made.of_type("temporal")) == asked
    assert made.rejected == ({} if asked else {"needs a probe model": 2})


def test_a_gap_that_another_fact_fills_as_well_is_not_asked(listed: Listed) -> None:
    """Last year's number is no answer that was replaced: both are true."""
    turns = ["Imre cooked 15 jars of jam last summer.", "Imre cooked 18 jars of jam."]
    made = listed(
        turns, {"content": "Imre cooked 15 jars of jam last summer"}, {"content": "Imre cooked 18 jars of jam"}
    )
    assert (list(made.recall.values()), made.rejected) == (["15"], {"not unique": 1})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User has a parrot named Kiki", "User has a parrot called Lolo"),
        ("User's cousin rows for Delft", "User's other cousin rows for Lund"),
    ],
)
def test_a_gap_for_a_name_that_another_fact_fills_as_well_is_not_asked(listed: Listed, one: str, other: str) -> None:
    made = listed([one, other], {"content": one}, {"content": other})
    assert one.split()[-1] not in made.recall.values()
    assert made.rejected["not unique"] >= 1


@pytest.mark.parametrize(
    ("content", "turn", "is_asked"),
    [
        ("User swam twice for Lund", "For Lund I swam twice for two days.", False),
        ("User swam twice for Lund", "I swam twice for Lund.", True),
        ("User swam twice for Lund", "Lund was fun, so many pools, and I swam.", True),
    ],
)
def test_a_gap_that_the_turn_fills_otherwise_is_not_asked(
    listed: Listed, content: str, turn: str, is_asked: bool
) -> None:
    made = listed([turn, *OTHER], {"content": content})
    assert list(made.recall.values()) == (["Lund"] if is_asked else [])
    assert made.rejected.get("not unique", 0) == int(not is_asked)


def test_a_fact_with_a_planned_successor_is_asked_for_its_day(listed: Listed) -> None:
    turns = ["The berth costs 31 euros.", "From June on the berth will cost 44 euros."]
    made = listed(
        turns,
        structured("berth price", "31 euros"),
        structured("berth price", "44 euros", supersedes="f1", validFrom="2024-06-01"),
    )
    assert list(made.recall.values()) == ["31 euros"]
    assert "as things stood on 9 January 2024" in next(iter(made.recall))


def test_a_plan_that_another_plan_replaced_is_not_asked(listed: Listed) -> None:
    """On the day for which it was planned, it had been given up."""
    question = "实习到哪天结束？"
    made = listed(
        ["实习到2月15日结束。", "实习延长到5月1日。", "今天很热。"],
        {"content": "实习到2月15日结束", "question": question, "value": "2月15日", "validFrom": "2024-02-15"},
        {
            "content": "实习延长到5月1日",
            "question": question,
            "value": "5月1日",
            "validFrom": "2024-05-01",
            "supersedes": "f1",
        },
    )
    assert (made.probes, made.rejected["a plan"]) == ([], 2)


@pytest.mark.parametrize("question", ["林晓多大年纪？", "林晓几岁？", "林晓今年多大了？", "Wie alt ist Lin?"])
def test_an_own_question_for_an_age_is_asked_only_if_it_was_answered_on_the_last_day(
    listed: Listed, question: str
) -> None:
    age = {"content": "林晓29岁", "question": question, "value": "29岁"}
    assert list(listed(["林晓29岁。"], age).recall.values()) == ["29岁"]
    made = listed(["林晓29岁。", "今天很热。"], age)
    assert (made.recall, made.rejected["relative time"]) == ({}, 1)


@pytest.mark.parametrize(("day", "is_asked"), [("15日", True), ("15号", True), ("9日", False), ("9号", False)])
def test_a_day_in_any_language_that_tells_the_value_is_not_named(listed: Listed, day: str, is_asked: bool) -> None:
    question = "课程什么时候开始？"
    made = listed(
        ["课程3月1日开始。", f"课程改到2月{day}开始。", "今天很热。"],
        {"content": "课程3月1日开始", "question": question, "value": "3月1日"},
        {"content": f"课程改到2月{day}开始", "question": question, "value": f"2月{day}", "supersedes": "f1"},
    )
    assert list(made.of_type("conflict").values()) == ([f"2月{day}"] if is_asked else [])


def test_a_gap_in_a_fact_with_a_planned_successor_is_not_asked(listed: Listed) -> None:
    turns = ["I pay 31 euros for the berth.", "From June on I shall pay 44 euros for the berth."]
    made = listed(
        turns,
        {"content": "User pays 31 euros for the berth"},
        {"content": "User will pay 44 euros for the berth", "supersedes": "f1", "validFrom": "2024-06-01"},
    )
    assert not made.recall
    assert made.rejected["not unique"] == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"subject": "user's parrot", "attribute": "name"}, {"subject": "user's other parrot", "attribute": "name"}),
        ({"subject": "user", "attribute": "boat"}, {"subject": "user", "attribute": "first boat"}),
    ],
)
def test_a_question_that_fits_a_second_thing_is_not_asked(listed: Listed, one: Fact, other: Fact) -> None:
    """`What is the name of the user's parrot?` while there is another parrot; the question for that one is clear."""
    turns = ["Kiki is loud, the first.", "Lolo is silent, the other one."]
    made = listed(
        turns,
        {"value": "Kiki", "content": turns[0], **one},
        {"value": "Lolo", "content": turns[1], **other},
    )
    assert list(made.recall.values()) == ["Lolo"]
    assert made.rejected == {"not unique": 1}


def test_a_gap_is_asked_if_the_other_fact_has_nothing_that_fills_it(listed: Listed) -> None:
    turns = ["I sing for Delft.", "I sing the alto part."]
    made = listed(turns, {"content": "User sings for Delft"}, {"content": "User sings the alto part"})
    assert list(made.recall.values()) == ["Delft"]


def test_a_plan_that_did_not_come_true_is_not_asked_as_a_past_value(listed: Listed) -> None:
    """The tutor of March was only announced; nothing tells whether she ever came."""
    turns = ["My tutor is Oona.", "Ilse will be my tutor from 1 March on.", "Pia is my tutor now.", OTHER[0]]
    facts = [
        structured("tutor", "Oona", validFrom="2024-01-09"),
        structured("tutor", "Ilse", validFrom="2024-03-01", supersedes="f1"),
        structured("tutor", "Pia", validFrom="2024-04-09", supersedes="f2", turn=3),
    ]
    made = listed(turns, *facts, dates=["2024-01-09", "2024-02-09", "2024-04-09", "2024-05-09"])
    assert (list(made.as_of.values()), made.rejected["a plan"]) == (["Oona"], 1)


@pytest.mark.parametrize("more", [{}, {"validFrom": "2012-05-04"}, {"validFrom": "2024-01-09"}])
@pytest.mark.parametrize("changed", [{}, {"validFrom": "2024-02-01"}])
def test_a_past_value_is_asked_for_the_day_of_its_turn_whenever_it_began(
    listed: Listed, more: Fact, changed: Fact
) -> None:
    made = listed(
        ["I have rowed for Tamar since 2012.", "Today I changed over to Larkfield."],
        structured("rowing club", "Tamar", **more),
        structured("rowing club", "Larkfield", supersedes="f1", **changed),
    )
    asked = "Fill the gap in this note about the user, as things stood on 9 January 2024. Rowing club: ____."
    assert made.as_of == {asked: "Tamar"}


def test_a_past_value_that_had_ended_on_the_day_of_its_turn_is_not_asked(listed: Listed) -> None:
    made = listed(
        ["I rowed for Tamar until December.", "Today I signed up with Larkfield."],
        structured("rowing club", "Tamar", validTo="2023-12-31"),
        structured("rowing club", "Larkfield", supersedes="f1"),
    )
    assert (made.as_of, made.rejected) == ({}, {"no longer valid": 1})


def test_the_turn_before_is_evidence_only_if_it_asks(listed: Listed) -> None:
    """Else the evidence of a changed fact would tell the outdated value."""
    made = listed(
        ["The ferry leaves at seven.", "It is nine after all."],
        structured("ferry departure", "seven", "The ferry leaves at seven"),
        structured("ferry departure", "nine", "The ferry leaves at nine", supersedes="f1"),
    )
    (changed,) = [probe for probe in made.probes if probe["type"] == "conflict"]
    assert changed["evidence"] == ["t2"]


@pytest.mark.parametrize(
    ("content", "is_asked"),
    [
        ("User is thinking of taking a ferry for Delft", False),
        ("User plans to row for Delft", False),
        ("User will row for Delft", False),
        ("User might row for Delft", False),
        ("User's brother Will rows for Delft", True),
        ("User is going to row for Delft", False),
        ("User's next race is for Delft", False),
        ("User rows next to the mill for Delft", True),
        ("User rows for Delft", True),
    ],
)
def test_free_text_about_the_future_is_asked_on_the_day_on_which_it_is_told(
    listed: Listed, content: str, is_asked: bool
) -> None:
    made = listed([content, OTHER[0]], {"content": content})
    assert list(made.recall.values()) == (["Delft"] if is_asked else [])
    assert made.rejected.get("a plan", 0) == int(not is_asked)
    assert list(listed([content, OTHER[0]], {"content": content}, dates=["2024-01-09"] * 2).recall.values()) == [
        "Delft"
    ]


def test_a_fact_that_ended_is_counted(listed: Listed) -> None:
    made = listed(
        ["I sang in Delft until January.", OTHER[0]], {"content": "User sings in Delft", "validTo": "2024-01-09"}
    )
    assert (made.probes, made.rejected) == ([], {"no longer valid": 1})


def test_an_event_that_is_asked_about_is_not_counted_as_not_asked(listed: Listed) -> None:
    events = ("User sold the barge", "User repaired the harbour crane")
    made = listed(
        [f"{event} today." for event in events],
        *(
            {"content": event, "category": "event", "validFrom": f"2024-0{number}-09"}
            for number, event in enumerate(events, 1)
        ),
    )
    assert {probe["type"] for probe in made.probes} == {"temporal"}
    assert made.rejected == {}


@pytest.mark.parametrize(
    ("content", "asked"),
    [
        ("User rowed with the choir last Friday", []),
        ("User sold the barge four weeks ago", []),
        ("User rows with the choir on Fridays", ["Fridays"]),
    ],
)
def test_a_gap_in_a_time_that_depends_on_when_it_was_said_is_not_asked(
    listed: Listed, content: str, asked: list[str]
) -> None:
    made = listed([content, OTHER[0]], {"content": content})
    assert list(made.recall.values()) == asked
    assert made.rejected.get("relative time", 0) == int(not asked)
