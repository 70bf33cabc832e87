from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path

import pytest

from memorybench.core.errors import BadInput
from memorybench.files.yaml_file import parse_yaml
from memorybench.providers.config.reading import read_provider
from memorybench.providers.mem0_oss import open_mem0_oss
from tests.doubles.scripted_embedder import ScriptedEmbedder


@pytest.mark.skipif(find_spec("mem0") is not None, reason="mem0ai is installed here; tests/real has the rest")
def test_missing_mem0ai_is_an_error_with_remedy(tmp_path: Path) -> None:
    async def open_it() -> None:
        async with open_mem0_oss(tmp_path / "mem0", ScriptedEmbedder(8)):
            pytest.fail("it was opened")

    with pytest.raises(BadInput, match=r'mem0ai is not installed; pip install "memorybench\[mem0\]"'):
        asyncio.run(open_it())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("local", "problem"),
    [
        ("{chunking: {size: 500}}", "x.yaml:4: local.chunking: this key has no effect with adapter: builtin:mem0-oss"),
        ("{enhancement: {model: m, generateQuestions: true}}", "generateQuestions: this key has no effect"),
        ("{enhancement: {enabled: true}}", 'x.yaml:4: local.enhancement: "model" is missing'),
    ],
)
def test_settings_without_effect_are_an_error(local: str, problem: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_provider(parse_yaml(f"name: x\ntype: local\nadapter: builtin:mem0-oss\nlocal: {local}\n", "x.yaml"), {})
    assert problem in str(refused.value)


def test_the_model_of_the_enhancement_is_used_if_it_is_enabled() -> None:
    choices = {"{enhancement: {model: m}}": "m", "{enhancement: {enabled: false}}": None, "{}": None}
    for local, model in choices.items():
        text = f"name: x\ntype: local\nadapter: builtin:mem0-oss\nlocal: {local}\n"
        assert read_provider(parse_yaml(text, "x.yaml"), {}).enhancement_model == model
