"""Every measure of `make perf` works at a tiny size; its figures mean nothing there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memorybench.journal.run_reader import RunReader
from perf import instant
from perf.__main__ import MEASURES, main
from perf.measuring import Line, Setup, Skipped, at_most, run_child, tiny


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_yields_lines_at_a_tiny_size(tmp_path: Path, name: str) -> None:
    try:
        lines = list(MEASURES[name](tiny(tmp_path)))
    except Skipped as reason:
        pytest.skip(str(reason))
    assert lines
    assert all(line.figure >= 0 for line in lines)
    if name != "start":  # its goals are ratios to an earlier commit, which a test does not need
        assert any(line.goal for line in lines), "a measure has a goal"


def test_a_function_runs_in_a_child_process_with_its_arguments(tmp_path: Path) -> None:
    usage = Setup(tmp_path).run(instant.run, "three", 3)
    assert usage.megabytes > 0
    with RunReader.open(tmp_path / "perf.instant-three") as run_reader:
        assert run_reader.counts("instant")["scored"] == 3


def test_each_line_is_printed_before_the_next_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(setup: Setup):  # type: ignore[no-untyped-def]
        yield Line("first", 1.0)
        assert "first" in capsys.readouterr().out
        yield at_most("second", 2.0, 1.0)

    monkeypatch.setattr("perf.__main__.MEASURES", {"toy": measure})
    assert main(["toy"]) == 3
    assert "MISSED" in capsys.readouterr().out


def test_a_measure_that_needs_more_than_this_machine_has_is_skipped_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("perf.workers.program_folders", list)
    assert main(["workers"]) == 0
    assert capsys.readouterr().out.startswith("workers skipped: PostgreSQL not found")


def test_an_unknown_measure_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["latenzy"])
    assert caught.value.code == 2
    assert "latenzy" in capsys.readouterr().err


def test_standard_error_of_a_child_is_shown_only_if_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    script = "import sys; print('figures'); sys.stderr.write('progress'); sys.exit(int(sys.argv[1]))"
    assert run_child([sys.executable, "-c", script, "0"], os.environ) == "figures\n"
    assert capsys.readouterr().err == ""
    with pytest.raises(subprocess.CalledProcessError):
        run_child([sys.executable, "-c", script, "1"], os.environ)
    assert capsys.readouterr().err == "progress"
