"""One line each, with file, line, path and remedy, before anything runs."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import BadInput
from memorybench.datasets.locating import local_source
from memorybench.datasets.mapped import open_mapped
from memorybench.datasets.sources import verify_files
from tests.datasets.described import SCHEMA, config, item, opened, written
from tests.doubles.refusals import refused

TURN = {"role": "user", "text": "Hello."}
DATED = {"context": SCHEMA["context"] | {"dateField": "days"}}
MANY = {
    "question": None,
    "answer": None,
    "questions": {"field": "quiz", "questionField": "q", "answerField": "a"},
}


def complaint(folder: Path, items: Any, schema: dict[str, Any] | None = None, **sections: Any) -> str:
    with pytest.raises(BadInput) as caught:
        opened(folder, items, schema, **sections)
    line = str(caught.value).removeprefix(f"{folder}/")
    assert "\n" not in line
    return line


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in item().items() if name != key}


@pytest.mark.parametrize(
    ("items", "schema", "expected"),
    [
        ([item(), item()], {}, r'sample.json:16: \[1\].id: .*"q1".*'),
        ([without("id")], {}, r"sample.json:2: \[0\].id: .*; expected "),
        ([without("answer")], {}, r"sample.json:2: \[0\].answer: "),
        ([item(answer="")], {}, r"sample.json:5: \[0\].answer: "),
        ([item(answer=[])], {}, r"sample.json:5: \[0\].answer: "),
        ([item(answer={"a": 1})], {}, r'sample.json:5: \[0\].answer: .*{"a": 1}'),
        ([without("question")], {}, r"sample.json:2: \[0\].question: "),
        ([item(sessions=[])], {}, r"sample.json:6: \[0\].sessions: "),
        ([item(sessions=[[{"text": " "}]])], {}, r"sample.json:6: \[0\].sessions: "),
        ([without("sessions")], {}, r"sample.json:2: \[0\].sessions: "),
        ([item(sessions="text")], {}, r'\[0\].sessions: .*; expected an array'),
        ([item(sessions=[[{"say": 1}]])], {}, r"sample.json:8: \[0\].sessions\[0\]\[0\]: "),
        ([item(sessions=[[{"text": []}]])], {}, r"\[0\].sessions\[0\]\[0\]: "),
        ([item(sessions=[[7]])], {}, r"\[0\].sessions\[0\]\[0\]: .*7"),
        ([item(days=[])], DATED, r"sample.json:14: \[0\].days: schema.context.dateField .* 0 values for 1 session;"),
        ([item(days=["2024-05-01", "x"])], DATED, r"\[0\].days: schema.context.dateField .* 2 values for 1 session;"),
        ([item(days=["soon"])], DATED, r'sample.json:7: \[0\].sessions\[0\]: .*"soon".* schema.dateFormat'),
        ([item(quiz={})], MANY, r"\[0\].quiz: {} .*; expected a list at quiz"),
        ([item(quiz=[{"q": "A?"}])], MANY, r"sample.json:15: \[0\].quiz\[0\].a: "),
        ([item(options=["a"])], {"choices": "options"}, r'\[0\]: .*\["a"\]; expected 2 to 26 choices'),
        ([item(options=["red", "blue"])], {"choices": "options"}, r'\[0\].answer: "green" '),
        ([], {}, r"sample.json: .*; expected at least one item"),
        ({"a": 1}, {}, r"sample.json:1: .*; expected a JSON array"),
        ([1], {}, r"sample.json:2: \[0\].id: "),
        ('[{"id": 1, "id": 2}]', {}, r'sample.json:1: \[0\].id: duplicate key "id"'),
        ('[\n{"id": NaN}]', {}, r"sample.json:2: \[?0?\]?.*NaN is not a finite number"),
        ('[\n{"id": 1},\n{"id": ', {}, r"sample.json:"),
        ('[{"id": 1} {"id": 2}]', {}, r"sample.json:1: "),
        ("", {}, r"sample.json:1: the file is empty"),
        ("[" * 200_000, {}, r"sample.json:1: nested too deeply"),
    ],
)  # fmt: skip
def test_errors_in_the_data_are_located(tmp_path: Path, items: Any, schema: dict[str, Any], expected: str) -> None:
    assert re.match(rf"(sample.json:\d+: )?{expected}", complaint(tmp_path, items, schema))


def test_two_turns_of_one_id(tmp_path: Path) -> None:
    context = SCHEMA["context"] | {"itemSchema": {"content": "text", "dialogId": "n"}}
    twice = [[{"text": "One.", "n": 1}, {"text": "Two.", "n": 1}]]
    error = complaint(tmp_path, [item(sessions=twice)], {"context": context})
    assert error.startswith("sample.json:7: [0].sessions[0]: ")


def test_an_invalid_row_is_reported_with_its_line(tmp_path: Path) -> None:
    rows = "\n".join(json.dumps(row) for row in (item(), item(id="q2"), item(id="q2", answer="")))
    file = written(tmp_path, rows, "sample.jsonl")
    described = config(data={"type": "local", "path": "sample.jsonl"})
    error = refused(open_mapped, described, local_source(described, file), lambda: "checksum")
    assert error.where == f"{file}:3: id"


def test_a_checksum_that_differs(tmp_path: Path) -> None:
    file = written(tmp_path, [item()])
    pinned = config(data={"type": "local", "path": "sample.json", "sha256": "0" * 64})
    error = refused(verify_files, local_source(pinned, file))
    assert (error.where, error.expected) == (str(file), "0" * 64)


def test_gzip_that_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "sample.json.gz"
    file.write_bytes(gzip.compress(json.dumps([item()] * 50).encode())[:-20])
    assert refused(open_mapped, config(), local_source(config(), file), lambda: "checksum").where == str(file)


def test_a_file_of_unknown_kind(tmp_path: Path) -> None:
    source = local_source(config(), written(tmp_path, [item()], "sample.txt"))
    error = refused(open_mapped, config(), source, lambda: "checksum")
    assert error.where == str(tmp_path / "sample.txt")
    assert "data.format" in error.remedy
    described = config(data={"type": "local", "path": "sample.txt", "format": "json"})
    assert open_mapped(described, source, lambda: "checksum").questions
