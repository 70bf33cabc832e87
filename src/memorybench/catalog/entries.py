"""Entries of the catalog, as `list` shows them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memorybench.core.errors import BadInput

Kind = Literal["provider", "baseline", "benchmark", "extractor", "store", "agent", "model", "metric", "unknown"]
"""`unknown`: a file in a folder of the user that is none of these."""

BUNDLED = "bundled"


@dataclass(frozen=True, slots=True)
class Entry:
    """A name in the catalog, and where it comes from."""

    kind: Kind
    name: str
    display_name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    origin: str = BUNDLED
    """`bundled`, the path of a file, or the name and version of an installed package."""
    file: Path | None = None
    """Paths in a config are relative to the folder of this file."""
    broken: BadInput | None = None
    """Why it cannot be chosen; None if it can."""
    base: Entry | None = None
    """The entry that it extends. It runs the same code, and `file` is that of the code."""

    @property
    def is_installed(self) -> bool:
        """Part of memorybench or of an installed package, not a file of a user."""
        return self.base is None and (self.file is None or self.origin == BUNDLED)

    @property
    def family(self) -> Kind:
        """The kind, where baselines count as providers: their names must differ."""
        return "provider" if self.kind == "baseline" else self.kind


BASELINES = (
    Entry("baseline", "none", "No memory", "provides no memory: what the model knows without one", ("baseline",)),
    Entry("baseline", "placebo", "Placebo", "provides memories of another history", ("baseline",)),
    Entry("baseline", "full-context", "Full context", "provides the whole history", ("baseline",)),
    Entry(
        "baseline",
        "oracle",
        "Oracle",
        "provides the gold evidence: the upper bound of retrieval",
        ("baseline",),
    ),
)
"""Built by the suite from the benchmark's data; they have no config."""
