"""`eval` of a large JSON file, compared with reading it: a run of one question should not cost the whole file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from perf.histories import write_histories
from perf.measuring import Line, Setup, Usage, at_most, run_command, usage_measured

_CONFIG = """\
name: generated
displayName: Generated histories
data: {type: local, path: FILE}
schema:
  itemId: question_id
  question: question
  answer: answer
  evidence: answer_session_ids
  evidenceLevel: session
  context:
    field: haystack_sessions
    dateField: haystack_dates
    idField: haystack_session_ids
    itemSchema: {content: $.content, role: $.role, evidence: $.has_answer}
  metadata: {questionType: question_type, questionDate: question_date}
ingestion: {preprocessing: {formatTemplate: "Date: ${date}\\nSession: ${session}"}}
search: {defaultLimit: 50}
evaluation: {method: llm-judge}
"""


def measure(setup: Setup) -> Iterator[Line]:
    """The best of some rounds each: reading the file, a first run without an index of it, and a second one."""
    file = str(generated_file(setup))
    yield Line("size of the JSON file", Path(file).stat().st_size / 1e6, "MB")
    setup.run(load, "warm", file)  # takes time: the checksum of a file that has just changed is not remembered
    loads, firsts, seconds = [], [], []
    for n in range(setup.rounds):  # in turn, because the speed of a shared machine changes within a minute
        loads.append(setup.run(load, f"load{n}", file))
        firsts.append(setup.run(first_question, f"first{n}", file, f"cache{n}"))
        seconds.append(setup.run(first_question, f"second{n}", file, f"cache{n}"))
    wall, cpu = (min(getattr(usage, kind) for usage in loads) for kind in ("wall", "cpu"))
    for name, usages, limit in (("first", firsts, 2.0), ("second", seconds, 0.8)):
        ratio = min(usage.wall for usage in usages) / wall
        yield at_most(f"`--limit 1` of it / json.load of it, {name} time: wall", ratio, limit)
        yield Line("  CPU", min(usage.cpu for usage in usages) / cpu)
        yield at_most("  peak memory", max(usage.megabytes for usage in usages), 500, "MB")


def generated_file(setup: Setup) -> Path:
    file = setup.folder / "histories.json"
    write_histories(file, setup.histories)
    return file


def load(folder: Path, file: str) -> Usage:
    with usage_measured() as usage, open(file, encoding="utf-8") as text:
        json.load(text)
    return usage


def first_question(folder: Path, file: str, cache: str) -> Usage:
    return evaluate_file(folder, file, "bm25", cache, "--limit", "1")


def evaluate_file(folder: Path, file: str, provider: str, cache: str = "cache", *options: str) -> Usage:
    folder.mkdir()
    (folder / "generated.yaml").write_text(_CONFIG.replace("FILE", json.dumps(file)), encoding="utf-8")
    benchmark = ("--benchmarks", "generated", "--config-dir", str(folder), "--output", str(folder / "results"))
    cached = {"MEMORYBENCH_DATA": str(Path(file).parent / cache)}
    return run_command(folder, ["eval", *benchmark, "--providers", provider, *options], cached)
