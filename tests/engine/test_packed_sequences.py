"""Audit conversations and probes are kept compressed. A packed sequence must behave as the tuple it was made from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.core.packed import PackedSequence

VALUES = st.lists(st.one_of(st.integers(), st.text(), st.tuples(st.text(), st.floats(allow_nan=False))), max_size=40)
BOUNDS = st.one_of(st.none(), st.integers(-50, 50))


@pytest.mark.slow
@given(VALUES, st.integers(1, 7), BOUNDS, BOUNDS, st.integers(-5, 5).filter(bool))
def test_it_reads_like_a_tuple(
    values: list[object], per_chunk: int, start: int | None, stop: int | None, step: int
) -> None:
    packed, plain = PackedSequence(iter(values), per_chunk), tuple(values)
    assert len(packed) == len(plain)
    assert tuple(packed) == plain
    assert tuple(reversed(packed)) == plain[::-1]
    assert packed == plain
    assert packed != (*plain, "one more")
    assert packed[start:stop:step] == plain[start:stop:step]
    assert [packed[place] for place in range(-len(plain), len(plain))] == [*plain, *plain]
    with pytest.raises(IndexError):
        packed[len(plain)]


def test_what_a_reader_changes_does_not_change_the_sequence() -> None:
    packed = PackedSequence([{"id": "one"}, {"id": "two"}], per_chunk=1)
    for one in packed:
        one["id"] = "changed"
    assert [one["id"] for one in packed] == ["one", "two"]
