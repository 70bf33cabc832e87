"""Checks names and ids that become file names, parts of URLs and keys."""

from __future__ import annotations

import re
from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview

_LONGEST = 64
_NAME = re.compile(r"[a-z0-9_-]{1,64}")
_TAG = re.compile(r"\w[\w.:/+=@-]{0,63}")
_RUN_ID = re.compile(r"(?!\.)(?!.*\.\.)[A-Za-z0-9._-]{1,64}")


def safe_name(text: str, where: str) -> str:
    """Return `text` if it is a valid name (lower-case letters, digits, hyphens, underscores); else raise BadInput."""
    expected = f"1 to {_LONGEST} of a-z 0-9 _ -"
    return _check(_NAME, text, where, "name", expected, _suggest(text.lower(), r"[^a-z0-9_-]+"))


def safe_run_id(text: str, where: str) -> str:
    """Return `text` if it is a valid run id, which is also the name of a folder; otherwise raise BadInput."""
    expected = f"1 to {_LONGEST} of A-Z a-z 0-9 . _ -, not beginning with a dot, without two dots together"
    remedy = _suggest(re.sub(r"\.\.+", ".", text).lstrip("."), r"[^A-Za-z0-9._-]+")
    return _check(_RUN_ID, text, where, "run id", expected, remedy)


def safe_tag(text: str, where: str) -> str:
    """Return `text` if it is a valid tag of a run, a single word without commas; otherwise raise BadInput."""
    expected = f"1 to {_LONGEST} letters, digits and . _ : / + = @ -, beginning with a letter or digit"
    return _check(_TAG, text, where, "tag", expected, _suggest(text, r"[^\w.:/+=@-]+"))


def inside(folder: Path, path: Path | str, where: str) -> Path:
    """Return the absolute path of `path`, which is relative to `folder`, with links followed.

    Raise BadInput if it is outside `folder`.
    """
    root = folder.resolve()
    try:
        resolved = (root / path).resolve()
    except (ValueError, OSError, RuntimeError):  # a NUL byte, a path that is too long, a loop of links
        resolved = None
    if resolved is None or not resolved.is_relative_to(root):
        raise BadInput(where, f"{preview(str(path))} is outside of {folder}", expected="a path inside that folder")
    return resolved


def _check(pattern: re.Pattern[str], text: str, where: str, kind: str, expected: str, remedy: str) -> str:
    if pattern.fullmatch(text):
        return text
    raise BadInput(where, f"{preview(text)} is not a valid {kind}", expected=expected, remedy=remedy)


def _suggest(text: str, forbidden: str) -> str:
    suggestion = re.sub(forbidden, "-", text).strip("-.")[:_LONGEST]
    return f'try "{suggestion}"' if suggestion else ""
