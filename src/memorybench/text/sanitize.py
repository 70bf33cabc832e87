"""Makes text from outside safe for terminals, messages and spreadsheets."""

from __future__ import annotations

import json
import re
from typing import Any

# A string sequence ends at the next escape, so that matching stays linear, and at the end of its line, so that an
# unterminated sequence does not remove the following lines.
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # titles, links, device strings
    r"|\x1b[ -/]*[0-~]"  # other escape sequences of two or three characters
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
EXCERPT = 300
"""Maximum number of characters of another program's output that an error message quotes."""
PLAIN = str.maketrans(
    {"–": "-", "—": "-", "…": "...", "×": "x", "→": "->", "≥": ">=", "≤": "<=", "✓": "+", "✗": "-", "±": "+/-"}
)
"""Replacements for characters that a terminal's encoding, such as ASCII, does not have."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def sanitize(text: str) -> str:
    """Remove control characters, ANSI sequences and bidi overrides from `text`; newline and tab stay.

    A lone surrogate becomes the replacement character.
    """
    if text.isprintable():  # contains none of them
        return text
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", _CONTROLS.sub("", _SEQUENCES.sub("", text)))


def escape_json(text: str) -> str:
    """Return equivalent JSON text in which control characters and bidi overrides inside strings are escaped."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def preview(value: Any, longest: int = 60) -> str:
    """Return a value as JSON for a message: one line of at most `longest` characters."""
    # JSON already escapes control characters; sanitize removes bidi overrides
    text = sanitize(json.dumps(value, ensure_ascii=False, default=str))
    return shorten(text, longest)


def csv_safe(cell: str) -> str:
    """Return the text of a CSV cell, with a ' before it if a spreadsheet would read it as a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def printable(text: str) -> str:
    """Return `text` on one line, without control characters and direction marks."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def shorten(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters: the beginning of the text, and … instead of the rest."""
    return text if len(text) <= longest else text[: longest - 1] + "…"
