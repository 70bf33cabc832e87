"""A day of spans with labels: the figures equal a count of the labels, and a kill repeats no call and no feedback."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.cli.command import Command
from tests.cli.test_online_sources import ONLINE, figures, scores, stub
from tests.doubles.stub import Stub
from tests.suites.extraction.listing import user_says
from tests.traces.exports import Turn, as_jsonl, langfuse

__all__ = ["scores", "stub"]  # fixtures


def day(spans: int) -> list[Turn]:
    """Turns with about so many spans. Memories, facts, errors and replies are drawn at random."""
    random, turns, size = Random(7), [], 0
    while size < spans:
        number = len(turns)
        if random.random() < 0.7:
            found = [f"tea-{number}-{place}." for place in range(random.randrange(4))]
            used = [text for text in found if random.random() < 0.4]
            turns.append(Turn(number, found=found, reply=" ".join(used) or "No idea.", error=random.random() < 0.1))
            size += 4
        else:
            facts = [f"thing{place}: Number {number} of {place}" for place in range(random.randrange(1, 4))]
            kept = [fact for fact in facts if random.random() < 0.6] or facts[:1]
            turns.append(Turn(number, said=user_says(*facts), wrote=kept))
            size += 3
    return turns


@pytest.mark.parametrize("spans", [200, pytest.param(8_000, marks=pytest.mark.slow)])
def test_figures_equal_a_count_of_the_labels_across_a_kill(
    command: Command, stub: Stub, scores: Stub, spans: int
) -> None:
    turns = day(spans)
    (command.folder / "rows.jsonl").write_bytes(as_jsonl(langfuse(turns)))
    arguments = ("online", "rows.jsonl", *ONLINE, "--source", "langfuse", "--feedback", "--run-id", "r")
    assert command.killed(*arguments, "--concurrency", "4", at=spans // 2)
    assert stub.calls, "it was killed in the middle"
    resumed = command("online", "--resume", "r", "--concurrency", "4", "--json")
    assert resumed.code == 0, resumed.err

    searches = [turn for turn in turns if turn.found is not None]
    good = [turn for turn in searches if not turn.error]
    judged = [turn for turn in good if turn.found]
    writes = [turn for turn in turns if turn.wrote is not None]
    stated = sum(turn.said.count("- ") for turn in writes)
    found = figures(resumed.json)
    assert resumed.json["counts"]["scored"] == len(turns)
    assert found["searches"]["succeeded"] == pytest.approx(len(good) / len(searches))
    assert found["searches"]["found_any"] == pytest.approx(len(judged) / len(good))
    used = [sum(text in turn.reply for text in turn.found or ()) for turn in judged]
    assert found["searches"]["used"] == pytest.approx(sum(count > 0 for count in used) / len(judged))
    assert found["searches"]["used_memories"] == pytest.approx(sum(used) / sum(len(t.found or ()) for t in judged))
    assert found["writes"]["precision"] == 1
    assert found["writes"]["recall"] == pytest.approx(sum(len(turn.wrote or ()) for turn in writes) / stated)

    asked = Counter(call.body for call in stub.calls)
    assert sum(asked.values()) - len(asked) <= resumed.json["possibly_charged_twice"] <= 4
    posted = Counter(call.json["id"] for call in scores.calls)
    assert len(posted) == len(judged) + 3 * len(writes)
    assert sum(posted.values()) - len(posted) <= 4, "those under way when it died, under the same ids"
    before = len(stub.calls), len(scores.calls)
    assert (
        figures(command("online", "rows.jsonl", *ONLINE, "--source", "langfuse", "--feedback", "--json").json) == found
    )
    assert (len(stub.calls), len(scores.calls)) == before, "a later run of the folder repeats nothing"
