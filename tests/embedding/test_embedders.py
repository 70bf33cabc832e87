import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from memorybench.core.contracts import Embedder
from memorybench.core.errors import BadInput
from memorybench.embedding.local import open_local_embedder

np = pytest.importorskip("numpy")
TEXTS = ["We adopted a puppy.", "", "I repaired the engine of my car.", "word " * 2_000, "🪁 小白 Straße"]


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError(f"an embedder went to the network: {arguments}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def wordllama_installed() -> None:
    pytest.importorskip("wordllama", reason="the extra embed is not installed")


def embed_locally(texts: Sequence[str]) -> Sequence[Sequence[float]]:
    async def embed() -> Sequence[Sequence[float]]:
        async with open_local_embedder() as embedder:
            assert isinstance(embedder, Embedder)
            return await embedder.embed(texts)

    return asyncio.run(embed())


@pytest.mark.usefixtures("offline", "wordllama_installed")
def test_local_vectors_have_length_1_and_need_no_network() -> None:
    vectors = np.asarray(embed_locally(TEXTS))
    assert vectors.shape == (5, 256)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 1, 1, 1], abs=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("wordllama_installed")
def test_the_vector_of_a_text_does_not_depend_on_its_batch() -> None:
    alone = [embed_locally([text])[0] for text in TEXTS]
    assert np.array_equal(np.asarray(embed_locally(TEXTS * 20))[:5], np.asarray(alone))


@pytest.mark.usefixtures("wordllama_installed")
def test_related_words_have_similar_local_vectors() -> None:
    dog, puppy, car = np.asarray(embed_locally(["our dog", "the puppy we adopted", "the engine of the car"]))
    assert dog @ puppy > dog @ car


@pytest.mark.usefixtures("wordllama_installed")
def test_local_vectors_equal_those_of_wordllama() -> None:
    import wordllama

    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    assert np.allclose(model.embed([TEXTS[0], TEXTS[2]], norm=True), embed_locally([TEXTS[0], TEXTS[2]]), atol=1e-6)


@pytest.mark.slow
def test_opening_the_local_embedder_does_not_change_logging() -> None:
    program = (
        "import asyncio, logging\n"
        "from memorybench.embedding.local import open_local_embedder\n"
        "async def main():\n"
        "    async with open_local_embedder():\n"
        "        print(logging.getLogger().handlers, logging.getLogger().level)\n"
        "asyncio.run(main())\n"
    )
    pytest.importorskip("wordllama", reason="the extra embed is not installed")
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={"PYTHONPATH": "src"})
    assert process.stdout.strip() == f"[] {logging.WARNING}", process.stderr


def test_a_missing_package_is_an_error_with_the_command_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(BadInput, match=r'pip install "memorybench\[embed\]"') as raised:
        embed_locally(["anything"])
    assert "\n" not in str(raised.value)
