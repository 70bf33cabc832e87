"""What `list` tells about one name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memorybench.core.errors import BadInput

Kind = Literal["provider", "baseline", "benchmark", "extractor", "store", "agent", "metric", "unknown"]
"""`unknown`: a file in a folder of the user's that is none of these."""

BUNDLED = "bundled"


@dataclass(frozen=True, slots=True)
class Entry:
    kind: Kind
    name: str
    display_name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    origin: str = BUNDLED
    """`bundled`, the path of a file, or the name and version of an installed package."""
    file: Path | None = None
    """Paths inside a config are taken from the folder of this file."""
    broken: BadInput | None = None
    """Why it can not be chosen."""

    @property
    def family(self) -> Kind:
        """Baselines are named where providers are: they share their names."""
        return "provider" if self.kind == "baseline" else self.kind


BASELINES = (
    Entry("baseline", "none", "No memory", "remembers nothing: what the model knows by itself", ("baseline",)),
    Entry("baseline", "full-context", "Full context", "hands over the whole history, uncut", ("baseline",)),
    Entry(
        "baseline",
        "oracle",
        "Oracle",
        "hands over the gold evidence, uncut: the ceiling for any retrieval",
        ("baseline",),
    ),
)
"""Made by the suite from the benchmark's own data: there is nothing to configure."""
