"""The reference extractor over a real local model: plumbing, not merit."""

import asyncio
from pathlib import Path

import pytest

import memorybench
from memorybench.core.errors import Malformed
from memorybench.extractors.config_reading import read_extractor
from memorybench.extractors.reference import ReferenceExtractor, parse_prompt
from memorybench.files.yaml_file import load_yaml
from memorybench.models.opening import open_model
from memorybench.models.presets import Options, resolve
from memorybench.secrets.redaction import Redactor
from tests.extractors.conversation import CONVERSATION, EXISTING

pytest_plugins = ("tests.real.local_llm",)
pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def test_the_reference_extractor_asks_a_real_server_and_reads_or_refuses_its_reply(local_llm: str) -> None:
    async def extract() -> object:
        file = Path(memorybench.__file__).parent / "catalog" / "extractors" / "reference.yaml"
        prompt = parse_prompt(read_extractor(load_yaml(file)).prompt or "", str(file))
        address = resolve("ollama/smollm2", {"OLLAMA_BASE_URL": local_llm})
        async with open_model(
            address, key=None, redactor=Redactor([]), options=Options(max_tokens=120, seed=1)
        ) as model:
            extractor = ReferenceExtractor(model, prompt, "reference")
            try:
                return await extractor.extract(EXISTING, CONVERSATION)
            except Malformed as malformed:
                return str(malformed)

    first, second = asyncio.run(extract()), asyncio.run(extract())
    assert first == second
    assert isinstance(first, dict | list) or str(first).startswith("reference: smollm2")
