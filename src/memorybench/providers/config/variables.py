"""Checks that the requests of a config use only variables that have a value, and that each endpoint names the scope."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from memorybench.core.contracts import Scope
from memorybench.core.errors import BadInput
from memorybench.files.bodies import BodyTemplate, variables_in
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document, Place
from memorybench.files.templates import Template
from memorybench.text.sanitize import preview
from memorybench.text.spelling import camel, join_names, suggestion

from .provider import ProviderConfig
from .requests import (
    Add,
    BatchAdd,
    Call,
    Capture,
    FailedIf,
    Housekeeping,
    ListAll,
    Pages,
    Poll,
    Request,
    Response,
    Search,
    Storing,
)

SCOPE = frozenset({"scope", "runTag", "userId"})
"""Three variables with the same value: the name of the scope."""
ALWAYS = SCOPE | {"runId", "benchmarkId", "haystackId"}
DOCUMENT_NAMES = frozenset({"sessionId", "documentId", "content", "messages", "date", "epoch", "metadata", "embedding"})
MEMORY_ID = "memoryId"
PAGE_NAMES = {"cursor": frozenset({"cursor"}), "offset": frozenset({"offset", "page"}), "link": frozenset[str]()}
"""The variables that a request for a page may use, by the value of `pages.by`."""
VARIABLES: Mapping[str, frozenset[str]] = {
    "setup": ALWAYS,
    "add": ALWAYS | DOCUMENT_NAMES,
    "batch_add": ALWAYS | {"documents"},
    "search": ALWAYS | {"query", "limit", "tokenBudget", "threshold", "embedding"},
    "clear": ALWAYS,
    "list": ALWAYS,
    "forget": ALWAYS | {MEMORY_ID},
    "teardown": ALWAYS,
}
"""Maps each stage to the variables that its requests may use, in addition to the captures of `setup`."""
MESSAGE_NAMES = frozenset({"role", "speaker", "content", "date", "epoch", "turnId"})
POLL_ID = "pollId"
_SENT_IDS = frozenset({"documentId", "sessionId", "metadata", "turnId"})
"""Variables whose value is or contains an id that memorybench assigned."""

# common names of our variables elsewhere, for suggestions
_ALSO_KNOWN_AS = {"id": "documentId", "text": "content", "timestamp": "epoch", "namespace": "scope", "topK": "limit"}
_CAPTURED_NAME = re.compile(r"[a-z][A-Za-z0-9]*")

Used = tuple[str, str]
"""The name of a variable, and the place in the config where it is used, for error messages."""


def scope_variables(scope: Scope, name: str) -> dict[str, Any]:
    """Return the values of the variables that all requests have. `name` is the name of the scope in the service."""
    ids = {"runId": scope.run, "benchmarkId": scope.benchmark, "haystackId": scope.haystack}
    return {**dict.fromkeys(SCOPE, name), **ids}


def check_requests(config: ProviderConfig, document: Document) -> None:
    captured: frozenset[str] = frozenset()
    carriers = SCOPE
    for place, stage, call in _requests(config):
        part = document.at(*place)
        known = VARIABLES[stage] | captured
        pages = call.pages if isinstance(call, Search | ListAll) else None
        names = _check_call(config, part, call, known | (PAGE_NAMES[pages.by] if pages else frozenset()))
        if pages is not None:
            _check_pages(pages, part.at("pages"), names)
        if stage == "forget":
            _check_memory_id(part, names)
        elif place[0] == "endpoints":
            _check_scope(part, names, carriers)
        elif isinstance(call, Request):
            captured |= call.captures.keys()
            if names & carriers and config.scoping.strategy == "custom":
                carriers |= call.captures.keys()  # an id that the server assigned to a scope identifies it
    _check_capabilities(config, document)
    _check_batch_limits(config, document)


def unscoped_deletions(config: ProviderConfig) -> Iterator[str]:
    """Yield a description of each request of setup and teardown that may delete data and does not name the scope."""
    document, carriers = Document(config.name, config.model_dump()), SCOPE
    for place, stage, call in _requests(config):
        if place[0] == "endpoints" or not isinstance(call, Request):
            continue
        if {name for name, _ in _used(document.at(*place), call, AnyName())} & carriers:
            carriers |= call.captures.keys()
        elif call.method == "DELETE" or (stage == "teardown" and call.method != "GET"):
            yield f"{stage}[{place[1]}] ({call.method} {call.path})"


def can_name_sources(config: ProviderConfig) -> bool:
    """Return whether search results can name their sources.

    They can if requests that store documents send ids of memorybench, or read the service's ids with `storedAs`.
    """
    document = Document(config.name, config.model_dump())
    for place, _, call in _requests(config):
        if isinstance(call, Storing):
            part = document.at(*place)
            used = [*_used(part, call, AnyName())]
            for template in ("message", "document"):
                if getattr(call, template, None) is not None:
                    used += _used_in(part.at(template), AnyName())
            if call.stored_as is not None or _SENT_IDS & {name for name, _ in used}:
                return True
    return False


def _requests(config: ProviderConfig) -> Iterator[tuple[Place, str, Call]]:
    """Yield the place in the config, the stage (such as `setup` or `add`) and the content of each request, in order."""
    for index, request in enumerate(config.setup):
        yield ("setup", index), "setup", request
    for stage in ("add", "batch_add", "search", "clear", "list", "forget"):
        call = getattr(config.endpoints, stage, None)
        if call is not None:
            yield ("endpoints", stage), stage, call
    for index, request in enumerate(config.teardown):
        yield ("teardown", index), "teardown", request


def _check_call(config: ProviderConfig, part: Document, call: Call, known: frozenset[str]) -> frozenset[str]:
    """Return the variables that a request uses. Raise BadInput if it is invalid or uses one that is not in `known`."""
    if not call.path.startswith("/"):
        raise BadInput(
            part.where("path"),
            f"invalid path {preview(call.path)}",
            expected="a path that begins with /, without the host",
        )
    names = _known_names(config, _used(part, call, known), known)
    _check_accepted(call, part)
    if call.failed_if is not None:
        _check_failed_if(call.failed_if, part.at("failed_if"))
    if isinstance(call, Add) and call.message is not None:
        _known_names(config, _used_in(part.at("message"), MESSAGE_NAMES), MESSAGE_NAMES)
        if "messages" not in names and config.endpoints is not None and config.endpoints.batch_add is None:
            raise BadInput(
                part.where("message"),
                "message has no effect, because the request does not use $.messages",
                remedy='add "$.messages" to the body, or remove message',
            )
    if isinstance(call, BatchAdd):
        within = known | DOCUMENT_NAMES
        if "documents" not in names:
            raise BadInput(
                part.where(), "the request does not send the documents", remedy='use "$.documents" in the body'
            )
        names |= _known_names(config, _used_in(part.at("document"), within), within)
    if isinstance(call, Search | ListAll):
        check_response(call.response, part.at("response"))
    if isinstance(call, Request):
        _check_captures(call, part, known)
    if isinstance(call, Housekeeping | Storing) and isinstance(call.wait, Poll):
        poll_names = {POLL_ID, "documentId"} if isinstance(call, Storing) else {POLL_ID}
        # the process that waits may not be the one that added: it does not have the document
        scope_names = known - DOCUMENT_NAMES - {"documents"}
        _check_poll(config, call.wait, part.at("wait"), scope_names | call.captures.keys() | poll_names)
        if call.wait.per_document and (call.wait.id is None or not isinstance(call, BatchAdd)):
            where = part.where("wait", "per_document")
            raise BadInput(
                where, "perDocument has no effect here", expected="perDocument in endpoints.batchAdd.wait, with an id"
            )
    if isinstance(call, Storing):
        _check_paths(part, {"stored_as": call.stored_as})
    return names


def _check_accepted(call: Call, part: Document) -> None:
    """Raise BadInput if a request accepts error statuses, although the config reads ids or captures from its reply."""
    reads = isinstance(call, Request) and (
        bool(call.captures)
        or (isinstance(call, Storing) and call.stored_as is not None)
        or (isinstance(call, Housekeeping | Storing) and isinstance(call.wait, Poll) and call.wait.id is not None)
    )
    if call.accept and reads:
        raise BadInput(
            part.where("accept"),
            "the request accepts an error status, but a reply with such a status has no values to capture",
            remedy="remove accept, or capture in a separate request after this one",
        )


def _check_failed_if(rule: FailedIf, part: Document) -> None:
    _check_paths(part, {"path": rule.path, "message": rule.message})
    if rule.equals is not None and rule.not_equals is not None:
        raise BadInput(
            part.where("not_equals"), "notEquals and equals cannot be combined", remedy="remove one of the two"
        )
    for key in ("equals", "not_equals"):
        if key in rule.model_fields_set and getattr(rule, key) is None:
            raise BadInput(
                part.where(key),
                "null is not supported",
                expected="a text, a number, true or false",
                remedy=f"remove {camel(key)}: without it, every value except null is a failure",
            )


def _used(part: Document, call: Call, known: frozenset[str]) -> Iterator[Used]:
    yield from variables_in(Template.parse(call.path, AnyName(known), part.where("path")))
    for section in ("query", "headers", "body"):
        if getattr(call, section):
            yield from _used_in(part.at(section), known)


def _used_in(part: Document, known: frozenset[str]) -> Iterator[Used]:
    yield from variables_in(BodyTemplate.parse(part, AnyName(known)).root)


class AnyName(frozenset[str]):
    """A set that contains every name. Used to parse a template without checking its variables."""

    def __contains__(self, _: object) -> bool:
        return True


def _known_names(config: ProviderConfig, used: Iterator[Used], known: frozenset[str]) -> frozenset[str]:
    names = set()
    for name, where in used:
        if name not in known:
            raise _unknown(name, where, known)
        if name == "embedding" and config.embedding is None:
            raise BadInput(where, "$.embedding needs an embedder", remedy="add a section embedding to the config")
        if name == "metadata" and config.capabilities.supports_metadata is False:
            raise BadInput(
                where,
                "the request sends metadata, but capabilities.supportsMetadata is false",
                remedy="change one of the two",
            )
        names.add(name)
    return frozenset(names)


def _unknown(name: str, where: str, known: frozenset[str]) -> BadInput:
    elsewhere = [camel(stage) for stage, variables in VARIABLES.items() if name in variables]
    by = next((by for by, names in PAGE_NAMES.items() if name in names), None)
    meant = _ALSO_KNOWN_AS.get(name)
    if elsewhere:
        remedy = f"it is available in {join_names(elsewhere)} only"
    elif by is not None:
        remedy = f"it is available in search and list with pages: {{by: {by}}}"
    elif meant in known:
        remedy = f'did you mean "{meant}"?'
    else:
        remedy = suggestion(name, known) or f"capture it in a setup request: captures: {{{name}: $.id}}"
    return BadInput(where, f"unknown variable {preview(name)}", expected=f"one of {join_names(known)}", remedy=remedy)


def _check_scope(part: Document, names: frozenset[str], carriers: frozenset[str]) -> None:
    if not names & carriers:
        raise BadInput(
            part.where(),
            "the request does not send the scope, so all histories would share one memory",
            expected=f"one of the variables {join_names(carriers)} in every endpoint",
            remedy='send "$.scope" as user, tag or namespace',
        )


def _check_memory_id(part: Document, names: frozenset[str]) -> None:
    """Raise BadInput if a `forget` request does not contain the id of the memory.

    The request need not name the scope, because the id, which `list` returned, identifies the memory.
    """
    if MEMORY_ID not in names:
        raise BadInput(
            part.where(),
            f"the request does not use ${{{MEMORY_ID}}}",
            remedy="add it to the path, the query or the body",
        )


def _check_captures(request: Request, part: Document, known: frozenset[str]) -> None:
    for name, capture in request.captures.items():
        if isinstance(capture, Capture):
            _check_expiry(request, capture, part.at("captures", name))
    for name, path in request.capture_paths.items():
        where = part.where("captures", name)
        if name in known:
            raise BadInput(where, f"{preview(name)} is already a variable of memorybench", remedy="choose another name")
        if not _CAPTURED_NAME.fullmatch(name):
            raise BadInput(where, f"invalid variable name {preview(name)}", expected="a name such as collectionId")
        Path.parse(path, where)


def _check_expiry(request: Request, capture: Capture, part: Document) -> None:
    is_path = isinstance(capture.expires_in, str)
    _check_paths(part, {"expires_in": str(capture.expires_in) if is_path else None, "expires_at": capture.expires_at})
    key = "expires_in" if capture.expires_in is not None else "expires_at"
    if capture.expires_in is not None and capture.expires_at is not None:
        raise BadInput(part.where(key), "expiresIn and expiresAt cannot be combined", remedy="remove one of the two")
    if getattr(capture, key) is None:
        return
    if part.within[:1] != ("setup",):
        raise BadInput(
            part.where(key),
            f"{camel(key)} has no effect here",
            expected=f"{camel(key)} in a capture of a setup request",
        )
    is_login = all(isinstance(one, Capture) and one.secret for one in request.captures.values())
    if not (isinstance(request, Housekeeping) and (request.repeatable or is_login)):
        raise BadInput(
            part.where(key),
            "this value expires, but the request cannot be sent again: it also captures values that are not secrets",
            remedy="log in with a separate request, or set repeatable: true",
        )


def _check_pages(pages: Pages, part: Document, names: frozenset[str]) -> None:
    """Raise BadInput if a key of `pages` is missing or has no effect, or the request uses no variable for the page."""
    _check_paths(part, {"next": pages.next, "more": pages.more})
    if pages.by == "cursor" and pages.next is None:
        raise BadInput(part.where(), '"next" is missing', expected="the JSONPath of the next cursor in the reply")
    if pages.by == "offset" and pages.next is not None:
        raise BadInput(part.where("next"), "next has no effect with by: offset", remedy="remove it, or set by: cursor")
    needed = PAGE_NAMES[pages.by]
    if needed and not names & needed:
        raise BadInput(
            part.where("by"),
            f"the request does not use {' or '.join(sorted(needed))}, so it would get the first page again and again",
            remedy=f'add "$.{min(needed)}" to its query or body',
        )


def _check_batch_limits(config: ProviderConfig, document: Document) -> None:
    """Raise BadInput if the config has a limit on batches that has no effect."""
    batch_add = config.endpoints.batch_add if config.endpoints else None
    for name in ("batch_sessions", "batch_messages", "batch_bytes"):
        if getattr(config.limits, name) is not None and batch_add is None:
            raise BadInput(
                document.where("limits", name),
                f"{camel(name)} has no effect without endpoints.batchAdd",
                remedy="remove it, or add endpoints.batchAdd",
            )
    if config.limits.batch_messages is None or config.endpoints is None:
        return
    names = {name for name, _ in _used_in(document.at("endpoints", "batch_add", "document"), AnyName())}
    if config.endpoints.add.unit != "message" and "messages" not in names:
        raise BadInput(
            document.where("limits", "batch_messages"),
            "batchMessages has no effect: each document is one text, whose messages are not counted",
            expected='endpoints.add.unit: message, or "$.messages" in batchAdd.document',
        )


def _check_poll(config: ProviderConfig, poll: Poll, part: Document, known: frozenset[str]) -> None:
    _check_call(config, part, poll, known)
    if not (poll.status and poll.done) and not poll.accept:
        raise BadInput(
            part.where(), "the config does not say when the wait ends", expected="the keys status and done, or accept"
        )
    _check_paths(part, {"id": poll.id, "status": poll.status})


def check_response(response: Response, part: Document) -> None:
    if response.zip is not None:
        _check_paths(part.at("zip"), response.zip.model_dump())
        if response.results or response.content_field:
            raise BadInput(
                part.where("zip"),
                "zip cannot be combined with results and contentField",
                remedy="remove zip, or remove results and contentField",
            )
    elif not (response.results and response.content_field):
        missing = "results" if not response.results else "contentField"
        raise BadInput(part.where(), f'"{missing}" is missing', expected="results and contentField, or zip")
    _check_paths(part, response.model_dump(exclude={"zip", "score_direction"}))


def _check_paths(part: Document, paths: Mapping[str, str | None]) -> None:
    for name, path in paths.items():
        if path is not None:
            Path.parse(path, part.where(name))


def _check_capabilities(config: ProviderConfig, document: Document) -> None:
    """Raise BadInput if a declared capability contradicts the endpoints, such as supportsBatch without batchAdd."""
    if config.endpoints is None:
        return
    if config.capabilities.supports_batch and config.endpoints.batch_add is None:
        raise BadInput(
            document.where("capabilities", "supports_batch"),
            "supportsBatch is true, but endpoints.batchAdd is missing",
            remedy="add endpoints.batchAdd, or set supportsBatch: false",
        )
    if config.capabilities.supports_chunks is False and config.endpoints.search.response.chunks_field:
        raise BadInput(
            document.where("capabilities", "supports_chunks"),
            "supportsChunks is false, but endpoints.search.response has a chunksField",
            remedy="remove one of the two",
        )
