"""Reads memories from the reply to a search or listing. A reply that does not match the config raises Malformed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from memorybench.core.conversation import Memory
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.http.replies import Reply
from memorybench.providers.config.requests import Response

from .requests import parse_path, redact

FindSources = Callable[[str], Sequence[str]]
"""A function that returns the benchmark's ids of sessions and turns for an id in a result; none for an unknown id."""
_PARTIAL_CONTENT = 206
_FIELDS = ("content", "score", "id", "sources", "date", "chunks")


class ResponseTemplate(Struct, frozen=True):
    results: Path | None
    """The path to the results; None if the fields are parallel arrays."""
    fields: Mapping[str, Path]
    """Paths of `content`, `score`, `id`, `sources`, `date` and `chunks`."""
    direction: str

    @classmethod
    def parse(cls, part: Document, response: Response) -> ResponseTemplate:
        section, suffix = (response, "_field") if response.zip is None else (response.zip, "")
        fields_at = part if response.zip is None else part.at("zip")
        paths = {
            name: parse_path(getattr(section, name + suffix, None), fields_at.where(name + suffix)) for name in _FIELDS
        }
        return cls(
            results=parse_path(response.results, part.where("results")) if response.zip is None else None,
            fields={name: path for name, path in paths.items() if path is not None},
            direction=response.score_direction,
        )

    def memories(self, reply: Reply, limit: int | None, find_sources: FindSources) -> list[Memory]:
        """Return at most `limit` memories (None: all), best first; equal scores keep the order of the reply.

        If any result has no score, all memories keep the order of the reply.
        """
        return self.best(self.whole(reply), limit, find_sources)

    def whole(self, reply: Reply) -> list[tuple[Reply, Any]]:
        """Return the pair (reply, result) for each result. Raise Malformed if the reply is incomplete (HTTP 206)."""
        if reply.status == _PARTIAL_CONTENT:
            raise reply.malformed(
                f"HTTP {_PARTIAL_CONTENT}: the reply has only a part of the results; add pages to the endpoint"
            )
        return [(reply, result) for result in self.read_results(reply)]

    def read_results(self, reply: Reply) -> Sequence[Any]:
        """Return the results of a reply as JSON values, in the order of the reply."""
        data = reply.json()
        return self._read_arrays(reply, data) if self.results is None else self._read_results(reply, data)

    def best(self, results: Sequence[tuple[Reply, Any]], limit: int | None, find_sources: FindSources) -> list[Memory]:
        """Return the best `limit` memories among the results of one or more replies, in the order of `memories`."""
        scores = [self._score(reply, result) for reply, result in results]
        places = list(range(len(results)))
        if None not in scores:
            places.sort(key=lambda place: -(scores[place] or 0.0))
        best = places[:limit]
        memories = [self._memory(*results[place], scores[place], place, find_sources) for place in best]
        if limit is not None and best and all(self._is_blank(results[place][1]) for place in best):
            # probably another field has the texts; a listing may contain one memory that is blank
            raise results[0][0].malformed(
                f"the texts of all results at {self.fields['content'].text} are blank; correct contentField"
            )
        return memories

    def distinct(self, results: Sequence[tuple[Reply, Any]]) -> list[tuple[Reply, Any]]:
        """Return the results; of several with the same id and the same text, only the first.

        All results with the same id but different texts are returned, because they are passages of one document.
        """
        found: dict[Any, tuple[Reply, Any]] = {}
        for place, (reply, result) in enumerate(results):
            id = self.id_of(result)
            found.setdefault(place if id is None else (str(id), str(self._values("content", result))), (reply, result))
        return list(found.values())

    def id_of(self, result: Any) -> Any:
        """Return the id that a result has in the reply; None if the result has no id."""
        return next(iter(self._values("id", result)), None)

    def _read_results(self, reply: Reply, data: Any) -> Sequence[Any]:
        assert self.results is not None
        matches = self.results.all(data)
        if self.results.singular:
            if not matches or not isinstance(matches[0], list):
                raise reply.malformed(f"the reply has no list of results at {self.results.text}")
            return matches[0]
        if not matches and not any(_exists(route.steps, data) for route in self.results.routes):
            raise reply.malformed(f"the reply has no results at {self.results.text}")
        return matches

    def _read_arrays(self, reply: Reply, data: Any) -> Sequence[Any]:
        columns = {name: path.first(data) for name, path in self.fields.items()}
        columns = {name: column for name, column in columns.items() if column is not None or name == "content"}
        content = self.fields["content"].text
        for name, column in columns.items():
            if not isinstance(column, list):
                raise reply.malformed(f"the reply has no list at {self.fields[name].text}")
            if len(column) != len(columns["content"]):
                raise reply.malformed(f"the lists at {content} and {self.fields[name].text} differ in length")
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _values(self, name: str, result: Any) -> list[Any]:
        if self.results is None:
            return [result[name]] if name in result else []
        path = self.fields.get(name)
        return path.all(result) if path is not None else []

    def _single(self, name: str, reply: Reply, result: Any) -> Any:
        """Return the value of a field; None if the result has none. Raise Malformed if it has several."""
        values = self._values(name, result)
        if len(values) > 1:
            raise reply.malformed(f"a result has {len(values)} values at {self.fields[name].text}; expected one")
        return values[0] if values else None

    def _is_blank(self, result: Any) -> bool:
        texts = (*self._values("content", result), *_flatten(self._values("chunks", result)))
        return not any(str(text).strip() for text in texts)

    def _content(self, reply: Reply, result: Any, place: int) -> str:
        """Return the text of a result. Several texts, such as those of its parts, are joined as lines."""
        texts = self._values("content", result)
        if not texts or not all(isinstance(text, str) for text in texts):
            raise reply.malformed(f"result {place + 1} has no text at {self.fields['content'].text}")
        return "\n".join(texts)

    def _score(self, reply: Reply, result: Any) -> float | None:
        score = self._single("score", reply, result)
        if score is None or self.direction == "none":
            return None
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise reply.malformed(f"invalid score at {self.fields['score'].text}; expected a number")
        return -float(score) if self.direction == "lower" else float(score)

    def _memory(self, reply: Reply, result: Any, score: float | None, place: int, find_sources: FindSources) -> Memory:
        content = self._content(reply, result, place)
        date, id = (self._single(name, reply, result) for name in ("date", "id"))
        chunks = _flatten(self._values("chunks", result))
        if not all(isinstance(chunk, str) for chunk in chunks):
            raise reply.malformed(
                f"result {place + 1} has an invalid chunk at {self.fields['chunks'].text}; expected text"
            )
        # a memory without text cannot answer a question, so it does not count as a hit
        named = [] if self._is_blank(result) else _flatten(self._values("sources", result))
        ids = [redact(str(value), reply) for value in named]
        return Memory(
            id=f"result {place + 1}" if id is None else redact(str(id), reply),
            content=redact(content if date is None else f"[{date}] {content}", reply),
            score=score,
            sources=tuple(dict.fromkeys(source for id in ids for source in find_sources(id))) or None,
            chunks=tuple(redact(chunk, reply) for chunk in chunks),
        )


def _exists(steps: Sequence[str | int], value: Any) -> bool:
    """Return whether there is a list or an object in `value` at the place that the steps of a path lead to.

    If there is, the reply has the form that the config describes, and merely contains no results.
    """
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    return isinstance(value, list | dict)


def _flatten(matches: Sequence[Any]) -> list[Any]:
    values = (value for match in matches for value in (match if isinstance(match, list) else [match]))
    return [value for value in values if value is not None]
