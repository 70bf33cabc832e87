"""Probes of natural conversations, made without a model, read and labelled one by one.

`natural_conversations.json` has four datasets in English, one in German and one in Chinese, with updates, plans and
dates, in free text and structured. A label is natural, clumsy or wrong; a probe that changes must be read again.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memorybench.datasets.audit import load_audit
from memorybench.suites.audit.generation import generate
from memorybench.suites.audit.probes import PROBE_TYPES

DATASETS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "natural_conversations.json").read_text("utf-8"))


@pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset["id"])
def test_every_probe_is_labelled_and_what_is_not_asked_is_counted(dataset: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "natural.json"
    path.write_text(json.dumps({key: dataset[key] for key in ("id", "conversations")}), "utf-8")
    loaded = load_audit(path)
    facts = sum(len(conversation.facts) for conversation in loaded.conversations)
    assert (len(loaded.conversations), facts >= 30) == (5, True)
    made = generate(loaded, PROBE_TYPES)
    asked = Counter((probe.question, probe.expected_answer) for probe in made.probes)
    assert asked == Counter((question, answer) for question, answer, _ in dataset["labels"])
    probed = {(probe.conversation, id) for probe in made.probes for id in probe.related_facts}
    assert len(probed) + len(made.skipped) == facts


def test_few_probes_are_wrong_or_clumsy() -> None:
    labels = Counter(label for dataset in DATASETS for _, _, label in dataset["labels"])
    assert labels.keys() <= {"natural", "clumsy", "wrong"}
    assert labels["wrong"] <= 0.01 * labels.total()
    assert labels["clumsy"] <= 0.1 * labels.total()
