"""The reference extractor: a model gets one prompt and replies with the whole new memory or the word UNCHANGED."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy

from memorybench.core.contracts import Completion, Model
from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, Malformed
from memorybench.core.extraction import MemoryInText, MemoryState
from memorybench.core.records import digest
from memorybench.core.trials import Subject
from memorybench.files.located import Document
from memorybench.files.templates import Template
from memorybench.text.sanitize import preview

from .config import ExtractorConfig
from .plugin import ExtractorType, OpenContext
from .states import dialogue, find_memory

VARIABLES = ("existingMemory", "conversation")
"""The variables of the prompt. A prompt must use both of them, and no others."""
UNCHANGED = "unchanged"

_FENCE = re.compile(r"```\w*\s*")
_UNFINISHED = {
    "length": "the reply was cut off",
    "filter": "the reply was filtered",
    "tools": "the model called a tool",
}


def parse_prompt(text: str, where: str) -> Template:
    prompt = Template.parse(text, VARIABLES, where)
    for name in VARIABLES:
        if name not in prompt.names:
            raise BadInput(where, f"the prompt does not contain ${{{name}}}", remedy="add it")
    return prompt


class ReferenceExtractor(ExtractorType):
    required_key = "prompt"
    keys = frozenset({"model", "prompt"})
    needs_model = True

    @classmethod
    def check_config(cls, config: ExtractorConfig, document: Document) -> None:
        parse_prompt(config.prompt or "", document.where("prompt"))

    @classmethod
    @asynccontextmanager
    async def open(cls, context: OpenContext) -> AsyncIterator[ReferenceExtractor]:
        prompt = parse_prompt(context.config.prompt or "", context.name)
        yield cls(await context.open_model(), prompt, context.name)

    def __init__(self, model: Model, prompt: Template, name: str) -> None:
        parts = digest([str(part) for part in prompt.parts])
        settings = {"type": "reference", "model": model.subject.plain(), "prompt": parts}
        self.subject = Subject(role="extractor", name=name, settings=settings)
        self._model = model
        self._prompt = prompt

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState | MemoryInText:
        values = {
            "existingMemory": json.dumps(existing, ensure_ascii=False, indent=2),
            "conversation": dialogue(conversation),
        }
        completion = await self._model.complete([Turn(role="user", content=self._prompt.render(values))])
        return self._read(completion, existing)

    def _read(self, completion: Completion, existing: MemoryState) -> MemoryState | MemoryInText:
        """Return the memory in a reply of the model, or a copy of `existing` if the reply is UNCHANGED.

        Raise Malformed if the reply is invalid; that counts as a failure of the model.
        """
        where = f"{self.subject.name}: {completion.model}"
        if completion.finish in _UNFINISHED:
            raise Malformed(f"{where}: {_UNFINISHED[completion.finish]} at {preview(completion.text[-60:])}")
        reply = _without_fence(completion.text.strip())
        if reply.strip("\"'`*. \n").casefold() == UNCHANGED:
            return deepcopy(existing)
        try:
            return find_memory(reply, where)
        except Malformed as malformed:
            raise Malformed(f"{malformed}; the reply was {preview(completion.text)}") from None


def _without_fence(text: str) -> str:
    """Return the content of a code block if the whole text is one, between ``` and ```; otherwise the text."""
    first, newline, rest = text.partition("\n")
    return rest[:-3].strip() if newline and rest.endswith("```") and _FENCE.fullmatch(first) else text
