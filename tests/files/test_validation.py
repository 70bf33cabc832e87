from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, field_validator

from memorybench.core.records import Record
from memorybench.files.json_text import parse_json
from memorybench.files.located import Document
from memorybench.files.validation import problems, validated
from memorybench.files.yaml_file import parse_yaml


class Endpoint(Record):
    path: str
    method: Literal["POST", "PUT"] = "POST"
    body: Mapping[str, Any] = {}
    metadata: Any = None


class Prompts(Record):
    default: str
    by_question_type: Mapping[str, str] = {}


class Hosted(Record):
    type: Literal["hosted"]
    base_url: str


class Local(Record):
    type: Literal["local"]
    adapter_path: str


class Config(Record):
    display_name: str
    timeout_ms: int = 30
    endpoints: Mapping[str, Endpoint] = {}
    retries: tuple[Endpoint, ...] = ()
    fallback: Endpoint | None = None
    answer_prompt: str | Prompts = ""
    cut: int | Literal["auto"] = 0
    mapping: Mapping[str, str] = Field({}, alias="schema")
    connection: Annotated[Hosted | Local, Field(discriminator="type")] | None = None

    @field_validator("timeout_ms")
    @classmethod
    def _positive(cls, value: int) -> int:
        if value <= 0:
            raise ValueError("no time at all, the least is 1 ms")
        return value


def said(text: str) -> list[str]:
    return [str(problem) for problem in problems(parse_yaml(text, "c.yaml"), Config)]


@pytest.mark.parametrize("text", ["displayName: A\ntimeoutMs: 5\n", "display_name: A\ntimeout_ms: 5\n"])
def test_keys_are_read_in_camel_case_and_snake_case_alike(text):
    assert validated(parse_yaml(text, "c.yaml"), Config) == Config(display_name="A", timeout_ms=5)


def test_a_good_document_has_no_problems():
    assert said("displayName: A") == []


def test_both_spellings_of_one_key_are_refused():
    line = "c.yaml:2: display_name: duplicate key in another spelling; expected each key once; remove one"
    assert said("displayName: A\ndisplay_name: A\n") == [line]


def test_both_spellings_are_refused_below_the_root_too():
    text = "displayName: A\nanswerPrompt:\n  default: x\n  by_question_type: {}\n  byQuestionType: {}\n"
    assert [line.partition(": duplicate")[0] for line in said(text)] == ["c.yaml:5: answerPrompt.byQuestionType"]


def test_an_unknown_key_names_the_nearest_known_one_in_the_writers_style():
    (line,) = said("displayName: A\ntimeoutMS: 5\n")
    assert line.startswith('c.yaml:2: timeoutMS: unknown key "timeoutMS"')
    assert line.endswith('did you mean "timeoutMs"?')
    (line,) = said("display_name: A\ntime_outms: 5\n")
    assert line.endswith('did you mean "timeout_ms"?')


def test_an_unknown_key_lists_what_there_is():
    (line,) = said("displayName: A\nfallback:\n  path: /x\n  zebra: 1\n")
    assert line == 'c.yaml:4: fallback.zebra: unknown key "zebra"; expected one of body, metadata, method, path'


def test_a_missing_key_is_named_where_it_belongs():
    assert said("timeoutMs: 5\n") == ['c.yaml:1: "displayName" is missing; add it']
    assert said("display_name: A\nfallback:\n  method: PUT\n") == ['c.yaml:2: fallback: "path" is missing; add it']


@pytest.mark.parametrize(
    ("connection", "line"),
    [
        ("{baseUrl: x}", 'c.yaml:2: connection: "type" is missing; add it: hosted or local'),
        (
            "{type: hostd}",
            "c.yaml:2: connection.type: is \"hostd\"; expected 'hosted' or 'local'; did you mean \"hosted\"?",
        ),
        ("{type: 3}", "c.yaml:2: connection.type: is 3; expected 'hosted' or 'local'"),
        ("3", "c.yaml:2: connection: is 3; expected a mapping of keys to values"),
    ],
)
def test_the_values_of_a_key_that_chooses_the_member_of_a_union_are_listed(connection, line):
    assert said(f"displayName: A\nconnection: {connection}\n") == [line]


def test_the_values_of_a_missing_key_are_listed():
    (missing, _) = problems(parse_yaml("nothing: 1\n", "c.yaml"), Hosted)[1:]
    assert missing.remedy == "add it: hosted"


