"""Text of others on its way to a terminal, a message or a spreadsheet."""

from __future__ import annotations

import json
import re
from typing import Any

# Each string sequence stops at the next escape, so that a text full of openings is still read in one pass, and at the
# end of its line: an opening must not take away what the next lines say.
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # titles, links, device strings
    r"|\x1b[ -/]*[0-~]"  # everything else that two or three characters can do
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
EXCERPT = 300
"""Characters of another program's output that an error message quotes."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def sanitize(text: str) -> str:
    """`text` without control characters, ANSI sequences and bidi overrides; newline and tab stay.

    A lone surrogate, which no terminal can be sent, becomes the replacement character.
    """
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", _CONTROLS.sub("", _SEQUENCES.sub("", text)))


def preview(value: Any, longest: int = 60) -> str:
    """A value of others as it stands in a message: JSON, one line, cut."""
    # escapes of JSON already disarm control characters; cleaning is left for bidi overrides
    text = sanitize(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def csv_safe(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def printable(text: str) -> str:
    """`text` on one line, without control characters and direction marks."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
