"""Options of model calls."""

from __future__ import annotations

from pydantic import Field

from memorybench.core.records import Record


class Options(Record):
    temperature: float | None = Field(default=0.0, ge=0)
    """None: the default of the server. It is not sent to models that reject a temperature; see their subject."""
    seed: int | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    timeout: float = Field(default=120.0, gt=0)
    """Seconds for one call, from the connection to the last byte."""
