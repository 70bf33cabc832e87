"""Evaluations from Python."""

import asyncio
from pathlib import Path

import pytest

from memorybench import MemorybenchError, evaluate, load_run


def test_a_run_from_python_is_the_run_of_the_command_line(tmp_path: Path) -> None:
    result = evaluate(providers=["bm25", "oracle"], limit=20, output=tmp_path, run_id="r")
    again = load_run("r", tmp_path)
    found = again.measure("bm25", "recall@5")
    assert found == result.measure("bm25", "recall@5")
    assert found.n == 20 == found.planned
    assert len(list(again.outcomes())) == 40
    assert (tmp_path / "r" / "report.md").exists()


def test_it_works_where_a_loop_is_running(tmp_path: Path) -> None:
    """As in a notebook."""

    async def cell() -> str:
        return evaluate(providers=["none"], limit=2, output=tmp_path).summary.status

    assert asyncio.run(cell()) == "complete"


def test_what_is_wrong_is_said_as_on_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(MemorybenchError, match="did you mean"):
        evaluate(providers=["bm52"], output=tmp_path)
    with pytest.raises(MemorybenchError, match=r"results\.db"):
        load_run("nobody", tmp_path)


def test_outcomes_become_a_data_frame(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = evaluate(providers=["bm25"], limit=5, output=tmp_path).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == 5
    assert frame["recall@5"].between(0, 1).all()
