import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from memorybench.core.contracts import Provider
from memorybench.core.conversation import Memory
from memorybench.core.errors import BadInput, Lacking, Malformed, Transient
from memorybench.core.spending import Spending, Tally
from memorybench.files.yaml_file import parse_yaml
from memorybench.providers.adapters import AdaptedProvider, open_adapter
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.reading import read_provider
from memorybench.testing import ProviderContract
from tests.doubles.scripted_embedder import open_scripted_embedder
from tests.doubles.scripted_model import ScriptedModel
from tests.providers.embedded import HOME, fill, session

DOC = Path(__file__).parents[2] / "docs/python-adapters.md"
SMALL = """
class Mine:
    def add(self, scope, session):
        self.last = session.turns[-1].content
    def search(self, scope, query, limit):
        return [self.last]
"""


def example(language: str) -> str:
    return re.findall(rf"```{language}\n(.*?)```", DOC.read_text(encoding="utf-8"), re.DOTALL)[0]


def config(adapter: str = "./mine.py:Mine", more: str = "") -> ProviderConfig:
    return read_provider(parse_yaml(f"name: mine\ntype: local\nadapter: {adapter}\n{more}", "mine.yaml"))


@asynccontextmanager
async def open_mine(folder: Path, source: str = SMALL, more: str = "", **passed: Any) -> AsyncIterator[AdaptedProvider]:
    (folder / "mine.py").write_text(dedent(source), encoding="utf-8")
    async with open_adapter(config(more=more), folder / "mine.yaml", folder / "stores/mine", **passed) as provider:
        yield provider


def error_line(folder: Path, source: str = SMALL, **passed: Any) -> str:
    async def refused() -> None:
        async with open_mine(folder, source, **passed):
            pass

    with pytest.raises(BadInput) as caught:
        asyncio.run(refused())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def search_memories(folder: Path, source: str, query: str = "?", limit: int = 5, **passed: Any) -> Sequence[Memory]:
    async def add_and_search() -> Sequence[Memory]:
        async with open_mine(folder, source, **passed) as provider:
            await fill(provider, [session("s1", "I own a dog.")])
            return await provider.search(HOME, query, limit)

    return asyncio.run(add_and_search())


class TestExampleOfTheDocs(ProviderContract):
    durable = False

    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        (folder / "notes.py").write_text(example("python"), encoding="utf-8")
        (folder / "notes.yaml").write_text(example("yaml"), encoding="utf-8")
        described = read_provider(parse_yaml(example("yaml"), "notes.yaml"))
        async with open_adapter(described, folder / "notes.yaml", folder) as provider:
            yield provider


def test_every_config_in_the_docs_loads() -> None:
    configs = re.findall(r"```yaml\n(.*?)```", DOC.read_text(encoding="utf-8"), re.DOTALL)
    assert configs, "the page shows no config"
    for text in configs:
        assert read_provider(parse_yaml(text, "docs.yaml")).adapter


def test_a_class_of_two_plain_methods_is_a_provider(tmp_path: Path) -> None:
    assert search_memories(tmp_path, SMALL) == [Memory(id="1", content="I own a dog.")]


def test_async_methods_are_awaited(tmp_path: Path) -> None:
    assert search_memories(tmp_path, SMALL.replace("def ", "async def ")) == [Memory(id="1", content="I own a dog.")]


def test_plain_methods_share_one_thread_with_the_constructor(tmp_path: Path) -> None:
    """SQLite rejects a connection that was opened on another thread."""
    source = """
    import sqlite3
    class Mine:
        def __init__(self, folder):
            self.db = sqlite3.connect(folder / "mine.db")
            self.db.execute("CREATE TABLE turns (text)")
        def add(self, scope, session):
            with self.db:
                self.db.executemany("INSERT INTO turns VALUES (?)", [(turn.content,) for turn in session.turns])
        def search(self, scope, query, limit):
            return [text for text, in self.db.execute("SELECT text FROM turns")]
        def close(self):
            self.db.close()
    """
    assert [memory.content for memory in search_memories(tmp_path, source)] == ["I own a dog."]
    with sqlite3.connect(tmp_path / "stores/mine/mine.db") as db:
        assert db.execute("SELECT count(*) FROM turns").fetchone() == (1,)
    db.close()


def test_search_returns_at_most_limit_results(tmp_path: Path) -> None:
    endless = SMALL.replace("return [self.last]", "return iter(lambda: self.last, None)")
    assert len(search_memories(tmp_path, endless, limit=3)) == 3


@pytest.mark.parametrize(
    ("returned", "type_name"),
    [("None", "NoneType"), ("'text'", "str"), ("{}", "dict"), ("[{'text': 'x'}]", "dict"), ("7", "int")],
)
def test_a_search_that_returns_another_type_is_malformed(tmp_path: Path, returned: str, type_name: str) -> None:
    with pytest.raises(Malformed, match=f'"mine": search returned {type_name}'):
        search_memories(tmp_path, SMALL.replace("[self.last]", returned))


