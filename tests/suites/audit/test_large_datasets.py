"""Datasets with many facts: the memory that reading them and making their probes takes."""

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput
from memorybench.core.records import canonical
from memorybench.datasets.audit import AuditConversation, AuditDataset, load_audit, problems_of
from memorybench.journal.rows import Fingerprint
from memorybench.suites.audit.generation import generate
from memorybench.suites.audit.probes import PROBE_TYPES

TOPICS = ("tea", "home town", "book", "dentist", "bicycle", "island", "lamp", "boat", "guitar", "coat")
NAMES = ("Larkfield", "Tarnfoot", "Oakmill", "Redfern", "Taplow", "Brightwater", "Kestrel", "Marlow", "Fenwick")


def dense(conversations: int) -> dict[str, Any]:
    """Return a dataset in which every turn states a fact."""
    made = []
    for number in range(conversations):
        turns, facts = [], []
        for place, topic in enumerate(TOPICS):
            value = f"{NAMES[(number + place) % 9]} {NAMES[(number * 7 + place) % 9]}"
            turns.append({"role": "user", "content": f"By the way, my {topic} is {value}. " + "I like it a lot. " * 10})
            facts.append(
                {"id": f"f{place}", "content": f"User's {topic} is {value}", "subject": "user", "attribute": topic,
                 "value": value, "turn": place + 1}
            )  # fmt: skip
        made.append({"id": f"c{number}", "turns": turns, "facts": facts})
    return {"id": "dense", "conversations": made}


def write_file(path: Path, value: dict[str, Any]) -> Path:
    rows = [json.dumps(row) for row in value["conversations"]]
    text = "\n".join(rows) + "\n" if ".jsonl" in path.name else json.dumps(value)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def peak_of(work: Callable[[], object]) -> tuple[int, int]:
    """Return the bytes that the work leaves, and the most that it held meanwhile."""
    tracemalloc.start()
    result = work()
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del result
    return held, peak


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dense.json", "dense.jsonl"])
def test_reading_a_file_takes_less_memory_than_its_text(tmp_path: Path, name: str) -> None:
    """Beside the window of 4 MB in which it is read, and its copies."""
    load_audit(write_file(tmp_path / "small.json", dense(1)))  # builds the classes
    path = write_file(tmp_path / name, dense(1500))
    size = path.stat().st_size
    held, peak = peak_of(lambda: load_audit(path))
    assert held < size / 2
    assert peak < size / 2 + 4 * 4 * 2**20


@pytest.mark.slow
def test_a_probe_takes_less_than_half_a_kilobyte(tmp_path: Path) -> None:
    dataset = load_audit(write_file(tmp_path / "dense.json", dense(300)))
    generate(dataset, PROBE_TYPES)  # fills the caches
    probes: list[int] = []
    held, _ = peak_of(lambda: probes.append(len((made := generate(dataset, PROBE_TYPES)).probes)) or made)
    assert probes[0] > 2500
    assert held / probes[0] < 500


@pytest.mark.slow
def test_a_limit_chooses_among_all_probes_and_keeps_their_order(tmp_path: Path) -> None:
    dataset = load_audit(write_file(tmp_path / "dense.json", dense(300)))
    whole = generate(dataset, PROBE_TYPES)
    few = generate(dataset, PROBE_TYPES, limit=20).probes
    assert len(few) == 20
    assert [one for one in whole.probes if one.id in {probe.id for probe in few}] == few


@pytest.mark.parametrize("name", ["dense.json", "dense.json.gz", "dense.jsonl", "dense.jsonl.gz", "dense.ndjson"])
def test_every_kind_of_file_gives_the_same_conversations(tmp_path: Path, name: str) -> None:
    whole = load_audit(write_file(tmp_path / "whole.json", dense(3)))
    value = dense(3)
    path = tmp_path / name
    if name == "dense.ndjson":
        path.write_text("\n\n".join(json.dumps(row) for row in value["conversations"]))
    else:
        write_file(path, value)
    assert load_audit(path).conversations == whole.conversations
    assert problems_of(path) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda value: value.update(more=1), "unknown key"),
        (lambda value: value.update(id=" "), "is empty"),
        (lambda value: value.pop("id"), "missing"),
        (lambda value: value.update(conversations={}), "is {}"),
        (lambda value: value.update(conversations=[]), "no conversations"),
        (lambda value: value["conversations"].append(value["conversations"][0]), "already used"),
        (lambda value: value["conversations"][2]["facts"][9].update(turn="3"), "has no turn"),
        (lambda value: value["conversations"][2]["facts"][9].update(turn=11), "has no turn"),
        (lambda value: [one.update(facts=[]) for one in value["conversations"]], "has facts"),
    ],
)
def test_problems_are_reported_with_their_line(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], problem: str
) -> None:
    value = dense(3)
    change(value)
    path = tmp_path / "dense.json"
    path.write_text(json.dumps(value, indent=1))
    with pytest.raises(BadInput, match=problem) as raised:
        load_audit(path)
    assert raised.value.where.startswith(f"{path}:")
    assert str(problems_of(path)[0]) == str(raised.value)


def test_the_fingerprint_of_the_parts_is_that_of_the_whole() -> None:
    conversation = AuditConversation(id="c😀", turns=(Turn(role="user", content='\u2028 " \\ é'),), facts=())
    dataset = AuditDataset(id="ü", conversations=(conversation,))
    whole = canonical({"id": dataset.id, "conversations": dataset.conversations})
    assert Fingerprint.of_parts(dataset.canonical_parts()) == Fingerprint.of(whole)
    assert Fingerprint.of_list(dataset.conversations) == Fingerprint.of(canonical(dataset.conversations))
