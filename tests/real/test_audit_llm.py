"""An audit over a real local model, replayed and through a memory: plumbing, not merit."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ("tests.real.local_llm",)
pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]


def _structure(subject: str, attribute: str, value: str) -> dict[str, str]:
    return {"subject": subject, "attribute": attribute, "value": value}


SAID = ("My dog is called Rex.", "A good name!", "I work as a baker in Porto.", "Early mornings, then.")
"""Short, because the model reads about a hundred words per second on one processor."""
DATASET = {
    "id": "short",
    "conversations": [
        {
            "id": "c1",
            "turns": [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(SAID)],
            "facts": [
                {
                    "id": "dog",
                    "content": "User's dog is called Rex",
                    "turn": 1,
                    **_structure("user's dog", "name", "Rex"),
                },
                {"id": "job", "content": "User is a baker", "turn": 3, **_structure("user", "occupation", "baker")},
                {"id": "city", "content": "User works in Porto", "turn": 3, **_structure("user", "workplace", "Porto")},
            ],
            "absent": [{"id": "cat", "subject": "user's cat", "attribute": "name"}],
        }
    ],
}


def audit(folder: Path, server: str, *arguments: str) -> dict[str, object]:
    minutes = 15 * 60_000  # a busy machine is slow
    card = {"name": "local", "baseUrl": f"{server}/v1", "model": "smollm2", "timeout": minutes, "maxTokens": 60}
    (folder / "models.yaml").write_text(json.dumps({"models": [card]}))
    (folder / "short.json").write_text(json.dumps(DATASET))
    asked = ("audit", "short.json", "--model", "local", "--judge-model", "none", "--json", "--concurrency", "1")
    command = [sys.executable, "-m", "memorybench", *asked, *arguments]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert said.returncode in (0, 1), said.stderr
    document: dict[str, object] = json.loads(said.stdout)
    return document


def test_a_real_model_is_audited_by_replay(local_llm: str, tmp_path: Path) -> None:
    counts = audit(tmp_path, local_llm, "--limit", "3", "--kinds", "recall")["counts"]
    assert isinstance(counts, dict)
    # whether code can decide an answer depends on the words of a small model
    assert counts["scored"] + counts["unscored"] == counts["planned"] == 3
    assert counts["failed"] == 0


def test_a_real_model_reads_for_a_memory(local_llm: str, tmp_path: Path) -> None:
    document = audit(tmp_path, local_llm, "--limit", "4", "--provider", "bm25")
    counts = document["counts"]
    assert isinstance(counts, dict)
    assert counts["scored"] + counts["unscored"] == counts["planned"]
    assert counts["failed"] == 0


def test_a_real_model_writes_and_verifies_probes(local_llm: str, tmp_path: Path) -> None:
    document = audit(tmp_path, local_llm, "--limit", "1", "--kinds", "recall", "--probe-model", "local")
    counts = document["counts"]
    assert isinstance(counts, dict)
    # a small model rejects most probes; what matters is that each has an outcome
    assert counts["scored"] + counts["unscored"] + counts["skipped"] == counts["planned"] == 1
