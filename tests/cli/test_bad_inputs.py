"""Bad input to every verb: one line on standard error that names the place, exit code 2, nothing printed or run."""

from __future__ import annotations

import gzip
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from memorybench.cli.main import main, memaudit

PROVIDER = """\
name: sample
type: hosted
connection:
  baseUrl: https://api.example.com/v1
endpoints:
  add: {method: POST, path: /documents, body: {content: "$.content", user: "$.scope"}}
  search:
    method: POST
    path: /search
    body: {query: "$.query", user: "$.scope", top_k: "$.limit"}
    response: {results: "$.results", contentField: "$.memory", scoreField: "$.score"}
"""
BENCHMARK = """\
name: sample
data: {type: local, path: sample.json}
schema:
  itemId: id
  question: question
  answer: answer
  context: {field: sessions, itemSchema: {content: text, role: role}}
evaluation: {method: exact-match}
"""
ITEM = (
    '{"id": "q1", "question": "Which colour?", "answer": "green", "sessions": [[{"role": "user", "text": "Green."}]]}'
)
SCENARIO = """\
{"schema_version": 1, "id": "sample", "title": "t", "description": "d", "contract": "stable",
"setup": {"facts": [{"as": "a", "content": "The user likes tea", "category": "profile"}]},
"deterministic": {"well_behaved": [{"do": "recall", "query": "tea"}],
"violation": {"expectation": "detect", "steps": [{"do": "remember", "content": "The user likes tea"}]}},
"real_model": {"prompts": ["Do I like tea?"], "max_turns": 6},
"assertions": [{"kind": "count", "claim": "one fact", "regex": "tea", "equals": 1}]}
"""


class Case:
    """A command line, the place that its error must name, and the files and variables that it finds."""

    def __init__(self, command: str, where: str, *, variables: str = "", **files: str | bytes) -> None:
        self.command = command
        self.where = where
        self.variables = dict(pair.split("=", 1) for pair in variables.split())
        self.files = {name.replace("__", "/").replace("_dot_", "."): content for name, content in files.items()}

    def write(self, folder: Path) -> None:
        for name, content in self.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())


def provider(old: str, new: str, where: str) -> Case:
    assert old in PROVIDER
    return Case("validate providers/p.yaml", where, providers__p_dot_yaml=PROVIDER.replace(old, new))


def benchmark(old: str, new: str, where: str) -> Case:
    assert old in BENCHMARK
    return Case("validate benchmarks/b.yaml", where, benchmarks__b_dot_yaml=BENCHMARK.replace(old, new))


def items(content: str | bytes, where: str, name: str = "sample.json") -> Case:
    card = BENCHMARK.replace("sample.json", name)
    files = {"benchmarks__b_dot_yaml": card, name.replace(".", "_dot_"): content}
    return Case("eval --benchmarks sample --config-dir . --providers bm25 --limit 1", where, **files)


def scenario(old: str, new: str, where: str) -> Case:
    assert old in SCENARIO
    return Case("hygiene run sample --no-mutants", where, scenarios__sample_dot_json=SCENARIO.replace(old, new))


def validate(name: str, content: str | bytes, where: str) -> Case:
    return Case(f"validate {name}", where, **{name.replace(".", "_dot_"): content})