def test_a_misspelt_required_key_is_told_before_it_is_missed():
    assert ['unknown key "displayNme"' in line for line in said("displayNme: A\n")] == [True, False]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("timeoutMs: soon", 'c.yaml:2: timeoutMs: is "soon"; expected a valid integer'),
        ("timeoutMs: -1", "c.yaml:2: timeoutMs: no time at all, the least is 1 ms"),
        ("fallback: /x", 'c.yaml:2: fallback: is "/x"; expected a mapping of keys to values'),
        ("retries: 3", "c.yaml:2: retries: is 3; expected a list"),
        (
            "endpoints:\n  add: {path: 7}",
            "c.yaml:3: endpoints.add.path: is 7; expected text (in quotes if it looks like a number)",
        ),
        (
            "retries:\n  - path: /x\n    method: PSOT",
            "c.yaml:4: retries[0].method: is \"PSOT\"; expected 'POST' or 'PUT'; did you mean \"POST\"?",
        ),
        ("schema: {a: 1}", "c.yaml:2: schema.a: is 1; expected text (in quotes if it looks like a number)"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(text, line):
    assert said(f"displayName: A\n{text}\n") == [line]


def test_of_a_union_the_branch_speaks_that_the_writer_began():
    text = "displayName: A\nanswerPrompt:\n  byQuestionType:\n    temporal: 1\n  defualt: x\n"
    assert [line.partition(";")[0] for line in said(text)] == [
        "c.yaml:4: answerPrompt.byQuestionType.temporal: is 1",
        'c.yaml:5: answerPrompt.defualt: unknown key "defualt"',
        'c.yaml:2: answerPrompt: "default" is missing',
    ]


def test_a_union_of_which_nothing_fits_is_one_line():
    assert said("displayName: A\ncut: [1]\n") == ["c.yaml:2: cut: is [1]; expected a valid integer or 'auto'"]


def test_a_key_of_another_kind_of_the_same_union_is_unknown():
    text = "displayName: A\nconnection:\n  type: hosted\n  baseUrl: x\n  adapterPath: y\n"
    (line,) = said(text)
    assert line.startswith('c.yaml:5: connection.adapterPath: unknown key "adapterPath"; expected one of baseUrl, type')


def test_keys_of_free_form_mappings_are_never_touched():
    text = """
displayName: A
endpoints:
  byUser:
    path: /x
    body: {userId: 1, user_id: 2, nested: [{displayName: 3}]}
    metadata: {displayName: 4, display_name: 5}
"""
    endpoint = validated(parse_yaml(text, "c.yaml"), Config).endpoints["byUser"]
    assert endpoint.body == {"userId": 1, "user_id": 2, "nested": [{"displayName": 3}]}
    assert endpoint.metadata == {"displayName": 4, "display_name": 5}


def test_the_first_problem_is_raised_and_the_others_are_counted(complaint):
    document = parse_yaml("displayName: A\ntimeoutMs: soon\nretries: 3\ncut: x\n", "c.yaml")
    assert (
        complaint(validated, document, Config)
        == 'c.yaml:2: timeoutMs: is "soon"; expected a valid integer; this is the first of 3 problems'
    )


def test_problems_come_by_line():
    assert [line[:8] for line in said("displayName: A\nretries: 3\ntimeoutMs: x\ncut: [1]\n")] == [
        "c.yaml:2",
        "c.yaml:3",
        "c.yaml:4",
    ]


def test_json_and_parts_of_documents_are_located_alike(complaint):
    document = parse_json('{\n"items": [\n{"displayName": "A"},\n{"displayName":\n 3}]}', "c.json")
    assert validated(document.at("items", 0), Config).display_name == "A"
    assert complaint(validated, document.at("items", 1), Config).startswith("c.json:4: items[1].displayName: is 3")


def test_a_document_that_is_no_mapping_is_refused(complaint):
    assert complaint(validated, parse_yaml("- a\n", "c.yaml"), Config).startswith(
        'c.yaml:1: is ["a"]; expected a mapping'
    )


def test_a_message_stays_one_short_line(complaint):
    document = Document("c.yaml", {"displayName": ["\x1b[31m\u202e\n" * 500]})
    line = complaint(validated, document, Config)
    assert len(line) < 200
    assert line.isprintable()
