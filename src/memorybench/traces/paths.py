"""Finds the conversation, the existing memory and the output in a recorded run, by JSONPaths."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.core.extraction import Trace, UnusableTrace
from memorybench.files.jsonpaths import Path
from memorybench.text.sanitize import preview

from .messages import InvalidConversation, turns_of

OF_RUNS: Mapping[str, str] = {
    "id": "$.id",
    "conversation": "$.inputs.conversation | $.inputs.messages",
    "existing": "$.inputs.existing_memory",
    "output": "$.outputs.output | $.outputs.memory",
}
"""The default paths for runs of LangSmith."""
OF_FILES: Mapping[str, str] = {
    "id": "$.id",
    "conversation": f"$.conversation | $.messages | {OF_RUNS['conversation']}",
    "existing": f"$.existing_memory | {OF_RUNS['existing']}",
    "output": f"$.output | {OF_RUNS['output']}",
}
"""The default paths for lines of a file, which have plain keys such as `output`, or are exported runs of LangSmith."""

_WORDS = {"conversation": "conversation", "existing": "existing memory", "output": "output"}


class TracePaths(Struct, frozen=True):
    paths: Mapping[str, Path]
    """The path for each role: id, conversation, existing, output."""
    own: frozenset[str]
    """The roles whose path was set by the user."""

    @classmethod
    def of(cls, usual: Mapping[str, str], own: Mapping[str, str | None] | None = None) -> TracePaths:
        """Parse the path for each role: the one in `own`, which the user has set by an option, else that in `usual`."""
        overrides = {role: text for role, text in (own or {}).items() if text is not None}
        paths = {role: Path.parse(text, option(role)) for role, text in {**usual, **overrides}.items()}
        return cls(paths, frozenset(overrides))

    @property
    def texts(self) -> dict[str, str]:
        return {role: path.text for role, path in self.paths.items()}

    @property
    def roots(self) -> list[str]:
        """The top-level fields of a run that are needed for the paths, such as `inputs`."""
        begins = (route.steps[:1] for path in self.paths.values() for route in path.routes)
        return list(dict.fromkeys(step for steps in begins for step in steps if isinstance(step, str)))

    def trace(self, run: Mapping[str, Any], where: str) -> Trace:
        """Return the trace in a recorded run. Raise BadInput if a value in the run is invalid.

        If the conversation or the output is missing, return an UnusableTrace. The existing memory may be missing,
        unless the user has set its path.
        """
        id = self._id(run, where)
        values: dict[str, Any] = {}
        for role, word in _WORDS.items():
            matches = self.paths[role].all(run)
            if role != "existing":
                matches = [match for match in matches if match is not None]
            if not matches and (role != "existing" or role in self.own):
                error = run.get("error")
                cause = f"; the run ended with an error: {preview(error)}" if isinstance(error, str) and error else ""
                problem = f"{where}: {self.paths[role].text}: no {word} found{cause}"
                return UnusableTrace(id=id, conversation=(), problem=problem, missing=option(role))
            # a path such as `$.inputs.messages[*]` has many matches
            values[role] = matches[0] if len(matches) == 1 else matches or None
        try:
            turns = turns_of(values["conversation"])
        except InvalidConversation as error:
            path = self.paths["conversation"].text
            raise BadInput(f"{where}: {path}", str(error), expected=error.expected) from None
        return Trace(
            id=id,
            conversation=turns,
            existing=values["existing"],
            output=values["output"],
            at=instant(run.get("start_time"), where),
        )

    def judgeable(self, run: Mapping[str, Any], where: str) -> Trace:
        """Return the trace in a recorded run. Unlike `trace`, raise BadInput if the trace is unusable."""
        trace = self.trace(run, where)
        if isinstance(trace, UnusableTrace):
            raise BadInput("", trace.problem, remedy=f"set {trace.missing}")
        return trace

    def _id(self, run: Mapping[str, Any], where: str) -> str:
        path = self.paths["id"]
        id = path.first(run)
        if isinstance(id, bool) or not isinstance(id, str | int) or not str(id).strip():
            raise BadInput(
                f"{where}: {path.text}",
                f"invalid id {preview(id)}",
                expected="a text or a number",
                remedy="choose another --id-path",
            )
        return str(id)


def option(role: str) -> str:
    return f"--{role}-path"


def instant(value: Any, where: str) -> datetime | None:
    """Parse the start time of a trace; None for None. Raise BadInput if it is not an ISO 8601 date and time."""
    if value is None:
        return None
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise BadInput(
            f"{where}: start_time", f"invalid time {preview(value)}", expected="an ISO 8601 date and time"
        ) from None
