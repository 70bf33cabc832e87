"""A small benchmark: each history is a house with three questions."""

from __future__ import annotations

import json
from pathlib import Path

THINGS = ("lamp", "kettle", "chair")
CONFIG = """
name: boxes
data: {type: local, path: ./datasets/boxes.json}
schema:
  itemId: key
  evidenceLevel: turn
  questions: {field: quiz, questionField: q, answerField: accept, evidenceField: proof}
  context:
    field: log
    turnsField: lines
    dateField: "$.log[*].when"
    itemSchema: {speaker: who, text: says, dialogId: nr}
evaluation: {method: llm-judge}
"""


def write_benchmark(folder: Path, histories: int) -> None:
    def item(n: int) -> dict[str, object]:
        log = [
            {"when": f"2024-03-0{s}", "lines": [{"nr": f"{n}-{s}", "who": "Ana", "says": f"The {thing} is in box {s}"}]}
            for s, thing in enumerate(THINGS, 1)
        ]
        quiz = [
            {"q": f"Where is the {thing} of house {n}?", "accept": f"box {s}", "proof": [f"{n}-{s}"]}
            for s, thing in enumerate(THINGS, 1)
        ]
        return {"key": f"house{n}", "log": log, "quiz": quiz}

    for name in ("configs", "datasets"):
        (folder / "benchmarks" / name).mkdir(parents=True)
    (folder / "benchmarks/configs/boxes.yaml").write_text(CONFIG)
    (folder / "benchmarks/datasets/boxes.json").write_text(json.dumps([item(n) for n in range(histories)]))
