"""The checks of `doctor`: which packages, keys and programs are present, and what needs each of them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator

from memorybench import __version__
from memorybench.core.records import Record

from .environment import environment

_KEYS = (
    ("OPENAI_API_KEY", "models such as gpt-4o", "…"),
    ("ANTHROPIC_API_KEY", "models named anthropic/…", "…"),
    ("OPENROUTER_API_KEY", "models named openrouter/…", "…"),
    ("GEMINI_API_KEY", "models named google/…", "…"),
    ("OPENAI_BASE_URL", "another OpenAI-compatible server", "http://localhost:8000/v1"),
)
"""Environment variables: name, what needs it, and an example of its value."""
_LONGEST_WAIT = 10.0
_DEPENDENCIES = ("aiohttp", "genai-prices", "numpy", "pydantic", "python-jsonpath", "PyYAML", "rich", "scipy")


class Finding(Record):
    """The result of one check of `doctor`."""

    area: str
    name: str
    found: bool
    detail: str = ""
    needed: bool = False
    """Whether memorybench needs this in any case; otherwise only some commands or providers do."""
    remedy: str = ""


def examine() -> list[Finding]:
    return [*_parts(), *_keys(), *_programs()]


def _parts() -> Iterator[Finding]:
    yield Finding(area="parts", name="memorybench", found=True, detail=__version__)
    version = platform.python_version()
    yield Finding(
        area="parts",
        name="Python",
        found=sys.version_info >= (3, 11),
        needed=True,
        detail=f"{version} on {platform.machine()}",
        remedy="install Python 3.11 or newer",
    )
    yield Finding(
        area="parts",
        name="SQLite with FTS5",
        found=_has_fts5(),
        needed=True,
        detail=sqlite3.sqlite_version,
        remedy="use a Python whose sqlite3 module has FTS5, as those of python.org and most distributions do",
    )
    for name in _DEPENDENCIES:
        yield _package(name, needed=True, remedy="pip install --force-reinstall memorybench")
    yield _package("wordllama", needed=False, remedy='for dense and hybrid: pip install "memorybench[embed]"')


def _keys() -> Iterator[Finding]:
    for variable, purpose, example in _KEYS:
        found = bool(environment().get(variable))
        yield Finding(
            area="keys",
            name=variable,
            found=found,
            detail="set" if found else "not set",
            remedy=f"for {purpose}: export {variable}={example}",
        )


def _programs() -> Iterator[Finding]:
    for name, purpose in (("docker", "providers that run in a container"), ("node", "MCP servers from npm")):
        path = shutil.which(name)
        has_daemon = path is None or name != "docker" or _answers(path, "version", "--format", "{{.Server.Version}}")
        yield Finding(
            area="programs",
            name=name,
            found=path is not None and has_daemon,
            detail="not found" if path is None else "found" if has_daemon else "found, but its daemon does not answer",
            remedy=f"for {purpose}: {'install' if path is None else 'start'} {name}",
        )


def _answers(*command: str) -> bool:
    """Return whether a program exits with code 0 within 10 seconds."""
    try:
        return subprocess.run(command, capture_output=True, timeout=_LONGEST_WAIT, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _package(name: str, *, needed: bool, remedy: str) -> Finding:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(area="parts", name=name, found=False, needed=needed, detail="not installed", remedy=remedy)
    return Finding(area="parts", name=name, found=True, needed=needed, detail=version)


def _has_fts5() -> bool:
    with sqlite3.connect(":memory:") as db:
        options = {name for (name,) in db.execute("PRAGMA compile_options")}
    db.close()
    return "ENABLE_FTS5" in options
