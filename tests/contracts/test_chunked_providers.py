"""The providers that keep chunks keep the contract, with a scripted model at work on each chunk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from memorybench.core.contracts import Provider
from memorybench.providers.aqrag import Aqrag
from memorybench.providers.contextual_retrieval import ContextualRetrieval
from memorybench.testing import ProviderContract
from tests.doubles.scripted_embedder import open_scripted_embedder
from tests.doubles.scripted_model import ScriptedModel
from tests.providers.chunked import config, questioner


class TestAqrag(ProviderContract):
    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        settings = config("aqrag")
        async with (
            open_scripted_embedder() as embedder,
            Aqrag.open_file(settings, folder / "aqrag.db", embedder, questioner()) as provider,
        ):
            yield provider


class TestContextualRetrieval(ProviderContract):
    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        model = ScriptedModel(lambda _: "Two people talk.")
        settings = config("contextual-retrieval")
        async with (
            open_scripted_embedder() as embedder,
            ContextualRetrieval.open_file(settings, folder / "contextual.db", embedder, model) as provider,
        ):
            yield provider
