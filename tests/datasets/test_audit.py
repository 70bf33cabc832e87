from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import BadInput
from memorybench.datasets.audit import AuditDataset, load_audit, problems_of
from tests.datasets.broken_audits.cases import BROKEN, ROW, VALID, VALID_ROWS, Broken


def on_disk(folder: Path, text: str, name: str = "small.json") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def loaded(folder: Path, text: str, name: str = "small.json") -> AuditDataset:
    return load_audit(on_disk(folder, text, name))


def test_a_dataset_is_read_with_all_its_parts(tmp_path: Path) -> None:
    dataset = loaded(tmp_path, VALID)
    first, second = dataset.conversations
    lives, moved, likes = first.facts
    assert (dataset.id, first.id, second.id) == ("small", "c1", "c2")
    assert [turn.id for turn in first.turns] == ["t1", "t2", "t3"]
    assert first.turns[2].at == datetime(2024, 4, 1, 9)
    assert (lives.subject, lives.attribute, lives.value) == ("user", "home town", "Ghent")
    assert (lives.valid_from, lives.valid_to) == (datetime(2024, 3, 1), datetime(2024, 4, 1))
    assert (lives.turn, moved.turn, likes.turn) == ("t1", "t3", None)
    assert moved.supersedes == "f1"
    assert likes.category == "preference"


def test_keys_may_be_written_in_snake_case(tmp_path: Path) -> None:
    snake = VALID.replace("validFrom", "valid_from").replace("validTo", "valid_to")
    assert loaded(tmp_path, snake) == loaded(tmp_path, VALID)


def test_rows_are_conversations_of_a_dataset_named_by_its_file(tmp_path: Path) -> None:
    dataset = loaded(tmp_path, VALID_ROWS + "\n", "chats.jsonl")
    assert dataset.id == "chats"
    assert [conversation.id for conversation in dataset.conversations] == ["c1", "c2", "c3"]


def test_a_gzipped_file_is_read_like_the_plain_one(tmp_path: Path) -> None:
    packed = tmp_path / "chats.jsonl.gz"
    packed.write_bytes(gzip.compress(VALID_ROWS.encode()))
    assert load_audit(packed) == loaded(tmp_path, VALID_ROWS, "chats.jsonl")


def test_days_are_in_utc_if_other_dates_have_a_time_zone(tmp_path: Path) -> None:
    zoned = VALID.replace('0:00"', '0:00+02:00"').replace('1:00"', '1:00+02:00"')
    lives, moved, _ = loaded(tmp_path, zoned).conversations[0].facts
    assert lives.at == datetime(2024, 3, 1, tzinfo=UTC)
    assert moved.at is not None
    assert moved.at > lives.at


def test_a_fact_may_supersede_another_of_the_same_day(tmp_path: Path) -> None:
    same_day = VALID.replace(
        '"timestamp": "2024-04-01T09:00:00", "supersedes"', '"timestamp": "2024-03-01", "supersedes"'
    )
    assert same_day != VALID
    assert problems_of(on_disk(tmp_path, same_day)) == []


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name.replace(" ", "-"))
def test_each_error_is_one_problem_with_line_and_remedy(broken: Broken, tmp_path: Path) -> None:
    file = on_disk(tmp_path, broken.text, "small.jsonl" if broken.rows else "small.json")
    found = problems_of(file)
    assert len(found) == 1, [str(bad) for bad in found]
    assert found[0].where == f"{file}:{broken.line}" + (f": {broken.place}" if broken.place else "")
    assert found[0].remedy
    with pytest.raises(BadInput) as raised:
        load_audit(file)
    assert str(raised.value) == str(found[0])


@pytest.mark.parametrize(("key", "moves"), [("facts", True), ("turns", True), ("owner", False)])
def test_a_key_of_conversations_at_the_top_level_is_to_be_moved(key: str, moves: bool, tmp_path: Path) -> None:
    [bad] = problems_of(on_disk(tmp_path, VALID.replace('  "id": "small",', f'  "id": "small", "{key}": [],')))
    assert ("move it into a conversation" in bad.remedy) == moves


def test_the_broken_files_differ_from_each_other() -> None:
    assert len({broken.text for broken in BROKEN}) == len(BROKEN) >= 25


def test_problems_are_sorted_by_line(tmp_path: Path) -> None:
    text = VALID
    for broken in BROKEN:
        if broken.name in ("an unknown role", "superseding nothing", "empty fact", "a conversation id twice"):
            text = text.replace(broken.old, broken.new)
    file = on_disk(tmp_path, text)
    found = problems_of(file)
    assert [bad.where.removeprefix(f"{file}:").partition(":")[0] for bad in found] == ["8", "15", "17", "21"]
    with pytest.raises(BadInput, match=r"first of 4 problems"):
        load_audit(file)


def test_rows_after_an_invalid_one_are_checked_as_well(tmp_path: Path) -> None:
    file = on_disk(tmp_path, f"nonsense\n{ROW}{ROW.replace('user', 'usr', 1).replace('c1', 'c2')}{{", "chats.jsonl")
    first, role, last = problems_of(file)
    assert (first.where, last.where) == (f"{file}:1", f"{file}:4")
    assert role.where == f"{file}:3: turns[0].role"
    assert "incomplete" in last.problem


def test_a_dataset_without_any_fact_is_an_error(tmp_path: Path) -> None:
    row = '{"id": "c1", "turns": [{"role": "user", "content": "Hi."}], "facts": []}\n'
    file = on_disk(tmp_path, row, "chats.jsonl")
    assert [bad.where for bad in problems_of(file)] == [f"{file}:1"]
    assert problems_of(on_disk(tmp_path, row + ROW.replace("c1", "c2"), "chats.jsonl")) == []


@pytest.mark.parametrize("name", ["missing.json", "notes.txt"])
def test_missing_files_and_unknown_file_types_are_errors(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        load_audit(tmp_path / name)
    assert caught.value.where == str(tmp_path / name)


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in members:
        yield (*place, step)
        yield from places(member, (*place, step))


@pytest.mark.slow
def test_a_value_of_any_wrong_type_is_reported_and_never_raises(tmp_path: Path) -> None:
    refused = 0
    for place in places(json.loads(VALID)):
        for wrong in (None, True, 3, "", [], {}, [{}], [[]]):
            changed = holder = json.loads(VALID)
            for step in place[:-1]:
                holder = holder[step]
            holder[place[-1]] = wrong
            file = on_disk(tmp_path, json.dumps(changed, indent=1))
            if problems_of(file):
                refused += 1
                with pytest.raises(BadInput):
                    load_audit(file)
            else:
                assert load_audit(file).id == "small"
    assert refused > 250
