"""What a misbehaving model server does to a run, through the command. Numbers are those of docs/engine.md."""

import resource
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from memorybench.cli.main import main
from tests.cli.command import Command
from tests.doubles.stub import (
    Behaviour,
    Stub,
    completion,
    gzip_bomb,
    half_body,
    html,
    raw,
    reply,
    reset,
    status,
    together,
)
from tests.engine.workload import in_child

QUESTIONS = 12


def evaluate(command: Command, *more: str, questions: int = QUESTIONS) -> dict:
    said = command(
        "eval", "--providers", "oracle", "--limit", str(questions), "--answering-model", "gpt-4o", "--json", *more
    )
    assert said.code in (0, 1), said.err
    return said.json


def settled(document: dict) -> dict[str, int]:
    return {name: n for name, n in document["counts"].items() if n and name != "planned"}


@pytest.mark.parametrize("code", [401, 402, 403])
def test_a_rejected_key_stops_the_provider_and_scores_nothing(command: Command, stub: Stub, code: int) -> None:
    """[9]"""
    stub.always(status(code))
    document = evaluate(command, "--concurrency", "3", questions=40)
    assert settled(document) == {"failed": 40}
    assert 1 <= len(stub.calls) <= 3


@pytest.mark.parametrize("code", [400, 404])
def test_a_bad_request_is_not_retried(command: Command, stub: Stub, code: int) -> None:
    stub.always(status(code))
    assert settled(evaluate(command)) == {"failed": QUESTIONS}
    assert len(stub.calls) == QUESTIONS


def test_progress_begins_with_the_reason_and_not_with_the_address(command: Command, stub: Stub) -> None:
    stub.always(status(400, said="no such model"))
    said = command("eval", "--providers", "oracle", "--limit", "2", "--answering-model", "gpt-4o", "--run-id", "r")
    assert " | 2 failed: HTTP 400" in said.err
    assert "http://" not in said.err
    (failures,) = command("results", "r", "--json").json["failures"]
    assert stub.url in failures["reason"], "the report names the address"


@pytest.mark.parametrize("hint", ["0", "-1", "0.2", "soon"])
def test_a_429_is_retried_after_its_delay(command: Command, stub: Stub, hint: str) -> None:
    """[8]"""
    stub.next(status(429, headers={"Retry-After": hint}))
    stub.always(completion("Paris"))
    begun = time.monotonic()
    assert settled(evaluate(command)) == {"scored": QUESTIONS}
    assert len(stub.calls) == QUESTIONS + 1
    assert time.monotonic() - begun >= (0.2 if hint == "0.2" else 0)


@pytest.mark.slow
def test_a_429_may_name_a_date(command: Command, stub: Stub) -> None:
    """[8]"""
    later = datetime.now(UTC) + timedelta(seconds=2)
    stub.next(status(429, headers={"Retry-After": format_datetime(later, usegmt=True)}))
    stub.always(completion("Paris"))
    assert settled(evaluate(command, "--concurrency", "1", questions=1)) == {"scored": 1}
    assert datetime.now(UTC) >= later - timedelta(seconds=1), "dates have whole seconds"


def test_a_429_with_a_delay_of_thirty_years_is_not_retried(command: Command, stub: Stub) -> None:
    """[8]"""
    stub.next(status(429, headers={"Retry-After": "1000000000"}))
    stub.always(completion("Paris"))
    assert settled(evaluate(command, "--concurrency", "1")) == {"scored": QUESTIONS - 1, "failed": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "uncertain"),
    [(status(500), 0), (reset(), 1), (half_body(), 1)],
    ids=["500", "reset", "half a body"],
)
def test_a_server_error_is_retried_and_possible_double_charges_are_reported(
    command: Command, stub: Stub, behaviour: Behaviour, uncertain: int
) -> None:
    """[10, 11]"""
    stub.next(behaviour)
    stub.always(completion("Paris"))
    document = evaluate(command, questions=4)
    assert settled(document) == {"scored": 4}
    assert document["possibly_charged_twice"] == uncertain


@pytest.mark.parametrize("behaviour", [html(), gzip_bomb(64 * 2**20)], ids=["HTML with 200", "gzip bomb"])
def test_an_invalid_reply_fails_the_trial(command: Command, stub: Stub, behaviour: Behaviour) -> None:
    """[12]"""
    stub.next(behaviour)
    stub.always(completion("Paris"))
    assert settled(evaluate(command, questions=4)) == {"scored": 3, "failed": 1}


@pytest.mark.slow
def test_the_budget_is_enforced_and_costs_add_up(command: Command, stub: Stub) -> None:
    """[24] gpt-4o at 1,000 tokens in and 100 out costs $0.0035 a call."""
    stub.always(completion("Paris", tokens=(1000, 100)))
    said = command(
        "eval", "--providers", "oracle", "--end", "40", "--answering-model", "gpt-4o", "--concurrency", "2",
        "--budget", "0.0175", "--run-id", "r", "--json",
    )  # fmt: skip
    assert said.code == 1
    assert said.json["status"] == "partial"
    assert 5 <= len(stub.calls) <= 7
    assert said.json["circumstances"]["spent"]["cost"] == pytest.approx(0.0035 * len(stub.calls))
    assert said.json["counts"]["blocked"] == 40 - len(stub.calls)
    assert settled(command("eval", "--resume", "r", "--budget", "none", "--json").json) == {"scored": 40}
    assert len(stub.calls) == 40, "the answers that were paid for were not asked for again"


BROKEN = {
    "broken JSON": raw(b'{"choices": [{"message": {"content": "Par'),
    "HTML": html(),
    "no choices": reply({"id": "x", "usage": {"prompt_tokens": 1000, "completion_tokens": 100}}),
    "no usage": completion(7, tokens=None),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_unreadable_reply_counts_as_paid_and_uncertain(command: Command, stub: Stub, name: str) -> None:
    """E13"""
    stub.next(BROKEN[name])
    stub.always(completion("Paris", tokens=(1000, 100)))
    document = evaluate(command, "--concurrency", "1", "--run-id", "r", questions=4)
    assert settled(document) == {"scored": 3, "failed": 1}
    spent = document["circumstances"]["spent"]
    assert spent["calls"] == len(stub.calls) == 4, "not repeated: it may be charged again"
    if name == "no choices":
        assert spent["cost"] == pytest.approx(4 * 0.0035)
    else:
        assert spent["cost"] is None
    assert document["possibly_charged_twice"] == 1
    resumed = command("eval", "--resume", "r", "--json").json
    assert settled(resumed) == {"scored": 4}
    assert len(stub.calls) == 5


def test_an_unreadable_reply_counts_in_the_budget(command: Command, stub: Stub) -> None:
    """E13: its cost is unknown, so it counts as much as the dearest step."""
    stub.next(completion("Paris", tokens=(1000, 100)), BROKEN["broken JSON"])
    stub.always(completion("Paris", tokens=(1000, 100)))
    evaluate(command, "--concurrency", "1", "--budget", "0.014", "--run-id", "r", questions=12)
    assert len(stub.calls) == 4
    command("eval", "--resume", "r")
    assert len(stub.calls) == 4


def test_all_calls_are_in_flight_although_few_files_may_be_open(command: Command, stub: Stub) -> None:
    """macOS allows a process 256 open files, unless it asks for more."""
    stub.always(together(stub, 100, completion("yes")))

    def with_few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        many = ("--end", "100", "--concurrency", "100")
        assert main(["eval", "--providers", "none", "--answering-model", "gpt-4o", *many]) == 0

    assert in_child(with_few_files) == 0
    assert stub.peak == 100
