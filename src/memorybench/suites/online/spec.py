"""What a run over recorded operations depends on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from memorybench.suites.spec import JudgedSpec, flag

SEARCHES, WRITES = "searches", "writes"


class OnlineSpec(JudgedSpec):
    file: str | None = flag(
        None, help="Read this file or folder (LangSmith: or --project).", name="file", metavar="FILE"
    )
    source: Literal["otlp", "langfuse", "phoenix", "langsmith"] = flag(
        "otlp", help="Say in which format the spans are."
    )
    project: str | None = flag(None, help="With --source langsmith: read this project.", metavar="NAME")
    only: Literal["searches", "writes"] | None = flag(None, help="Measure `searches` or `writes`.", metavar="KIND")
    since: str | None = flag(None, help="Read operations of the last 24h, or since a date.", metavar="TIME")
    """The time from which operations are read.

    In a saved run it is a date, also if the user gave a duration such as 24h.
    """
    limit: int | None = flag(None, help="Measure at most N of each kind, oldest first.", metavar="N", ge=1)
    search_names: tuple[str, ...] = flag(
        (),
        help="Count spans with these names as searches, instead of retrievers.",
        name="--search-name",
        metavar="NAME",
    )
    write_names: tuple[str, ...] = flag(
        (), help="Count spans with these names as writes.", name="--write-name", metavar="NAME"
    )
    judge_model: str | None = flag(
        None, help="Judge searches and writes with this model.", metavar="MODEL", default_text="none"
    )
    top_k: int = flag(3, help="Judge the first N memories of each search.", metavar="N", ge=1)
    feedback: bool = flag(False, help="Write the scores back to LangSmith or Langfuse.")
    store_is_disposable: bool = Field(False, exclude=True)
    """Not a flag: the command opens no memory."""

    @property
    def kinds(self) -> tuple[str, ...]:
        return (SEARCHES, WRITES) if self.only is None else (self.only,)

    @classmethod
    def migrate(cls, saved: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return saved values for today's version.

        Earlier versions measured searches only, and accepted a project beside a file, which had no effect.
        """
        values = saved if "source" in saved else {**saved, "only": SEARCHES}
        return {**values, "project": None} if saved.get("file") else values
