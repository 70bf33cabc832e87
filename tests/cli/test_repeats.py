"""`--repeats`: answers and verdicts are asked for several times, retrieval once; n stays the number of questions."""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

import memorybench
from memorybench.core.report_sections import Notes, Table
from memorybench.suites.noise import NeededQuestions, Noise, noise_sections
from tests.cli.command import Command
from tests.cli.test_audit import SAMPLE
from tests.cli.test_samples import item, write_benchmark
from tests.doubles.refusals import refused
from tests.doubles.stub import Call, Stub, completion

RUN = ("eval", "--providers", "bm25", "--end", "12", "--answering-model", "gpt-4o-mini", "--canaries", "off")
JUDGED = (*RUN, "--judge-model", "gpt-4o")


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(completion(Noisy(), model="", tokens=(200, 20)))
    return stub


class Noisy:
    """Gives another answer each time that it is asked; as a judge, it says yes to every second prompt of a question."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()

    def __call__(self, call: Call) -> str:
        asked = call.json["messages"][-1]["content"]
        self._times[asked] += 1
        if "yes or no" in asked:
            return "yes" if "answer number 1" in asked or len(asked) % 2 else "no"
        return f"This is answer number {self._times[asked]}."


def models(stub: Stub) -> Counter[str]:
    return Counter(call.json["model"] for call in stub.calls)


def overall(document: Mapping[str, Any], measure: str, subject: str = "bm25") -> dict[str, Any]:
    (result,) = (row for row in document["results"] if not row["group"] and row["subject"] == subject)
    (found,) = (one for one in result["measures"] if one["name"] == measure)
    return dict(found)


def exported(command: Command, run: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(command("export", run).out)))


@pytest.mark.slow
def test_show_numbers_every_repeat(command: Command, stub: Stub) -> None:
    command(*RUN, "--repeats", "2", "--run-id", "r")
    case = exported(command, "r")[0]["item"]
    words = [line.replace("│", " ").split() for line in command("show", "r", case).out.splitlines()]
    assert [line[1] for line in words if line[:1] == ["bm25"]] == ["1", "2"]
    for repeat in ("1", "2"):
        assert f"Repeat: {repeat}" in command("show", "r", case, "--repeat", repeat).out


@pytest.mark.slow
def test_answers_and_verdicts_are_repeated_and_searches_are_not(command: Command, stub: Stub) -> None:
    document = command(*JUDGED, "--repeats", "3", "--run-id", "r", "--json").json
    assert models(stub) == {"gpt-4o-mini": 36, "gpt-4o": 36}
    steps = {stage["name"]: stage["steps"] for stage in document["circumstances"]["stages"]}
    assert steps["search"] == 12
    assert document["counts"]["planned"] == document["counts"]["scored"] == 36
    accuracy = overall(document, "accuracy")
    assert (accuracy["n"], accuracy["planned"]) == (12, 12)
    rows = exported(command, "r")
    assert Counter(row["repeat"] for row in rows) == {"1": 12, "2": 12, "3": 12}
    assert accuracy["value"] == pytest.approx(sum(int(row["correct"]) for row in rows) / 36)


@pytest.mark.slow
def test_the_first_repeat_is_the_run_without_repeats(command: Command, stub: Stub) -> None:
    once = command(*JUDGED, "--run-id", "once", "--json").json
    stub.calls.clear()
    twice = command(*JUDGED, "--repeats", "2", "--reuse", "once", "--run-id", "twice", "--json").json
    assert models(stub) == {"gpt-4o-mini": 12, "gpt-4o": 12}, "only the second repeat is asked"
    first = {row["item"]: row["actual"] for row in exported(command, "once")}
    assert {row["item"]: row["actual"] for row in exported(command, "twice") if row["repeat"] == "1"} == first
    for measure in ("recall@5", "ndcg@10", "context_tokens"):
        assert overall(twice, measure) == overall(once, measure), "retrieval is the same to the last digit"


@pytest.mark.slow
def test_a_repeated_run_killed_and_resumed_repeats_no_call(command: Command, stub: Stub) -> None:
    run = (*JUDGED, "--repeats", "2", "--concurrency", "1")
    assert command.killed(*run, "--run-id", "r", at=90)
    resumed = command("eval", "--resume", "r", "--json").json
    assert resumed["counts"]["scored"] == 24
    asked = Counter(json.dumps(call.json["messages"]) for call in stub.calls)
    assert max(asked.values()) <= 3, "each prompt twice, and one call under way at the kill"
    assert len(stub.calls) <= 49
    stub.calls.clear()
    again = command("eval", "--resume", "r", "--json").json
    assert (again["results"], again["noise"]) == (resumed["results"], resumed["noise"])
    assert stub.calls == []


@pytest.mark.slow
def test_each_repeat_has_the_next_seed(command: Command, stub: Stub) -> None:
    command(*RUN, "--repeats", "3", "--seed", "7")
    assert Counter(call.json["seed"] for call in stub.calls) == {7: 12, 8: 12, 9: 12}


def test_repeats_need_a_model(command: Command) -> None:
    assert refused(memorybench.evaluate, providers=("bm25",), limit=2, repeats=2).where == "--repeats"


@pytest.mark.slow
def test_a_dry_run_prices_every_repeat(command: Command, stub: Stub) -> None:
    rows = command(*JUDGED, "--repeats", "3", "--dry-run", "--json").json["expected"]
    calls = {row["stage"]: row["calls"] for row in rows}
    assert (calls["search"], calls["answer"], calls["judge"]) == (12, 36, 36)
    command(*JUDGED, "--run-id", "once")
    rows = command(*JUDGED, "--repeats", "3", "--reuse", "once", "--dry-run", "--json").json["expected"]
    calls = {row["stage"]: row["calls"] for row in rows}
    assert (calls["search"], calls["answer"], calls["judge"]) == (0, 24, 24)


@pytest.mark.slow
def test_scoring_judges_every_recorded_answer_again(command: Command, stub: Stub) -> None:
    command(*JUDGED, "--repeats", "2", "--seed", "1", "--run-id", "a")
    stub.calls.clear()
    again = command("score", "a", "--judge-model", "gpt-4.1", "--canaries", "off", "--json").json
    assert models(stub) == {"gpt-4.1": 24}
    assert again["counts"]["scored"] == 24


@pytest.mark.slow
def test_scoring_can_repeat_the_judge_alone(command: Command, stub: Stub) -> None:
    command(*JUDGED, "--run-id", "a")
    stub.calls.clear()
    again = command("score", "a", "--judge-model", "gpt-4.1", "--canaries", "off", "--repeats", "3", "--json").json
    assert models(stub) == {"gpt-4.1": 36}
    assert overall(again, "accuracy")["n"] == 12
    command(*JUDGED, "--repeats", "2", "--run-id", "b")
    assert refused(memorybench.run, "score", run="b", judge_model="gpt-4.1", repeats=3).where == "--repeats"


@pytest.mark.slow
def test_noise_is_reported_by_subject(command: Command, stub: Stub) -> None:
    said = command(*JUDGED, "--end", "60", "--repeats", "3", "--run-id", "r", "--json")
    (noise,) = said.json["noise"]
    assert (noise["subject"], noise["measure"], noise["repeats"]) == ("bm25", "accuracy", 3)
    assert noise["changed_answers"] == 1.0, "every answer has its number"
    assert 0 < noise["changed_scores"] < 1
    assert noise["between_repeats"] > 0
    assert noise["between_questions"] >= 0
    needed = {row["difference"]: row for row in noise["needed"]}
    assert set(needed) == {0.02, 0.05, 0.1}
    assert needed[0.02]["with_repeats"] > needed[0.05]["with_repeats"] > needed[0.1]["with_repeats"]
    assert needed[0.05]["without_repeats"] > needed[0.05]["with_repeats"]
    assert "Noise" in command("results", "r").out


@pytest.mark.slow
def test_a_run_without_repeats_reports_no_noise(command: Command, stub: Stub) -> None:
    assert "noise" not in command(*JUDGED, "--json").json


@pytest.mark.slow
def test_an_audit_asks_each_probe_again_and_counts_it_once(command: Command, stub: Stub) -> None:
    once = command("audit", str(SAMPLE), "--model", "gpt-4o-mini", "--judge-model", "scripted/judge", "--json").json
    stub.calls.clear()
    audit = ("audit", str(SAMPLE), "--model", "gpt-4o-mini", "--judge-model", "scripted/judge", "--repeats", "2")
    document = command(*audit, "--json").json
    assert document["counts"]["planned"] == 2 * once["counts"]["planned"]
    assert len(stub.calls) == document["counts"]["planned"]
    subject = "gpt-4o-mini"
    for name in ("hallucinated_memory_rate", "temporal_accuracy"):
        assert overall(document, name, subject)["planned"] == overall(once, name, subject)["planned"]
    assert {row["repeats"] for row in document["noise"]} == {2}


@pytest.mark.slow
def test_an_extraction_is_repeated_and_counts_each_case_once(command: Command) -> None:
    run = ("extraction", "run", "--extractor", "hoarder", "--limit", "6", "--no-targets", "--json")
    once, twice = command(*run).json, command(*run, "--repeats", "2").json
    assert twice["counts"]["planned"] == 2 * once["counts"]["planned"]
    steps = {row["name"]: row["steps"] for row in twice["circumstances"]["stages"]}
    assert steps["extract"] == 12
    (before,), (after,) = ([row for row in one["results"] if not row["group"]] for one in (once, twice))
    assert after["measures"] == before["measures"], "this extractor does not vary"
    assert {row["between_repeats"] for row in twice["noise"]} == {0.0}


@pytest.mark.slow
def test_one_repeat_of_a_case_can_be_shown(command: Command, stub: Stub) -> None:
    command(*JUDGED, "--repeats", "2", "--run-id", "r")
    case = exported(command, "r")[0]["item"]
    both = command("show", "r", case, "--json").json["trials"]
    assert [trial["repeat"] for trial in both] == [1, 2]
    (second,) = command("show", "r", case, "--repeat", "2", "--json").json["trials"]
    assert second == both[1]
    assert command("show", "r", case, "--repeat", "3").code == 2


@pytest.mark.slow
def test_baseline_differences_count_questions_and_not_answers(command: Command, stub: Stub) -> None:
    run = ("eval", "--providers", "bm25", "none", *RUN[3:], "--judge-model", "gpt-4o", "--repeats", "3", "--json")
    (difference,) = command(*run, "--run-id", "r").json["differences_from_baseline"]
    assert difference["n"] == 12
    rows = exported(command, "r")
    shares = {
        name: sum(int(row["correct"]) for row in rows if row["provider"] == name) / 36 for name in ("bm25", "none")
    }
    assert difference["difference"] == pytest.approx(shares["bm25"] - shares["none"])
    pairs = command("compare", "r:bm25", "r:none", "--measure", "accuracy", "--json").json["comparisons"]
    assert [pair["comparison"]["n"] for pair in pairs] == [12]
    assert pairs[0]["comparison"]["difference"] == pytest.approx(difference["difference"])


def test_noise_is_put_in_a_sentence_and_needed_questions_are_listed_once() -> None:
    needed = tuple(NeededQuestions(difference=d, without_repeats=9, with_repeats=9) for d in (0.05, 0.1))
    row = Noise(
        benchmark="starter",
        subject="bm25",
        measure="accuracy",
        repeats=2,
        n=20,
        between_questions=0.1,
        between_repeats=0.05,
        truncated=False,
        changed_answers=0.5,
        changed_scores=0.2,
        needed=needed,
    )
    _, said, table, _ = noise_sections([row])
    assert isinstance(said, Notes)
    assert isinstance(table, Table)
    assert "4 of 20 questions" in str(said.lines[0])
    assert "±9.8 points" in str(said.lines[0])
    assert table.rows == (("bm25", "accuracy", 1, 9, 9),)
    repeated = row.model_copy(update={"needed": tuple(one.model_copy(update={"with_repeats": 5}) for one in needed)})
    assert sorted(noise_sections([repeated])[2].rows) == [("bm25", "accuracy", 1, 9, 9), ("bm25", "accuracy", 2, 5, 5)]
    elsewhere = row.model_copy(update={"benchmark": "locomo"})
    assert [cells[0] for cells in noise_sections([row, elsewhere])[2].rows] == ["starter × bm25", "locomo × bm25"]


NOTES = """
from memorybench import Memory

