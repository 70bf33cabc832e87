"""On items of a few lines in the benchmarks' shapes; on the real files by counts and digests alone."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memorybench.catalog import catalog as catalogue
from memorybench.core.errors import BadInput
from memorybench.core.records import digest
from memorybench.datasets.audit import AuditDataset, load_audit, problems_of
from memorybench.datasets.audit_conversion import convert_locomo, convert_longmemeval, dataset_json
from tests.datasets.described import NO_SHARED, SHARED

with_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=NO_SHARED)
SAMPLE = Path(catalogue.__file__).parent / "data/sample-dataset.json"

SINGLE_HOP, ADVERSARIAL, TEMPORAL = 4, 5, 2


def asked(question: str, category: int = SINGLE_HOP, evidence: str = "D2:1", **more: Any) -> dict[str, Any]:
    return {"question": question, "category": category, "evidence": [evidence]} | more


def locomo_item(**changed: Any) -> dict[str, Any]:
    conversation = {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_10_date_time": "9:00 am on 3 June, 2023",
        "session_10": [{"speaker": "Ada", "dia_id": "D10:1", "text": "The boat is sold."}],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [
            {"speaker": "Ada", "dia_id": "D2:1", "text": "I bought a boat called Teal."},
            {"speaker": "Bo", "dia_id": "D2:2", "text": "", "blip_caption": "a small harbour"},
        ],
        "session_30_date_time": "9:00 am on 3 July, 2023",
    }
    return {
        "sample_id": "conv-1",
        "conversation": conversation,
        "observation": {"session_2_observation": {"Ada": [["Ada bought a boat.", ["D2:1", "D2:2"]]]}},
        "qa": [
            asked("What is Ada's boat called?", answer="Teal"),
            asked("What did Bo sell?", ADVERSARIAL, answer="his boat", adversarial_answer="his boat"),
            asked("When did Ada buy it?", TEMPORAL, answer="May 2023"),
            asked("Did Ada buy a boat?", answer="Yes."),
            asked("Why did she?", answer="because she has always wanted to live on the water"),
            asked("What is nowhere?", evidence="D9:9", answer="this"),
            asked("How many boats?", answer=1),
        ],
    } | changed


def longmemeval_item(id: str = "q1", **changed: Any) -> dict[str, Any]:
    return {
        "question_id": id,
        "question_type": "knowledge-update",
        "question": "Where do I keep my skis?",
        "answer": "The attic.",
        "haystack_dates": ["2023/06/09 (Fri) 10:00", "2023/05/02 (Tue) 08:30", "2023/07/01 (Sat) 12:00"],
        "haystack_session_ids": ["answer_2", "answer_1", "other"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "My skis are in the attic. now", "has_answer": True},
                {"role": "assistant", "content": ""},
            ],
            [{"role": "user", "content": "My skis are in the shed.", "has_answer": True}],
            [{"role": "user", "content": "What is the time?"}],
        ],
        "answer_session_ids": ["answer_1", "answer_2"],
    } | changed


def on_disk(folder: Path, items: list[Any]) -> Path:
    file = folder / "bench.json"
    file.write_text(json.dumps(items, indent=1), encoding="utf-8")
    return file


def read_back(folder: Path, dataset: AuditDataset) -> AuditDataset:
    file = folder / "audit.json"
    file.write_text(dataset_json(dataset), encoding="utf-8")
    assert [str(bad) for bad in problems_of(file)] == []
    return load_audit(file)


def test_locomo_sessions_are_sorted_by_number_with_both_speakers_and_photos(tmp_path: Path) -> None:
    (conversation,) = convert_locomo(on_disk(tmp_path, [locomo_item()])).conversations
    assert [(turn.role, turn.speaker, turn.content) for turn in conversation.turns] == [
        ("user", "Ada", "I bought a boat called Teal."),
        ("assistant", "Bo", "[shares a photo: a small harbour]"),
        ("user", "Ada", "The boat is sold."),
    ]
    assert [turn.id for turn in conversation.turns] == ["t1", "t2", "t3"]
    assert conversation.turns[0].at == datetime(2023, 5, 8, 13, 56)


def test_locomo_facts_are_observations_and_short_single_hop_answers(tmp_path: Path) -> None:
    (conversation,) = convert_locomo(on_disk(tmp_path, [locomo_item()])).conversations
    observed, named, counted = conversation.facts
    assert (observed.content, observed.turn, observed.value) == ("Ada bought a boat.", "t1", None)
    assert (named.question, named.value, named.turn) == ("What is Ada's boat called?", "Teal", "t1")
    assert counted.value == "1"
    assert {fact.at for fact in conversation.facts} == {datetime(2023, 5, 8, 13, 56)}


def test_no_adversarial_answer_becomes_a_fact(tmp_path: Path) -> None:
    qa = [asked(f"What is {n}?", ADVERSARIAL, answer=f"wrong {n}", adversarial_answer=f"wrong {n}") for n in range(5)]
    made = convert_locomo(on_disk(tmp_path, [locomo_item(qa=qa)]))
    assert "wrong" not in dataset_json(made)


def test_longmemeval_sessions_are_sorted_by_date_and_the_updated_value_is_the_fact(tmp_path: Path) -> None:
    (conversation,) = convert_longmemeval(on_disk(tmp_path, [longmemeval_item()])).conversations
    assert [turn.content for turn in conversation.turns] == [
        "My skis are in the shed.",
        "My skis are in the attic. now",
        "What is the time?",
    ]
    (fact,) = conversation.facts
    assert (fact.question, fact.value, fact.turn) == ("Where do I keep my skis?", "The attic.", "t2")
    assert fact.at == datetime(2023, 6, 9, 10)
    assert "answer_" not in conversation.model_dump_json()


def test_counting_inference_and_abstention_questions_of_longmemeval_are_skipped(tmp_path: Path) -> None:
    kinds = ("multi-session", "temporal-reasoning", "single-session-preference")
    left_out = [longmemeval_item(f"k{n}", question_type=kind) for n, kind in enumerate(kinds)]
    left_out += [longmemeval_item("a_abs"), longmemeval_item("long", answer="in the attic behind the chimney of old")]
    left_out += [longmemeval_item("yes", answer="Yes.")]
    kept = [longmemeval_item("q1"), longmemeval_item("q2", question_type="single-session-user")]
    made = convert_longmemeval(on_disk(tmp_path, left_out + kept))
    assert [conversation.id for conversation in made.conversations] == ["q1", "q2"]
    limited = convert_longmemeval(on_disk(tmp_path, left_out + kept), limit=1)
    assert [conversation.id for conversation in limited.conversations] == ["q1"]


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"sample_id": "conv-1"}, '"conversation" is missing'),
        (locomo_item(qa=[{"question": "?"}]), '"category" is missing'),
        (locomo_item(observation={"session_1_observation": []}), "session_1_observation"),
        (3, "is 3"),
    ],
)
def test_an_invalid_locomo_item_is_reported_with_its_line(item: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=rf"bench\.json:\d+: .*{said}"):
        convert_locomo(on_disk(tmp_path, [item]))


def test_dates_that_do_not_match_their_sessions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"haystack_dates: 1 dates for 3 sessions"):
        convert_longmemeval(on_disk(tmp_path, [longmemeval_item(haystack_dates=["2023/06/09 (Fri) 10:00"])]))


def test_a_file_without_usable_conversations_is_an_error(tmp_path: Path) -> None:
    file = on_disk(tmp_path, [longmemeval_item("a_abs")])
    with pytest.raises(BadInput) as caught:
        convert_longmemeval(file)
    assert caught.value.where == str(file)


def test_a_written_dataset_is_read_back_unchanged(tmp_path: Path) -> None:
    sample = load_audit(SAMPLE)
    assert read_back(tmp_path, sample) == sample
    locomo = convert_locomo(on_disk(tmp_path, [locomo_item()]))
    assert read_back(tmp_path, locomo) == locomo


@with_shared
@pytest.mark.slow
def test_all_of_locomo_is_converted(tmp_path: Path) -> None:
    file = SHARED / "locomo/locomo10.json"
    made = convert_locomo(file)
    facts = [fact for conversation in made.conversations for fact in conversation.facts]
    assert (len(made.conversations), sum(len(one.turns) for one in made.conversations)) == (10, 5882)
    assert (len(facts), sum(fact.value is not None for fact in facts)) == (3163, 622)
    assert read_back(tmp_path, made) == made
    items = json.loads(file.read_text(encoding="utf-8"))
    adversarial = {
        (item["sample_id"], asked["question"])
        for item in items
        for asked in item["qa"]
        if asked["category"] == ADVERSARIAL
    }
    questions = {(one.id, fact.question) for one in made.conversations for fact in one.facts if fact.question}
    assert len(adversarial) > 400
    assert questions & adversarial == set()


@pytest.mark.slow
@with_shared
def test_all_of_longmemeval_oracle_is_converted(tmp_path: Path) -> None:
    made = convert_longmemeval(SHARED / "longmemeval/longmemeval_oracle.json.gz")
    facts = [fact for conversation in made.conversations for fact in conversation.facts]
    assert (len(made.conversations), len(facts)) == (160, 160)
    assert [digest(fact.content)[:8] for fact in (facts[0], facts[9], facts[-1])] == [
        "c7e1b34f",
        "aefb6b13",
        "fac229f3",
    ]
    assert not [conversation.id for conversation in made.conversations if "_abs" in conversation.id]
    assert read_back(tmp_path, made) == made
