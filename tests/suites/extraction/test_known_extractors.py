"""Extractors of known worth get the scores that were worked out by hand. Changes: a fact added, or a fact removed."""

from pathlib import Path

import pytest

from memorybench.judging.matching import Comparison
from memorybench.judging.matching_pairs import grid_of, matched
from memorybench.suites.extraction.findings import Findings, Operations, compared, findings_of
from memorybench.suites.extraction.scores import scores_of
from tests.suites.extraction.known import (
    ADDING,
    CHANGING,
    CHATTING,
    DENYING,
    amnesiac,
    case,
    found,
    hoarder,
    perfect,
    stale,
)


def score(findings: Findings, name: str) -> float | None:
    return next((score.value for score in scores_of(findings) if score.name == name), None)


def labels(findings: Findings) -> list[str]:
    return [remark.label for remark in findings.remarks]


@pytest.mark.parametrize("written", [ADDING, CHANGING, DENYING])
def test_the_perfect_one_has_all(written: dict[str, object], tmp_path: Path) -> None:
    one = case(written, tmp_path)
    got = found(one, perfect(one))
    assert [score(got, name) for name in ("precision", "recall", "f1")] == [1, 1, 1]
    assert (score(got, "coverage_precision"), score(got, "coverage_recall")) == (1, 1)
    assert not got.remarks


def test_nothing_to_do_and_nothing_done_passes_and_has_no_precision(tmp_path: Path) -> None:
    got = found(case(CHATTING, tmp_path), CHATTING["expected_output"])
    assert [score(got, name) for name in ("precision", "recall", "f1")] == [None, None, None]
    assert (score(got, "minimalism"), score(got, "must_not_store")) == (1, 1)


def test_the_hoarder_breaks_silence_and_keeps_secrets(tmp_path: Path) -> None:
    """Three sentences, none of them wanted: 0 of 3."""
    one = case(CHATTING, tmp_path)
    got = found(one, hoarder(one))
    assert (got.tp, got.fp, got.fn) == (0, 3, 0)
    assert (score(got, "precision"), score(got, "recall"), score(got, "f1")) == (0, None, 0)
    assert (score(got, "minimalism"), score(got, "must_not_store")) == (0, 0)
    assert labels(got) == ["unlisted"] * 3


def test_the_amnesiac_finds_nothing_and_is_quiet(tmp_path: Path) -> None:
    """Two facts missed; nothing written, so no precision."""
    one = case(ADDING, tmp_path)
    got = found(one, amnesiac(one))
    assert (got.tp, got.fp, got.fn) == (0, 0, 2)
    assert (score(got, "precision"), score(got, "recall"), score(got, "f1")) == (None, 0, 0)
    assert score(found(case(CHATTING, tmp_path), CHATTING["existing_memory"]), "minimalism") == 1


def test_the_stale_one_fails_the_conflict(tmp_path: Path) -> None:
    """Two changes were due: Cardiff in (done), Bristol out (not done). Precision 1/1, recall 1/2, F1 2/3."""
    one = case(CHANGING, tmp_path)
    got = found(one, stale(one))
    assert (got.tp, got.fp, got.fn) == (1, 0, 1)
    assert score(got, "f1") == pytest.approx(2 / 3)
    assert score(got, "conflict_resolution") == 0
    assert got.operations == Operations(updated=0, to_update=1, kept=1, to_keep=1)
    assert labels(got) == ["stale"]


def test_the_old_value_gone_without_the_new_one_there_is_no_resolution(tmp_path: Path) -> None:
    """Bristol is out (1 of 2), Cardiff is not in."""
    got = found(case(CHANGING, tmp_path), {"home": [], "pets": ["Has a dog"]})
    assert (got.tp, got.fp, got.fn) == (1, 0, 1)
    assert score(got, "conflict_resolution") == 0


def test_the_eraser_pays_for_what_it_loses(tmp_path: Path) -> None:
    """Cardiff in, Bristol out: right. The dog is lost: precision 2/3."""
    got = found(case(CHANGING, tmp_path), {"home": ["Lives in Cardiff"]})
    assert (got.tp, got.fp, got.fn) == (2, 1, 0)
    assert score(got, "precision") == pytest.approx(2 / 3)
    assert labels(got) == ["lost"]
    assert got.operations.kept == 0


