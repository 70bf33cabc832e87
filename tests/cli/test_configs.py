"""Configs of one's own, and what happens when something changes between two runs."""

from pathlib import Path

import pytest
from aiohttp import web

from tests.cli.command import Command
from tests.doubles.stub import Behaviour, Call, Stub, completion

MY_BM25 = "name: my-bm25\ntype: local\nadapter: builtin:bm25\n"
MY_STARTER = """\
name: my-starter
data: {type: bundled, path: starter}
search: {defaultLimit: 1}
evaluation: {method: exact-match}
"""


VECTORS = (
    "name: my-vectors\ntype: local\nadapter: builtin:contextual-retrieval\nlocal: {embedding: {provider: openai}}\n"
)


def drop_in(command: Command, kind: str, text: str) -> Path:
    folder = command.folder / kind / "configs"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


def subjects(document: dict) -> list[tuple[str, str]]:
    return [(r["benchmark"], r["subject"]) for r in document["results"] if not r["group"]]


def test_a_config_of_a_built_in_adapter_is_a_provider_of_its_own(command: Command) -> None:
    drop_in(command, "providers", MY_BM25)
    document = command("eval", "--providers", "bm25", "my-bm25", "--end", "6", "--json").json
    assert subjects(document) == [("starter", "bm25"), ("starter", "my-bm25")]
    assert document["counts"]["scored"] == 12


def test_two_benchmarks_over_one_dataset_are_kept_apart(command: Command) -> None:
    drop_in(command, "benchmarks", MY_STARTER)
    said = command("eval", "--benchmarks", "starter", "my-starter", "--providers", "bm25", "--end", "6", "--json")
    assert subjects(said.json) == [("starter", "bm25"), ("my-starter", "bm25")]
    assert said.json["counts"]["scored"] == 12


def test_a_run_of_an_edited_benchmark_is_not_resumed(command: Command) -> None:
    path = drop_in(command, "benchmarks", MY_STARTER)
    arguments = ("eval", "--benchmarks", "my-starter", "--providers", "bm25", "--end", "6", "--concurrency", "1")
    assert command.killed(*arguments, "--run-id", "r", at=20)
    path.write_text(MY_STARTER.replace("defaultLimit: 1", "defaultLimit: 9"))
    said = command("eval", "--resume", "r")
    assert said.code == 2
    assert 'config of my-starter changed: - "default_limit": 1, + "default_limit": 9' in " ".join(said.err.split())


