"""The requests of one service, parsed once from its config when the provider is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from memorybench.files.bodies import BodyTemplate
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document, Place
from memorybench.files.templates import Template
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.requests import Add, BatchAdd, Housekeeping, ListAll, Poll, Probe, Search
from memorybench.providers.config.variables import AnyName, variables_in

from .documents import Portioning
from .requests import Filling, Reading, RequestTemplate, filling, parsed
from .results import ResponseTemplate
from .waiting import PollTemplate

_ANY = AnyName()


@dataclass(frozen=True, slots=True)
class Chore:
    """A request of setup, clear or teardown."""

    request: RequestTemplate
    reading: Reading
    wait: PollTemplate | None
    repeatable: bool


@dataclass(frozen=True, slots=True)
class Storing:
    """A request that stores documents."""

    endpoint: Literal["add", "batchAdd"]
    request: RequestTemplate
    reading: Reading
    stored_as: Path | None
    wait: PollTemplate | Probe | None
    document: Filling | None
    """The template of one document of a batch."""
    names: frozenset[str]
    """The variables that the request and its documents need."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A request that returns memories: a search or a listing."""

    request: RequestTemplate
    response: ResponseTemplate


@dataclass(frozen=True, slots=True)
class Dialect:
    run_id_format: Template
    setup: tuple[Chore, ...]
    add: Storing
    batch_add: Storing | None
    """None also if the config has one that its capabilities forbid."""
    search: Finding
    list: Finding | None
    closing: tuple[Chore, ...]
    """The requests that clear a scope: `endpoints.clear`, then `teardown`."""
    portioning: Portioning

    @property
    def captured(self) -> frozenset[str]:
        """The variables that setup captures."""
        return frozenset(name for chore in self.setup for name in chore.reading.captures)

    @property
    def repeatable(self) -> bool:
        """Whether setup can be repeated to get the ids of an existing scope."""
        return all(chore.repeatable for chore in self.setup)

    @property
    def probes(self) -> bool:
        return any(isinstance(storing.wait, Probe) for storing in (self.add, self.batch_add) if storing)

    @classmethod
    def parse(cls, config: ProviderConfig) -> Dialect:
        assert config.endpoints is not None
        root = Document(f'provider "{config.name}"', config.model_dump())
        endpoints, capabilities = config.endpoints, config.capabilities
        add = _storing(root, ("endpoints", "add"), endpoints.add)
        batch_add = None
        if endpoints.batch_add and capabilities.unordered and capabilities.supports_batch is not False:
            batch_add = _storing(root, ("endpoints", "batch_add"), endpoints.batch_add)
        closing = [_chore(root, ("teardown", n), chore) for n, chore in enumerate(config.teardown)]
        if endpoints.clear is not None:
            closing.insert(0, _chore(root, ("endpoints", "clear"), endpoints.clear))
        return cls(
            run_id_format=Template.parse(config.scoping.run_id_format, _ANY, root.where("scoping", "run_id_format")),
            setup=tuple(_chore(root, ("setup", n), chore) for n, chore in enumerate(config.setup)),
            add=add,
            batch_add=batch_add,
            search=_finding(root, ("endpoints", "search"), endpoints.search),
            list=_finding(root, ("endpoints", "list"), endpoints.list) if endpoints.list else None,
            closing=tuple(closing),
            portioning=_portioning(config, root, add.names | (batch_add.names if batch_add else frozenset())),
        )


def _chore(root: Document, place: Place, chore: Housekeeping) -> Chore:
    part = root.at(*place)
    wait = PollTemplate.parse(part.at("wait"), chore.wait) if chore.wait else None
    reading = Reading.parse(part, chore, needed=wait is not None and wait.id is not None)
    return Chore(RequestTemplate.parse(part, chore), reading, wait, chore.repeatable)


def _storing(root: Document, place: Place, storing: Add | BatchAdd) -> Storing:
    part = root.at(*place)
    request = RequestTemplate.parse(part, storing)
    document = _body(root, (*place, "document"), storing.document) if isinstance(storing, BatchAdd) else None
    wait = PollTemplate.parse(part.at("wait"), storing.wait) if isinstance(storing.wait, Poll) else storing.wait
    asked_by_id = isinstance(wait, PollTemplate) and wait.id is not None
    return Storing(
        endpoint="add" if isinstance(storing, Add) else "batchAdd",
        request=request,
        reading=Reading.parse(part, storing, needed=asked_by_id or storing.stored_as is not None),
        stored_as=parsed(storing.stored_as, part.where("stored_as")),
        wait=wait,
        document=filling(document) if document else None,
        names=request.names | _names(document),
    )


def _finding(root: Document, place: Place, call: Search | ListAll) -> Finding:
    part = root.at(*place)
    return Finding(RequestTemplate.parse(part, call), ResponseTemplate.parse(part.at("response"), call.response))


def _portioning(config: ProviderConfig, root: Document, names: frozenset[str]) -> Portioning:
    assert config.endpoints is not None
    add = config.endpoints.add
    message = _body(root, ("endpoints", "add", "message"), add.message)
    return Portioning(
        unit=add.unit,
        by_messages="messages" in names,
        message=filling(message) if message else None,
        names_turns="turnId" in _names(message),
        max_messages=config.limits.max_messages,
        max_characters=config.limits.max_characters,
    )


def _body(root: Document, place: Place, value: Any) -> BodyTemplate | None:
    return None if value is None else BodyTemplate.parse(Document(root.path, value, within=place), _ANY)


def _names(template: BodyTemplate | None) -> frozenset[str]:
    return frozenset(name for name, _ in variables_in(template.root)) if template else frozenset()