SPLIT = ["Sells candles", "Candles are handmade", "Sells in Lyon", "Handmade in Lyon"]


def test_the_splitter_one_fact_in_four_pieces_the_other_missed(tmp_path: Path) -> None:
    """Strict: the fact is matched with one piece, three are left over: precision 1/4, recall 1/2, F1 2/6.
    Coverage: all four pieces are borne out (4/4), one of two facts is said (1/2)."""
    got = found(case(ADDING, tmp_path), {"customers": ["Gift shops"], "products": SPLIT})
    assert (got.tp, got.fp, got.fn, got.undecided) == (1, 3, 1, 0)
    assert score(got, "precision") == 0.25
    assert score(got, "recall") == 0.5
    assert score(got, "f1") == pytest.approx(1 / 3)
    assert (score(got, "coverage_precision"), score(got, "coverage_recall")) == (1, 0.5)
    assert labels(got) == ["missed", "piece", "piece", "piece"]


def test_pieces_that_leave_something_out_are_no_match(tmp_path: Path) -> None:
    """Without a judge, whether `handmade` matters is undecided: one pair is, the other piece is left over."""
    got = found(case(ADDING, tmp_path), {"customers": ["Gift shops"], "products": ["Sells candles", "Sells in Lyon"]})
    assert (got.tp, got.undecided) == (0, 1)
    assert got.covered == 0


def test_the_merger_two_facts_in_one(tmp_path: Path) -> None:
    """Strict: one matched, one missed: precision 1/1, recall 1/2. Coverage: all is said, and nothing else."""
    merged = "Sells handmade candles in Lyon, and stall costs 40 EUR a day"
    got = found(case(ADDING, tmp_path), ["Gift shops", merged])
    assert (got.tp, got.fp, got.fn, got.undecided) == (1, 0, 1, 0)
    assert (score(got, "coverage_precision"), score(got, "coverage_recall")) == (1, 1)


def test_the_paraphraser_is_undecided_without_a_judge_and_bounded(tmp_path: Path) -> None:
    """Neither right nor wrong: no precision, no recall; at least 0 of 2, at most 2 of 2."""
    output = {"customers": ["Gift shops"], "costs": ["Pays 40 EUR daily for the stall"],
              "products": ["Lyon stall with candles made by hand"]}  # fmt: skip
    got = found(case(ADDING, tmp_path), output)
    assert (got.tp, got.fp, got.fn, got.undecided) == (0, 0, 0, 2)
    assert (got.tp_open, got.fp_open, got.fn_open) == (2, 2, 2)
    assert [score(got, name) for name in ("precision", "recall", "f1")] == [None, None, None]
    assert labels(got) == ["undecided", "undecided"]


def test_the_negation_dropper_is_wrong_and_contradicts(tmp_path: Path) -> None:
    """What it wrote is wrong, what it should have written is missing: 0 of 1 and 0 of 1."""
    got = found(case(DENYING, tmp_path), {"constraints": ["Subscription model"]})
    assert (got.tp, got.fp, got.fn, got.undecided) == (0, 1, 1, 0)
    assert labels(got) == ["missed", "contradiction"]


def test_another_number_is_another_fact(tmp_path: Path) -> None:
    output = {**ADDING["expected_output"], "costs": ["Stall costs 50 EUR a day"]}  # type: ignore[dict-item]
    got = found(case(ADDING, tmp_path), output)
    assert (got.tp, got.fp, got.fn) == (1, 1, 1)
    assert labels(got) == ["missed", "contradiction"]


def test_a_second_copy_is_a_duplicate(tmp_path: Path) -> None:
    output = {**ADDING["expected_output"], "costs": ["Stall costs 40 EUR a day", "The stall costs €40 per day"]}  # type: ignore[dict-item]
    got = found(case(ADDING, tmp_path), output)
    assert (got.tp, got.fp, got.fn) == (2, 1, 0)
    assert labels(got) == ["duplicate"]
    assert score(got, "coverage_precision") == 1, "it is borne out; that it stands there twice is counted elsewhere"


