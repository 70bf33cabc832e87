from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from memorybench.core.errors import BadInput, Lacking, Malformed, Refused, ServiceError, Transient
from memorybench.core.stores import MemoryStore, NewFact
from memorybench.files.yaml_file import parse_yaml
from memorybench.secrets.redaction import Redactor
from memorybench.stores.command_store import _OPTIONAL
from memorybench.stores.config import StoreConfig
from memorybench.stores.config_reading import read_store
from memorybench.stores.opening import open_store
from tests.stores.contract import ANN, TEA, StoreContract, contents

EXAMPLE = Path(__file__).parent / "command_example.py"


def config(*, timeout: int = 60_000, program: str = sys.executable, more: str = "") -> StoreConfig:
    run = json.dumps([program, str(EXAMPLE), "${folder}/data.json"])
    abilities = f"[update, forget, recall, list, category, users, files{more}]"
    text = f"name: example\ntype: command\ncapabilities: {abilities}\ncommand:\n  run: {run}\n  timeout: {timeout}\n"
    return read_store(parse_yaml(text, "example.yaml"), {})


def open_configured(folder: Path, store_config: StoreConfig | None = None) -> AbstractAsyncContextManager[MemoryStore]:
    return open_store(store_config or config(), folder, environment={}, redactor=Redactor(["hush-hush-key"]))


def in_store(
    folder: Path, work: Callable[[MemoryStore], Awaitable[None]], store_config: StoreConfig | None = None
) -> None:
    async def live() -> None:
        async with open_configured(folder, store_config) as store:
            await work(store)

    asyncio.run(live())


class TestContract(StoreContract):
    def open_store(self, folder: Path) -> AbstractAsyncContextManager[MemoryStore]:
        return open_configured(folder)


def test_each_kind_of_answer_raises_its_error(tmp_path: Path) -> None:
    async def live(store: MemoryStore) -> None:
        with pytest.raises(Refused, match="no secrets here"):
            await store.remember(ANN, NewFact(content="a secret"))
        with pytest.raises(ServiceError, match="the disk is full"):
            await store.remember(ANN, NewFact(content="!error"))
        with pytest.raises(ServiceError, match="no fact 99"):
            await store.forget(ANN, "99")
        with pytest.raises(Lacking, match="a curator"):
            await store.curate(ANN, apply=False)
        with pytest.raises(ServiceError, match="lacks a history; remove history from capabilities"):
            await store.history(ANN)
        with pytest.raises(ServiceError, match="lacks a disk") as raised:
            await store.remember(ANN, NewFact(content="!lacking"))
        assert "capabilities" not in str(raised.value)  # where remember cannot be
        with pytest.raises(Malformed, match="INFO"):
            await store.remember(ANN, NewFact(content="!garble"))
        with pytest.raises(Malformed, match="expected ok"):
            await store.remember(ANN, NewFact(content="!array"))
        with pytest.raises(Malformed, match="one only"):
            await store.remember(ANN, NewFact(content="!both"))
        with pytest.raises(Malformed, match="remember: invalid answer: ok: expected the id"):
            await store.remember(ANN, NewFact(content="!true"))
        await store.remember(ANN, TEA)
        assert contents(await store.list(ANN)) == [TEA.content]

    in_store(tmp_path, live, config(more=", curate, history"))


def test_a_program_that_ends_is_a_service_error(tmp_path: Path) -> None:
    async def live(store: MemoryStore) -> None:
        for _ in range(2):
            with pytest.raises(ServiceError, match="ended"):
                await store.remember(ANN, NewFact(content="!die"))

    in_store(tmp_path, live)


def test_a_late_answer_is_not_read_as_the_next_one(tmp_path: Path) -> None:
    async def live(store: MemoryStore) -> None:
        with pytest.raises(Transient, match="timed out"):
            await store.remember(ANN, NewFact(content="!hang"))
        with pytest.raises(ServiceError, match="timed out"):
            await store.list(ANN)

    in_store(tmp_path, live, config(timeout=300))


def test_a_missing_program_is_named_in_the_error(tmp_path: Path) -> None:
    async def live(store: MemoryStore) -> None:
        raise AssertionError("it was opened")

    with pytest.raises(BadInput, match="no-such-program"):
        in_store(tmp_path, live, config(program="no-such-program"))


def test_the_example_of_the_page_is_a_store(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/command-stores.md").read_text(encoding="utf-8")
    [yaml, python] = (re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)[0] for language in ("yaml", "python"))
    script = tmp_path / "notes.py"
    script.write_text(python, encoding="utf-8")
    text = yaml.replace("/srv/notes.py", str(script)).replace("[python,", f"[{sys.executable},")
    assert str(script) in text

    async def live(store: MemoryStore) -> None:
        await store.remember(ANN, TEA)
        assert contents(await store.recall(ANN, TEA.content, 5)) == [TEA.content]

    (tmp_path / "store").mkdir()
    in_store(tmp_path / "store", live, read_store(parse_yaml(text, "notes.yaml"), {}))


def test_the_page_describes_every_request_and_every_answer() -> None:
    page = (Path(__file__).parents[2] / "docs/command-stores.md").read_text(encoding="utf-8")
    assert set(re.findall(r'"op": "(\w+)"', page)) == {"remember", *_OPTIONAL}
    assert {"ok", "refused", "lacking", "error"} <= set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
