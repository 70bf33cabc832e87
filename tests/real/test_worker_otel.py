"""`worker --otel` sends the spans of what the worker performs, and only these."""

from __future__ import annotations

import pytest

from tests.cli.command import Command
from tests.standins.otlp import Collector

pytest_plugins = ("tests.real.local_postgres",)
pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")
EVAL = ("eval", "--providers", "bm25", "--limit", "6", "--run-id", "r", "--concurrency", "1")


@pytest.mark.real
def test_a_worker_sends_its_own_spans(command: Command, database: str) -> None:
    with Collector() as first, Collector() as second:
        assert command.killed(*EVAL, "--journal", database, "--otel", first.url, at=20)
        said = command("worker", "--journal", database, "--run", "r", "--otel", second.url, "--json")
        assert said.code == 0, said.err
        assert said.json["status"] == "complete"
        assert not second.refused
        (run,) = second.named("run bench")
        assert run.attributes["memorybench.run.id"] == "r"
        trials = [span for span in second.spans if span.name.startswith("trial")]
        assert len(trials) == said.json["performed"] > 0
        assert {span.parent for span in trials} == {run.id}