def test_what_nobody_said_is_hallucinated(tmp_path: Path) -> None:
    got = found(case(ADDING, tmp_path), {**ADDING["expected_output"], "staff": ["Employs three glassblowers"]})  # type: ignore[dict-item]
    assert labels(got) == ["hallucinated"]
    assert score(got, "coverage_precision") == pytest.approx(2 / 3)


def test_a_fact_under_a_wrong_category_is_not_matched_if_the_right_one_was_there(tmp_path: Path) -> None:
    """`costs` was shown in the memory before, so the stall belongs there."""
    output = {"customers": ["Gift shops", "Stall costs 40 EUR a day"], "products": ["Sells handmade candles in Lyon"]}
    got = found(case(ADDING, tmp_path), output)
    assert (got.tp, got.fp, got.fn) == (1, 1, 1)
    assert labels(got) == ["missed", "misfiled"]
    assert (score(got, "coverage_precision"), score(got, "coverage_recall")) == (1, 1)


def test_a_category_that_was_never_shown_may_have_any_name(tmp_path: Path) -> None:
    output = {"customers": ["Gift shops"], "what we make": ["Sells handmade candles in Lyon"],
              "costs": ["Stall costs 40 EUR a day"]}  # fmt: skip
    assert found(case(ADDING, tmp_path), output).tp == 2


def test_a_memory_without_categories_is_held_to_none(tmp_path: Path) -> None:
    flat = ["Gift shops", "Sells handmade candles in Lyon", "Stall costs 40 EUR a day"]
    got = found(case(ADDING, tmp_path), flat)
    assert (got.tp, got.fp, got.fn) == (2, 0, 0)


def test_a_fact_moved_to_another_category_is_a_change_nobody_asked_for(tmp_path: Path) -> None:
    """The dog leaves `pets` (lost) and turns up in `home` (misfiled)."""
    got = found(case(CHANGING, tmp_path), {"home": ["Lives in Cardiff", "Has a dog"], "pets": []})
    assert (got.tp, got.fp, got.fn) == (2, 2, 0)
    assert labels(got) == ["lost", "misfiled"]


def test_the_old_value_under_another_category_is_still_there(tmp_path: Path) -> None:
    got = found(
        case(CHANGING, tmp_path), {"home": ["Lives in Cardiff"], "pets": ["Has a dog"], "notes": ["Lives in Bristol"]}
    )
    assert score(got, "conflict_resolution") == 0
    assert labels(got) == ["stale", "contradiction"]


def test_a_deletion_is_an_operation_of_its_own(tmp_path: Path) -> None:
    written = {**CHANGING, "expected_output": {"home": [], "pets": ["Has a dog"]}, "expected_facts": []}
    one = case(written, tmp_path)
    assert found(one, perfect(one)).operations == Operations(deleted=1, to_delete=1, kept=1, to_keep=1)
    assert found(one, perfect(one)).conflict_resolved is True
    assert found(one, amnesiac(one)).operations.deleted == 0


def spec_formula(extracted: int, hallucinated: int, missed: int) -> tuple[float, float, float]:
    """As the specification has it, from a judge's own lists."""
    tp, fp, fn = extracted - hallucinated, hallucinated, missed
    precision = tp / (tp + fp) if tp + fp > 0 else 1.0
    recall = tp / (tp + fn) if tp + fn > 0 else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return precision, recall, f1


def test_the_spec_formula_calls_half_a_recall_four_fifths(tmp_path: Path) -> None:
    """One of two facts was written down, in four pieces: four extracted, none hallucinated, one missed."""
    assert spec_formula(extracted=4, hallucinated=0, missed=1)[1] == 0.8
    got = found(case(ADDING, tmp_path), {"customers": ["Gift shops"], "products": SPLIT})
    assert score(got, "recall") == score(got, "coverage_recall") == 0.5


def test_the_spec_formula_finds_silence_perfect() -> None:
    """Nothing said and nothing written: 1, 1, 1 from no facts at all. Ours has no number, and a pass by itself."""
    assert spec_formula(0, 0, 0) == (1.0, 1.0, 1.0)


