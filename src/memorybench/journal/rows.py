"""Classes for rows of the journal's tables, and fingerprints of what a run depends on."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import Field

from memorybench.core.records import JsonTextHasher, Record, array_parts
from memorybench.core.spending import NOTHING, Spending

RunStatus = Literal["running", "complete", "partial", "blocked"]

_PROSE = frozenset({"description", "display_name", "tags", "paper", "checked_against"})
"""Keys of a config that are only information for people, so that a change of them changes no result."""
_TEMPLATES = frozenset({"body", "document", "message"})
"""Keys of a config whose value is a template that is sent, in which null and empty values have a meaning."""
CODE = "code of "
"""How a line of a fingerprint begins that has the digest of a user's Python module. Older runs have no such lines."""
LATER_MARKS = ("judge prompts", "probe prompts")
"""Names of fingerprints that runs of earlier versions lack. If only one of two runs has one, that is not a change."""
TRIED_AGAIN = "tried again up to row"
"""The kind of a note that a resumed run has. Its text is a row number of the table `outcomes`: trials whose outcome is
in this row or before, and not scored, are performed again.

All processes of the run read the note, so that they perform the same trials again. Reports do not show it.
"""
HIGHEST_COST = "highest cost of "
"""How the kind of another note begins; the name and subject of a step follow. The text of the note is the maximum cost
of one call of this step, in US dollars.

The budget counts this cost for a lost call if no call with this name and subject has a known cost. Reports do not show
the note.
"""


class Fingerprint(Record):
    """The digest of something that a run depends on, such as a config.

    `text` is its content, to show what has changed; None if it is longer than 100,000 characters.
    """

    digest: str
    text: str | None = None

    @classmethod
    def of(cls, text: str) -> "Fingerprint":
        return cls.of_parts([text])

    @classmethod
    def of_parts(cls, parts: Iterable[str]) -> "Fingerprint":
        """Return the fingerprint of a text that is given in parts, which are read one at a time to save memory."""
        hasher, kept, size = JsonTextHasher(), [], 0
        for part in parts:
            hasher.add(part)
            size += len(part)
            if size <= _LONGEST_TEXT:
                kept.append(part)
        return cls(digest=hasher.digest(), text="".join(kept) if size <= _LONGEST_TEXT else None)

    @classmethod
    def of_list(cls, values: Iterable[Any]) -> "Fingerprint":
        """Return the fingerprint of the canonical JSON of a list with these values."""
        return cls.of_parts(array_parts(values))


_LONGEST_TEXT = 100_000


class Run(Record):
    id: str
    suite: str
    spec: Mapping[str, Any]
    fingerprints: Mapping[str, Fingerprint] = Field(default_factory=dict)
    program: str = ""
    planned: int = 0
    status: RunStatus = "running"
    created: str = ""
    finished: str | None = None


class Step(NamedTuple):
    """One recorded step. Not a Record, because validating so many would take too long."""

    key: str
    name: str
    subject: str
    inputs: str
    result: str
    started: str
    seconds: float
    tries: int = 1
    uncertain: int = 0
    spent: Spending = NOTHING
    reused_from: str | None = None
    attempt: int | None = None
    """The id of the attempt that performed the step; None if the step is not `paid`, or was reused."""
    shared: bool = False
    """Whether any run of the results folder may reuse the step."""


def storable(text: str) -> str:
    """Escape lone surrogates, which UTF-8 cannot encode, and NUL, which Postgres cannot store; return the text."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def config_text(config: Mapping[str, Any]) -> str:
    """Return a config as text for its fingerprint, with one line per value, so that a diff shows each changed value.

    Keys that are only information for people are left out. So are keys without a value, so that a later version,
    which may have more keys, can resume the run.
    """
    material = {key: value for key, value in config.items() if key not in _PROSE}
    return json.dumps(_without_empty(material), indent=1, sort_keys=True, ensure_ascii=False)


def _without_empty(config: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for key, value in config.items():
        if isinstance(value, dict) and key not in _TEMPLATES:
            value = _without_empty(value)
        elif isinstance(value, list) and key not in _TEMPLATES:
            value = [_without_empty(item) if isinstance(item, dict) else item for item in value]
        if value is not None and value != {} and value != []:
            kept[key] = value
    return kept


def _current_form(text: str) -> str:
    """Return the text of a fingerprint as `config_text` would write it now; earlier versions included more keys.

    A text that is not a config is returned unchanged.
    """
    if not text.startswith("{\n"):
        return text
    try:
        config, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return text
    rest = text[end:].removeprefix("\n")
    return f"{config_text(config)}\n{_current_form(rest)}" if rest else config_text(config)


def differences(old: Mapping[str, Fingerprint], new: Mapping[str, Fingerprint]) -> list[str]:
    """Return one text for each fingerprint that was added, removed or changed in a way that matters."""
    lines = []
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            if name in LATER_MARKS:
                continue
            lines.append(f"{name} was {'added' if before is None else 'removed'}")
        elif before.digest != after.digest:
            change = _describe_change(before, after)
            lines += [f"{name} changed: {change}"] if change else []
    return lines


def changed_lines(before: Fingerprint, after: Fingerprint) -> tuple[list[str], list[str]]:
    """Return the lines that only `before` has, and the lines that only `after` has.

    If a text is unknown, these are the beginnings of the digests. Both lists are empty if the texts differ only in keys
    that `config_text` leaves out.
    """
    if before.digest != after.digest and (before.text is None or after.text is None):
        return [before.digest[:12]], [after.digest[:12]]
    diff = _diff(before.text or "", after.text or "")
    return [line[1:] for line in diff if line[0] == "-"], [line[1:] for line in diff if line[0] == "+"]


def _describe_change(before: Fingerprint, after: Fingerprint) -> str:
    """Return the first lines that differ, as one text; "" if only keys differ that `config_text` leaves out."""
    if before.text is None or after.text is None:
        return f"was {before.digest[:12]}, is {after.digest[:12]}"
    new = after.text
    if f"\n{CODE}" not in before.text:
        new = "\n".join(line for line in new.split("\n") if not line.startswith(CODE))
    if _current_form(before.text) == _current_form(new):
        return ""
    lines = _diff(before.text, new)
    short = [line if len(line) <= 120 else line[:119] + "…" for line in lines[:4]]
    return (" ".join(short) + (" …" if len(lines) > 4 else "")) or "white space differs"


def _diff(before: str, after: str) -> list[str]:
    """Return the lines that differ, each with a leading - (only in `before`) or + (only in `after`)."""
    from difflib import unified_diff

    old, new = _current_form(before).splitlines(), _current_form(after).splitlines()
    diff = unified_diff(old, new, lineterm="", n=0)
    return [line for line in diff if not line.startswith(("---", "+++", "@@"))]
