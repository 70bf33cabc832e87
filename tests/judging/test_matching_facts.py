"""Memories of every shape, taken apart."""

from typing import Any

import pytest

from memorybench.core.errors import Malformed
from memorybench.judging.facts import (
    LONGEST_FACT,
    MOST_FACTS,
    MemoryFact,
    categories_of,
    fact_from,
    facts_of,
    normal_category,
)
from memorybench.judging.matching import is_same


def said(state: Any) -> list[str]:
    return [str(fact) for fact in facts_of(state)]


@pytest.mark.parametrize(
    "state",
    [
        {"pets": ["Has a dog", "Has a cat"]},
        {"pets": "Has a dog. Has a cat."},
        {"Pet": ["Has a dog", {"content": "Has a cat", "id": "7", "created_at": "2026-01-01"}]},
        [{"category": "pets", "content": "Has a dog"}, {"category": "Pets", "fact": "Has a cat"}],
        ["pets: Has a dog", "pets: Has a cat"],
        {"memories": [{"memory": "Has a dog", "category": "pets"}, {"text": "Has a cat", "type": "pets"}]},
        "pets: Has a dog\npets: Has a cat",
        "# Pets\n- Has a dog\n- Has a cat",
        "Pets:\n1. Has a dog\n2. Has a cat",
    ],
)
def test_one_memory_in_many_shapes(state: Any) -> None:
    facts = facts_of(state)
    assert [fact.text.removeprefix("pets: ").rstrip(".") for fact in facts] == ["Has a dog", "Has a cat"]
    assert {normal_category(fact.category) for fact in facts} == {"pet"}


def test_nested_blocks_keep_every_category_on_the_way() -> None:
    (fact,) = facts_of({"business": {"customerSegments": ["Bakeries"]}})
    assert (fact.categories, fact.path) == (("business", "customerSegments"), ("business", "customer_segments"))


@pytest.mark.parametrize("value", [["likes tea"], {"drinks": ["likes tea"]}, "likes tea"])
@pytest.mark.parametrize("owner", ["James", "Ines", "Aunt Agnes", "secrets", "US"])
def test_a_fact_is_shown_under_the_key_that_it_has(owner: str, value: Any) -> None:
    (fact,) = facts_of({owner: value})
    assert fact.with_path.startswith(owner)
    assert categories_of({owner: value}) >= {owner}


def test_a_key_that_says_nothing_is_no_category_over_a_mapping_either() -> None:
    (fact,) = facts_of({"memories": {"pets": ["Has a dog"]}})
    assert fact.categories == ("pets",)


def test_a_value_is_said_with_its_key() -> None:
    assert said({"finance": {"budget": "5000", "monthlyRent": 900}}) == [
        "budget: budget: 5000",
        "monthlyRent: monthly Rent: 900",
    ]


def test_yes_and_no_are_said_in_words() -> None:
    assert said({"diet": {"vegetarian": True, "drinks_alcohol": False}}) == [
        "diet: vegetarian",
        "diet: not drinks alcohol",
    ]


def test_blocks_as_letta_writes_them() -> None:
    assert said([{"label": "human", "value": "Has a dog. Likes tea.", "limit": 2000}]) == [
        "human: Has a dog.",
        "human: Likes tea.",
    ]


@pytest.mark.parametrize("state", [None, "", {}, [], {"pets": []}, {"pets": None}, " \n"])
def test_an_empty_memory_says_nothing(state: Any) -> None:
    assert facts_of(state) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Frei am 3. Mai", "Neighbour is Mr. Pham", "Perfume is Chanel No. 5", "Trinkt z. B. Tee", "Uses Yahoo! Mail",
        "Has a dog. Has a cat.", "Lives in St. Petersburg", "喜欢喝茶。住在苏州。", "3. Mai", "# 5 is the favourite",
    ],
)  # fmt: skip
def test_an_item_of_a_list_is_one_fact(text: str) -> None:
    assert [fact.text for fact in facts_of({"notes": [text]})] == [text]
    assert [fact.text for fact in facts_of([{"category": "notes", "content": text}])] == [text]


def test_free_text_is_split_only_where_a_sentence_surely_ends() -> None:
    text = "Rents approx. 40 desks, e.g. Desks by J. Doe. Pays 3.5 EUR each.\nLikes tea. Lives in Oslo."
    assert [(fact.text, fact.most_parts) for fact in facts_of(text)] == [
        ("Rents approx. 40 desks, e.g. Desks by J. Doe. Pays 3.5 EUR each.", 3),
        ("Likes tea.", 1),
        ("Lives in Oslo.", 1),
    ]