def test_a_run_whose_model_has_a_new_address_is_not_resumed(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
    with Stub() as first, Stub() as second:
        for stub in (first, second):
            stub.always(completion("tea"))
        monkeypatch.setenv("OPENAI_BASE_URL", f"{first.url}/v1")
        arguments = ("--providers", "none", "--end", "9", "--answering-model", "gpt-4o", "--concurrency", "1")
        assert command.killed("eval", *arguments, "--run-id", "r", at=15)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{second.url}/v1")
        said = command("eval", "--resume", "r")
        assert said.code == 2
        assert "answering model changed" in said.err
        assert second.calls == []


def vectors(first: float) -> Behaviour:
    async def behave(_: web.BaseRequest, call: Call) -> web.StreamResponse:
        rows = [{"index": place, "embedding": [first, 1.0]} for place, _ in enumerate(call.json["input"])]
        return web.json_response({"data": rows, "usage": {"prompt_tokens": 8}})

    return behave


def test_an_embedder_is_moved_by_the_variable_that_moves_models(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_in(command, "providers", VECTORS)
    with Stub() as first, Stub() as second:
        for stub in (first, second):
            stub.always(vectors(0.5))
        monkeypatch.setenv("OPENAI_BASE_URL", f"{first.url}/v1")
        uses = command("describe", "my-vectors", "--json").json["uses"]
        assert [one["value"] for one in uses["hosts"]] == [first.url]
        arguments = ("eval", "--providers", "my-vectors", "--end", "6", "--concurrency", "1", "--run-id", "r")
        assert command.killed(*arguments, at=20)
        assert {call.path for call in first.calls} == {"/v1/embeddings"}
        monkeypatch.setenv("OPENAI_BASE_URL", f"{second.url}/v1")
        said = command("eval", "--resume", "r")
        assert said.code == 2
        assert f"-embedding at {first.url}/v1 +embedding at {second.url}/v1" in " ".join(said.err.split())
        assert second.calls == []


@pytest.mark.slow
def test_a_run_killed_after_its_last_outcome_can_be_finished(command: Command) -> None:
    arguments = ("eval", "--providers", "bm25", "--end", "2", "--concurrency", "1")
    killed = 0
    for place in range(10, 30):
        if not command.killed(*arguments, "--run-id", f"r{place}", at=place):
            break
        killed += 1
        assert command("eval", "--resume", f"r{place}").code == 0
        assert command("results", f"r{place}", "--json").json["status"] == "complete"
    assert killed > 3


@pytest.mark.slow
def test_a_secret_in_the_data_changes_no_measure_and_repeats_no_call(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", "Christmas")
    monkeypatch.setenv("SECRET_KEY", "memories")
    arms = ("eval", "--providers", "bm25", "--end", "30", "--answering-model", "scripted/quote", "--json")
    first = command(*arms, "--run-id", "first").json
    again = command(*arms, "--run-id", "again", "--reuse", "first").json
    assert again["results"] == first["results"]
    stages = {stage["name"]: stage for stage in again["circumstances"]["stages"]}
    assert stages["answer"]["reused"] == stages["answer"]["steps"] == 30


@pytest.mark.slow
def test_providers_are_compared_in_one_run_or_else_by_their_latest_runs(command: Command) -> None:
    command("eval", "--providers", "bm25", "hybrid", "--end", "20", "--run-id", "both")
    command("eval", "--providers", "hybrid", "--end", "10", "--run-id", "later")
    (pair,) = command("results", "--compare", "bm25", "hybrid", "--json").json
    assert (pair["first_run"], pair["second_run"]) == ("both", "both"), "the run that holds both is used"
    command("eval", "--providers", "none", "--end", "10", "--run-id", "apart")
    (pair,) = command("results", "--compare", "none", "hybrid", "--measure", "context_tokens", "--json").json
    assert (pair["first_run"], pair["second_run"]) == ("apart", "later"), "the latest run of hybrid"


def test_overlapping_shards_are_not_merged(command: Command) -> None:
    command("eval", "--providers", "none", "--start", "1", "--end", "50", "--run-id", "a")
    command("eval", "--providers", "none", "--start", "41", "--end", "100", "--run-id", "b")
    said = command("results", "a", "b")
    assert said.code == 2
    assert said.err.startswith("memorybench: a and b: ")


def test_a_reply_that_cannot_be_stored_is_charged_and_reported(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
    with Stub() as stub:
        stub.always(completion("half \ud83d", tokens=(1000, 100)))
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        said = command("eval", "--providers", "none", "--end", "2", "--answering-model", "gpt-4o", "--json").json
    assert said["counts"]["failed"] == 2
    assert said["circumstances"]["spent"]["cost"] == pytest.approx(0.007)
    assert said["possibly_charged_twice"] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["--threshold", "recall_at_5=0.99", "--providers", "bm25"], 3, "bm25: recall@5"),
        (["--threshold", "recall@5=0.5", "--providers", "oracle"], 2, "--threshold:"),
        (["--threshold", "recal@5=0.5"], 2, '"recall@5"'),
    ],
)
def test_thresholds_accept_older_names_and_need_a_provider(
    command: Command, arguments: list[str], code: int, named: str
) -> None:
    answer = command("eval", "--end", "10", *arguments)
    assert answer.code == code
    assert named in answer.out + answer.err


def test_providers_that_have_not_started_are_in_the_report_of_a_partial_run(command: Command) -> None:
    arguments = ("eval", "--providers", "bm25", "none", "--end", "4", "--concurrency", "1")
    assert command.killed(*arguments, "--run-id", "r", at=20)
    document = command("results", "r", "--json").json
    assert document["status"] == "partial", "nobody is writing it any more"
    assert subjects(document) == [("starter", "bm25"), ("starter", "none")]


@pytest.mark.slow
def test_a_scripted_judge_decides_and_its_canaries_are_reported(command: Command) -> None:
    said = command(
        "eval", "--providers", "oracle", "--end", "30", "--answering-model", "scripted/quote",
        "--judge-model", "scripted/judge", "--run-id", "r",
    )  # fmt: skip
    assert said.code == 0
    assert "judge scripted/judge on canaries: sensitivity" in said.out
    again = command("score", "r", "--judge-model", "scripted/silence", "--json")
    assert again.json["counts"]["unscored"] == 30, "a judge that never says yes or no leaves everything unscored"


def test_missing_data_of_a_bundled_benchmark_belongs_into_the_working_folder(command: Command) -> None:
    said = command("eval", "--benchmarks", "beam", "--providers", "bm25")
    assert said.code == 2
    assert "benchmarks/datasets/BEAM/chats/100K" in said.err
    assert "https://github.com/mohammadtavakoli78/BEAM" in said.err
    assert "catalog" not in said.err
