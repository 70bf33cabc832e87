from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

from memorybench.core.errors import BadInput

# a slow machine is no fault of the code
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture
def complaint() -> Callable[..., str]:
    """Calls what must be refused, and gives the one line that says why."""

    def refused(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
        with pytest.raises(BadInput) as caught:
            call(*arguments, **options)
        line = str(caught.value)
        assert "\n" not in line
        return line

    return refused
