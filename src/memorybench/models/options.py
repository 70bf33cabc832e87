"""How a model is asked."""

from __future__ import annotations

from pydantic import Field

from memorybench.core.records import Record


class Options(Record):
    temperature: float | None = Field(default=0.0, ge=0)
    """None: the server's own. Models that take no temperature are not sent one, and their subject says so."""
    seed: int | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    timeout: float = Field(default=120.0, gt=0)
    """Seconds for one call, from the first to the last byte."""
