"""Every YAML example of the spec loads unchanged, or is an error that names the replacement."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from memorybench.catalog.files import recognise
from memorybench.core.errors import BadInput
from memorybench.datasets.config_reading import read_benchmark
from memorybench.files.yaml_file import parse_yaml
from memorybench.providers.config.reading import read_provider

SPEC = Path(__file__).parents[2] / "../shared/spec/memorybench.md"

FATE = {
    "supermemory": 'takes "q", not "query"; use base URL …/v4',
    "mem0": "use POST /v3/memories/add/",
    "aqrag": 'set "./adapters/aqrag.py:Aqrag"',
    "chroma": "/api/v1 is gone; use /api/v2/tenants/default_tenant/databases/default_database/collections",
    "longmemeval": "write ${session}: it is the session's JSON",
    "locomo": "write ${dialogue}: it is the session's lines",
    "newprovider": '"endpoints" is missing',
    "myalgorithm": 'set "./adapters/myalgorithm.py:Myalgorithm"',
    "newbench": None,
}
"""The error of each example; None if it loads."""


@pytest.fixture(scope="module")
def examples() -> dict[str, str]:
    """By name, without the two schemas of the spec, whose name is the word `string`."""
    if not SPEC.exists():
        pytest.skip("the spec is not next to this checkout (../shared/spec/memorybench.md)")
    blocks = re.findall(r"^( *)```yaml\n(.*?)^\1```", SPEC.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    examples_by_name = {}
    for _, block in blocks:
        text = dedent(block)
        name = re.search(r"^name: (\S+)", text, re.MULTILINE)
        assert name is not None
        examples_by_name[name[1]] = text
    examples_by_name.pop("string")
    return examples_by_name


def read(text: str) -> None:
    document = parse_yaml(text, "example.yaml")
    if recognise(document) == "provider":
        read_provider(document)
    else:
        assert recognise(document) == "benchmark"
        read_benchmark(document)


def test_every_example_is_covered(examples: dict[str, str]) -> None:
    assert examples.keys() == FATE.keys()


@pytest.mark.parametrize("name", FATE)
def test_example_loads_or_names_its_replacement(examples: dict[str, str], name: str) -> None:
    replacement = FATE[name]
    if replacement is None:
        read(examples[name])
        return
    with pytest.raises(BadInput) as caught:
        read(examples[name])
    line = str(caught.value)
    assert "\n" not in line
    assert re.match(r"example.yaml:\d+: ", line)
    assert replacement in line


@pytest.mark.parametrize(
    ("name", "mends"),
    [
        ("longmemeval", {"${JSON.stringify(session)}": "${session}"}),
        ("locomo", {"${session.map(turn => `${turn.speaker}: ${turn.text}`).join('\\n')}": "${dialogue}"}),
        ("aqrag", {"aqrag.ts": "aqrag.py:Aqrag"}),
        (
            "mem0",
            {
                "/v1}": "}",
                "path: /memories/search/": "path: /v3/memories/search/",
                "path: /memories/\n    body:\n      messages": "path: /v3/memories/add/\n    body:\n      messages",
                "path: /memories/\n    body:\n      user_id": "path: /v1/memories/\n    query:\n      user_id",
                "supportsBatch: true": "supportsBatch: false",
            },
        ),
    ],
)
def test_example_loads_after_the_remedy(examples: dict[str, str], name: str, mends: dict[str, str]) -> None:
    text = examples[name]
    for old, new in mends.items():
        assert old in text
        text = text.replace(old, new)
    read(text)