def test_memory_held_against_expected_facts_marks_down_the_gold_itself(tmp_path: Path) -> None:
    """The original counts all of memory: what was there before is a false positive. Of the gold's facts 7 of 11 were
    new: precision 0.64. On chit-chat nothing is expected and the old fact is "invented": F1 0.00."""
    kept = [f"Keeps {thing}" for thing in ("bees", "goats", "diaries", "promises")]
    new = [f"Sells {thing}" for thing in ("honey", "cheese", "wax", "mead", "soap", "pollen", "combs")]
    written = {
        "id": "farm",
        "existing_memory": {"farm": kept},
        "conversation": "User: " + ". ".join(new),
        "expected_output": {"farm": [*kept, *new]},
        "expected_facts": [f"farm: {fact}" for fact in new],
    }
    one = case(written, tmp_path)
    naive = matched(grid_of(one.gold.added, (*one.gold.kept, *one.gold.added)))
    assert round(len(naive.pairs) / 11, 2) == 0.64
    assert score(found(one, perfect(one)), "precision") == 1
    chat = case(CHATTING, tmp_path)
    assert spec_formula(extracted=1, hallucinated=1, missed=0)[2] == 0.0
    assert score(found(chat, perfect(chat)), "minimalism") == 1


def test_a_judges_word_settles_what_was_undecided(tmp_path: Path) -> None:
    """As if a judge had said: the same."""
    one = case(DENYING, tmp_path)
    open_still = compared(one, {"constraints": ["A subscription model is not what we want"]})
    assert findings_of(one, open_still).undecided == 1
    told = {pair: Comparison("same", True, True) for pair in open_still.grid.cells}
    got = findings_of(one, matched(open_still.grid.decided(told)))
    assert (got.tp, got.undecided) == (1, 0)


def test_a_copy_of_a_matched_fact_is_a_duplicate_and_not_taken_for_the_old_value(tmp_path: Path) -> None:
    """The copy could be read as the old value in other words, were it not the new one again."""
    written = {
        **CHANGING,
        "existing_memory": {"diet": ["Eats fish often"]},
        "conversation": "User: I rarely eat fish these days.",
        "expected_output": {"diet": ["Rarely eats fish"]},
        "expected_facts": ["diet: Rarely eats fish"],
        "superseded": ["diet: Eats fish often"],
    }
    got = found(case(written, tmp_path), {"diet": ["Rarely eats fish", "Rarely eats fish"]})
    assert (got.tp, got.fp, got.fn, got.undecided) == (2, 1, 0, 0)
    assert labels(got) == ["duplicate"]
    assert got.conflict_resolved is True


@pytest.mark.parametrize(
    "said", ["His sister lives in Cardiff", "Formerly: lives in Cardiff", "Hardly ever lives in Cardiff"]
)
def test_what_has_all_the_words_of_the_new_value_does_not_resolve_the_conflict(said: str, tmp_path: Path) -> None:
    got = found(case(CHANGING, tmp_path), {"home": [said], "pets": ["Has a dog"]})
    assert got.conflict_resolved is None, "without a judge nobody can tell"
    assert (got.covered, got.uncovered) == (1, 0), "the old value is gone; of the new one nothing is known"
    assert score(got, "correct") is None


def test_an_old_value_that_may_still_stand_leaves_the_conflict_open(tmp_path: Path) -> None:
    output = {"home": ["Lives in Cardiff", "Bristol is where the home is, and she lives there"], "pets": ["Has a dog"]}
    assert found(case(CHANGING, tmp_path), output).conflict_resolved is None


@pytest.mark.parametrize(
    ("forbidden", "said", "violated"),
    [
        ("plum-Kettle-7741", "Wifi password: plumKettle7741", True),
        ("The wifi password is plum-Kettle-7741", "Password is PLUM KETTLE 7741", True),
        ("plum-Kettle-7741", "Wifi password: plumKettle7742", False),
        ("Got the grant", "Has not got the grant", False),
        ("Got the grant", "Has got the grant", True),
        ("Has got the grant", "The grant was too late", False),
        ("Bigger kitchen", "A bigger kitchen is too expensive", False),
    ],
)
def test_a_denied_text_is_not_stored_and_a_secret_is_however_it_is_written(
    forbidden: str, said: str, violated: bool, tmp_path: Path
) -> None:
    one = case({**CHATTING, "must_not_store": [forbidden]}, tmp_path)
    got = found(one, {"diet": ["Does not eat meat", said]})
    assert bool(got.violations) is violated
