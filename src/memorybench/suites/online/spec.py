"""What a run over recorded searches depends on."""

from __future__ import annotations

from memorybench.suites.spec import JudgedSpec, flag


class OnlineSpec(JudgedSpec):
    file: str = flag(help="Read spans from this file or folder.", name="file", metavar="FILE")
    since: str | None = flag(None, help="Read searches since 24h, 7d or a date.", metavar="TIME")
    """A run saves the date here."""
    limit: int | None = flag(None, help="Measure at most N searches, oldest first.", metavar="N", ge=1)
    judge_model: str | None = flag(
        None, help="Decide with this model which memories are used.", metavar="MODEL", default_text="none"
    )
    top_k: int = flag(3, help="Judge the first N memories of each search.", metavar="N", ge=1)
