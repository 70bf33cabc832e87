from __future__ import annotations

from tests.view.conftest import recorded

__all__ = ["recorded"]
