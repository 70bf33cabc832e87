"""Finds what a config uses: programs, modules, images, SQL, hosts and environment variables. No code is run.

Configs must be read without an environment, so that they still contain `${VAR}`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard
from urllib.parse import urlsplit

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.core.uses import Use, Uses
from memorybench.files.environment import REFERENCE
from memorybench.files.located import Place
from memorybench.files.reading import read_text
from memorybench.providers.plugin import BUILTIN, PLUGIN
from memorybench.providers.storage.paths import find_file
from memorybench.text.spelling import camel

if TYPE_CHECKING:
    from memorybench.agents.config import AgentConfig
    from memorybench.datasets.config import BenchmarkConfig
    from memorybench.extractors.config import ExtractorConfig
    from memorybench.http.config import Auth
    from memorybench.mcp.config import ServerConnection
    from memorybench.models.config import ModelConfig
    from memorybench.providers.config.provider import ProviderConfig
    from memorybench.providers.config.sections import Database, Docker, Embedding
    from memorybench.stores.config import StoreConfig

OWN_SETTINGS = "MEMORYBENCH_"
"""Prefix of the environment variables of memorybench itself, which are never secret."""
EVERY_VARIABLE = "*"
_ADDRESSES = frozenset(
    {
        "connection.baseUrl", "docker.baseUrl", "docker.healthcheck", "mcp.url", "embedding.baseUrl",
        "local.embedding.baseUrl", "url", "data.path", "baseUrl",
    }
)  # fmt: skip
_LOCAL_PATHS = frozenset(
    {
        "connection.tls.caFile", "connection.tls.certFile", "connection.tls.keyFile", "tls.caFile", "tls.certFile",
        "tls.keyFile", "docker.compose", "local.database.schema", "data.localPath",
    }
)  # fmt: skip
_LEADING_VARIABLE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)(?::-([^}]*))?\}(?=/|$)")
"""Matches a variable at the beginning of an address. Its value names the server, so it does not count as sent to it."""
_AUTHORIZATION = re.compile(r"(?:\w+ +)?\$\{([A-Z][A-Z0-9_]*)\}")
_IMAGE = re.compile(r"^\s*-?\s*(?:image|build|context)\s*:\s*(\S.*?)\s*$", re.MULTILINE)
_LONGEST_SQL = 400


class _Place(Struct, frozen=True):
    """The file of a config, and the environment with which it would be read."""

    file: Path | None
    environment: Mapping[str, str]
    find_card: Callable[[str], ModelConfig | None] = lambda _: None
    """Returns the model card of a name, or None."""

    def path_of(self, path: str) -> str:
        """Return the full path of a file that the config names; the path as written if the file does not exist."""
        try:
            return str(find_file(path, self.file, ""))
        except (BadInput, OSError, ValueError):
            return path

    def host_of(self, address: str) -> str:
        """Return scheme, host and port of an address. A variable is replaced only at the beginning of the address."""
        leading = _LEADING_VARIABLE.match(address)
        if leading:
            value = self.environment.get(leading[1]) or leading[2] or leading[0]
            address = value + address[leading.end() :]
        try:
            parts = urlsplit(address)
        except ValueError:
            return address
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else address

    def expand(self, text: str) -> str:
        return REFERENCE.sub(
            lambda match: self.environment.get(match["name"] or "") or match["default"] or match[0], text
        )


def uses_of(
    config: Record,
    file: Path | None,
    environment: Mapping[str, str],
    find_card: Callable[[str], ModelConfig | None] = lambda _: None,
) -> Uses:
    """Return what a config uses. `file` is the file it was read from; `find_card` returns a model card by its name.

    What the provider of a store or extractor uses is not included; the caller adds it with `|`.
    """
    place = _Place(file, environment, find_card)
    uses = _FINDERS[type(config).__name__](config, place)
    if _is_benchmark(config):
        receivers = [use.value for use in uses.hosts if use.key == "data.path"]
    else:
        receivers = [use.value for use in (*uses.hosts, *uses.modules)] + [_first_word(use) for use in uses.programs]
    return uses | Uses(other_variables=_other_variables(config, uses, receivers[0] if receivers else ""))


def _is_benchmark(config: Record) -> TypeGuard[BenchmarkConfig]:
    return type(config).__name__ == "BenchmarkConfig"


def _first_word(program: Use) -> str:
    return shlex.split(program.value)[0]


def model_uses(name: str, key: str, environment: Mapping[str, str]) -> Uses:
    """Return the host and the key variables of a model."""
    return _model(name, key, _Place(None, environment))


def _provider(config: ProviderConfig, place: _Place) -> Uses:
    uses = Uses()
    adapter = config.adapter or ""
    if adapter and not adapter.startswith((BUILTIN, PLUGIN)):
        path, _, name = adapter.rpartition(":")
        uses |= Uses(modules=(Use(f"{place.path_of(path)}:{name}", "adapter"),))
    if config.connection.sign is not None:
        path, _, name = config.connection.sign.rpartition(":")
        uses |= Uses(modules=(Use(f"{place.path_of(path)}:{name}", "connection.sign"),))
    if config.connection.base_url:
        uses |= _address(config.connection.base_url, "connection.baseUrl", config.auth, place)
    if config.docker is not None:
        uses |= _docker(config.docker, config.auth, place)
    if config.mcp is not None:
        uses |= _server(config.mcp, place)
    if config.embedding is not None:
        uses |= _embedder(config.embedding, "embedding", place)
    if config.local is not None:
        uses |= _embedder(config.local.embedding, "local.embedding", place)
        uses |= _database(config.local.database, place)
    if config.enhancement_model is not None:
        uses |= _model(config.enhancement_model, "local.enhancement.model", place)
    return uses


def _store(config: StoreConfig, place: _Place) -> Uses:
    if config.command is not None:
        return Uses(programs=(Use(shlex.join(config.command.run), "command.run"),))
    return _server(config.mcp, place) if config.mcp is not None else Uses()


def _extractor(config: ExtractorConfig, place: _Place) -> Uses:
    uses = Uses()
    if config.url is not None:
        uses |= _address(config.url, "url", config.auth, place)
    if config.command is not None:
        program = Use(config.command, "command")
        uses |= Uses(
            programs=(program,),
            other_variables=(Use(EVERY_VARIABLE, "command", _first_word(program)),),
        )
    if config.function is not None:
        path, _, name = config.function.rpartition(":")
        base = place.file.parent if place.file else Path()
        module = str((base / path).resolve()) if path.endswith(".py") else path
        uses |= Uses(modules=(Use(f"{module}:{name}", "function"),))
    if config.model is not None:
        uses |= _model(config.model, "model", place)
    from memorybench.extractors.plugin import load_type

    if load_type(config.type).runs_code and not uses.code:  # a type of a plug-in
        uses |= Uses(programs=(Use(config.type, "type"),))
    return uses


def _agent(config: AgentConfig, place: _Place) -> Uses:
    if config.type == "builtin":
        return _model(config.model, "model", place) if config.model is not None else Uses()
    programs = []
    for key in ("command", "following"):
        words = [part for word in getattr(config, key) for part in ([word] if isinstance(word, str) else word)]
        if words:
            programs.append(Use(shlex.join(words), key))
    passed = [Use(name, "passEnv", _first_word(programs[0])) for name in config.pass_env]
    return Uses(
        programs=tuple(programs),
        credentials=tuple(use for use in passed if not use.value.endswith("_URL")),
        other_variables=tuple(use for use in passed if use.value.endswith("_URL")),
    )


def _benchmark(config: BenchmarkConfig, place: _Place) -> Uses:
    uses = Uses()
    data, evaluation = config.data, config.evaluation
    if data.type in ("url", "huggingface"):
        from memorybench.datasets.config import HUB

        hub = place.environment.get("HF_ENDPOINT") or HUB
        uses |= Uses(hosts=(Use(place.host_of(data.path if data.type == "url" else hub), "data.path"),))
    if evaluation.custom_evaluator is not None:
        path, _, name = evaluation.custom_evaluator.rpartition(":")
        uses |= Uses(modules=(Use(f"{Path(path).resolve()}:{name}", "evaluation.customEvaluator"),))
    for choice, key in ((evaluation.answering_model, "answeringModel"), (evaluation.judge, "judge")):
        if choice is not None:
            uses |= _model(choice.model, f"evaluation.{key}.model", place)
    return uses


def _address(address: str, key: str, auth: Auth, place: _Place) -> Uses:
    host = place.host_of(address)
    credentials = (Use(auth.env_var, "auth.envVar", host),) if auth.env_var else ()
    return Uses(hosts=(Use(host, key),), credentials=credentials)


def _docker(docker: Docker, auth: Auth, place: _Place) -> Uses:
    file = place.path_of(docker.compose)
    try:
        images = _IMAGE.findall(read_text(Path(file)))
    except (BadInput, OSError):
        images = []
    program = Uses(
        programs=(Use(shlex.join(["docker", "compose", "-f", file, "up", "-d"]), "docker.compose"),),
        images=tuple(Use(image, "docker.compose") for image in images),
    )
    return (
        program
        | _address(docker.base_url, "docker.baseUrl", auth, place)
        | Uses(hosts=(Use(place.host_of(docker.healthcheck), "docker.healthcheck"),))
    )


def _server(server: ServerConnection, place: _Place) -> Uses:
    if server.url is None:
        return Uses(programs=(Use(shlex.join(server.command), "mcp.command"),))
    host = place.host_of(server.url)
    keys = [
        Use(found[1], f"mcp.headers.{name}", host)
        for name, text in server.headers.items()
        if name.lower() == "authorization" and (found := _AUTHORIZATION.fullmatch(text))
    ]
    return Uses(hosts=(Use(host, "mcp.url"),), credentials=tuple(keys))


def _card(card: ModelConfig, place: _Place) -> Uses:
    return _address(card.base_url, "baseUrl", card.auth, place)


def _embedder(embedding: Embedding, key: str, place: _Place) -> Uses:
    if embedding.provider == "local":
        return Uses()
    from memorybench.models.presets import PRESETS, has_address, resolve

    if embedding.model and (has_address(embedding.model) or place.find_card(embedding.model)):
        return _model(embedding.model, f"{key}.model", place)
    preset = PRESETS[embedding.provider]
    try:
        host = place.host_of(embedding.base_url or resolve(f"{embedding.provider}/model", place.environment).base_url)
    except BadInput:
        return Uses()  # an invalid address in an environment variable, which raises when the embedder is opened
    names = (embedding.env_var,) if embedding.env_var else preset.key_variables
    variable_key = f"{key}.envVar" if embedding.env_var else f"{key}.provider"
    return Uses(
        hosts=(Use(host, f"{key}.baseUrl" if embedding.base_url else f"{key}.provider"),),
        credentials=tuple(Use(name, variable_key, host) for name in names),
    )


def _database(database: Database, place: _Place) -> Uses:
    uses = Uses()
    if database.schema_file is not None:
        file = place.path_of(database.schema_file)
        try:
            text = " ".join(read_text(Path(file)).split())
        except (BadInput, OSError):
            text = "file not found"
        shown = text if len(text) <= _LONGEST_SQL else f"{text[:_LONGEST_SQL]}…"
        uses |= Uses(sql=(Use(f"{file}: {shown}", "local.database.schema"),))
    if database.connection_string is not None:
        key, host = "local.database.connectionString", place.host_of(database.connection_string)
        variables = tuple(Use(name, key, host) for name in _variables_in(database.connection_string))
        uses |= Uses(sql=(Use(f"CREATE TABLE … on {host}", key),), hosts=(Use(host, key),), credentials=variables)
    return uses


def _model(name: str, key: str, place: _Place) -> Uses:
    from memorybench.models.presets import resolve

    card = place.find_card(name)
    if card is not None:
        # its credentials are checked when the card is opened
        return Uses(hosts=(Use(place.host_of(card.base_url), key),))
    try:
        address = resolve(place.expand(name), place.environment)
    except BadInput:
        return Uses()  # a scripted model, or an unknown one, which raises when it is opened
    host = place.host_of(address.base_url)
    return Uses(
        hosts=(Use(host, key),), credentials=tuple(Use(variable, key, host) for variable in address.key_variables)
    )


def _other_variables(config: Record, uses: Uses, receiver: str) -> tuple[Use, ...]:
    """Return each `${VAR}` of the config that is not among the credentials in `uses`.

    `receiver` is the server, module or program that gets the values.
    """
    section = config.data if _is_benchmark(config) else config  # only `data` may contain variables
    before: Place = ("data",) if _is_benchmark(config) else ()
    known = {(use.value, use.key) for use in uses.credentials}
    found = []
    for place, text in texts_in(section, before):
        key = ".".join(map(str, place))
        names = [] if key == "name" else list(_variables_in(text))  # an expression repeats its settings
        if names and key in _ADDRESSES and _LEADING_VARIABLE.match(text):
            found.append(Use(names.pop(0), key))
        to = "" if key in _LOCAL_PATHS else receiver
        found += [Use(name, key, to) for name in names if (name, key) not in known]
    return tuple(found)


def _variables_in(text: str) -> Iterator[str]:
    return (match["name"] for match in REFERENCE.finditer(text) if match["name"])


def texts_in(value: object, place: Place) -> Iterator[tuple[Place, str]]:
    """Yield every text of a config, or of plain data, with its place in the spelling of the file."""
    match value:
        case str():
            yield place, value
        case Record():
            for name, field in type(value).model_fields.items():
                yield from texts_in(getattr(value, name), (*place, field.alias or camel(name)))
        case Mapping():
            for name, inner in value.items():
                yield from texts_in(inner, (*place, str(name)))
        case tuple() | list():
            for index, inner in enumerate(value):
                yield from texts_in(inner, (*place, index))


_FINDERS: Mapping[str, Callable[[Any, _Place], Uses]] = {
    "PlainProviderConfig": _provider,
    "ProviderConfig": _provider,
    "StoreConfig": _store,
    "ExtractorConfig": _extractor,
    "AgentConfig": _agent,
    "BenchmarkConfig": _benchmark,
    "ModelConfig": _card,
}
"""The function that finds the uses of each class of configs, by the name of the class, which need not be imported."""
