"""A whole evaluation over a real local model: plumbing, not merit."""

import json
from pathlib import Path

import pytest

from memorybench.cli.main import main

pytest_plugins = ("tests.real.local_llm",)
pytestmark = pytest.mark.real


def test_answers_and_verdicts_of_a_real_server(
    local_llm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VLLM_BASE_URL", local_llm)
    arguments = ["eval", "--providers", "bm25", "--limit", "1", "--concurrency", "1", "--run-id", "r", "--json"]
    code = main([*arguments, "--answering-model", "vllm/smollm2"])
    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert document["counts"]["scored"] == 1
    assert document["circumstances"]["spent"]["output_tokens"] > 0
    assert document["circumstances"]["spent"]["cost"] == 0
