"""Detects credentials in a text by the format of known keys and by the words around them.

Planted secrets are found by canaries.py. This detector prefers misses to false alarms: a memory must not refuse "the
password policy".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import chain
from typing import Literal

from .credential_words import WordedKind, find_worded_credential
from .decoding import decodings

Kind = (
    Literal[
        "AWS access key", "GitHub token", "GitLab token", "model API key", "Slack token", "Stripe key",
        "Google API key", "package registry token", "service token", "JSON web token", "private key",
        "connection string with a password", "bearer token", "basic credentials",
    ]
    | WordedKind
)  # fmt: skip

_SHAPES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("AWS access key", re.compile(r"(?:AKIA|ASIA)[A-Z0-9]{16}")),
    ("GitHub token", re.compile(r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{22,}")),
    ("GitLab token", re.compile(r"glpat-[A-Za-z0-9_-]{20,}")),
    ("Stripe key", re.compile(r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}")),
    ("model API key", re.compile(r"(?<![A-Za-z0-9])sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}")),
    (
        "Slack token",
        re.compile(
            r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{20,}|hooks\.slack\.com/services/T\w+/B\w+/\w{16,}"
        ),
    ),
    ("Google API key", re.compile(r"AIza[A-Za-z0-9_-]{30,}|GOCSPX-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,}")),
    ("package registry token", re.compile(r"npm_[A-Za-z0-9]{36}|pypi-AgE[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{30,}")),
    (
        "service token",
        re.compile(
            r"SG\.[\w-]{16,}\.[\w-]{16,}|(?<!\d)\d{8,10}:AA[\w-]{32,}|dop_v1_[0-9a-f]{32,}|hvs\.[A-Za-z0-9]{24,}|"
            r"shp(?:at|ss)_[0-9a-fA-F]{32}|dapi[0-9a-f]{32}|lin_api_\w{32,}|gsk_\w{32,}|AGE-SECRET-KEY-1[A-Z0-9]{32,}"
        ),
    ),
    ("JSON web token", re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
    ("private key", re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")),
    (
        "connection string with a password",
        re.compile(r"(?<![a-z])[a-z][a-z0-9+]{1,20}://[^\s/:@]*:[^\s/@<${*\[][^\s/@]*@[\w.\[-]"),
    ),
    ("basic credentials", re.compile(r"(?i:authorization[\"']?\s*[:=]\s*[\"']?basic)\s+[A-Za-z0-9+/]{8,}")),
    ("bearer token", re.compile(r"(?i:\bbearer)\s+(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,}")),
)
"""Patterns by the prefix of a key, so that they also match decoded, reversed or joined text."""

_SPELLED_OUT = re.compile(r"(?:(?<=\s)|^)(?:[\w+/=-]{1,4}[ \t]){5,}[\w+/=-]{1,4}(?=\s|$|[.,;])")
_LONGEST_SPELLED_OUT = 64
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")


def credential_in(text: str) -> Kind | None:
    """Return the kind of credential in the text, or None."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    decoded = [decoding.text for decoding in decodings(text)]
    for one in decoded:
        kind = shape_in(one) or find_worded_credential(one)
        if kind is not None:
            return kind
    rearranged = chain(_spelled_out(text), *((one[::-1], one.swapcase()) for one in decoded))
    return next((kind for one in rearranged if (kind := shape_in(one)) is not None), None)


def _spelled_out(text: str) -> Iterator[str]:
    """Yield runs of short tokens without their blanks, such as a key spelled letter by letter."""
    for run in _SPELLED_OUT.findall(text):
        pieces = run.split()
        # ordinary short words may precede the key
        yield from ("".join(pieces[start : start + _LONGEST_SPELLED_OUT]) for start in range(len(pieces)))


def shape_in(text: str) -> Kind | None:
    """Return the kind of key whose format occurs in the text as it stands, or None."""
    return next((kind for kind, shape in _SHAPES if shape.search(text)), None)
