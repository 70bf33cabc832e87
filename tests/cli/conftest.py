from __future__ import annotations

import pytest

from tests.doubles.stub import Stub


@pytest.fixture
def stub(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Stub:
    """A local server in place of OpenAI's."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
    return stub
