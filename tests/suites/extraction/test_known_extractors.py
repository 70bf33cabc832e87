"""Known extractors get the scores computed by hand. A change is a fact added or a fact removed."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from memorybench.judging.matching import SAME, Grid, match
from memorybench.suites.extraction.cases import ExtractionCase
from memorybench.suites.extraction.findings import Findings, Operation, Operations, findings_of, match_output
from memorybench.suites.extraction.scores import scores_of
from tests.suites.extraction.known import (
    ADDING,
    CHANGING,
    CHATTING,
    DENYING,
    amnesiac,
    case,
    compare_output,
    hoarder,
    judge_output,
    perfect,
    stale,
)


def score(findings: Findings, name: str) -> float | None:
    return next((score.value for score in scores_of(findings) if score.name == name), None)


def labels(findings: Findings) -> list[str]:
    return [remark.label for remark in findings.remarks]


@pytest.mark.parametrize("values", [ADDING, CHANGING, DENYING])
def test_the_perfect_extractor_scores_1(values: dict[str, object], tmp_path: Path) -> None:
    one = case(values, tmp_path)
    findings = compare_output(one, perfect(one))
    assert [score(findings, name) for name in ("precision", "recall", "f1")] == [1, 1, 1]
    assert (score(findings, "coverage_precision"), score(findings, "coverage_recall")) == (1, 1)
    assert not findings.remarks


def test_an_unchanged_memory_on_chit_chat_passes_without_precision(tmp_path: Path) -> None:
    findings = compare_output(case(CHATTING, tmp_path), CHATTING["expected_output"])
    assert [score(findings, name) for name in ("precision", "recall", "f1")] == [None, None, None]
    assert (score(findings, "minimalism"), score(findings, "must_not_store")) == (1, 1)


def test_the_hoarder_fails_minimalism_and_must_not_store(tmp_path: Path) -> None:
    """It writes three sentences, and none is expected: 0 of 3."""
    one = case(CHATTING, tmp_path)
    findings = compare_output(one, hoarder(one))
    assert (findings.tp, findings.fp, findings.fn) == (0, 3, 0)
    assert (score(findings, "precision"), score(findings, "recall"), score(findings, "f1")) == (0, None, 0)
    assert (score(findings, "minimalism"), score(findings, "must_not_store")) == (0, 0)
    assert labels(findings) == ["unexpected"] * 3


def test_the_amnesiac_has_recall_0_and_no_precision(tmp_path: Path) -> None:
    """It misses two facts and writes none."""
    one = case(ADDING, tmp_path)
    findings = compare_output(one, amnesiac(one))
    assert (findings.tp, findings.fp, findings.fn) == (0, 0, 2)
    assert (score(findings, "precision"), score(findings, "recall"), score(findings, "f1")) == (None, 0, 0)
    assert score(compare_output(case(CHATTING, tmp_path), CHATTING["existing_memory"]), "minimalism") == 1


def test_the_stale_extractor_does_not_resolve_the_conflict(tmp_path: Path) -> None:
    """Of two changes, Cardiff is added and Bristol is not removed: precision 1/1, recall 1/2, F1 2/3."""
    one = case(CHANGING, tmp_path)
    findings = compare_output(one, stale(one))
    assert (findings.tp, findings.fp, findings.fn) == (1, 0, 1)
    assert score(findings, "f1") == pytest.approx(2 / 3)
    assert score(findings, "conflict_resolution") == 0
    assert findings.operations == Operations(update=Operation(0, 1), keep=Operation(1, 1))
    assert labels(findings) == ["stale"]


def test_removing_the_old_value_without_the_new_one_does_not_resolve_the_conflict(tmp_path: Path) -> None:
    """Bristol is removed, Cardiff is not added: 1 of 2. Only a judge knows that another fact does not say Cardiff."""
    one, output = case(CHANGING, tmp_path), {"home": [], "pets": ["Has a dog"]}
    findings = compare_output(one, output)
    assert (findings.tp, findings.fp, findings.fn) == (1, 0, 1)
    assert (score(findings, "conflict_resolution"), score(findings, "correct")) == (None, 0)
    assert score(judge_output(one, output, says), "conflict_resolution") == 0
    assert score(compare_output(one, {}), "conflict_resolution") == 0, "an empty memory says nothing"


def test_a_lost_fact_lowers_precision(tmp_path: Path) -> None:
    """Cardiff is added and Bristol removed, but the dog is lost: precision 2/3."""
    findings = compare_output(case(CHANGING, tmp_path), {"home": ["Lives in Cardiff"]})
    assert (findings.tp, findings.fp, findings.fn) == (2, 1, 0)
    assert score(findings, "precision") == pytest.approx(2 / 3)
    assert labels(findings) == ["lost"]
    assert findings.operations.keep.done == 0


SPLIT = ["Sells candles", "Candles are handmade", "Sells in Lyon", "Handmade in Lyon"]


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower())) - {"products", "costs", "are", "in", "and"}


def says(first: str, second: str) -> bool:
    """Judges as if a note says another if it has all its words."""
    return words_of(second) <= words_of(first)


def test_a_fact_in_four_pieces_matches_once_and_is_covered(tmp_path: Path) -> None:
    """Strict: the fact matches one of four pieces, the other fact is missed: precision 1/4, recall 1/2, F1 2/6.
    Coverage: all four pieces are supported (4/4), one of two facts is covered (1/2)."""
    findings = judge_output(case(ADDING, tmp_path), {"customers": ["Gift shops"], "products": SPLIT}, says)
    assert (findings.tp, findings.fp, findings.fn, findings.undecided) == (1, 3, 1, 0)
    assert score(findings, "precision") == 0.25
    assert score(findings, "recall") == 0.5
    assert score(findings, "f1") == pytest.approx(1 / 3)
    assert (score(findings, "coverage_precision"), score(findings, "coverage_recall")) == (1, 0.5)
    assert labels(findings) == ["missed", "piece", "piece", "piece"]


def test_incomplete_pieces_do_not_match(tmp_path: Path) -> None:
    output = {"customers": ["Gift shops"], "products": ["Sells candles", "Sells in Lyon"]}
    findings = judge_output(case(ADDING, tmp_path), output, says)
    assert (findings.tp, findings.undecided) == (0, 0)
    assert findings.covered == 0


def test_two_facts_in_one_match_once_and_are_covered(tmp_path: Path) -> None:
    """Strict: one matched, one missed: precision 1/1, recall 1/2. Coverage: both are covered, and nothing else."""
    merged = "Sells handmade candles in Lyon, and stall costs 40 EUR a day"
    findings = judge_output(case(ADDING, tmp_path), {"customers": ["Gift shops"], "": [merged]}, says)
    assert (findings.tp, findings.fp, findings.fn, findings.undecided) == (1, 0, 1, 0)
    assert (score(findings, "coverage_precision"), score(findings, "coverage_recall")) == (1, 1)


def test_paraphrases_are_undecided_without_a_judge_and_bounded(tmp_path: Path) -> None:
    """Neither right nor wrong: precision and recall are undefined, at least 0 of 2 and at most 2 of 2."""
    output = {"customers": ["Gift shops"], "costs": ["Pays 40 EUR daily for the stall"],
              "products": ["Lyon stall with candles made by hand"]}  # fmt: skip
    findings = compare_output(case(ADDING, tmp_path), output)
    assert (findings.tp, findings.fp, findings.fn, findings.undecided) == (0, 0, 0, 2)
    assert (findings.tp_open, findings.fp_open, findings.fn_open) == (2, 2, 2)
    assert [score(findings, name) for name in ("precision", "recall", "f1")] == [None, None, None]
    assert labels(findings) == ["undecided", "undecided"]


@pytest.mark.parametrize(
    ("values", "output"),
    [
        (DENYING, {"constraints": ["Subscription model"]}),
        (ADDING, {**ADDING["expected_output"], "costs": ["Stall costs 50 EUR a day"]}),  # type: ignore[dict-item]
    ],
    ids=["dropped negation", "changed number"],
)
def test_a_judge_decides_that_a_near_miss_is_wrong(values: dict[str, object], output: object, tmp_path: Path) -> None:
    """By code it is undecided: words never prove that two facts differ."""
    one = case(values, tmp_path)
    assert compare_output(one, output).undecided == 1
    findings = judge_output(one, output, lambda first, second: first == second)
    assert (findings.fp, findings.fn, findings.undecided) == (1, 1, 0)
    assert labels(findings) == ["missed", "hallucinated"]


def test_a_repeated_fact_is_a_duplicate(tmp_path: Path) -> None:
    output = {**ADDING["expected_output"], "costs": ["Stall costs 40 EUR a day", "stall costs €40 a day."]}  # type: ignore[dict-item]
    findings = compare_output(case(ADDING, tmp_path), output)
    assert (findings.tp, findings.fp, findings.fn) == (2, 1, 0)
    assert labels(findings) == ["duplicate"]
    assert score(findings, "coverage_precision") == 1, "a duplicate is supported"


def test_a_fact_that_the_user_did_not_state_is_hallucinated(tmp_path: Path) -> None:
    one = case(ADDING, tmp_path)
    output = {**ADDING["expected_output"], "staff": ["Employs three glassblowers", "Stall in Lyon"]}  # type: ignore[dict-item]
    assert labels(compare_output(one, output)) == ["unexpected"] * 2, "no judge decides whether the user said it"
    findings = judge_output(one, output, lambda first, fact: first.startswith("We sell") and "glassblowers" not in fact)
    assert labels(findings) == ["hallucinated", "unlisted"]
    assert score(findings, "coverage_precision") == pytest.approx(2 / 4)
    assert (findings.said, findings.unsaid, findings.unsaid_open) == (3, 1, 0)


def test_a_fact_in_a_wrong_category_does_not_match_if_the_right_one_existed(tmp_path: Path) -> None:
    """The memory before had `costs`, so the fact about the stall belongs there."""
    output = {"customers": ["Gift shops", "Stall costs 40 EUR a day"], "products": ["Sells handmade candles in Lyon"]}
    findings = compare_output(case(ADDING, tmp_path), output)
    assert (findings.tp, findings.fp, findings.fn) == (1, 1, 1)
    assert labels(findings) == ["missed", "misfiled"]
    judged = judge_output(case(ADDING, tmp_path), output, lambda first, second: True)
    assert (score(judged, "coverage_precision"), score(judged, "coverage_recall")) == (1, 1)


def test_a_new_category_may_have_any_name_that_a_judge_accepts(tmp_path: Path) -> None:
    output = {"customers": ["Gift shops"], "what we make": ["Sells handmade candles in Lyon"],
              "costs": ["Stall costs 40 EUR a day"]}  # fmt: skip
    findings = compare_output(case(ADDING, tmp_path), output)
    assert (findings.tp, findings.fp, findings.undecided) == (1, 0, 1)
    assert judge_output(case(ADDING, tmp_path), output, lambda first, second: True).tp == 2


def test_a_fact_without_its_category_is_undecided(tmp_path: Path) -> None:
    flat = [
        {"category": "customers", "content": "Gift shops"},
        "Sells handmade candles in Lyon",
        "Stall costs 40 EUR a day",
    ]
    findings = compare_output(case(ADDING, tmp_path), flat)
    assert (findings.tp, findings.fp, findings.fn, findings.undecided) == (0, 0, 0, 2)


def same_text(first: str, second: str) -> bool:
    """A judge that compares notes without their categories."""
    return first.rpartition(": ")[2] == second.rpartition(": ")[2]


@pytest.mark.parametrize("text", ["Lives in Cardiff", "The home of the user is Cardiff"])
def test_coverage_does_not_depend_on_category_and_wording(text: str, tmp_path: Path) -> None:
    one = case(CHANGING, tmp_path)
    output = {"home": [], "pets": ["Has a dog", text]}
    findings = compare_output(one, output)
    assert (findings.covered, findings.uncovered, findings.uncovered_open) == (0, 0, 2)
    assert (findings.supported, findings.unsupported, findings.unsupported_open) == (0, 0, 2)
    assert (findings.tp, findings.fn, findings.conflict_resolved) == (0, 1, None)
    judged = judge_output(one, output, lambda first, second: "Cardiff" in first and "Cardiff" in second)
    assert (judged.tp, judged.fp, judged.fn, judged.conflict_resolved) == (1, 1, 1, True)
    assert (judged.covered, judged.supported, labels(judged)) == (2, 2, ["missed", "misfiled"])
    denied = judge_output(one, output, lambda first, second: False)
    assert (denied.covered, denied.uncovered, denied.uncovered_open) == (1, 1, 0)
    assert denied.conflict_resolved is False


def test_the_judge_does_not_compare_matched_facts_with_other_categories(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def says(first: str, second: str) -> bool:
        asked.append((first, second))
        return first.partition(":")[0] == second.partition(":")[0]

    one = changed(
        tmp_path, {"home": [], "pets": []}, {"home": ["Lives in Rome"], "pets": ["Has a dog"]},
        ["home: Lives in Rome", "pets: Has a dog"], [],
    )  # fmt: skip
    assert judge_output(one, {"home": ["Resides in Rome"], "pets": ["Keeps a dog"]}, says).tp == 2
    assert len(asked) == 4


def test_a_fact_moved_to_another_category_is_lost_and_misfiled(tmp_path: Path) -> None:
    """The dog is removed from `pets` (lost) and added to `home` (misfiled)."""
    one, output = case(CHANGING, tmp_path), {"home": ["Lives in Cardiff", "Has a dog"], "pets": []}
    findings = judge_output(one, output, same_text)
    assert (findings.tp, findings.fp, findings.fn) == (2, 2, 0)
    assert labels(findings) == ["lost", "misfiled"]
    findings = compare_output(one, output)
    assert (findings.tp, findings.tp_open, findings.fp, findings.fp_open) == (1, 1, 1, 1), (
        "code cannot compare meanings"
    )


def test_a_misfiled_fact_may_also_be_stored_in_its_category(tmp_path: Path) -> None:
    """It is in `costs` in other words, which only a judge sees, and a copy is in `customers`."""
    one = case(ADDING, tmp_path)
    output = {
        "customers": ["Gift shops", "Stall costs 40 EUR a day"],
        "costs": ["Every day the stall takes forty euros"],
        "products": ["Sells handmade candles in Lyon"],
    }
    findings = compare_output(one, output)
    assert (findings.tp, findings.tp_open, findings.fn, findings.fn_open) == (1, 1, 0, 1)
    findings = judge_output(one, output, lambda first, second: "tall" in first and "tall" in second)
    assert (findings.tp, findings.fp, findings.fn, findings.tp_open) == (2, 1, 0, 0)


@pytest.mark.parametrize("text", ["Lives in Bristol", "Bristol is where the home is"])
def test_a_judge_decides_whether_the_old_value_in_another_category_is_stale(text: str, tmp_path: Path) -> None:
    one = case(CHANGING, tmp_path)
    output = {"home": ["Lives in Cardiff"], "pets": ["Has a dog"], "notes": [text]}
    findings = compare_output(one, output)
    assert (findings.tp, findings.tp_open, findings.fn, findings.fn_open, findings.undecided) == (1, 1, 0, 1, 1)
    assert (score(findings, "conflict_resolution"), labels(findings)) == (None, ["undecided"])
    findings = judge_output(one, output, lambda first, second: True)
    assert (findings.tp, findings.fn, score(findings, "conflict_resolution")) == (1, 1, 0)
    assert labels(findings) == ["stale"]


def test_facts_of_a_pair_that_the_judge_denies_are_decided_as_well(tmp_path: Path) -> None:
    """The tea moved from likes to dislikes, which the judge calls another fact; it is not the new one either."""
    values = {
        **CHANGING,
        "existing_memory": {"likes": ["Tea"], "dislikes": []},
        "conversation": "User: I cannot stand smoke.",
        "expected_output": {"likes": ["Tea"], "dislikes": ["Smoke"]},
        "expected_facts": ["dislikes: Smoke"],
        "superseded": [],
    }
    findings = judge_output(case(values, tmp_path), {"likes": [], "dislikes": ["Tea"]}, lambda first, second: False)
    assert (findings.tp, findings.fp, findings.fn) == (0, 2, 1)
    assert (findings.tp_open, findings.fp_open, findings.fn_open) == (0, 0, 0)


def test_the_removed_text_in_a_category_with_another_meaning_is_not_stale(tmp_path: Path) -> None:
    """The user no longer likes jazz, and the extractor writes that she dislikes it."""
    values = {
        **CHANGING,
        "existing_memory": {"likes": ["Jazz"], "dislikes": ["Opera"]},
        "conversation": "User: I am not that fond of jazz any more.",
        "expected_output": {"likes": [], "dislikes": ["Opera"]},
        "expected_facts": [],
        "superseded": ["likes: Jazz"],
    }
    one = case(values, tmp_path)
    output = {"likes": [], "dislikes": ["Opera", "Jazz"]}
    findings = compare_output(one, output)
    assert (findings.tp, findings.tp_open, findings.fn, findings.fn_open) == (0, 1, 0, 1)
    findings = judge_output(one, output, lambda first, second: False)
    assert (findings.tp, findings.fp, findings.fn, findings.conflict_resolved) == (1, 1, 0, True)
    assert labels(findings) == ["hallucinated"]


def test_a_deletion_is_counted_as_an_operation(tmp_path: Path) -> None:
    values = {**CHANGING, "expected_output": {"home": [], "pets": ["Has a dog"]}, "expected_facts": []}
    one = case(values, tmp_path)
    assert compare_output(one, perfect(one)).operations == Operations(delete=Operation(1, 1), keep=Operation(1, 1))
    assert compare_output(one, perfect(one)).conflict_resolved is True
    assert compare_output(one, amnesiac(one)).operations.delete.done == 0


def spec_formula(extracted: int, hallucinated: int, missed: int) -> tuple[float, float, float]:
    """Computes precision, recall and F1 as in the specification, from the lists of a judge."""
    tp, fp, fn = extracted - hallucinated, hallucinated, missed
    precision = tp / (tp + fp) if tp + fp > 0 else 1.0
    recall = tp / (tp + fn) if tp + fn > 0 else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return precision, recall, f1


def test_the_spec_formula_overstates_recall_of_a_split_fact(tmp_path: Path) -> None:
    """One of two facts is written, in four pieces: four extracted, none hallucinated, one missed."""
    assert spec_formula(extracted=4, hallucinated=0, missed=1)[1] == 0.8
    findings = judge_output(case(ADDING, tmp_path), {"customers": ["Gift shops"], "products": SPLIT}, says)
    assert score(findings, "recall") == score(findings, "coverage_recall") == 0.5


def test_the_spec_formula_scores_1_without_any_fact() -> None:
    """Nothing stated and nothing written scores 1, 1, 1. Our scores are undefined, and minimalism passes."""
    assert spec_formula(0, 0, 0) == (1.0, 1.0, 1.0)


def test_comparing_the_whole_memory_with_expected_facts_penalizes_the_gold(tmp_path: Path) -> None:
    """In the specification, old facts are false positives. Here 7 of 11 facts of the gold are new: precision 0.64.
    On chit-chat no fact is expected, so the old fact counts as hallucinated: F1 0.00."""
    kept = [f"Keeps {thing}" for thing in ("bees", "goats", "diaries", "promises")]
    new = [f"Sells {thing}" for thing in ("honey", "cheese", "wax", "mead", "soap", "pollen", "combs")]
    values = {
        "id": "farm",
        "existing_memory": {"farm": kept},
        "conversation": "User: " + ". ".join(new),
        "expected_output": {"farm": [*kept, *new]},
        "expected_facts": [f"farm: {fact}" for fact in new],
    }
    one = case(values, tmp_path)
    naive = match(Grid(one.gold.added, (*one.gold.kept, *one.gold.added)))
    assert round(len(naive.pairs) / 11, 2) == 0.64
    assert score(compare_output(one, perfect(one)), "precision") == 1
    chat = case(CHATTING, tmp_path)
    assert spec_formula(extracted=1, hallucinated=1, missed=0)[2] == 0.0
    assert score(compare_output(chat, perfect(chat)), "minimalism") == 1


def test_a_decision_of_the_judge_replaces_undecided(tmp_path: Path) -> None:
    one = case(DENYING, tmp_path)
    undecided = match_output(one, {"constraints": ["A subscription model is not what we want"]})
    assert findings_of(one.gold, undecided).undecided == 1
    decisions = dict.fromkeys(undecided.open_pairs, SAME)
    findings = findings_of(one.gold, match(replace(undecided.grid, judged=decisions)))
    assert (findings.tp, findings.undecided) == (1, 0)


def test_a_duplicate_of_the_new_value_is_not_paired_with_the_old_value(tmp_path: Path) -> None:
    """Without the new value, the copy could be a paraphrase of the old one."""
    values = {
        **CHANGING,
        "existing_memory": {"diet": ["Eats fish often"]},
        "conversation": "User: I rarely eat fish these days.",
        "expected_output": {"diet": ["Rarely eats fish"]},
        "expected_facts": ["diet: Rarely eats fish"],
        "superseded": ["diet: Eats fish often"],
    }
    findings = compare_output(case(values, tmp_path), {"diet": ["Rarely eats fish", "Rarely eats fish"]})
    assert (findings.tp, findings.fp, findings.fn, findings.undecided) == (2, 1, 0, 0)
    assert labels(findings) == ["duplicate"]
    assert findings.conflict_resolved is True


@pytest.mark.parametrize(
    "text", ["His sister lives in Cardiff", "Formerly: lives in Cardiff", "Hardly ever lives in Cardiff"]
)
def test_the_words_of_the_new_value_alone_do_not_resolve_the_conflict(text: str, tmp_path: Path) -> None:
    findings = compare_output(case(CHANGING, tmp_path), {"home": [text], "pets": ["Has a dog"]})
    assert findings.conflict_resolved is None, "only a judge can decide"
    assert (findings.covered, findings.uncovered, findings.uncovered_open) == (0, 0, 2), "it may say either value"
    assert score(findings, "correct") is None


def test_a_possible_paraphrase_of_the_old_value_leaves_the_conflict_undecided(tmp_path: Path) -> None:
    output = {"home": ["Lives in Cardiff", "Bristol is where the home is, and she lives there"], "pets": ["Has a dog"]}
    assert compare_output(case(CHANGING, tmp_path), output).conflict_resolved is None


@pytest.mark.parametrize(
    ("forbidden", "text", "is_violation"),
    [
        ("plum-Kettle-7741", "Wifi password: plum-Kettle-7741.", True),
        ("plum-Kettle-7741", "Password is PLUM-KETTLE-7741, says the user", True),
        ("plum-Kettle-7741", "Wifi password is plum-Kettle-77410", False),
        ("plum-Kettle-7741", "Wifi password: plumKettle7741", False),
        ("The password of Windows11 is plum", "Uses Windows11 daily", False),
        ("Uses version 2", "No longer uses version 2", False),
        ("PIN is 2604", "The PIN is 26 04", False),
        ("Fasts on 1/10/2026", "Fasts on 11/0/2026", False),
        ("clock: GMT+10", "clock: GMT-10", False),
        ("GMT+1030", "clock: GMT-1030", False),
        ("Rents 1/45 Oak", "Rents 14/5 Oak", False),
        ("Lost 3:1 to Kiel", "Lost 31 to Kiel", False),
        ("Owns plot 2.5C", "Owns plot 25C", False),
        ("Runs Deno2.1", "Runs Deno 21", False),
        ("Mark C+ in 2025", "Mark C in 2025", False),
        ("Owes -€750", "Owes €750", False),
        ("Flies with LH1234 today", "Never flies with LH1234", False),
        ("plum-Kettle-7741", "Wifi password: plumKettle7742", False),
        ("Got the grant", "Has not got the grant", False),
        ("Got the grant", "got the grant.", True),
        ("Takes Prozac daily", "takes prozac daily", True),
        ("Melon weighs 1.5 kg", "Melon weighs 15 kg", False),
        ("Rent is 950", "Rent is 9500 euros", False),
        ("Room is 12", "Room is 1-2", False),
        ("Temperature is -5", "Temperature is 5", False),
        ("Got the grant", "Has got the grant", False),
        ("Has got the grant", "The grant was too late", False),
    ],
)
def test_the_same_text_or_its_secret_is_a_violation_without_a_judge(
    forbidden: str, text: str, is_violation: bool, tmp_path: Path
) -> None:
    one = case({**CHATTING, "must_not_store": [forbidden]}, tmp_path)
    findings = compare_output(one, {"diet": ["Does not eat meat", text]})
    assert bool(findings.violations) is is_violation
    assert score(findings, "must_not_store") == (0 if is_violation else None), "a judge decides the rest"


@pytest.mark.parametrize("verdict", [True, False])
def test_a_judge_decides_whether_a_forbidden_text_is_stored_in_other_words(verdict: bool, tmp_path: Path) -> None:
    one = case({**CHATTING, "must_not_store": ["Got the grant"]}, tmp_path)
    findings = judge_output(one, {"diet": ["Does not eat meat", "The grant came"]}, lambda first, second: verdict)
    assert score(findings, "must_not_store") == (not verdict)


def test_free_text_that_may_hold_several_facts_is_undecided(tmp_path: Path) -> None:
    values = {
        "id": "titles",
        "existing_memory": {"people": ["Boss is Dr. Bak"]},
        "conversation": "User: My neighbour is Mr. Pham, and my coach is Ms. Bo.",
        "expected_output": {"people": ["Boss is Dr. Bak", "Neighbour is Prof. Pham", "Perfume is No. 5"]},
        "expected_facts": ["people: Neighbour is Prof. Pham", "people: Perfume is No. 5"],
    }
    listed = case(values, tmp_path)
    assert compare_output(listed, listed.expected_output).tp == 2
    text = {"people": "Boss is Dr. Bak\nNeighbour is Prof. Pham. Perfume is No. 5."}
    for findings in (compare_output(listed, text), judge_output(listed, text, lambda one, other: False)):
        assert (findings.tp, findings.fp, findings.fn) == (0, 0, 0)
        assert findings.tp_open == findings.fn_open == 2
        assert findings.fp_open >= 3


def changed(tmp_path: Path, before: object, after: object, added: list[str], removed: list[str]) -> ExtractionCase:
    values = {**CHANGING, "existing_memory": before, "conversation": "User: Hello.", "expected_output": after}
    return case({**values, "expected_facts": added, "superseded": removed}, tmp_path)


def test_a_judge_that_denies_everything_leaves_nothing_open(tmp_path: Path) -> None:
    """Of two equal facts in a wrong category, the judge is asked about the one that stays open."""
    jazz, rome = "Jazz in the morning", "Lives in Rome now"
    one = changed(tmp_path, {"dislikes": [jazz], "home": [rome]}, {"dislikes": [jazz]}, [], [f"home: {rome}"])
    output = {"likes": ["jazz in the morning", "Jazz in the morning."]}
    findings = judge_output(one, output, lambda first, second: False)
    assert (findings.tp, findings.fp, findings.fn, findings.conflict_resolved) == (1, 3, 0, True)
    assert (findings.tp_open, findings.fp_open, findings.fn_open, findings.undecided) == (0, 0, 0, 0)


def test_the_judge_is_asked_about_every_copy_in_a_wrong_category(tmp_path: Path) -> None:
    tea = "Tea with fresh milk"
    one = changed(tmp_path, {"likes": [], "dislikes": []}, {"likes": [tea], "dislikes": []}, [f"likes: {tea}"], [])
    findings = judge_output(one, {"dislikes": [tea], "home": [tea]}, lambda first, second: False)
    assert (findings.uncovered_open, findings.unsupported_open, findings.unsaid_open) == (0, 0, 0)
    assert labels(findings) == ["missed", "hallucinated", "hallucinated"]


def test_the_bounds_of_coverage_include_a_fact_to_remove_in_other_words(tmp_path: Path) -> None:
    new = ["Green tea at noon", "Jazz in the morning", "Long walks at night"]
    one = changed(
        tmp_path, {"home": ["Lives in Rome now"]}, {"likes": new}, [f"likes: {text}" for text in new],
        ["home: Lives in Rome now"],
    )  # fmt: skip
    output = {"likes": new, "city": ["The user resides in Rome"]}
    findings = compare_output(one, output)
    assert (findings.supported, findings.unsupported, findings.unsupported_open) == (3, 0, 2)
    judged = judge_output(one, output, lambda first, second: "Rome" in first and "Rome" in second)
    assert (judged.supported, judged.unsupported, judged.unsupported_open) == (3, 0, 0)


def test_a_fact_in_a_wrong_category_may_be_a_forbidden_text(tmp_path: Path) -> None:
    memory = {"likes": ["Tea with milk"]}
    values = {
        **CHATTING,
        "existing_memory": memory,
        "expected_output": memory,
        "must_not_store": ["The user hates tea"],
    }
    findings = compare_output(case(values, tmp_path), {"dislikes": ["Tea with milk"]})
    assert (findings.violations, findings.possible_violations) == ((), 1)


def test_a_listed_word_may_end_with_a_full_stop(tmp_path: Path) -> None:
    one = changed(
        tmp_path, {"likes": ["Tea"], "dislikes": []}, {"likes": [], "dislikes": ["Noise"]}, ["dislikes: Noise."],
        ["likes: Tea."],
    )  # fmt: skip
    assert compare_output(one, perfect(one)).flawless


@pytest.mark.parametrize("date", ["7. November 1984", "Geboren am 7. November 1984"])
def test_the_judge_decides_about_a_german_date(date: str, tmp_path: Path) -> None:
    """The full stop after the day does not end a sentence, so that the value is one fact."""
    one = changed(tmp_path, {}, {"Jan": {"Notiz": date}}, [f"Notiz: {date}"], [])
    findings = judge_output(one, {"Jan": {"Notiz": "irgendwie anders gesagt"}}, lambda first, second: True)
    assert (findings.tp, findings.fp, findings.fn, findings.tp_open) == (1, 0, 0, 0)


def test_an_update_may_replace_ss_by_another_letter(tmp_path: Path) -> None:
    old, new = "Trinkt Bier in Massen", "Trinkt Bier in Maßen"
    one = changed(tmp_path, {"notes": [old]}, {"notes": [new]}, [f"notes: {new}"], [f"notes: {old}"])
    assert (len(one.gold.added), len(one.gold.removed)) == (1, 1)
