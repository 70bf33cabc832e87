"""Writes a commented starting file for a provider, benchmark, scenario or extractor."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from memorybench.catalog.catalog import Catalog
from memorybench.catalog.files import SCENARIOS
from memorybench.core.errors import BadInput, Malformed, MemorybenchError, ServiceError
from memorybench.files.names import safe_name
from memorybench.http.addresses import check_url
from memorybench.http.client import Http, open_http
from memorybench.providers.openapi import Guess, Guesses, as_yaml, base_url, guess

from .environment import redactor

StarterKind = Literal["provider", "benchmark", "scenario", "extractor"]
_STARTERS = Path(__file__).parents[1] / "catalog" / "starters"
_FILES = {
    "provider": ("providers/configs", "yaml"),
    "benchmark": ("benchmarks/configs", "yaml"),
    "extractor": ("extractors/configs", "yaml"),
    "scenario": ("scenarios", "json"),
}
_DESCRIPTIONS = ("/openapi.json", "/swagger.json", "/api/openapi.json", "/v1/openapi.json", "/docs/openapi.json")
_HEALTH = ("/health", "/healthz", "/api/health", "/v1/health", "/status", "/")
_TIMEOUT = 10.0


class Probed(Struct, frozen=True):
    """The result of probing a running server."""

    url: str
    """The base address of its requests."""
    health: str
    """The path of its health check, the first that answered; "" if none did."""
    description: str
    """The path of its OpenAPI description; "" if it has none."""
    guesses: Guesses | None
    other_server: str = ""
    """Another server that the description names but that is not used; "" if there is none."""

    @property
    def missing(self) -> Sequence[str]:
        """What the user must change or add in the config, one line each."""
        guesses = self.guesses
        if guesses is None:
            return ["it has no OpenAPI description: the requests are examples, and must be changed"]
        lines = []
        for name, found in (("add", guesses.add), ("search", guesses.search), ("clear", guesses.clear)):
            if found is None:
                lines.append(f"{name} was not found: the request is an example")
            elif not found.has_scope:
                lines.append(f"the scope was not found in {name}: without it, all histories would share one memory")
            if found is not None and found.unknown:
                lines.append(
                    f"{name} requires {', '.join(map(json.dumps, found.unknown))}, which no variable is known for"
                )
        if guesses.search is not None and not (guesses.search.results and guesses.search.content):
            lines.append("the reply of search is not described: its response is an example")
        if guesses.unsupported_auth:
            lines.append(f"authentication by {json.dumps(guesses.unsupported_auth)} is not known: see auth, or headers")
        if self.other_server:
            lines.append(f"it also names the server {json.dumps(self.other_server)}, which is not used")
        return lines


def starting_files(kind: StarterKind, name: str, folder: Path) -> list[Path]:
    """Return the paths of the files to write. Raise BadInput if the name is invalid or taken, or if a file exists."""
    safe_name(name, "NAME")
    place, suffix = _FILES[kind]
    files = [folder / place / f"{name}.{suffix}"]
    if kind == "benchmark":
        files.append(folder / "benchmarks/datasets" / f"{name}.jsonl")
    for file in files:
        if file.exists() or file.is_symlink():
            raise BadInput(str(file), "the file already exists", remedy="choose another name, or remove it")
    is_taken = (SCENARIOS / f"{name}.json").exists() if kind == "scenario" else Catalog(folder).has(kind, name)
    if is_taken:
        raise BadInput("NAME", f'there is already a {kind} "{name}"', remedy="choose another name")
    return files


def write_starting_files(kind: str, name: str, files: Sequence[Path], probed: Probed | None = None) -> None:
    """Write the starting files of this kind, filled in from `probed` if given. None of the files may exist."""
    text = (_STARTERS / f"{kind}{files[0].suffix}").read_text(encoding="utf-8")
    variable = re.sub(r"\W", "_", name).upper()
    if not variable[:1].isalpha():
        variable = f"MEMORY_{variable}"  # a variable of the environment begins with a letter
    text = text.replace("NAME_", f"{variable}_").replace("NAME", name)
    contents = [_provider_text(text, variable, probed) if kind == "provider" else text]
    if kind == "benchmark":
        rows = json.loads((_STARTERS / "benchmark-data.json").read_text(encoding="utf-8"))
        contents.append("".join(f"{json.dumps(row)}\n" for row in rows))
    for file, content in zip(files, contents, strict=True):
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8") as opened:  # never replaces a file that appeared meanwhile
                opened.write(content)
        except OSError as error:
            raise BadInput(
                str(file), f"cannot be written ({error.strerror})", remedy="work in a folder that you may change"
            ) from None


async def probe(url: str) -> Probed:
    """Ask a running server for its health and its OpenAPI description, with GET requests without credentials."""
    try:
        check_url(url)
    except BadInput as error:
        raise BadInput("--probe", error.problem, expected=error.expected, remedy=error.remedy) from None
    base = url.rstrip("/")
    async with open_http(redactor(), deadline=_TIMEOUT) as http:
        health, errors = "", []
        for path in _HEALTH:
            try:
                await http.request("GET", base + path)
            except ServiceError as error:
                errors.append(error)
                if error.status is None and not isinstance(error, Malformed):
                    raise BadInput(
                        "--probe", str(error), remedy="check the address, and that the server is running"
                    ) from None
                continue
            health = path
            break
        for path in _DESCRIPTIONS:
            description = await _description(http, base + path)
            if description is not None:
                address, other = base_url(description, base + path, base)
                return Probed(address, health, path, guess(description), other)
    return Probed(base, health, "", None)


async def _description(http: Http, url: str) -> Mapping[str, Any] | None:
    try:
        document = (await http.request("GET", url)).json()
    except MemorybenchError:
        return None
    return document if isinstance(document, dict) and isinstance(document.get("paths"), dict) else None


def _provider_text(text: str, variable: str, probed: Probed | None) -> str:
    guesses = probed.guesses if probed else None
    add = (guesses and guesses.add) or Guess("POST", "/memories", {"user": "$.scope", "text": "$.content"})
    search = (guesses and guesses.search) or Guess(
        "POST", "/search", {"user": "$.scope", "query": "$.query", "limit": "$.limit"}
    )
    clear = (guesses and guesses.clear) or Guess("DELETE", "/users/${scope}", {})
    auth = {"type": "none"} if guesses is None else guesses.auth
    if auth["type"] != "none":
        auth = {**auth, "envVar": f"{variable}_KEY"}
    note = "# Filled from its OpenAPI description; read every request before you use it.\n" if guesses else ""
    note += "".join(f"# Change this: {line}.\n" for line in (probed.missing if probed else ()))
    values = {
        "found": note,
        "apiVersion": json.dumps((guesses.version if guesses else "") or "1"),
        "baseUrl": json.dumps(f"${{{variable}_URL:-{probed.url if probed else 'http://localhost:8000'}}}"),
        "auth": as_yaml(auth),
        "authNote": (
            f"or {{type: bearer, envVar: {variable}_KEY}}; it names a variable, never the key"
            if auth["type"] == "none"
            else "envVar names the variable that has the key; never write the key here"
        ),
        "addMethod": add.method,
        "addPath": json.dumps(add.path),
        "addFields": _fields(add),
        "searchMethod": search.method,
        "searchPath": json.dumps(search.path),
        "searchFields": _fields(search),
        "results": json.dumps(search.results or "$.results"),
        "content": json.dumps(search.content or "$.text"),
        "score": f"scoreField: {json.dumps(search.score)}" if search.score else "# scoreField: $.score",
        "id": f"idField: {json.dumps(search.id)}" if search.id else "# idField: $.id",
        "sources": (
            f"sourcesField: {json.dumps(search.sources)}" if search.sources else "# sourcesField: $.metadata.documentId"
        ),
        "clearMethod": clear.method,
        "clearPath": json.dumps(clear.path),
        "clearQuery": f"query: {as_yaml(clear.query)}" if clear.query else '# query: {user: "$.scope"}',
    }
    return re.sub(r"\$\{(\w+)\}", lambda match: values.get(match[1], match[0]), text)


def _fields(request: Guess) -> str:
    """Return the YAML lines for the query and body of a request. Add a field for the scope if there is none."""
    body, query = dict(request.body), dict(request.query)
    if not request.has_scope:
        (query if request.method == "GET" else body)["user"] = "$.scope"
    parts = {"query": query, "body": body}
    return "\n    ".join(f"{name}: {as_yaml(fields)}" for name, fields in parts.items() if fields)