class Notes:
    def add(self, scope, session): ...
    def clear(self, scope): ...
    def is_even(self, query):
        return int(query.split()[4].strip("?")) % 2 == 0

class Even(Notes):
    def search(self, scope, query, limit):
        if not self.is_even(query):
            raise ValueError("odd")
        return [Memory(id="1", content="It is green.")]

class Odd(Notes):
    def search(self, scope, query, limit):
        if self.is_even(query):
            raise ValueError("even")
        return [Memory(id="1", content="It is green.")]

class SomeSources(Notes):
    def search(self, scope, query, limit):
        return [Memory(id="1", content="It is green.", sources=("s1",) if self.is_even(query) else None)]
"""


def own_providers(command: Command) -> None:
    folder = command.folder / "providers"
    folder.mkdir()
    (folder / "notes.py").write_text(NOTES)
    for name in ("Even", "Odd", "SomeSources"):
        config = {"name": name.lower(), "type": "local", "adapter": f"./notes.py:{name}"}
        (folder / f"{name}.yaml").write_text(json.dumps(config))


RUBRIC = {
    "schema": {
        "itemId": "id",
        "question": "question",
        "answer": "answer",
        "answerMode": "rubric",
        "evidence": "gold",
        "context": {"field": "sessions", "idField": "ids", "itemSchema": {"content": "text", "role": "role"}},
    },
    "evaluation": {"method": "llm-judge"},
}
MINE = ("eval", "--benchmarks", "mine", "--config-dir", ".", "--allow-code", "--answering-model", "scripted/quote")


def test_noise_of_providers_without_a_question_in_common_needs_no_questions(command: Command) -> None:
    write_benchmark(command, [item(n) for n in range(6)])
    own_providers(command)
    document = command(*MINE, "--providers", "even", "odd", "--repeats", "2", "--json").json
    assert [(row["subject"], row["n"]) for row in document["noise"]] == [("even", 3), ("odd", 3)]
    assert {one["with_repeats"] for row in document["noise"] for one in row["needed"]} == {None}


def test_noise_counts_only_questions_with_a_value_of_the_measure(command: Command) -> None:
    write_benchmark(command, [item(n, answer=[f"says {n}"]) for n in range(6)], **RUBRIC)
    own_providers(command)
    document = command(*MINE, "--providers", "somesources", "--repeats", "2", "--json").json
    assert [(row["measure"], row["n"]) for row in document["noise"]] == [("recall@5", 3)]
