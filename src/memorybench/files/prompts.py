"""Reads the default prompts, which are text files in the catalog's folder `prompts`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent.parent / "catalog" / "prompts"
JUDGE_PROMPTS = ("default", "temporal", "knowledge-update", "rubric", "abstention")
"""Names that `evaluationPrompt` in a benchmark config may have; the file of each is `judge-NAME.txt`."""

AUDIT_JUDGE_PROMPTS = ("recall", "conflict", "order")
"""Names of further judge prompts, which the audit uses."""

RUBRIC_ITEM_PROMPT = "rubric-item"
"""Name of the judge prompt for one item of a rubric."""

PROBE_PROMPTS = ("answer", "date", "guess", "same", "write", "write-absent", "write-change")
"""Names of the prompts with which a model writes and verifies probes; the file of each is `probe-NAME.txt`."""


@cache
def load_prompt(name: str) -> str:
    """Return the text of the file `NAME.txt` in the catalog's folder `prompts`."""
    return (_FOLDER / f"{name}.txt").read_bytes().decode("utf-8")
