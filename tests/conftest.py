from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

from tests.doubles.refusals import refused

# a slow machine must not fail a test
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture
def complaint() -> Callable[..., str]:
    """`refused`, as text: prefer the fields of the error that tests.doubles.refusals.refused returns."""

    def error_text(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
        return str(refused(call, *arguments, **options))

    return error_text
