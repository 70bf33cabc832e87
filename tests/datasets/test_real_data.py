"""Counts and samples of the real data. Of its text only digests stand here: the licences do not let us ship it."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from memorybench.core.conversation import Haystack
from memorybench.core.questions import Question
from memorybench.core.records import digest
from memorybench.datasets.errata import load_errata
from memorybench.datasets.locating import local_source
from memorybench.datasets.mapped import MappedDataset, open_mapped
from memorybench.datasets.question_reader import COUNTED, OFFICIAL
from memorybench.datasets.sources import verify_files
from tests.datasets.described import NO_SHARED, SHARED, bundled

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason=NO_SHARED)
ODD_EVIDENCE = {
    "conv-26:q37": ("D8:6", "D9:17"),
    "conv-42:q58": ("D2:14", "D9:12", "D9:14", "D10:11", "D19:17", "D27:23"),
    "conv-42:q88": ("D1:18", "D1:20"),
    "conv-43:q18": ("D1:14", "D2:7", "D4:7", "D5:15", "D11:26", "D20:21", "D26:36"),
    "conv-47:q38": ("D18:1", "D18:7"),
    "conv-49:q31": ("D9:1", "D4:4", "D4:6"),
    "conv-49:q38": ("D22:1", "D22:2", "D9:10", "D9:11"),
    "conv-49:q46": ("D21:18", "D21:22", "D11:15", "D11:19"),
    "conv-50:q69": ("D30:5",),
}
"""The nine ids that do not resolve unchanged: six are repaired, three are unknown."""
LOCOMO_SAMPLES = [("conv-26:q0", "429f5c74fa86"), ("conv-26:q9", "937adf5f2982"), ("conv-50:q203", "d1511a01b361")]
ORACLE_SAMPLES = [("e47becba", "c19bf211c877"), ("f8c5f88b", "bcc794ea41bb"), ("778164c6", "bcdbcdfa966c")]
SUBSET_SAMPLES = [("e47becba", "1b867f71320c"), ("6d550036", "4fa97de51859"), ("6ae235be", "832c2f9a4bc1")]


def opened(name: str, file: str) -> MappedDataset:
    described = bundled(name)
    source = local_source(described, SHARED / file)
    checksum = verify_files(source)
    return open_mapped(described, source, lambda: checksum)


@pytest.fixture(scope="module")
def locomo() -> MappedDataset:
    return opened("locomo", "locomo/locomo10.json")


@pytest.fixture(scope="module")
def oracle() -> MappedDataset:
    return opened("longmemeval-oracle", "longmemeval/longmemeval_oracle.json.gz")


@pytest.fixture(scope="module")
def subset() -> MappedDataset:
    return opened("longmemeval", "longmemeval/longmemeval_s_subset.json.gz")


def haystacks(dataset: MappedDataset) -> list[Haystack]:
    return [dataset.haystack(id) for id in dict.fromkeys(question.haystack for question in dataset.questions)]


def samples(dataset: MappedDataset) -> list[tuple[str, str]]:
    """The first, the tenth and the last question, by id and digest."""
    return [(one.id, _digest(one)) for one in (dataset.questions[0], dataset.questions[9], dataset.questions[-1])]


def _digest(question: Question) -> str:
    asked_at = question.asked_at.isoformat() if question.asked_at else None
    gold = [question.answers, question.gold_turns, question.gold_sessions, question.kind]
    return digest([question.question, asked_at, gold])[:12]


@pytest.mark.slow
def test_every_locomo_question_is_read(locomo: MappedDataset) -> None:
    found = haystacks(locomo)
    assert [haystack.id for haystack in found] == [f"conv-{n}" for n in (26, 30, 41, 42, 43, 44, 47, 48, 49, 50)]
    assert sum(len(haystack.sessions) for haystack in found) == 272
    assert sum(len(session.turns) for haystack in found for session in haystack.sessions) == 5_882
    assert len(found[0].sessions) == 19
    assert len(locomo.questions) == 1_986
    assert Counter(question.kind for question in locomo.questions) == {
        "multi-hop": 282,
        "temporal": 321,
        "open-domain": 96,
        "single-hop": 841,
        "adversarial": 446,
    }
    assert all(session.at for haystack in found for session in haystack.sessions)
    assert locomo.evidence == "turn"


def test_locomo_samples(locomo: MappedDataset) -> None:
    assert samples(locomo) == LOCOMO_SAMPLES


def test_the_odd_evidence_of_locomo_is_resolved(locomo: MappedDataset) -> None:
    gold = {question.id: question.gold_turns for question in locomo.questions}
    assert {id: gold[id] for id in ODD_EVIDENCE} == ODD_EVIDENCE
    raw = json.loads((SHARED / "locomo/locomo10.json").read_text(encoding="utf-8"))
    cited = [id for sample in raw for question in sample["qa"] for id in question["evidence"]]
    assert len(cited) == 2_815
    assert {"evidence ids with another spelling, repaired: 6", "unknown evidence ids, dropped: 3"} <= set(locomo.notes)


def test_adversarial_questions_of_locomo_have_no_right_answer(locomo: MappedDataset) -> None:
    adversarial = [question for question in locomo.questions if question.kind == "adversarial"]
    assert all(question.abstain for question in adversarial)
    assert Counter(question.answers for question in adversarial) == {(): 444, ("No",): 2}
    assert sum(question.abstain for question in locomo.questions) == 446
    assert "gold answers that are numbers, read as text: 6" in locomo.notes
    assert "questions without evidence, which have no retrieval figures: 4" in locomo.notes
    assert sum(not question.gold_turns for question in locomo.questions) == 4


def test_photo_captions_are_part_of_the_turn(locomo: MappedDataset) -> None:
    captions = sum(
        "[shares a photo: " in turn.content for h in haystacks(locomo) for s in h.sessions for turn in s.turns
    )
    assert captions == 1_226


@pytest.mark.slow
def test_every_longmemeval_question_is_read(oracle: MappedDataset, subset: MappedDataset) -> None:
    assert len(oracle.questions) == 500
    assert Counter(question.kind for question in oracle.questions) == {
        "multi-session": 133,
        "temporal-reasoning": 133,
        "knowledge-update": 78,
        "single-session-user": 70,
        "single-session-assistant": 56,
        "single-session-preference": 30,
    }
    abstention = [question for question in oracle.questions if question.abstain]
    assert Counter(question.kind for question in abstention) == {
        "multi-session": 12,
        "single-session-user": 6,
        "temporal-reasoning": 6,
        "knowledge-update": 6,
    }
    assert all(question.answers and question.asked_at and question.gold_sessions for question in oracle.questions)
    assert "gold answers that are numbers, read as text: 32" in oracle.notes
    assert len(subset.questions) == 44
    assert "histories that repeat a session id: 2" in subset.notes
    assert all(38 <= len(haystack.sessions) <= 62 for haystack in haystacks(subset))


@pytest.mark.slow
def test_longmemeval_samples(oracle: MappedDataset, subset: MappedDataset) -> None:
    assert samples(oracle) == ORACLE_SAMPLES
    assert samples(subset) == SUBSET_SAMPLES


@pytest.mark.slow
def test_the_authors_average_over_419_questions_of_oracle(oracle: MappedDataset) -> None:
    counted = {question.id for question in oracle.questions if question.labels[OFFICIAL] == COUNTED}
    assert len(counted) == 419
    with gzip.open(SHARED / "longmemeval/golden_bm25_oracle_turn.jsonl.gz", "rt", encoding="utf-8") as golden:
        assert counted <= {json.loads(line)["question_id"] for line in golden}


@pytest.mark.slow
def test_no_provider_sees_the_gold_of_longmemeval(oracle: MappedDataset) -> None:
    for haystack in haystacks(oracle)[:50]:
        seen = json.dumps(haystack.plain())
        assert "answer_" not in seen
        assert "has_answer" not in seen
        assert "_abs" not in haystack.id


@pytest.mark.slow
def test_gold_turns_lie_in_gold_sessions(subset: MappedDataset) -> None:
    for question in subset.questions:
        assert question.gold_sessions
        assert {turn.partition(":")[0] for turn in question.gold_turns} <= set(question.gold_sessions)


def test_the_errata_of_locomo(locomo: MappedDataset) -> None:
    errata = load_errata(SHARED / "locomo-errata/errors.json", locomo)
    assert Counter(erratum.wrong for erratum in errata.values()) == {"answer": 99, "evidence": 57}
    before = {question.id: question for question in locomo.questions}
    for id, erratum in errata.items():
        kept = erratum.corrected.answers == before[id].answers
        assert kept == (erratum.wrong == "evidence")
    assert before["conv-26:q1"].gold_turns == ("D1:12",)
    assert errata["conv-26:q1"].corrected.gold_turns == ("D1:14",)


def test_the_real_files_have_the_pinned_checksums() -> None:
    assert (
        verify_files(local_source(bundled("locomo"), Path(SHARED / "locomo/locomo10.json")))
        == bundled("locomo").data.sha256
    )