MODEL = "eval --providers bm25 --limit 1 --answering-model"
CASES = [
    # words on the command line
    Case("evl", "evl"),
    Case("eval --providr bm25", "--providr"),
    Case("eval bm25", "bm25"),
    Case("eval --limit", "--limit"),
    Case("eval --limit 0", "--limit"),
    Case("eval --limit -1", "--limit"),
    Case("eval --limit many", "--limit"),
    Case("eval --limit 1.5", "--limit"),
    Case("eval --limit ''", "--limit"),
    Case("eval --start 0", "--start"),
    Case("eval --start 5 --end 2", "--start"),
    Case("eval --end x", "--end"),
    Case("eval --seed x", "--seed"),
    Case("eval --providers ''", "--providers"),
    Case("eval --providers ,", "--providers"),
    Case("eval --providers bm52", "bm52"),
    Case("eval --providers bm25 --limit 1 --benchmarks ''", "--benchmarks"),
    Case("eval --benchmarks startr", "startr"),
    Case("eval --limit 1 --question-type nonsense", "nonsense"),
    Case("eval --limit 1 --question-type ''", "--question-type"),
    Case("eval --answering-model ''", "--answering-model"),
    Case("eval --judge-model ''", "--judge-model"),
    Case("eval --judge-model gpt-4o", "--judge-model"),
    Case("eval --answer-prompt ''", "--answer-prompt"),
    Case("eval --answer-prompt missing.txt --answering-model ollama/x", "missing.txt"),
    Case("eval --run-id ../x", "--run-id"),
    Case("eval --run-id a%2Fb", "--run-id"),
    Case("eval --run-id ''", "--run-id"),
    Case("eval --resume missing", "missing"),
    Case("eval --resume ''", "--resume"),
    Case("eval --resume ../x", "--resume"),
    Case("eval --resume r --limit 3", "--resume"),
    Case("eval --reuse missing", "missing"),
    Case("eval --reuse ''", "--reuse"),
    Case("eval --concurrency 0", "--concurrency"),
    Case("eval --concurrency -3", "--concurrency"),
    Case("eval --budget -1", "--budget"),
    Case("eval --budget much", "--budget"),
    Case("eval --budget nan", "--budget"),
    Case("eval --threshold recall@5", "--threshold"),
    Case("eval --threshold recall@5=high", "--threshold"),
    Case("eval --providers bm25 --limit 1 --threshold recal@5=0.5", "--threshold"),
    Case("eval --threshold-on mean", "--threshold-on"),
    Case("eval --data-file starter", "--data-file"),
    Case("eval --data-file starter=missing.json", "starter"),
    Case("eval --errata starter=missing.json", "starter"),
    Case("eval --config-dir missing", "missing"),
    Case("eval --output ''", "--output"),
    Case("eval --providers bm25 --limit 1 --output taken", "taken", taken="a file"),
    # models and their addresses
    Case(f"{MODEL} claude-haiku", "claude-haiku"),
    Case(f"{MODEL} opnai/gpt-4o", "opnai"),
    Case(f"{MODEL} openai/", "openai/"),
    Case(f"{MODEL} gpt-4o-mini", "OPENAI_API_KEY"),
    Case(f"{MODEL} openai/x", "OPENAI_BASE_URL", variables="OPENAI_BASE_URL=http://[::1/v1"),
    Case(f"{MODEL} openai/x", "OPENAI_BASE_URL", variables="OPENAI_BASE_URL=http://127.0.0.1:99999/v1"),
    Case(f"{MODEL} openai/x", "OPENAI_BASE_URL", variables="OPENAI_BASE_URL=localhost:8000"),
    Case(f"{MODEL} openai/x", "OPENAI_BASE_URL", variables="OPENAI_BASE_URL=file:///etc/passwd"),
    Case(f"{MODEL} openai/x", "OPENAI_BASE_URL", variables="OPENAI_BASE_URL=http://10.0.0.1/v1"),
    Case(f"{MODEL} openai/x", "OPENAI_BASE_URL", variables="OPENAI_BASE_URL=http://169.254.169.254/v1"),
    Case(f"{MODEL} ollama/x", "OLLAMA_HOST", variables="OLLAMA_HOST=127.0.0.1:99999"),
    Case(f"{MODEL} openai/x", "OPENAI_API_KEY", variables="OPENAI_API_KEY=sk-ключ-123456"),
    # other verbs that run
    Case("score", "RUN"),
    Case("score r", "--judge-model"),
    Case("score missing --judge-model ollama/x", "missing"),
    Case("score r --judge-model ollama/x", "r"),
    Case("audit", "DATASET"),
    Case("audit missing.json", "missing.json"),
    Case("audit bad.json --judge-model none", "bad.json:1", bad_dot_json="{"),
    Case("audit . --judge-model none", "."),
    Case("audit x.json --probes nonsense", "--probes"),
    Case("audit x.json --probes ''", "--probes"),
    Case("audit x.json --conflicts oldest", "--conflicts"),
    Case("extraction", "ACTION"),
    Case("extraction run --extractor missing", "missing"),
    Case("extraction run --extractor ''", "--extractor"),
    Case("extraction online", "--source"),
    Case("extraction online --source jsonl missing.jsonl --judge-model ollama/x", "missing.jsonl"),
    Case("extraction online --source langsmith --project p --since 99999999999d", "--since"),
    Case("extraction online --source langsmith --project p --since yesterday", "--since"),
    Case("hygiene", "ACTION"),
    Case("hygiene run --store missing", "missing"),
    Case("hygiene run nonsense", "nonsense"),
    Case("hygiene run --repeats 0", "--repeats"),
    Case("hygiene run --agent missing", "missing"),
    Case("hygiene record", "COMMAND"),
    Case("hygiene record --name ../x -- true", "--name"),
    Case("hygiene list --scenarios missing", "missing"),
    Case("judge calibrate missing.jsonl", "missing.jsonl"),
    Case("judge calibrate l.jsonl", "l.jsonl:", l_dot_jsonl="{\n"),
    Case("judge calibrate l.jsonl --score 2", "--score"),
    Case("judge calibrate l.jsonl --concurrency 0", "--concurrency"),
    # verbs that show
    Case("results missing", "missing"),
    Case("results --compare bm25", "--compare"),
    Case("results --compare ''", "--compare"),
    Case("results --compare bm25 nobody", "nobody"),
    Case("results r --results missing", "missing"),
    Case("results r --results other", "results.db", other__results_dot_db="no database"),
    Case("export", "RUN"),
    Case("export missing", "missing"),
    Case("export r --format xlsx", "--format"),
    Case("export r --output .", ".:"),
    Case("export r --output results/results.db/x.csv", "results/results.db/x.csv"),
    Case("export r --output taken/x.csv", "taken/x.csv", taken="a file"),
    Case("export r --format inspect", "--output"),
    Case("export r --format inspect --output taken", "taken", taken="a file"),
    Case("list --config-dir missing", "missing"),
    Case("describe bm52", "bm52"),
    Case("describe bm25 --kind store", "bm25"),
    Case("describe ''", "NAME"),
    Case("data", "ACTION"),
    Case("data pull missing", "missing"),
    Case("data verify missing", "missing"),
    Case("data convert locomo missing.json --to x.json", "missing.json"),
    Case("data convert locomo l.json --to x.json --limit 2", "--limit", l_dot_json="[]"),
    Case("data convert locomo l.json --to l.json", "l.json", l_dot_json="[]"),
    Case("data convert locomo l.json --to missing/x.json", "missing/x.json", l_dot_json="[]"),
    Case("schema provder", "KIND"),
    Case("validate", "FILE"),
    Case("validate missing.yaml", "missing.yaml"),
    Case("validate .", "."),
    Case("validate x.txt", "x.txt", x_dot_txt="text"),
    # config files
    provider("name:", "nam:", "p.yaml:1"),
    provider("name: sample", "name: Sample Provider", "p.yaml:1"),
    provider("type: hosted", "type: hostd", "p.yaml:2"),
    provider("type: hosted", "type: hosted\ntype: hosted", "p.yaml:3"),
    provider("name: sample", "name: &n sample\ndescription: *n", "p.yaml:"),
    provider("name: sample", "name: !!python/name:os.system x", "p.yaml:1"),
    provider("name: sample", "name: [", "p.yaml:"),
    provider("https://api.example.com/v1", "http://127.0.0.1:99999", "p.yaml:4"),
    provider("https://api.example.com/v1", "http://[::1/v1", "p.yaml:4"),
    provider("https://api.example.com/v1", "file:///etc/passwd", "p.yaml:4"),
    provider("https://api.example.com/v1", "https://169.254.169.254", "p.yaml:4"),
    provider("$.results", "$.results[", "p.yaml:"),
    provider("$.results", "$.results[?match(@.a, '(')]", "p.yaml:"),
    provider("$.scope", "$.scop", "p.yaml:6"),
    provider("path: /search", 'path: /search\n    headers: {"X-A\\nB": c}', "p.yaml:"),
    provider("path: /search", 'path: /search\n    headers: {X-A: "b\\r\\nX-C: d"}', "p.yaml:"),
    provider("type: hosted", 'type: hosted\nauth: {type: apikey, envVar: K, header: "a\\nb"}', "p.yaml:"),
    provider("type: hosted", "type: hosted\nauth: {type: bearer}", "p.yaml:"),
    benchmark("itemId: id", "itemId: $.id[", "b.yaml:"),
    benchmark("exact-match", "exactmatch", "b.yaml:"),
    benchmark("type: local", "type: remote", "b.yaml:2"),
    # datasets
    items("[" + ITEM + ",]", "sample.json:1"),
    items("[" + ITEM, "sample.json"),
    items("[]", "sample.json"),
    items("", "sample.json:1"),
    items(("[" + ITEM + "]").encode("utf-16"), "sample.json:1"),
    items("[" + ITEM + "," + ITEM + "]", "sample.json"),
    items("[" + ITEM.replace('"green"', "NaN") + "]", "sample.json:1"),
    items("[" + ITEM.replace('"green"', "1" * 5000) + "]", "sample.json:1"),
    items("[" + ITEM.replace('"green"', "[" * 100_000 + "]" * 100_000) + "]", "sample.json:1"),
    items("[" + ITEM.replace('"id": "q1", ', '"id": "q1", "id": "q2", ') + "]", "sample.json:1"),
    items("[" + ITEM.replace('"answer": "green", ', "") + "]", "sample.json"),
    items(b"no gzip", "sample.json.gz", "sample.json.gz"),
    validate("d.json", '{"a": "\\ud800"}', "d.json"),
    validate("d.json", b'{"a": "\xff"}', "d.json:1"),
    validate("d.jsonl", '{"a": 1}\n{"a": \n', "d.jsonl:"),
    validate("d.json.gz", gzip.compress(b"[1")[:-4], "d.json.gz"),
    validate("d.json.gz", gzip.compress(b'["' + b"a" * (32 * 2**20) + b'"]'), "d.json.gz"),
    validate("results.db", "no database", "results.db"),
    # scenarios
    scenario('"contract": "stable"', '"contract": "sometimes"', "sample.json:1"),
    scenario('"regex": "tea"', '"regex": "("', "sample.json:"),
    scenario('"id": "sample"', '"id": "other"', "sample.json"),
    scenario('"kind": "count"', '"kind": "counts"', "sample.json:"),
]


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with the run `r`."""
    folder = tmp_path_factory.mktemp("finished") / "results"
    assert main(["eval", "--providers", "bm25", "--limit", "1", "--run-id", "r", "--output", str(folder)]) == 0
    return folder


@pytest.fixture
def run_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], finished_run: Path
) -> Callable[[Case], tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL", "_HOST"))]:
        monkeypatch.delenv(variable)
    (tmp_path / "results").symlink_to(finished_run)

    def run(case: Case) -> tuple[int, str, str]:
        case.write(tmp_path)
        for name, value in case.variables.items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        program = memaudit if case.command.startswith("memaudit ") else main
        code = program(shlex.split(case.command.removeprefix("memaudit ")))
        return code, *capsys.readouterr()

    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file() and "results.db-" not in file.name
    }


@pytest.mark.parametrize("case", CASES, ids=[f"{number}-{case.command}" for number, case in enumerate(CASES)])
def test_bad_input_is_refused_in_one_line(
    case: Case, run_case: Callable[[Case], tuple[int, str, str]], finished_run: Path, tmp_path: Path
) -> None:
    case.write(tmp_path)
    before = contents(tmp_path), contents(finished_run)
    code, out, error = run_case(case)
    assert (code, out) == (2, "")
    assert error.count("\n") == 1, error
    assert case.where in error
    assert not any(sign in error for sign in ("Traceback", "memorybench: unexpected", "Input should", "pydantic"))
    assert (contents(tmp_path), contents(finished_run)) == before


def test_the_files_are_valid_before_the_change_of_a_case(
    run_case: Callable[[Case], tuple[int, str, str]],
) -> None:
    assert run_case(Case("validate providers/p.yaml", "", providers__p_dot_yaml=PROVIDER))[0] == 0
    assert run_case(Case("validate benchmarks/b.yaml", "", benchmarks__b_dot_yaml=BENCHMARK))[0] == 0
    assert run_case(items(f"[{ITEM}]", ""))[0] == 0
    command = "hygiene run sample --no-mutants --dry-run"
    assert run_case(Case(command, "", scenarios__sample_dot_json=SCENARIO))[0] == 0


@pytest.mark.parametrize(
    ("command", "content", "key"),
    [
        ("data convert locomo rows.json --to new.json", "[{}]", "sample_id"),
        ("data convert longmemeval rows.json --to new.json", "[{}]", "question_id"),
        (
            "extraction run rows.json --extractor hoarder",
            '[{"id": "a", "conversation": "User: Hi!"}]',
            "existing_memory",
        ),
    ],
)
def test_a_missing_key_is_named_in_the_spelling_of_such_files(
    run_case: Callable[[Case], tuple[int, str, str]], command: str, content: str, key: str
) -> None:
    code, _, error = run_case(Case(command, "", rows_dot_json=content))
    assert code == 2
    assert f'"{key}"' in error


@pytest.mark.parametrize(
    ("command", "listing"),
    [
        ("hygiene run nothing-like-it", "hygiene list"),
        ("extraction run --extractor nothing-like-it --no-targets", "list --extractors"),
    ],
)
def test_the_error_about_an_unknown_name_ends_with_the_command_that_lists_names(
    run_case: Callable[[Case], tuple[int, str, str]], command: str, listing: str
) -> None:
    _, _, error = run_case(Case(command, ""))
    assert error.strip().endswith(f"; `memorybench {listing}` shows all")
