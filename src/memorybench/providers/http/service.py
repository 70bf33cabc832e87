"""The requests of one service, parsed once from its config when the provider is opened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from memorybench.files.bodies import BodyTemplate, names_in
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document, Place
from memorybench.files.templates import Template
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.requests import (
    Add,
    BatchAdd,
    Call,
    Capture,
    Housekeeping,
    ListAll,
    Poll,
    Probe,
    Request,
    Search,
)
from memorybench.providers.config.variables import POLL_ID, AnyName

from .documents import SessionSplitter
from .paging import PageTemplate
from .requests import ReplyReader, RequestTemplate, parse_path
from .results import ResponseTemplate
from .waiting import PollTemplate

_SECRET = re.compile(r"token|secret|passw|api_?key|jwt|credential|bearer|cookie|session_?key", re.I)
_SECRET_HEADER = re.compile(r"auth|token|key|secret|cookie|session", re.I)
_VARIABLE = re.compile(r"\$\{(\w+)\}|^\$\.(\w+)$")


def secret_captures(config: ProviderConfig) -> frozenset[str]:
    """Return the names of the captures of setup that are secrets.

    These are marked or named as secrets in the config, or sent in a header for credentials, such as Authorization.
    """
    captures = {name: path for request in config.setup for name, path in request.captures.items()}
    secret = {name for name, capture in captures.items() if _is_secret(name, capture)}
    for call in _calls(config):
        for header, text in call.headers.items():
            if _SECRET_HEADER.search(header):
                secret.update(name for names in _VARIABLE.findall(text) for name in names)
    return frozenset(secret & captures.keys())


def _is_secret(name: str, capture: str | Capture) -> bool:
    if isinstance(capture, Capture):
        return capture.secret
    return _SECRET.search(f"{name} {capture}") is not None


def _calls(config: ProviderConfig) -> Iterator[Call]:
    endpoints = [call for _, call in config.endpoints or () if call is not None]
    for call in (*config.setup, *endpoints, *config.teardown):
        yield call
        wait = getattr(call, "wait", None) if isinstance(call, Request) else None
        if isinstance(wait, Call):
            yield wait


_ANY = AnyName()


class ScopeRequest(Struct, frozen=True):
    """A request of setup, clear, forget or teardown."""

    request: RequestTemplate
    reader: ReplyReader
    wait: PollTemplate | None
    is_repeatable: bool

    @property
    def names(self) -> frozenset[str]:
        """The variables that the request and its `wait` use, without those that the request itself captures."""
        of_wait = self.wait.request.names - self.reader.captures.keys() - {POLL_ID} if self.wait else frozenset()
        return self.request.names | of_wait


class AddRequest(Struct, frozen=True):
    """A request that stores documents."""

    endpoint: Literal["add", "batchAdd"]
    request: RequestTemplate
    reader: ReplyReader
    stored_as: Path | None
    wait: PollTemplate | Probe | None
    document: Any
    """The template of one document of a batch; None if the request stores a single document."""
    names: frozenset[str]
    """The variables that the request and the template of its documents use."""


class ReadRequest(Struct, frozen=True):
    """A request that returns memories: a search or a listing."""

    request: RequestTemplate
    response: ResponseTemplate
    pages: PageTemplate | None


class Service(Struct, frozen=True):
    run_id_format: Template
    setup: tuple[ScopeRequest, ...]
    add: AddRequest
    batch_add: AddRequest | None
    """The request that stores several documents; None if the config has no `batchAdd` or does not allow batches."""
    search: ReadRequest
    list: ReadRequest | None
    forget: ScopeRequest | None
    clear: tuple[ScopeRequest, ...]
    """The requests that clear a scope: `endpoints.clear`, then `teardown`."""
    splitter: SessionSplitter
    secrets: frozenset[str]
    """The names of the captures of setup that are credentials."""

    @property
    def captures(self) -> frozenset[str]:
        """The names of the variables that requests of setup capture."""
        return frozenset(name for request in self.setup for name in request.reader.captures)

    @property
    def logins(self) -> tuple[ScopeRequest, ...]:
        """The requests of setup that can be sent again for new credentials."""
        return tuple(request for request in self.setup if request.reader.secrets and request.is_repeatable)

    @property
    def shared_logins(self) -> tuple[ScopeRequest, ...]:
        """The logins that use no variable of a scope, so that all scopes can use the same credentials."""
        shared: list[ScopeRequest] = []
        known: frozenset[str] = frozenset()
        for login in self.logins:
            if login.names <= known:
                shared.append(login)
                known |= login.reader.captures.keys()
        return tuple(shared)

    @property
    def scope_logins(self) -> tuple[ScopeRequest, ...]:
        """The logins that use variables of a scope, so that each scope needs its own credentials."""
        shared = self.shared_logins
        return tuple(login for login in self.logins if login not in shared)

    @property
    def has_repeatable_setup(self) -> bool:
        """Whether all requests of setup can be repeated to get the ids of a scope that exists already."""
        return all(request.is_repeatable for request in self.setup)

    @property
    def uses_marker(self) -> bool:
        return any(isinstance(add.wait, Probe) for add in (self.add, self.batch_add) if add)

    @classmethod
    def parse(cls, config: ProviderConfig) -> Service:
        assert config.endpoints is not None
        root = Document(f'provider "{config.name}"', config.model_dump())
        secrets = secret_captures(config)
        endpoints, capabilities = config.endpoints, config.capabilities
        add = _add_request(root, ("endpoints", "add"), endpoints.add)
        batch_add = None
        if endpoints.batch_add and capabilities.unordered and capabilities.supports_batch is not False:
            batch_add = _add_request(root, ("endpoints", "batch_add"), endpoints.batch_add)
        clear = [_scope_request(root, ("teardown", n), request) for n, request in enumerate(config.teardown)]
        if endpoints.clear is not None:
            clear.insert(0, _scope_request(root, ("endpoints", "clear"), endpoints.clear))
        message = _parse_template(root, ("endpoints", "add", "message"), endpoints.add.message)
        names = add.names | (batch_add.names if batch_add else frozenset())
        limits = (config.limits.max_messages, config.limits.batch_messages if batch_add else None)
        return cls(
            run_id_format=Template.parse(config.scoping.run_id_format, _ANY, root.where("scoping", "run_id_format")),
            setup=tuple(_scope_request(root, ("setup", n), request, secrets) for n, request in enumerate(config.setup)),
            add=add,
            batch_add=batch_add,
            search=_read_request(root, ("endpoints", "search"), endpoints.search),
            list=_read_request(root, ("endpoints", "list"), endpoints.list) if endpoints.list else None,
            forget=_scope_request(root, ("endpoints", "forget"), endpoints.forget) if endpoints.forget else None,
            clear=tuple(clear),
            splitter=SessionSplitter(
                unit=endpoints.add.unit,
                by_messages="messages" in names,
                message=message,
                sends_turn_ids="turnId" in names_in(message),
                max_messages=min(filter(None, limits), default=None),
                max_characters=config.limits.max_characters,
            ),
            secrets=secrets,
        )


def _scope_request(
    root: Document, place: Place, request: Housekeeping, secrets: frozenset[str] = frozenset()
) -> ScopeRequest:
    part = root.at(*place)
    wait = PollTemplate.parse(part.at("wait"), request.wait) if request.wait else None
    has_poll_id = wait is not None and wait.id is not None
    reader = ReplyReader.parse(part, request, expects_json=has_poll_id, secrets=secrets)
    is_login = bool(reader.secrets) and reader.secrets == reader.captures.keys()
    return ScopeRequest(RequestTemplate.parse(part, request), reader, wait, request.repeatable or is_login)


def _add_request(root: Document, place: Place, add: Add | BatchAdd) -> AddRequest:
    part = root.at(*place)
    request = RequestTemplate.parse(part, add)
    document = _parse_template(root, (*place, "document"), add.document) if isinstance(add, BatchAdd) else None
    wait = PollTemplate.parse(part.at("wait"), add.wait) if isinstance(add.wait, Poll) else add.wait
    is_polled_by_id = isinstance(wait, PollTemplate) and wait.id is not None
    return AddRequest(
        endpoint="add" if isinstance(add, Add) else "batchAdd",
        request=request,
        reader=ReplyReader.parse(part, add, expects_json=is_polled_by_id or add.stored_as is not None),
        stored_as=parse_path(add.stored_as, part.where("stored_as")),
        wait=wait,
        document=document,
        names=request.names | names_in(document),
    )


def _read_request(root: Document, place: Place, call: Search | ListAll) -> ReadRequest:
    part = root.at(*place)
    return ReadRequest(
        RequestTemplate.parse(part, call),
        ResponseTemplate.parse(part.at("response"), call.response),
        PageTemplate.parse(part.at("pages"), call.pages) if call.pages else None,
    )


def _parse_template(root: Document, place: Place, value: Any) -> Any:
    """Return a value of the config as a template for `render`; None for None."""
    return BodyTemplate.parse(Document(root.path, value, within=place), _ANY).root
