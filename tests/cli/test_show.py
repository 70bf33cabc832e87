"""`show` traces one case from the journal alone, and `results --failures` leads to it."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memorybench import catalog, load_run
from memorybench.core.errors import BadInput
from memorybench.judging import matching_judge
from tests.cli.command import Command
from tests.cli.test_hygiene import AGENT, CONSENT
from tests.cli.test_online_searches import PART
from tests.doubles.stub import Call, Stub, completion, status
from tests.suites.recorded import record, scored

SCRIPTED = ("--answering-model", "scripted/quote", "--judge-model", "scripted/judge")
SAMPLE = Path(catalog.__file__).parent / "data" / "sample-dataset.json"


@pytest.fixture
def answered(command: Command) -> Command:
    """A run `r` of four questions with answers and verdicts."""
    command.once("eval", "--providers", "bm25", "oracle", "--end", "4", *SCRIPTED, "--run-id", "r")
    return command


def first_case(command: Command, run: str = "r", *flags: str) -> str:
    document = command("export", run, "--format", "json", *flags).json
    return str(document[0]["item"])


def trial(command: Command, *arguments: str) -> dict[str, Any]:
    [found] = command("show", *arguments, "--json").json["trials"]
    return dict(found)


def typed(command: Command, line: str) -> Any:
    """Run a command that a hint printed, as it is."""
    program, *arguments = shlex.split(line)
    assert program == "memorybench"
    return command(*arguments)


def test_one_question_shows_gold_memories_prompt_answer_and_verdict(answered: Command) -> None:
    case = first_case(answered)
    document = answered("show", "r", case, "--provider", "bm25", "--json").json
    [found] = document["trials"]
    [gold, *_] = document["gold"]
    assert {"session", "id", "at", "speaker", "content"} <= gold.keys()
    assert gold["id"] in document["case"]["gold_turns"]
    assert [memory["rank"] for memory in found["memories"]] == list(range(1, len(found["memories"]) + 1))
    wanted = {*document["case"]["gold_turns"], *document["case"]["gold_sessions"]}
    for memory in found["memories"]:
        assert set(memory["hits"]) == set(memory["sources"]) & wanted
        assert memory["shown"] == (memory["rank"] <= found["shown"]["memories_shown"])
    steps = {step["name"]: step for step in found["steps"]}
    assert list(steps)[:3] == ["search", "answer", "judge"], "the last question also clears the memory"
    assert document["case"]["question"] in steps["answer"]["inputs"]["prompt"]
    assert steps["answer"]["result"]["text"] == found["shown"]["got"]
    assert found["shown"]["got"] in steps["judge"]["inputs"]["prompt"]
    assert steps["judge"]["result"]["correct"] is bool(
        next(s["value"] for s in found["scores"] if s["name"] == "correct")
    )
    assert all(step["seconds"] >= 0 and step["tries"] == 1 for step in steps.values())


def test_the_screen_has_a_section_for_each_part(answered: Command) -> None:
    said = answered("show", "r", first_case(answered), "--provider", "bm25")
    assert said.code == 0
    titles = (
        "Question",
        "Expected",
        "Gold turns",
        "Memories",
        "Answer prompt",
        "Answer",
        "Judge prompt",
        "Judge reply",
    )
    places = [said.out.index(f"\n{title}") for title in (*titles, "Scores", "Steps")]
    assert places == sorted(places)


def test_the_reason_is_not_shown_again_if_it_is_the_reply_of_the_judge(answered: Command) -> None:
    with_reason = {}
    for outcome in answered("export", "r", "--format", "json").json:
        said = answered("show", "r", outcome["item"], "--provider", outcome["provider"])
        reply = said.out.partition("\nJudge reply\n")[2].split("\n")[0].strip()
        if reply in ("yes", "no"):
            with_reason[reply] = "\nWhy\n" in said.out
    assert with_reason == {"yes": False, "no": True}  # a wrong answer is also attributed to the memory or the model


def test_all_providers_are_a_table_with_a_command_that_works(
    answered: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = first_case(answered)
    monkeypatch.setenv("COLUMNS", "60")
    said = answered("show", "r", case)
    assert "bm25" in said.out
    assert "oracle" in said.out
    assert "report.md" not in said.out, "it has no such table"
    [hint] = [line for line in said.out.splitlines() if line.strip().startswith("memorybench show")]
    assert "Judge prompt" in typed(answered, hint.partition("    ")[0] or hint).out
    assert {one["subject"] for one in answered("show", "r", case, "--json").json["trials"]} == {"bm25", "oracle"}


def test_a_unique_beginning_of_an_id_is_enough(answered: Command) -> None:
    case = first_case(answered)
    assert answered("show", "r", case[:-1], "--json").code == 2, "it begins several ids"
    document = answered("show", "r", case, "--json").json
    assert document["case_id"] == case
    assert answered("show", "latest", case, "--json").json == document


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("r", "amara-x01"), "CASE"),
        (("r", "amara-"), "CASE"),
        (("r", "amara-q01", "--provider", "bm52"), "--provider"),
        (("r", "amara-q01", "--benchmark", "stater"), "--benchmark"),
        (("r", "amara-q01", "--variant", "x"), "--variant"),
        (("nothing", "amara-q01"), "results.db"),
    ],
)
def test_an_unknown_name_is_an_error_with_what_there_is(
    answered: Command, arguments: tuple[str, ...], where: str
) -> None:
    said = answered("show", *arguments)
    assert said.code == 2
    assert where in said.err.split(": ")[1]
    assert any(remedy in said.err for remedy in ("expected", "did you mean", "lists runs", "leave out"))
    assert not said.err.rstrip().endswith("expected one of")


def test_tries_tokens_cost_and_failed_attempts_of_each_step(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def says(call: Call) -> str:
        asked = call.json["messages"][-1]["content"]
        if "could not be read" in asked:
            return "no"
        return "perhaps" if "yes or no" in asked else "Forty."

    with Stub() as stub:
        stub.always(completion(says, model="", tokens=(200, 20)))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        run = ("eval", "--providers", "bm25", "--end", "1", "--answering-model", "gpt-4o-mini", "--run-id", "r")
        assert command(*run).code == 0
        assert command("score", "r", "--judge-model", "gpt-4o", "--run-id", "s").code == 0
    found = trial(command, "s", first_case(command))
    search, answer, unreadable, verdict = found["steps"]
    assert search["reused_from"] == answer["reused_from"] == "r"
    assert unreadable["name"] == verdict["name"] == "judge"
    assert unreadable["error"]
    assert unreadable["seconds"] >= 0
    assert unreadable["result"] is None
    assert verdict["result"]["correct"] is False
    assert verdict["spent"] == {"calls": 1, "input_tokens": 200, "output_tokens": 20, "cost": pytest.approx(0.0007)}
    assert trial(command, "r", first_case(command))["steps"][1]["spent"]["calls"] == 1


def test_a_failed_trial_shows_its_error_and_its_tries(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with Stub() as stub:
        stub.always(status(400, said="no such model"))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        command("eval", "--providers", "bm25", "--end", "1", "--answering-model", "gpt-4o-mini", "--run-id", "r")
    found = trial(command, "r", first_case(command))
    assert found["status"] == found["failure_reason"] == "failed"
    search, answer, *_ = found["steps"]  # then the memory is cleared
    assert (search["name"], search["error"]) == ("search", "")
    assert answer["name"] == "answer"
    assert "no such model" in answer["error"]
    assert command("show", "r", first_case(command), "--json").json["gold"], "gold is recorded with a failure, too"


def test_an_audit_shows_its_probe(command: Command) -> None:
    models = ("--model", "scripted/quote", "--judge-model", "scripted/judge")
    command("audit", str(SAMPLE), "--provider", "bm25", *models, "--limit", "8", "--run-id", "a", "--output", "results")
    case = first_case(command, "a")
    document = command("show", "a", case, "--json").json
    [found] = document["trials"]
    assert document["gold"] == document["case"]["gold_context"]
    assert {"search", "answer", "judge"} <= {step["name"] for step in found["steps"]}
    assert "Judge prompt" in command("show", "a", case).out


@pytest.mark.slow
def test_a_wrong_answer_of_an_audit_is_attributed_to_the_memory_or_to_the_model(command: Command) -> None:
    models = ("--model", "scripted/quote", "--judge-model", "scripted/judge")
    command(
        "audit", str(SAMPLE), "--provider", "bm25", *models, "--limit", "40", "--run-id", "a", "--output", "results"
    )
    rows = command("results", "a", "--failures", "--json").json
    reasons = {row["reason"] for row in rows if row["gold"]}
    assert {"stale"} <= reasons <= {"not-retrieved", "not-used", "stale", "invented"}
    for row in rows:
        memories = trial(command, *shlex.split(row["command"])[2:])["memories"]
        is_hit = any(memory["hits"] for memory in memories if memory["shown"])
        evidence = {"not-used", "invented"} if is_hit else {"not-retrieved"} if row["gold"] else {"invented"}
        if any(kind in row["command"] for kind in ("/order/", "/duration/")):
            evidence |= {"not-retrieved"}  # one of the two events is not enough
        assert row["reason"] in evidence | {"stale"}


def test_an_extraction_shows_both_memories_and_each_gold_fact(command: Command) -> None:
    command("extraction", "run", "--extractor", "hoarder", "--limit", "3", "--run-id", "x")
    document = command("show", "x", first_case(command, "x"), "--json").json
    assert document["case"]["conversation"]
    [step] = document["trials"][0]["steps"]
    assert step["result"]["memory"]
    scores = {score["name"]: int(score["value"]) for score in document["trials"][0]["scores"]}
    said = command("show", "x", first_case(command, "x"))
    for title in ("Memory before", "Conversation", "Memory after", "Changes", "Facts"):
        assert f"\n{title}" in said.out
    assert re.findall(r"│ ✗ ((?:FP|FN): \w+)", said.out) == ["FN: missed", *["FP: unexpected"] * scores["fp"]]
    counts = {
        name: (int(least), int(most)) for name, least, most in re.findall(r"│ (\w\w) +│ +(\d+) │ +(\d+) │", said.out)
    }
    assert counts == {
        name.upper(): (scores[name], scores[name] + scores[f"{name}_open"]) for name in ("tp", "fp", "fn")
    }


def extract(command: Command, stub: Stub, output: object, words: Sequence[str], **case: Any) -> list[tuple[str, ...]]:
    """Run one case with a judge, and return the rows of its table of facts.

    To the judge, a note says all that another says if it contains those of `words` that the other contains.
    """

    def decide(call: Call) -> str:
        notes = dict(PART.findall(call.json["messages"][-1]["content"]))
        wanted = [word for word in words if word in notes["response"]]
        return "yes" if wanted and all(word in notes["answer"] for word in wanted) else "no"

    stub.always(completion(decide, model="", tokens=(100, 1)))
    (command.folder / "cases.json").write_text(json.dumps([{"id": "c", **case}]))
    (command.folder / "own.py").write_text(f"def extract(existing_memory, conversation):\n    return {output!r}\n")
    run = ("extraction", "run", "cases.json", "--extractor", "own.py:extract", "--allow-code", "--no-targets")
    said = command(*run, "--judge-model", "gpt-4o", "--canaries", "off", "--run-id", "x")
    assert said.code == 0, said.err
    return fact_rows(command)


def fact_rows(command: Command) -> list[tuple[str, ...]]:
    table = command("show", "x", "c").out.partition("\nFacts\n")[2].partition("╰")[0]
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in table.splitlines() if line.startswith("│")]
    return [tuple(row) for row in cells[1:]]


MOVED: dict[str, Any] = {
    "existing_memory": {"home": ["Lives in Bristol"], "pets": ["Has a dog"]},
    "conversation": "User: I live in Cardiff now.",
    "expected_output": {"home": ["Lives in Cardiff"], "pets": ["Has a dog"]},
    "expected_facts": ["home: Lives in Cardiff"],
    "superseded": ["home: Lives in Bristol"],
}


def test_a_fact_that_the_judge_rejects_is_not_shown_beside_the_expected_one(command: Command, stub: Stub) -> None:
    output = {"home": ["Resides in Cardiff", "Likes the sea"], "pets": ["Has a dog"]}
    rows = extract(command, stub, output, ["Cardiff"], **MOVED)
    assert rows == [
        ("keep", "pets: Has a dog", "pets: Has a dog", "✓ kept"),
        ("add", "home: Lives in Cardiff", "home: Resides in Cardiff", "✓ TP"),
        ("remove", "home: Lives in Bristol", "–", "✓ TP"),
        ("–", "–", "home: Likes the sea", "✗ FP: hallucinated"),
    ]


def test_a_fact_under_the_key_of_another_person_is_not_the_expected_one(command: Command, stub: Stub) -> None:
    rows = extract(
        command,
        stub,
        {"William": ["has a red car", "lives in Oslo"]},
        ["William: has", "William: lives", "Williams: lives"],
        existing_memory={"William": ["has a red car"]},
        conversation="User: Williams has moved to Oslo.",
        expected_output={"William": ["has a red car"], "Williams": ["lives in Oslo"]},
        expected_facts=["Williams: lives in Oslo"],
    )
    assert rows == [
        ("keep", "William: has a red car", "William: has a red car", "✓ kept"),
        ("add", "Williams: lives in Oslo", "–", "✗ FN: missed"),
        ("–", "–", "William: lives in Oslo", "✗ FP: hallucinated"),
    ]


def test_a_second_fact_that_joins_expected_facts_is_a_duplicate(command: Command, stub: Stub) -> None:
    rows = extract(
        command,
        stub,
        {"shop": ["Sells candles and pays 40 EUR", "Pays 40 EUR for a stall with candles"]},
        ["candles", "40 EUR"],
        existing_memory={"shop": []},
        conversation="User: I sell candles and pay 40 EUR.",
        expected_output={"shop": ["Sells candles", "Pays 40 EUR"]},
        expected_facts=["shop: Sells candles", "shop: Pays 40 EUR"],
    )
    assert [row[3] for row in rows if row[3]] == ["✓ TP", "✗ FN: missed", "✗ FP: duplicate"]


def test_verdicts_on_another_prompt_are_not_guessed(
    command: Command, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = {"home": ["Resides in Cardiff", "Likes the sea"], "pets": ["Has a dog"]}
    extract(command, stub, output, ["Cardiff"], **MOVED)
    monkeypatch.setattr(matching_judge, "PROMPT", matching_judge.SUPPORT_PROMPT)  # as if a later version had changed it
    assert fact_rows(command)[1:] == [
        ("add", "home: Lives in Cardiff", "–", "✓ TP"),
        ("remove", "home: Lives in Bristol", "–", "✓ TP"),
        ("–", "–", "home: Likes the sea", "✗ FP: hallucinated"),
    ]


def test_no_fact_is_done_if_it_is_unknown_how_many_facts_were_written(command: Command, stub: Stub) -> None:
    output = "# pets\nHas a dog.\n# home\nLives in Bristol.\nLikes sports, esp. Rowing in Cardiff."
    rows = extract(command, stub, output, [], **MOVED)
    assert [(row[0], row[3]) for row in rows] == [
        ("keep", "✓ kept"),
        ("add", "– undecided"),
        ("remove", "✗ FN: stale"),
    ]


@pytest.mark.slow
def test_a_scenario_shows_the_calls_and_assertions_of_a_phase(command: Command) -> None:
    scenario = "memory-secret-rejection"
    command("hygiene", "run", scenario, "--store", "reference", "--run-id", "h")
    variants = {one["variant"] for one in command("show", "h", scenario, "--json").json["trials"]}
    assert {"well_behaved", "violation"} <= variants
    said = command("show", "h", scenario, "--variant", "violation")
    for title in ("Scenario", "Calls", "Assertions", "Result"):
        assert f"\n{title}" in said.out


@pytest.mark.slow
def test_an_agent_shows_its_prompts_tool_calls_and_replies(command: Command) -> None:
    (command.folder / "agents/configs").mkdir(parents=True)
    (command.folder / "agents/configs/scripted.yaml").write_text(AGENT.replace("BEHAVIOUR", "hoarding"))
    agent = ("--agent", "scripted", "--allow-code", *CONSENT)
    command("hygiene", "run", "memory-skip-local", *agent, "--repeats", "2", "--run-id", "h")
    found = trial(command, "h", "memory-skip", "--variant", "attempt 2")
    exchanges = found["steps"][-1]["result"]["exchanges"]
    said = command("show", "h", "memory-skip", "--variant", "attempt 2").out
    for session, exchange in enumerate(exchanges, 1):
        assert exchange["calls"]
        assert f"\nPrompt of session {session}\n" in said
        assert f"\nReply of session {session}\n" in said
    assert "✗ broken" in said


def test_a_recorded_trace_shows_the_prompts_that_judged_it(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def says(call: Call) -> str:
        return '{"facts": ["diet: Eats no meat"]}' if "JSON" in call.json["messages"][-1]["content"] else "yes"

    trace = {"id": "a", "conversation": "User: I eat no meat.", "output": {"diet": ["Eats no meat"]}}
    (command.folder / "t.jsonl").write_text(json.dumps(trace) + "\n")
    with Stub() as stub:
        stub.always(completion(says, model="", tokens=(100, 10)))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        online = ("extraction", "online", "--judge-model", "gpt-4o", "--source", "jsonl", "t.jsonl")
        assert command(*online, "--run-id", "o").code in (0, 3)
    found = trial(command, "o", "a")
    assert "I eat no meat." in found["steps"][0]["inputs"]["prompt"]
    assert "\nStated prompt" in command("show", "o", "a").out


@pytest.mark.slow
def test_shards_are_read_as_one(command: Command) -> None:
    for run, end in (("s1", ("--end", "2")), ("s2", ("--start", "3", "--end", "4"))):
        command("eval", "--providers", "bm25", *end, *SCRIPTED, "--run-id", run)
    rows = command("results", "s1", "s2", "--failures", "--json").json
    assert rows
    for row in rows:
        assert typed(command, row["command"]).code == 0


@pytest.mark.slow
def test_long_texts_are_cut_unless_all_is_asked_for(command: Command) -> None:
    command("eval", "--providers", "full-context", "--end", "1", *SCRIPTED, "--run-id", "r")
    case = first_case(command)
    prompt = trial(command, "r", case)["steps"][0]["inputs"]["prompt"]
    last = prompt.strip().splitlines()[len(prompt.strip().splitlines()) // 2][:40]
    assert last not in command("show", "r", case).out
    assert last in command("show", "r", case, "--full").out


def test_a_run_without_recorded_gold_turns_says_so(command: Command) -> None:
    record(command.folder / "results", [scored("q1", 0.0)])
    document = command("show", "r", "q1", "--json").json
    assert document["gold"] is None
    assert document["trials"][0]["memories"] is None
    assert command("show", "r", "q1").code == command("results", "r", "--failures").code == 0


def test_one_id_in_two_benchmarks_needs_the_benchmark(command: Command) -> None:
    first = scored("q1", 0.0)
    other = first.model_copy(update={"trial": first.trial.model_copy(update={"benchmark": "exam"})})
    record(command.folder / "results", [first, other], benchmarks=["quiz", "exam"])
    said = command("show", "r", "q1")
    assert (said.code, "--benchmark" in said.err) == (2, True)
    assert command("show", "r", "q1", "--benchmark", "exam", "--json").json["benchmark"] == "exam"
    for row in command("results", "r", "--failures", "--json").json:
        assert typed(command, row["command"]).code == 0


def test_control_characters_of_a_memory_do_not_reach_the_terminal(command: Command) -> None:
    hostile = scored("q1", 0.0)
    shown = hostile.shown.model_copy(update={"asked": "\x1b]0;owned\x07\x1b[2Jwho?", "got": "\x1b[31mme\x9b2J"})
    record(command.folder / "results", [hostile.model_copy(update={"shown": shown})])
    for arguments in (("show", "r", "q1"), ("results", "r", "--failures")):
        said = command(*arguments)
        assert "who?" in said.out
        assert not set("\x1b\x07\x9b") & set(said.out)


def test_gold_text_is_stored_once_per_question(answered: Command) -> None:
    case = first_case(answered)
    content = answered("show", "r", case, "--json").json["gold"][0]["content"]
    db = sqlite3.connect(answered.folder / "results" / "results.db")
    assert db.execute("SELECT count(*) FROM cases WHERE run = 'r'").fetchone() == (4,)
    [(body,)] = db.execute("SELECT body FROM cases WHERE id = ?", (case,)).fetchall()
    db.close()
    assert json.dumps(content, ensure_ascii=False)[1:-1] in body


@pytest.mark.slow
def test_gold_turns_survive_a_kill_and_a_resume(command: Command) -> None:
    run = ("eval", "--providers", "bm25", "--end", "4", *SCRIPTED, "--run-id", "r", "--concurrency", "1")
    assert command.killed(*run, at=20)
    assert command("eval", "--resume", "r").code == 0
    for row in command("export", "r", "--format", "json").json:
        assert command("show", "r", row["item"], "--json").json["gold"], row["item"]


@pytest.mark.slow
def test_a_long_output_goes_through_the_pager_of_a_terminal_only(answered: Command) -> None:
    show = [sys.executable, "-m", "memorybench", "show", "r", first_case(answered), "--provider", "bm25"]
    environment = {**os.environ, "PAGER": "sed s/^/paged:/", "TERM": "xterm", "LINES": "24"}
    piped = subprocess.run(show, env=environment, capture_output=True, text=True, check=True)
    assert "paged:" not in piped.stdout
    owner, terminal = pty.openpty()
    with subprocess.Popen(show, env=environment, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        said = b""
        try:
            while part := os.read(owner, 65536):
                said += part
        except OSError:  # Linux: the other end is closed
            pass
        assert process.wait() == 0
    os.close(owner)
    assert b"paged:" in said
    assert b"\x1b" not in said


def test_failures_are_paged_by_commands_that_work(answered: Command) -> None:
    everything = answered("results", "r", "--failures", "--json").json
    assert len(everything) > 2
    said = answered("results", "r", "--failures", "--limit", "2")
    shown = []
    for _ in range(len(everything)):
        shown += [line.split("memorybench ")[1] for line in said.out.splitlines() if line.startswith("  show ")]
        following = [line.removeprefix("Next: ") for line in said.out.splitlines() if line.startswith("Next: ")]
        if not following:
            break
        said = typed(answered, following[0])
    assert [f"memorybench {line}" for line in shown] == [row["command"] for row in everything]
    assert len(answered("results", "r", "--failures", "--json", "--limit", "2", "--offset", "1").json) == 2
    assert answered("results", "r", "--failures", "--offset", "99").code == 0


def test_a_failure_has_its_gold_turn_its_reason_and_a_command_that_shows_it(answered: Command) -> None:
    for row in answered("results", "r", "--failures", "--json").json:
        assert row["gold"]
        blame = {score["name"]: score["value"] for score in row["scores"] if score["name"].startswith("miss_")}
        assert blame[f"miss_{row['reason'].replace('-', '_')}"] == 1
        assert typed(answered, row["command"]).code == 0
    assert "  gold " in answered("results", "r", "--failures").out


def test_failures_are_filtered_by_provider_type_and_reason(answered: Command) -> None:
    rows = answered("results", "r", "--failures", "--json").json
    kind = rows[0]["trial"]["labels"]["question_type"]
    some = answered("results", "r", "--failures", "--json", "--question-type", kind, "--reason", rows[0]["reason"]).json
    assert some == [
        row for row in rows if (row["trial"]["labels"]["question_type"], row["reason"]) == (kind, rows[0]["reason"])
    ]
    alone = answered("results", "r", "--failures", "--json", "--providers", "oracle").json
    assert {row["trial"]["subject"]["name"] for row in alone} == {"oracle"}


@pytest.mark.parametrize("flag", ["--providers", "--question-type", "--reason"])
def test_an_unknown_filter_is_an_error_and_not_an_empty_list(answered: Command, flag: str) -> None:
    said = answered("results", "r", "--failures", flag, "orakle")
    assert said.code == 2
    assert said.err.startswith(f"memorybench: {flag}: ")


@pytest.mark.parametrize(
    "flags",
    [
        ("r", "--limit", "3"),
        ("r", "--offset", "1"),
        ("r", "--reason", "failed"),
        ("r", "--providers", "oracle"),
        ("--failures", "--providers", "oracle"),
        ("r", "--compare", "oracle", "bm25", "--failures"),
        ("r", "--compare", "oracle", "bm25", "--watch"),
        ("r", "--benchmark", "starter"),
        ("r", "--measure", "recall_any@5"),
    ],
    ids=" ".join,
)
def test_a_flag_that_would_be_ignored_is_an_error(answered: Command, flags: tuple[str, ...]) -> None:
    said = answered("results", *flags)
    assert said.code == 2
    ignored = next(flag for flag in flags if flag.startswith("--") and flag != "--compare")
    assert said.err.startswith(f"memorybench: {ignored}: ")


def test_python_returns_what_show_prints(answered: Command) -> None:
    case = first_case(answered)
    run = load_run("r", answered.folder / "results")
    assert run.case(case, "bm25") == answered("show", "r", case, "--provider", "bm25", "--json").json
    with pytest.raises(BadInput) as caught:
        run.case("no-such-case")
    assert caught.value.where == "CASE"


@pytest.mark.slow
def test_failures_leave_baselines_out_unless_they_are_named(command: Command) -> None:
    command.once("eval", "--providers", "bm25", "none", "--question-type", "temporal", "--run-id", "both")

    def providers(*flags: str) -> set[str]:
        return {
            row["trial"]["subject"]["name"] for row in command("results", "both", "--failures", "--json", *flags).json
        }

    assert providers() == {"bm25"}
    assert providers("--providers", "none") == {"none"}
    command.once("eval", "--providers", "none", "--question-type", "temporal", "--run-id", "only")
    assert command("results", "only", "--failures", "--json").json, "the run has nothing else"


def test_wrong_results_of_a_baseline_are_not_shown_as_0_where_they_are_not_listed(command: Command, stub: Stub) -> None:
    answers = iter(range(1000))
    stub.always(lambda *call: (status(400) if next(answers) % 2 else completion("no idea"))(*call))
    flags = ("--answering-model", "openai/gpt-4o", "--judge-model", "scripted/judge", "--canaries", "off")
    command("eval", "--providers", "bm25", "none", "--end", "12", *flags, "--run-id", "r")

    def wrong(*flags: str) -> list[str]:
        lines = command("results", "r", "--failures", "--limit", "1", *flags).out.splitlines()
        heading, *rows = ([cell.strip() for cell in line.split("│")] for line in lines if line.startswith("│"))
        (row,) = (row for row in rows if "none" in row)
        return [cell for name, cell in zip(heading, row, strict=True) if name not in ("", "provider", "failed")]

    assert set(wrong()) == {"–"}
    assert sum(map(int, wrong("--providers", "none"))) > 0


@pytest.mark.slow
def test_a_scenario_shows_what_was_said_instead_of_placeholders(command: Command) -> None:
    command("hygiene", "run", "memory-deletion-on-request", "--store", "reference", "--seed", "7", "--run-id", "h")
    said = command("show", "h", "memory-deletion-on-request", "--variant", "well_behaved").out
    assert "${" not in said
    street = re.search(r"user: The user lives at 14 (\w+) Street", said)
    assert street is not None
    assert said.count(street[1]) > 1, "the calls name the same street"