def test_lines_are_numbered_only_from_one_on() -> None:
    assert said({"plan": "3. Mai frei\n4. Mai frei"}) == ["plan: plan: 3. Mai frei", "plan: plan: 4. Mai frei"]


@pytest.mark.parametrize("name", ["customer_segments", "Customer Segments", "customer-segment", "customerSegments"])
def test_a_category_has_one_normal_spelling(name: str) -> None:
    assert normal_category(name) == "customer_segment"


def test_empty_blocks_are_known_categories() -> None:
    assert categories_of({"user": {"preferences": []}, "goals": ["Rest"]}) == {"user", "preferences", "goals"}


@pytest.mark.parametrize("line", ["no category", ": fact", "pets:", "pets:  "])
def test_a_line_without_category_or_fact_is_none(line: str) -> None:
    assert fact_from(line) is None


def test_a_memory_without_end_is_refused() -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    with pytest.raises(Malformed, match="nested deeper"):
        facts_of(deep)
    with pytest.raises(Malformed, match="more than"):
        facts_of([f"Fact {n}" for n in range(MOST_FACTS + 1)])
    with pytest.raises(Malformed, match="characters"):
        facts_of(["word " * LONGEST_FACT])


@pytest.mark.parametrize("denial", ["Not true", "False", "Maybe", "Cancelled", "Vielleicht", "Faux"])
def test_a_denial_before_a_colon_is_part_of_the_fact(denial: str) -> None:
    (said,), (denied,) = facts_of(["Works at a bank in Rome"]), facts_of([f"{denial}: works at a bank in Rome"])
    assert denied.categories == ()
    assert not is_same(said, denied)


@pytest.mark.parametrize(
    ("memory", "swapped"),
    [
        ("# Likes\n- pork\n# Dislikes\n- fish", "# Likes\n- fish\n# Dislikes\n- pork"),
        ("Likes:\n- pork\nDislikes:\n- fish", "Likes:\n- fish\nDislikes:\n- pork"),
        ("# Anna\n## City\n- Lives in Rome", "# Ben\n## City\n- Lives in Rome"),
        ("# Anna\ncity: Rome", "# Ben\ncity: Rome"),
        ("Anna:\n  city: Rome", "Ben:\n  city: Rome"),
        ("- Anna\n  - Lives in Rome\n- Ben\n  - Lives in Oslo", "- Anna\n  - Lives in Oslo\n- Ben\n  - Lives in Rome"),
    ],
)
@pytest.mark.parametrize("place", ["text", "value", "block", "list of blocks"])
def test_lines_below_another_heading_are_not_the_same(memory: str, swapped: str, place: str) -> None:
    def facts(text: str) -> list[MemoryFact]:
        block = {"label": "human", "value": text}
        return list(
            facts_of({"text": text, "value": {"human": text}, "block": block, "list of blocks": [block]}[place])
        )

    one, other = facts(memory), facts(swapped)
    same = {(a.text, b.text) for a in one for b in other if is_same(a, b)}
    assert all(a == b and a.endswith(("Anna", "Ben")) for a, b in same)  # names above other lines
    assert all(any(is_same(a, b) for b in facts(memory)) for a in one)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("user:\n  pets:\n    - Rex\n  city: Rome", [("Rex", ("user", "pets")), ("Rome", ("user", "city"))]),
        ("user:\n  pets:\n  - Rex\n  job: cook", [("Rex", ("user", "pets")), ("cook", ("user", "job"))]),
        ("# Prefs\n\n  Food:\n  - tea", [("tea", ("Prefs", "Food"))]),
        ("Has a dog\n- Has a cat", [("Has a dog", ()), ("Has a cat", ())]),
    ],
)
def test_a_label_is_a_category_of_the_lines_below_it_and_no_fact(text: str, facts: Any) -> None:
    assert [(fact.text, fact.categories) for fact in facts_of(text)] == facts


def test_a_heading_ends_where_one_of_its_level_begins() -> None:
    text = "# Anna\n## City\nRome\n## Job\nCook\n# Ben\nTall"
    assert [(fact.text, fact.categories) for fact in facts_of({"people": text})] == [
        ("Rome", ("people", "Anna", "City")),
        ("Cook", ("people", "Anna", "Job")),
        ("Tall", ("people", "Ben")),
    ]
