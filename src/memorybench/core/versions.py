"""Which versions a run is made with."""

from __future__ import annotations

import platform
import re
from importlib import metadata


def installed_versions() -> dict[str, str]:
    """The versions of Python, the operating system, and the packages that memorybench depends on."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for requirement in metadata.requires("memorybench") or ():
        if re.search(r"""extra == ["'](dev|docs)""", requirement):
            continue
        name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # of an extra that is not installed
    return found
