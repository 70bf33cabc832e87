"""Where a run keeps its conversation, its existing memory and its output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.core.extraction import Trace
from memorybench.files.jsonpaths import Path
from memorybench.text.sanitize import preview

from .messages import Misshapen, turns_of

OF_RUNS: Mapping[str, str] = {
    "id": "$.id",
    "conversation": "$.inputs.conversation | $.inputs.messages",
    "existing": "$.inputs.existing_memory",
    "output": "$.outputs.output | $.outputs.memory",
}
"""Where a LangSmith run has them, unless told otherwise."""
OF_FILES: Mapping[str, str] = {
    "id": "$.id",
    "conversation": f"$.conversation | $.messages | {OF_RUNS['conversation']}",
    "existing": f"$.existing_memory | {OF_RUNS['existing']}",
    "output": f"$.output | {OF_RUNS['output']}",
}
"""Where a line of a file has them: plainly, or as an exported run."""

NOTHING_SET: Mapping[str, str | None] = MappingProxyType({})
_WORDS = {"conversation": "conversation", "existing": "existing memory", "output": "output"}


class Unfound(Trace):
    """A trace that can not be judged, and why. It counts as failed; the others go on."""

    problem: str
    missing: str = ""
    """The option whose path finds nothing here; "": what it finds is misshapen."""


@dataclass(frozen=True, slots=True)
class TracePaths:
    paths: Mapping[str, Path]
    """By role: id, conversation, existing, output."""
    own: frozenset[str]
    """Those that the user has set."""

    @classmethod
    def of(cls, usual: Mapping[str, str], own: Mapping[str, str | None] = NOTHING_SET) -> TracePaths:
        """`usual` where the user set nothing else; `own` by role, as `--conversation-path` and its kin say."""
        given = {role: text for role, text in own.items() if text is not None}
        paths = {role: Path.parse(text, option(role)) for role, text in {**usual, **given}.items()}
        return cls(paths, frozenset(given))

    @property
    def texts(self) -> dict[str, str]:
        return {role: path.text for role, path in self.paths.items()}

    @property
    def roots(self) -> list[str]:
        """The fields of a run that the paths begin with."""
        begins = (route.steps[:1] for path in self.paths.values() for route in path.routes)
        return list(dict.fromkeys(step for steps in begins for step in steps if isinstance(step, str)))

    def trace(self, run: Mapping[str, Any], where: str) -> Trace:
        """What the paths find. An Unfound where conversation or output are not there; BadInput where what is there
        is misshapen.

        Without a path of the user's own, a run that has no existing memory began with none.
        """
        id = self._id(run, where)
        found = {role: self._found(role, run) for role in _WORDS}
        for role, matches in found.items():
            if not matches and (role != "existing" or role in self.own):
                return Unfound(id=id, conversation=(), problem=self._missing(role, run, where), missing=option(role))
        try:
            turns = turns_of(_single(found["conversation"]))
        except Misshapen as error:
            path = self.paths["conversation"].text
            raise BadInput(f"{where}: {path}", str(error), expected=error.expected) from None
        return Trace(
            id=id,
            conversation=turns,
            existing=_single(found["existing"]),
            output=_single(found["output"]),
            at=_instant(run.get("start_time"), where),
        )

    def judgeable(self, run: Mapping[str, Any], where: str) -> Trace:
        """As `trace`, where nothing can go on without it: an Unfound, too, is BadInput."""
        trace = self.trace(run, where)
        if isinstance(trace, Unfound):
            raise BadInput("", trace.problem, remedy=f"set {trace.missing}")
        return trace

    def _id(self, run: Mapping[str, Any], where: str) -> str:
        path = self.paths["id"]
        id = path.first(run)
        if isinstance(id, bool) or not isinstance(id, str | int) or not str(id).strip():
            raise BadInput(
                f"{where}: {path.text}", f"the id is {preview(id)}", expected="text", remedy="choose another --id-path"
            )
        return str(id)

    def _found(self, role: str, run: Mapping[str, Any]) -> list[Any]:
        """All matches; for conversation and output only those that hold something."""
        found = self.paths[role].all(run)
        return found if role == "existing" else [one for one in found if one is not None]

    def _missing(self, role: str, run: Mapping[str, Any], where: str) -> str:
        path = self.paths[role].text
        failed = run.get("error")
        why = f"; the run ended in an error: {preview(failed)}" if isinstance(failed, str) and failed else ""
        return f"{where}: {path} finds no {_WORDS[role]}{why}"


def option(role: str) -> str:
    return f"--{role}-path"


def _single(found: list[Any]) -> Any:
    """The match of a path, or all of a path that has many, such as `$.inputs.messages[*]`."""
    return found[0] if len(found) == 1 else found or None


def _instant(value: Any, where: str) -> datetime | None:
    if value is None:
        return None
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise BadInput(f"{where}: start_time", f"is {preview(value)}", expected="an ISO 8601 date and time") from None
