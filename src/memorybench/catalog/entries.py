"""Entries of the catalog, as `list` shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

from memorybench.core.errors import BadInput

Kind = Literal["provider", "baseline", "benchmark", "extractor", "store", "agent", "model", "metric", "unknown"]
"""The kinds of entries. `unknown` is a file of the user whose kind is not recognized."""

BUNDLED = "bundled"


class Entry(Struct, frozen=True):
    """A name in the catalog, and where it comes from."""

    kind: Kind
    name: str
    display_name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    origin: str = BUNDLED
    """`bundled`, the path of a file, or the name and version of an installed package."""
    file: Path | None = None
    """The file of the config; paths in the config are relative to its folder. None if it has no file."""
    broken: BadInput | None = None
    """The error that is raised if the entry is used; None if the entry is valid."""
    base: Entry | None = None
    """The entry that this one extends; None if it extends none. Both run the same code, so `file` is that of `base`."""

    @property
    def is_installed(self) -> bool:
        """Whether it is part of memorybench or of an installed package, not defined in a file of the user."""
        return self.base is None and (self.file is None or self.origin == BUNDLED)

    @property
    def family(self) -> Kind:
        """The kind, but "provider" for baselines: providers and baselines must have different names."""
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
"""Providers that the benchmark suite builds from the benchmark's data; they have no config."""
