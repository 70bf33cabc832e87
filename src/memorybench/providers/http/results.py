"""Reads memories from a reply. A reply that does not match the config is an error, so that it is never scored."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memorybench.core.conversation import Memory
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.http.replies import Reply
from memorybench.providers.config.requests import Response, Zip

from .requests import foreign, parsed

Whence = Callable[[str], Sequence[str]]
"""Translates an id in a result to the ids of sessions and turns."""
_FIELDS = ("content", "score", "id", "sources", "date", "chunks")


@dataclass(frozen=True, slots=True)
class ResponseTemplate:
    results: Path | None
    """None if the fields are parallel arrays."""
    fields: Mapping[str, Path]
    """Paths of `content`, `score`, `id`, `sources`, `date` and `chunks`."""
    direction: str

    @classmethod
    def parse(cls, part: Document, response: Response) -> ResponseTemplate:
        if response.zip is not None:
            return cls(None, _fields(part.at("zip"), response.zip, ""), response.score_direction)
        results = parsed(response.results, part.where("results"))
        return cls(results, _fields(part, response, "_field"), response.score_direction)

    def memories(self, reply: Reply, limit: int | None, whence: Whence) -> list[Memory]:
        """Return the best `limit` memories, best first."""
        data = reply.json()
        results = self._zipped(reply, data) if self.results is None else self._listed(reply, data)
        scores = [self._score(reply, result) for result in results]
        best = _ranking(scores)[:limit]
        return [self._memory(reply, results[place], scores[place], place, whence) for place in best]

    def _listed(self, reply: Reply, data: Any) -> Sequence[Any]:
        assert self.results is not None
        found = self.results.all(data)
        if self.results.singular:
            if not found or not isinstance(found[0], list):
                raise reply.malformed(f"no list of results at {self.results.text}")
            return found[0]
        if not found and not any(_leads_somewhere(route.steps, data) for route in self.results.routes):
            raise reply.malformed(f"no results at {self.results.text}")
        return found

    def _zipped(self, reply: Reply, data: Any) -> Sequence[Any]:
        columns = {name: path.first(data) for name, path in self.fields.items()}
        columns = {name: column for name, column in columns.items() if column is not None or name == "content"}
        for name, column in columns.items():
            if not isinstance(column, list):
                raise reply.malformed(f"no list at {self.fields[name].text}")
            if len(column) != len(columns["content"]):
                raise reply.malformed(f"the lists at {self.fields['content'].text} and {self.fields[name].text} differ")
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _field(self, name: str, result: Any) -> list[Any]:
        if self.results is None:
            return [result[name]] if name in result else []
        path = self.fields.get(name)
        return path.all(result) if path is not None else []

    def _score(self, reply: Reply, result: Any) -> float | None:
        score = next(iter(self._field("score", result)), None)
        if score is None or self.direction == "none":
            return None
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise reply.malformed(f"the score at {self.fields['score'].text} is no number")
        return -float(score) if self.direction == "lower" else float(score)

    def _memory(self, reply: Reply, result: Any, score: float | None, place: int, whence: Whence) -> Memory:
        content = next(iter(self._field("content", result)), None)
        if not isinstance(content, str):
            raise reply.malformed(f"result {place + 1} has no text at {self.fields['content'].text}")
        date = next(iter(self._field("date", result)), None)
        id = next(iter(self._field("id", result)), None)
        named = _flat(self._field("sources", result))
        chunks = _flat(self._field("chunks", result))
        if not all(isinstance(chunk, str) for chunk in chunks):
            raise reply.malformed(f"{self.fields['chunks'].text} finds something else than text")
        return Memory(
            id=f"result {place + 1}" if id is None else foreign(str(id), reply),
            content=foreign(content if date is None else f"[{date}] {content}", reply),
            score=score,
            sources=tuple(dict.fromkeys(source for one in named for source in whence(foreign(str(one), reply))))
            or None,
            chunks=tuple(foreign(chunk, reply) for chunk in chunks),
        )


def _fields(part: Document, told: Response | Zip, ending: str) -> dict[str, Path]:
    paths = {name: parsed(getattr(told, name + ending, None), part.where(name + ending)) for name in _FIELDS}
    return {name: path for name, path in paths.items() if path is not None}


def _ranking(scores: Sequence[float | None]) -> list[int]:
    """Return the positions, best first; ties, and results without scores, in the order of the reply."""
    if any(score is None for score in scores):
        return list(range(len(scores)))
    return sorted(range(len(scores)), key=lambda place: -(scores[place] or 0.0))


def _leads_somewhere(steps: Sequence[str | int], value: Any) -> bool:
    """Return whether the first steps of a path exist, so that a missing match means an empty list."""
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    return isinstance(value, list | dict)


def _flat(found: Sequence[Any]) -> list[Any]:
    return [one for match in found for one in (match if isinstance(match, list) else [match]) if one is not None]
