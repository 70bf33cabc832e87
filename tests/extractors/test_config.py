"""Files that describe extractors."""

from __future__ import annotations

from pathlib import Path

import pytest

import memorybench
from memorybench.core.errors import BadInput
from memorybench.extractors.config import ExtractorConfig
from memorybench.extractors.config_reading import read_extractor
from memorybench.extractors.plugin import load_type
from memorybench.files.yaml_file import load_yaml, parse_yaml
from tests.doubles.refusals import refused

CATALOG = Path(memorybench.__file__).parent / "catalog" / "extractors"
HTTP = "name: ours\ntype: http\nurl: https://extractor.example/v1\n"


def read(text: str) -> ExtractorConfig:
    return read_extractor(parse_yaml(text, "ours.yaml"))


def test_every_bundled_file_loads_and_has_the_name_of_its_file() -> None:
    found = {path.stem: read_extractor(load_yaml(path)) for path in sorted(CATALOG.glob("*.yaml"))}
    assert list(found) == ["amnesiac", "hoarder", "reference"]
    assert all(config.name == stem and config.display_name and config.description for stem, config in found.items())


@pytest.mark.parametrize(
    ("text", "runs_code"),
    [
        (HTTP, False),
        ("name: ours\ntype: command\ncommand: python extract.py --fast\n", True),
        ("name: ours\ntype: callable\nfunction: package.module:extract\n", True),
        ("name: ours\ntype: callable\nfunction: ./my extractor.py:extract\n", True),
        ("name: ours\ntype: provider\nprovider: mem0\n", False),
        ("name: ours\ntype: reference\nprompt: ${existingMemory} ${conversation}\nmodel: local\n", False),
        ("name: ours\ntype: baseline\nbaseline: hoarder\n", False),
    ],
)
def test_every_type_loads_and_declares_whether_it_runs_code(text: str, runs_code: bool) -> None:
    assert load_type(read(text).type).runs_code is runs_code


def test_keys_may_be_written_either_way() -> None:
    snake = "display_name: Ours\nauth: {type: bearer, env_var: OUR_KEY}\n"
    camel = "displayName: Ours\nauth: {type: bearer, envVar: OUR_KEY}\n"
    assert read(HTTP + snake) == read(HTTP + camel)


def test_missing_variables_are_an_error_only_at_use() -> None:
    text = "name: ours\ntype: http\nurl: https://${HOST_NAME}/v1\nheaders: {X-Team: '${TEAM:-blue}'}\n"
    assert read(text).url == "https://${HOST_NAME}/v1"
    filled = read_extractor(parse_yaml(text, "ours.yaml"), {"HOST_NAME": "extractor.example"})
    assert (filled.url, filled.headers) == ("https://extractor.example/v1", {"X-Team": "blue"})
    assert refused(read_extractor, parse_yaml(text, "ours.yaml"), {}).where == "ours.yaml:3: url"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name: ours\ntype: http\n", 'ours.yaml:1: "url" is missing'),
        ("name: ours\n", 'ours.yaml:1: "type" is missing'),
        ("name: ours\ntype: htp\n", 'ours.yaml:2: type: unknown type "htp"'),
        (
            "name: My Extractor\ntype: baseline\nbaseline: hoarder\n",
            'ours.yaml:1: name: "My Extractor" is not a valid name',
        ),
        ("name: ours\ntype: baseline\nbaseline: echo\n", 'ours.yaml:3: baseline: is "echo"'),
        (f"{HTTP}header: {{X: y}}\n", 'ours.yaml:4: header: unknown key "header"; expected one of'),
        (f"{HTTP}header: {{X: y}}\n", 'did you mean "headers"?'),
        (f"{HTTP}auth: {{type: bearer, envVr: X}}\n", 'did you mean "envVar"?'),
        (f"{HTTP}auth: {{type: bearer}}\n", 'ours.yaml:4: auth: "envVar" is missing'),
        (f"{HTTP}auth: {{type: bearer, envVar: sk-123}}\n", "auth.envVar: invalid name"),
        (f"{HTTP}method: GET\n", 'ours.yaml:4: method: is "GET"'),
        (f"{HTTP}timeout: 0\n", "ours.yaml:4: timeout: is 0"),
        (f"{HTTP}command: python x.py\n", "ours.yaml:4: command: this key has no effect with type: http"),
        (f"{HTTP}output: $.facts[\n", 'ours.yaml:4: output: "$.facts[" is not a valid JSONPath'),
        (f"{HTTP}body:\n  said: $.convo\n", 'ours.yaml:5: body.said: unknown variable "convo"'),
        (f"{HTTP}body:\n  said: '${{mesages}}'\n", 'did you mean "messages"?'),
        ("name: ours\ntype: http\nurl: file:///etc/passwd\n", "ours.yaml:3: url: "),
        ("name: ours\ntype: http\nurl: http://extractor.example\n", "set insecure: true"),
        (
            "name: ours\ntype: http\nurl: http://169.254.169.254/\n",
            "is a link-local address or a cloud metadata service",
        ),
        ("name: ours\ntype: http\nurl: https://u:p@extractor.example\n", "the URL contains a user name or password"),
        ("name: ours\ntype: command\ncommand: python 'x\n", "ours.yaml:3: command: invalid command"),
        ("name: ours\ntype: command\ncommand: ' '\n", "ours.yaml:3: command: the command is empty"),
        ("name: ours\ntype: callable\nfunction: extract\n", "ours.yaml:3: function: invalid function name"),
        ("name: ours\ntype: provider\nprovider: Mem 0\n", 'ours.yaml:3: provider: "Mem 0" is not a valid name'),
        (
            "name: ours\ntype: reference\nprompt: Do it.\n",
            "ours.yaml:3: prompt: the prompt does not contain ${existingMemory}",
        ),
        ("- name: ours\n", "ours.yaml:1: is"),
    ],
)
def test_an_invalid_file_is_an_error_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(BadInput) as raised:
        read(text)
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_key_in_the_file_is_not_shown() -> None:
    with pytest.raises(BadInput) as raised:
        read(f"{HTTP}auth: {{type: bearer, envVar: sk-plum-kettle}}\n")
    assert "sk-plum-kettle" not in str(raised.value)


def test_a_missing_file_is_named_in_the_error(tmp_path: Path) -> None:
    assert refused(load_yaml, tmp_path / "none.yaml").where == str(tmp_path / "none.yaml")
