"""The baselines amnesiac and hoarder."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from memorybench.extractors.baselines import BaselineExtractor
from tests.extractors.conversation import EXISTING, ask

SENTENCES = ["We have a dog now.", "Biscuit.", "She sleeps a lot."]


def test_amnesiac_returns_the_memory_unchanged() -> None:
    assert ask(nullcontext(BaselineExtractor("amnesiac"))) == EXISTING


@pytest.mark.parametrize(
    ("existing", "hoarded"),
    [
        (EXISTING, {**EXISTING, "notes": SENTENCES}),
        ({"notes": ["Old"]}, {"notes": ["Old", *SENTENCES]}),
        ({"notes": "Old"}, {"notes": ["Old", *SENTENCES]}),
        (["Old"], ["Old", *SENTENCES]),
        ("Old", ["Old", *SENTENCES]),
        ("", SENTENCES),
    ],
)
def test_hoarder_stores_only_sentences_of_the_user(existing: Any, hoarded: Any) -> None:
    assert ask(nullcontext(BaselineExtractor("hoarder")), existing) == hoarded
