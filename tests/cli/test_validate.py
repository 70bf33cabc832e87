"""Bad files: one line that names file, place, problem and remedy; exit 2; nothing changed; no traceback."""

import gzip
import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from memorybench.cli.main import main
from memorybench.journal.sqlite import APPLICATION_ID
from tests.engine.workload import Ledger, plan, run_once

GOOD_PROVIDER = """\
name: mine
type: hosted
connection: {baseUrl: "https://api.example.com"}
auth: {type: bearer, envVar: MINE_KEY}
endpoints:
  add: {method: POST, path: /add, body: {text: "$.content", user: "$.scope"}}
  search:
    method: POST
    path: /search
    body: {q: "$.query", user: "$.scope"}
    response: {results: "$.results", contentField: "$.text"}
  clear: {method: DELETE, path: "/users/${scope}"}
"""

BENCHMARK_HEAD = """\
name: b
data: {type: local, path: x.json}
schema: {itemId: id, question: q, answer: a, context: {field: c}}
"""


def provider(old: str = "", new: str = "") -> str:
    assert old in GOOD_PROVIDER
    return GOOD_PROVIDER.replace(old, new, 1)


BAD_FILES: list[tuple[str, str, bytes | str, str]] = [
    ("bad line of JSONL", "d.jsonl", '{"a": 1}\n{"a": }\n{"a": 3}\n', r"d\.jsonl:2"),
    ("torn last line", "d.jsonl", '{"a": 1}\n{"a": 2', r"d\.jsonl:2"),
    ("UTF-16", "d.json", '{"a": 1}'.encode("utf-16"), r"UTF-16"),
    ("NaN", "d.json", '{"a": [1, NaN]}', r"d\.json:1.*NaN"),
    ("infinity", "d.json", '{"a": 1e999}', r"d\.json:1"),
    ("duplicate key", "d.json", '{"a": 1,\n "b": 2,\n "a": 3}', r"d\.json:\d.*\ba\b"),
    ("nesting of 200,000", "d.json", "[" * 200_000 + "]" * 200_000, r"d\.json:1"),
    ("integer of 5,000 digits", "d.json", '{"n": ' + "9" * 5_000 + "}", r"d\.json:1"),
    ("lone surrogate", "d.json", '{"a": "\\ud800"}', r"d\.json:1"),
    ("trailing comma", "d.json", '{"a": 1,}', r"d\.json:1"),
    ("empty file", "d.json", "", r"d\.json"),
    ("not gzip", "d.json.gz", "hello", r"gzip"),
    ("cut gzip", "d.json.gz", gzip.compress(b'{"a": 1}' * 999)[:-9], r"d\.json\.gz"),
    ("ragged CSV", "d.csv", "id,question\n1,a\n2,b,c\n", r"d\.csv:3"),
    ("CSV with a column twice", "d.csv", "id,id\n1,2\n", r"d\.csv:1"),
    ("CSV with a NUL", "d.csv", "id,question\n1,a\x00\n", r"d\.csv:2"),
    ("unknown suffix", "d.xlsx", "hello", r"d\.xlsx.*\.json"),
    ("unknown key", "p.yaml", provider("  add: {method", "  ad: {method"), r'p\.yaml:6: endpoints\.ad: .*"add"'),
    ("no read as false", "p.yaml", provider("name: mine", "name: no"), r"p\.yaml:1.*(quote|true or false)"),
    ("octal", "p.yaml", provider("{baseUrl:", "{timeout: 010, baseUrl:"), r"p\.yaml:3.*010"),
    ("key twice", "p.yaml", provider("type: hosted", "type: hosted\ntype: docker"), r"p\.yaml:3.*type"),
    ("alias bomb", "p.yaml", "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n", r"p\.yaml:\d.*(alias|anchor)"),
    ("python tag", "p.yaml", "a: !!python/object/apply:os.system [ls]\n", r"p\.yaml:1"),
    ("file address", "p.yaml", provider("https://api.example.com", "file:///etc/passwd"), r"p\.yaml:3.*file"),
    ("plain http", "p.yaml", provider("https://api", "http://api"), r"p\.yaml:3.*insecure"),
    ("unknown placeholder", "p.yaml", provider("/users/${scope}", "/users/${scoop}"), r'p\.yaml:12.*"scope"'),
    ("unknown variable", "p.yaml", provider('"$.content"', '"$.contents"'), r'p\.yaml:6.*"content"'),
    ("a name with blanks", "p.yaml", provider("name: mine", "name: My Memory"), r"p\.yaml:1.*my-memory"),
    ("no scope", "p.yaml", provider('user: "$.scope"}}\n', "user: me}}\n"), r"p\.yaml:\d+.*scope"),
    ("bad JSONPath", "p.yaml", provider('"$.results"', '"$.results["'), r"p\.yaml:11.*column"),
    ("12:30 is text, not a timeout", "p.yaml", provider("{baseUrl:", "{timeout: 12:30, baseUrl:"), r"p\.yaml:3.*12:30"),
    ("no config of any kind", "p.yaml", "a: 1\n", r"p\.yaml:1"),
    ("several documents", "p.yaml", "a: 1\n---\nb: 2\n", r"p\.yaml:2"),
    (
        "judge prompt without the response",
        "b.yaml",
        BENCHMARK_HEAD + 'evaluation:\n  method: llm-judge\n  judgePrompts: {default: "Is ${answer} right?"}\n',
        r"b\.yaml:6.*response",
    ),
    (
        "answer prompt without the question",
        "b.yaml",
        BENCHMARK_HEAD
        + 'evaluation:\n  method: llm-judge\n  answerPrompt: {default: "Answer from ${retrievedContext}"}\n',
        r"b\.yaml:6.*question",
    ),
    ("not SQLite", "results.db", "dear diary", r"not a SQLite file"),
]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What was said by a command that refuses: one line, exit 2."""
    assert main(list(arguments)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    (line,) = said.err.splitlines()
    return line


@pytest.mark.parametrize(
    ("name", "content", "expected"), [case[1:] for case in BAD_FILES], ids=[c[0] for c in BAD_FILES]
)
def test_an_invalid_file_is_reported_in_one_line_with_its_location(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | str, expected: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = snapshot(tmp_path)
    line = refused(capsys, "validate", str(path))
    assert line.startswith(f"memorybench: {path}"), line
    assert re.search(expected, line), line
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(("text", "is_named"), [("{}", True), ("models: [{}]", False)])
def test_an_invalid_file_that_was_read_as_a_model_card_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, is_named: bool
) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text(text.replace("{}", "{name: ours, kind: http}"))
    line = refused(capsys, "validate", str(path))
    assert "kind: is " in line
    assert line.endswith("; the file was read as a model card") == is_named


@pytest.mark.slow
def test_a_valid_file_is_recognised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_once(tmp_path / "results", plan(Ledger(tmp_path / "ledger")))
    (tmp_path / "bom.json").write_bytes(b"\xef\xbb\xbf" + json.dumps([1]).encode())
    (tmp_path / "mine.yaml").write_text(GOOD_PROVIDER)
    files = ["results/results.db", "bom.json", "mine.yaml"]
    assert main(["validate", *(str(tmp_path / file) for file in files)]) == 0
    said = capsys.readouterr().out
    assert "results file, 1 run, " in said
    assert "well-formed, 1 item\n" in said
    assert 'mine.yaml: valid provider config "mine" (hosted); set MINE_KEY' in said


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("newer", "newer memorybench"), ("other", "another program"), ("folder", "is a folder"), ("cut", "damaged")],
)
def test_a_damaged_database_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, expected: str
) -> None:
    path = tmp_path / "results.db"
    if kind == "folder":
        path.mkdir()
    elif kind == "cut":
        run_once(tmp_path, plan(Ledger(tmp_path / "ledger")))
        os.truncate(path, path.stat().st_size // 2)
    else:
        with sqlite3.connect(path) as db:
            db.execute(f"PRAGMA application_id={APPLICATION_ID if kind == 'newer' else 7}")
            db.execute("PRAGMA user_version=999")
    before = snapshot(tmp_path)
    assert expected in refused(capsys, "validate", str(path))
    assert snapshot(tmp_path) == before


def test_every_file_of_several_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text("[]")
    assert main(["validate", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 2
    said = capsys.readouterr().out
    assert "a.json:1" in said
    assert "b.json: well-formed" in said


@pytest.mark.slow
def test_a_large_dataset_is_not_loaded_as_a_whole(tmp_path: Path) -> None:
    """Its parsed JSON takes four times the size of the file, and the machine may not have that."""
    turns = [{"role": "user", "content": f"My pet {n} is a cat called Tom{n}."} for n in range(20)]
    facts = [{"id": f"f{n}", "content": turns[n]["content"], "turn": n + 1} for n in range(20)]

    def peak(conversations: int) -> int:
        rows = [{"id": f"c{n}", "turns": turns, "facts": facts} for n in range(conversations)]
        file = tmp_path / f"{conversations}.json"
        file.write_text(json.dumps({"id": "pets", "conversations": rows}))
        code = "import resource, sys; from memorybench.cli.main import main; main(['validate', sys.argv[1]]);"
        code += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == 'darwin' else 1024))"
        done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
        assert f"audit dataset, {conversations:,} conversation" in done.stdout
        return int(done.stdout.split()[-1])

    size = (peak(1), peak(5000))
    assert size[1] - size[0] < 4 * (tmp_path / "5000.json").stat().st_size
