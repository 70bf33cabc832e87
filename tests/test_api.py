"""Evaluations from Python."""

import asyncio
import json
import signal
import sys
import threading
from pathlib import Path

import pytest

from memorybench import MemorybenchError, audit, compare, evaluate, load_run, merge
from memorybench.core.errors import BadInput
from memorybench.engine.stopping import Stop
from tests.doubles.refusals import refused
from tests.doubles.stub import Stub, after, completion


@pytest.mark.slow
def test_a_run_from_python_is_the_run_of_the_command_line(tmp_path: Path) -> None:
    result = evaluate(providers=["bm25", "oracle"], end=20, output=tmp_path, run_id="r")
    again = load_run("r", tmp_path)
    found = again.measure("bm25", "recall@5")
    assert found == result.measure("bm25", "recall@5")
    assert found.n == 20 == found.planned
    assert len(list(again.outcomes())) == 40
    assert (tmp_path / "r" / "report.md").exists()


def test_a_measure_is_found_by_any_spelling_and_an_error_names_the_candidates(tmp_path: Path) -> None:
    result = evaluate(providers=["bm25(k1=2.0)"], end=2, output=tmp_path, run_id="r")
    assert result.measure("bm25(k1=2.0)", "recall@5") == result.measure("bm25(k1=2)", "recall_at_5")
    for subject, name, close in (("bm25(k1=2.1)", "recall@5", "bm25(k1=2)"), ("bm25(k1=2)", "recal@5", "recall@5")):
        error = refused(result.measure, subject, name)
        assert close in error.expected
        assert close in error.remedy
    assert "starter" in refused(result.measure, "bm25(k1=2)", "recall@5", "startr").remedy


def test_an_unknown_format_is_refused_before_a_file_is_written(tmp_path: Path) -> None:
    result = evaluate(providers=["bm25"], end=1, output=tmp_path, run_id="r")
    assert "html" in refused(result.write_reports, tmp_path / "reports", ["htm"]).remedy
    assert not (tmp_path / "reports").exists()


@pytest.mark.slow
def test_shards_are_merged_from_python(tmp_path: Path) -> None:
    whole = evaluate(providers=["bm25"], end=40, output=tmp_path / "whole", run_id="r")
    for number in (1, 2):
        evaluate(providers=["bm25"], end=40, shard=f"{number}/2", output=tmp_path / f"{number}", run_id="r")
    merged = merge(tmp_path / "1", tmp_path / "2", run_id="r", results=tmp_path / "merged")
    assert merged.measure("bm25", "recall@5") == whole.measure("bm25", "recall@5")
    assert "1/2" in refused(merge, tmp_path / "2", run_id="s", results=tmp_path / "merged").problem


def test_runs_are_compared_in_the_folder_where_their_command_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Path(__file__).parents[1] / "data/sample-dataset.json"
    monkeypatch.chdir(tmp_path)
    for run in ("before", "after"):
        audit(dataset, model="scripted/quote", judge_model="scripted/judge", limit=2, run_id=run)
    assert compare("before", "after").suite == "audit"


def test_evaluate_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    """As in a notebook."""

    async def cell() -> str:
        return evaluate(providers=["none"], limit=2, output=tmp_path).summary.status

    assert asyncio.run(cell()) == "complete"


@pytest.mark.parametrize("is_notebook", [True, False], ids=["notebook", "script"])
def test_ctrl_c_ends_the_run_and_reaches_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_notebook: bool
) -> None:
    """Otherwise a script would go on with its next run, and a run in a notebook could not be stopped."""
    made: list[Stop] = []
    monkeypatch.setattr("memorybench.workers.placement.Stop", lambda: made.append(Stop()) or made[-1])

    async def press_ctrl_c() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        for _ in range(1000):
            await asyncio.sleep(0 if made[0].is_set() else 0.01)

    def evaluate_here() -> None:
        evaluate(providers=["none"], answering_model="gpt-4o", limit=9, concurrency=1, output=tmp_path, run_id="r")

    async def cell() -> None:
        evaluate_here()

    with Stub() as stub, asyncio.Runner() as runner:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-stand-in")
        stub.next(after(press_ctrl_c, completion("yes")))
        with pytest.raises(KeyboardInterrupt, match="resume='r'"):
            runner.get_loop().run_until_complete(cell()) if is_notebook else evaluate_here()
        assert len(stub.calls) == 1
    summary = load_run("r", tmp_path).summary
    assert summary.status == "partial"
    assert summary.counts["unscored"] + summary.counts["scored"] == 1, "the call in flight was recorded"


def test_errors_are_those_of_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(MemorybenchError, match="bm25"):
        evaluate(providers=["bm52"], output=tmp_path)
    with pytest.raises(MemorybenchError, match=r"results\.db"):
        load_run("nobody", tmp_path)


@pytest.mark.parametrize(
    ("values", "where"), [({"lmit": 3}, "lmit"), ({"limit": 0}, "--limit"), ({"budget": -1}, "--budget")]
)
def test_keyword_arguments_are_the_fields_of_the_spec(tmp_path: Path, values: dict[str, int], where: str) -> None:
    with pytest.raises(BadInput) as caught:
        evaluate(output=tmp_path, **values)
    assert caught.value.where == where


def test_an_empty_list_is_refused(tmp_path: Path) -> None:
    """It must not stand for the default, which is six providers, or for all shards."""
    assert refused(evaluate, providers=[], limit=1, output=tmp_path).where == "--providers"
    assert refused(merge, run_id="merged", results=tmp_path).where == "DIR"
    assert list(tmp_path.iterdir()) == []


def test_a_resumed_run_takes_no_other_fields(tmp_path: Path) -> None:
    evaluate(providers=["none"], limit=2, output=tmp_path, run_id="r")
    with pytest.raises(BadInput) as caught:
        evaluate(resume="r", limit=3, output=tmp_path)
    assert caught.value.where == "--resume"


def test_outcomes_become_a_data_frame(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = evaluate(providers=["bm25"], limit=5, output=tmp_path).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == 5
    assert frame["recall@5"].dropna().between(0, 1).all()
    assert str(frame["created"].dtype).startswith("datetime64")
    assert str(frame["answer_seconds"].dtype) == str(frame["correct"].dtype) == "float64"
    assert all(json.loads(text)["scores"] for text in frame["metadata"])


def test_a_data_frame_without_pandas_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = evaluate(providers=["none"], limit=2, output=tmp_path)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BadInput) as caught:
        result.to_pandas()
    assert (caught.value.where, caught.value.__cause__) == ("to_pandas", None)
