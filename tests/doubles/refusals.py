"""A call that must be refused, and the error it raised: tests assert its fields, not its prose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memorybench.core.errors import BadInput


def refused(call: Callable[..., Any], *arguments: Any, **options: Any) -> BadInput:
    """The error of a call that must raise BadInput, whose text is one line."""
    with pytest.raises(BadInput) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return caught.value
