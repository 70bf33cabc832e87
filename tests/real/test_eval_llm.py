"""A whole evaluation over a real local model, killed, resumed and scored again: plumbing, not merit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ("tests.real.local_llm",)
pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]

MODELS = ("--answering-model", "vllm/smollm2", "--judge-model", "vllm/smollm2")


def test_answers_and_verdicts_of_a_real_server_survive_a_kill(local_llm: str, tmp_path: Path) -> None:
    def memorybench(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "VLLM_BASE_URL": local_llm, **more}
        command = [sys.executable, "-m", "memorybench", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    begun = memorybench(
        "eval",
        "--providers",
        "bm25",
        "--limit",
        "1",
        "--run-id",
        "r",
        "--canaries",
        "24",
        *MODELS,
        MEMORYBENCH_FAULT_AT="60",
    )
    assert begun.returncode == -9, begun.stderr
    document = json.loads(memorybench("eval", "--resume", "r", "--json").stdout)
    counts = document["counts"]
    assert counts["scored"] + counts["unscored"] == 1, "answered; whether its verdict can be read is the model's affair"
    spent = document["circumstances"]["spent"]
    assert spent["calls"] > 20, "an answer, a verdict and the canaries"
    assert spent["cost"] == 0, "it runs at home"
    again = json.loads(memorybench("score", "r", "--judge-model", "vllm/smollm2", "--run-id", "s", "--json").stdout)
    stages = {stage["name"]: stage for stage in again["circumstances"]["stages"]}
    assert stages["answer"]["reused"] == stages["answer"]["steps"] == 1, "no answer is asked for again"
    assert again["counts"]["planned"] == 1
