"""Tells the redactor which credentials configs use, so that it removes them from output."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from memorybench.catalog.uses import uses_of
from memorybench.core.errors import BadInput
from memorybench.providers.storage.paths import find_file
from memorybench.secrets.redaction import SHORTEST

from .environment import environment, is_secret_name, redactor

if TYPE_CHECKING:
    from memorybench.core.records import Record
    from memorybench.core.uses import Use

ENV_FILE = ".env"
_LONGEST_ENV_FILE = 2**20
_ASSIGNMENT = re.compile(r"""^\s*(?:export\s+)?(\w+)\s*=\s*(?:"(.*?)"|'(.*?)'|(.*?))\s*(?:\s#.*)?$""", re.MULTILINE)
_SETTINGS = (
    "URL", "URI", "HOST", "PORT", "MODEL", "NAME", "PATH", "DIR", "FOLDER", "HOME", "LEVEL", "MODE", "VERSION", "IMAGE",
    "TAG", "USER", "DB", "DATABASE", "REGION", "FILE", "TYPE", "PROVIDER", "ENDPOINT", "PROJECT",
)  # fmt: skip
"""Last words of variable names, such as URL in `MY_URL`, whose values are usually not secret and are not redacted."""


def learn_secrets(config: Record, file: Path | None) -> None:
    """Redact the credentials of a config in all later output. The config must still contain variable names, not values.

    Credentials are the values of the variables of its `auth`, headers, embedder, model and database, of variables that
    are named like secrets, and in the `.env` file of its containers.
    """
    uses = uses_of(config, file, environment())
    names = [use.value for use in uses.credentials]
    names += [use.value for use in uses.other_variables if _is_credential(use)]
    for name in dict.fromkeys(names):
        value = environment().get(name) or ""
        if 0 < len(value.strip()) < SHORTEST:
            _warn(name)
        redactor().add(value)
    docker = getattr(config, "docker", None)
    if docker is not None:
        try:
            folder = find_file(docker.compose, file, "").parent
        except BadInput:
            return  # a missing compose file raises when it is needed
        redactor().add(*(value for name, value in _assignments(folder / ENV_FILE) if not _is_setting(name, value)))
    # of `.env` in the working folder, only values that were exported count
    for name, value in _assignments(Path(ENV_FILE)):
        if environment().get(name) == value and not _is_setting(name, value):
            redactor().add(value)


def _is_credential(use: Use) -> bool:
    keys = use.key.split(".")
    if "headers" in keys or is_secret_name(use.value) or is_secret_name(re.sub(r"(?=[A-Z])", "_", keys[-1])):
        return True
    return "env" in keys and not _is_setting(use.value, environment().get(use.value, ""))


def _is_setting(name: str, value: str) -> bool:
    if is_secret_name(name) or ("://" in value and "@" in value):
        return False
    is_plain = value.startswith(("http://", "https://", "/", "./")) or value.replace(".", "").isdecimal()
    return is_plain or name.upper().split("_")[-1] in _SETTINGS


def _assignments(file: Path) -> Iterator[tuple[str, str]]:
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            text = lines.read(_LONGEST_ENV_FILE)
    except OSError:
        return
    for name, *values in _ASSIGNMENT.findall(text):
        yield name, "".join(values)


@cache  # one warning per variable
def _warn(name: str) -> None:
    print(
        f"memorybench: {name}: shorter than {SHORTEST} characters; it cannot be redacted without damaging results,"
        " and may be visible in them; use a longer key",
        file=sys.stderr,
    )
