"""The example of the docs page runs unchanged against a server that it describes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from memorybench.core.contracts import Provider
from memorybench.files.yaml_file import parse_yaml
from memorybench.providers.config.reading import needed_variables, read_provider
from memorybench.providers.config.variables import MESSAGE_NAMES, VARIABLES
from memorybench.providers.http.provider import open_http_provider
from memorybench.secrets.redaction import Redactor
from memorybench.testing import ProviderContract
from tests.doubles.stub import Call, Stub

PAGE = (Path(__file__).parents[2] / "docs/adding-a-provider.md").read_text(encoding="utf-8")
KEY = "notebook-key-1"
NOTE_FIELDS = {"key", "note", "written"}


def example() -> str:
    [text] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    return str(text)


class Notebooks:
    """The server of the page: notes in notebooks, indexed in the background; results are parallel arrays."""

    def __init__(self) -> None:
        self._ids = (f"n{n}" for n in count())
        self.titles: dict[str, str] = {}
        self.notes: dict[str, dict[str, str]] = {}
        self.indexed: set[tuple[str, str]] = set()
        self.tickets: dict[str, tuple[str, str]] = {}

    async def behave(self, _: web.BaseRequest, call: Call) -> web.StreamResponse:
        if call.headers.get("X-Notebook-Key") != KEY:
            return web.json_response({"problem": "key"}, status=401)
        match (call.method, *call.path.strip("/").split("/")):
            case ("PUT", "notebooks"):
                id = self.titles.setdefault(call.json["title"], next(self._ids))
                self.notes.setdefault(id, {})
                return web.json_response({"id": id})
            case ("POST", "notebooks", id, "notes") if id in self.notes and call.json.keys() <= NOTE_FIELDS:
                return self._accepted(id, call.json["key"], call.json["note"])
            case ("GET", "tickets", ticket) if ticket in self.tickets:
                return self._progress(ticket)
            case ("GET", "notebooks", id, "search") if id in self.notes and set(call.query) == {"words", "max"}:
                return self._found(id, call.query["words"], int(call.query["max"]))
            case ("DELETE", "notebooks", id) if id in self.notes:
                del self.notes[id]
                self.titles = {title: book for title, book in self.titles.items() if book != id}
                self.indexed = {entry for entry in self.indexed if entry[0] != id}
                return web.json_response({})
        return web.json_response({"problem": "no such thing"}, status=404)

    def _accepted(self, id: str, key: str, note: str) -> web.Response:
        assert len(note) <= 2000
        self.notes[id][key] = note
        ticket = f"t{len(self.tickets)}"
        self.tickets[ticket] = (id, key)
        return web.json_response({"ticket": ticket}, status=202)

    def _progress(self, ticket: str) -> web.Response:
        self.indexed.add(self.tickets[ticket])
        return web.json_response({"ticket": {"state": "indexed"}})

    def _found(self, id: str, words: str, most: int) -> web.Response:
        query_words = set(re.findall(r"\w+", words.lower()))
        notes = [(key, note) for key, note in self.notes[id].items() if (id, key) in self.indexed]
        rows: list[tuple[float, str, Any]] = sorted(
            (1 / shared, note, key)
            for key, note in notes
            if (shared := len(query_words & set(re.findall(r"\w+", note.lower()))))
        )[:most]
        return web.json_response(
            {
                "found": {
                    "notes": [note for _, note, _ in rows],
                    "distances": [distance for distance, _, _ in rows],
                    "keys": [key for _, _, key in rows],
                }
            }
        )


class TestTheExampleOfThePage(ProviderContract):
    immediate = False

    @pytest.fixture(autouse=True)
    def _serve(self) -> Iterator[None]:
        with Stub() as stub:
            stub.always(Notebooks().behave)
            self.url = stub.url
            yield

    def open_provider(self, folder: Path) -> AbstractAsyncContextManager[Provider]:
        config = read_provider(parse_yaml(example(), "notebook.yaml"), {"NOTEBOOK_URL": self.url})
        return open_http_provider(config, key=KEY, redactor=Redactor([KEY]))


def test_example_needs_only_its_key() -> None:
    config = read_provider(parse_yaml(example(), "notebook.yaml"))
    assert needed_variables(config, {}) == {"NOTEBOOK_KEY": False}


def test_the_table_of_variables_is_complete() -> None:
    table = PAGE[PAGE.index("| where | variables |") : PAGE.index("An unknown variable")]
    names = set(re.findall(r"`(\w+)`", table))
    assert frozenset().union(*VARIABLES.values(), MESSAGE_NAMES) <= names
