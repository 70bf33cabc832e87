"""Configs and scripted models for the tests of the providers that keep chunks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from memorybench.core.conversation import Turn
from memorybench.files.yaml_file import parse_yaml
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.reading import read_provider
from memorybench.providers.storage.chunks import StoredChunk
from tests.doubles.scripted_model import ScriptedModel

ENHANCEMENT = {
    "aqrag": {"model": "scripted", "generateQuestions": True, "questionsPerChunk": 3},
    "contextual-retrieval": {"model": "scripted"},
}
_CHUNK = re.compile(r"<(conversation|excerpt)>\n(.*?)\n</\1>", re.DOTALL)


def config(adapter: str, **local: Any) -> ProviderConfig:
    """Return a config with this `local` section; the enhancement is enabled unless it is given."""
    local = {"enhancement": ENHANCEMENT[adapter], **local}
    text = f"name: {adapter}\ntype: local\nadapter: builtin:{adapter}\nlocal: {json.dumps(local)}"
    return read_provider(parse_yaml(text, "config.yaml"))


def chunk(session: str, place: int, content: str = "text") -> StoredChunk:
    return StoredChunk(session, place, (f"{session}:{place}",), "", content)


def chunk_in(turns: Sequence[Turn]) -> str:
    """Return the chunk of a prompt: the last text between tags."""
    return _CHUNK.findall(turns[0].content)[-1][1]


def questioner() -> ScriptedModel:
    """Return a question about the last line of a chunk."""
    return ScriptedModel(lambda turns: json.dumps({"questions": [f"What of {chunk_in(turns).splitlines()[-1]}?"]}))


def asks(questions: Mapping[str, str]) -> ScriptedModel:
    """Return a model that writes the question of each text that the chunk contains."""

    def script(turns: Sequence[Turn]) -> str:
        chunk = chunk_in(turns)
        return json.dumps(
            {"questions": [question for part, question in questions.items() if part in chunk] or ["What else?"]}
        )

    return ScriptedModel(script)
