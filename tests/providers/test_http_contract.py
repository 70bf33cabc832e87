"""An HTTP provider fulfils the contract of every provider, with a poll and with a marker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from memorybench.core.contracts import Provider
from memorybench.testing import ProviderContract
from tests.doubles.stub import Stub
from tests.providers.http_memory import CONFIG, PROBED, MemoryService
from tests.providers.http_opening import open_from_yaml


class TestPolling(ProviderContract):
    immediate = False
    config = CONFIG

    @pytest.fixture(autouse=True)
    def _serve(self) -> Iterator[None]:
        with Stub() as stub:
            stub.always(MemoryService(reports_status=self.config == CONFIG).behave)
            self.url = stub.url
            yield

    def open_provider(self, folder: Path) -> AbstractAsyncContextManager[Provider]:
        return open_from_yaml(self.config, self.url)


class TestProbing(TestPolling):
    config = PROBED
