"""What a run over recorded operations depends on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from memorybench.suites.spec import JudgedSpec, flag

SEARCHES, WRITES = "searches", "writes"


class OnlineSpec(JudgedSpec):
    file: str | None = flag(
        None, help="Read spans from this file or folder (or use --project).", name="file", metavar="FILE"
    )
    source: Literal["otlp", "langfuse", "phoenix", "langsmith"] = flag("otlp", help="Choose the format of the spans.")
    project: str | None = flag(None, help="With --source langsmith: read this project instead of FILE.", metavar="NAME")
    only: Literal["searches", "writes"] | None = flag(
        None, help="Measure only `searches`, or only `writes`.", metavar="KIND", default_text="both"
    )
    since: str | None = flag(None, help="Read operations not older than TIME: 24h, 7d or 2026-01-31.", metavar="TIME")
    """The time from which operations are read.

    In a saved run it is a date, also if the user gave a duration such as 24h.
    """
    limit: int | None = flag(None, help="Measure at most N of each kind, oldest first.", metavar="N", ge=1)
    search_names: tuple[str, ...] = flag(
        (),
        help="Also count spans with these names as searches.",
        name="--search-name",
        metavar="NAME",
        default_text="retrievers",
    )
    write_names: tuple[str, ...] = flag(
        (), help="Also count spans with these names as writes.", name="--write-name", metavar="NAME"
    )
    judge_model: str | None = flag(
        None, help="Judge searches and writes with this model.", metavar="MODEL", default_text="none"
    )
    top_k: int = flag(3, help="Judge the first N memories of each search.", metavar="N", ge=1)
    feedback: bool = flag(False, help="Send scores to LangSmith or Langfuse (keys from the environment).")
    store_is_disposable: bool = Field(False, exclude=True)
    """Not a flag of this command, which opens no memory."""

    @property
    def kinds(self) -> tuple[str, ...]:
        return (SEARCHES, WRITES) if self.only is None else (self.only,)

    @classmethod
    def migrate(cls, saved: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the saved values of a run as this version writes them.

        Earlier versions measured searches only, and accepted a project beside a file, which had no effect.
        """
        values = saved if "source" in saved else {**saved, "only": SEARCHES}
        return {**values, "project": None} if saved.get("file") else values