def test_an_exception_keeps_its_traceback_and_its_meaning(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        search_memories(tmp_path, SMALL.replace("[self.last]", "[1 / 0]"))
    assert any(entry.path == tmp_path / "mine.py" for entry in caught.traceback)
    ours = "from memorybench.core.errors import Transient\n" + SMALL.strip()
    with pytest.raises(Transient):
        search_memories(tmp_path, ours.replace("return [self.last]", "raise Transient('busy')"))


def test_an_adapter_without_clear_is_lacking(tmp_path: Path) -> None:
    async def clear() -> None:
        async with open_mine(tmp_path) as provider:
            await provider.clear(HOME)

    with pytest.raises(Lacking, match='adapter "mine"'):
        asyncio.run(clear())


def test_without_a_store_id_each_opening_is_a_new_store(tmp_path: Path) -> None:
    async def store_id(source: str) -> str:
        async with open_mine(tmp_path, source) as provider:
            return provider.store_id

    assert asyncio.run(store_id(SMALL)) != asyncio.run(store_id(SMALL))
    assert asyncio.run(store_id(SMALL + "    store_id = 'since-1999'\n")) == "since-1999"


def test_an_adapter_with_the_member_names_before_0_2_works(tmp_path: Path) -> None:
    source = """
    class Mine:
        incarnation = "since-1999"
        def add(self, scope, session):
            self.last = session.turns[-1].content
        def settle(self, scope, receipts):
            self.last += " Really."
        def search(self, scope, query, limit):
            return [self.last]
    """

    async def store_id() -> str:
        async with open_mine(tmp_path, source) as provider:
            return provider.store_id

    assert asyncio.run(store_id()) == "since-1999"
    assert search_memories(tmp_path, source) == [Memory(id="1", content="I own a dog. Really.")]


def test_subject_contains_the_code_digest_and_no_address(tmp_path: Path) -> None:
    async def subject(source: str) -> Any:
        secret = "local: {database: {type: postgres, connectionString: 'postgresql://me:sesame@host/db'}}"
        async with open_mine(tmp_path, source, secret) as provider:
            return provider.subject

    first, second = asyncio.run(subject(SMALL)), asyncio.run(subject(SMALL + "# changed\n"))
    assert first.key != second.key
    assert "sesame" not in first.model_dump_json()


def test_constructor_gets_its_arguments_and_cost_is_charged(tmp_path: Path) -> None:
    source = """
    class Mine:
        def __init__(self, config, embedder, model):
            self.config, self.embedder, self.model = config, embedder, model
        async def add(self, scope, session):
            self.written = (await self.model.complete(session.turns)).text
            self.length = len((await self.embedder.embed(["x"]))[0])
        async def search(self, scope, query, limit):
            return [f"{self.config.name} {self.written} {self.length}"]
    """

    async def add_and_search() -> tuple[Sequence[Memory], Spending]:
        model = ScriptedModel(["noted"], spent=Spending(calls=1, cost=0.25))
        async with (
            open_scripted_embedder(32) as embedder,
            open_mine(tmp_path, source, embedder=embedder, model=model) as provider,
        ):
            with Tally() as tally:
                await fill(provider, [session("s1", "I own a dog.")])
            return await provider.search(HOME, "?", 5), tally.spent

    memories, spent = asyncio.run(add_and_search())
    assert [memory.content for memory in memories] == ["mine noted 32"]
    assert spent.cost == 0.25


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import no_such_package", "cannot be imported: ModuleNotFoundError: No module named 'no_such_package'"),
        ("class Mine\n", "cannot be imported: SyntaxError"),
        ("raise SystemExit(3)", "cannot be imported: SystemExit"),
        ("class Mind: pass", 'has no class "Mine"; did you mean "Mind"?'),
        ("Mine = 3", 'has no class "Mine"'),
        ("class Mine:\n    def search(self): ...", "has no method add"),
        (SMALL + "    def __init__(self, colour): ...", "no other arguments than config, embedder, folder, model"),
        (SMALL + "    def __init__(self): open('/no/such')", "cannot be created: FileNotFoundError"),
        (SMALL + "    def __init__(self, model): ...", "; add local.enhancement.model"),
    ],
)
def test_an_adapter_that_cannot_be_opened_is_one_line(tmp_path: Path, source: str, problem: str) -> None:
    assert problem in error_line(tmp_path, source)


def test_a_missing_file_is_one_line_with_both_folders(tmp_path: Path) -> None:
    async def refused() -> None:
        async with open_adapter(config("./no.py:Mine"), tmp_path / "x" / "mine.yaml", tmp_path):
            pass

    with pytest.raises(BadInput, match=r'"./no.py"; expected a path relative to .*/x or '):
        asyncio.run(refused())


def test_the_working_folder_is_searched_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "mine.py").write_text(SMALL)
    monkeypatch.chdir(tmp_path)

    async def name() -> str:
        async with open_adapter(config(), tmp_path / "configs/mine.yaml", tmp_path) as provider:
            return provider.subject.name

    assert asyncio.run(name()) == "mine"
