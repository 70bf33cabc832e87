from hashlib import sha256
from pathlib import Path

import pytest

import memorybench
from memorybench.files.prompts import AUDIT_JUDGE_PROMPTS, JUDGE_PROMPTS, PROBE_PROMPTS, RUBRIC_ITEM_PROMPT, load_prompt

FOLDER = Path(memorybench.__file__).parent / "catalog" / "prompts"


def test_every_prompt_file_has_a_use() -> None:
    names = {
        "bench-answer",
        "bench-choice",
        "audit-answer",
        "extraction-stated",
        "extraction-written",
        "extraction-withdrawn",
        *(f"probe-{name}" for name in PROBE_PROMPTS),
        "judge-entailment",
        "judge-flag",
        "judge-used",
        "judge-support",
        "scan-confirm",
        "scan-lines",
        "scan-pairs",
        *(f"judge-{name}" for name in (*JUDGE_PROMPTS, *AUDIT_JUDGE_PROMPTS, RUBRIC_ITEM_PROMPT)),
    }
    assert {file.stem for file in FOLDER.iterdir()} == names


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("bench-answer", "cc3dacc0be2ade9b"),
        ("bench-choice", "f5a3599411e32036"),
        ("audit-answer", "e543662ea9532815"),
        ("extraction-stated", "555c30d2fa3c7eea"),
        ("extraction-written", "9725e7d57f644a25"),
        ("extraction-withdrawn", "e4f95543dbb9c69b"),
        ("judge-default", "dd67011d7b7da219"),
        ("judge-temporal", "d8b056f1ac9cd486"),
        ("judge-knowledge-update", "e4ee778a59e98f4c"),
        ("judge-rubric", "67620636d465135d"),
        ("judge-rubric-item", "bd77ce72acdf6cea"),
        ("judge-abstention", "8a781676870b8960"),
        ("judge-recall", "eaaa5181f902aea9"),
        ("judge-conflict", "aa01409e9c1b9d6f"),
        ("judge-order", "20e095f94563fcc9"),
        ("judge-entailment", "495d30e088351ff6"),
        ("judge-flag", "9322fa94ba01496b"),
        ("judge-support", "b14ef7d708bb484b"),
        ("judge-used", "204d728e9249731b"),
        ("probe-answer", "7f5226203a0172b3"),
        ("probe-guess", "017b54edc21b1b6f"),
        ("probe-date", "67431a892b939df8"),
        ("probe-same", "a25ad0e84fca7395"),
        ("probe-write", "14bf40bf5a3f7242"),
        ("probe-write-change", "836517346a0ec0c0"),
        ("probe-write-absent", "92ababc7d4566bff"),
        ("scan-confirm", "1bdba3eb79b4b873"),
        ("scan-lines", "849e79845bb8a52e"),
        ("scan-pairs", "77d4c7bc90f47b4a"),
    ],
)
def test_default_prompts_are_unchanged(name: str, digest: str) -> None:
    """A changed prompt makes answers and verdicts incomparable with those of earlier runs."""
    assert sha256(load_prompt(name).encode()).hexdigest()[:16] == digest
