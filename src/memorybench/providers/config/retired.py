"""Requests that a service no longer accepts, with what replaces them."""

from __future__ import annotations

import re

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.files.located import Document
from memorybench.text.sanitize import preview

from .provider import ProviderConfig


class _Retired(Struct, frozen=True):
    service: str
    """A text that the config's name, its base URL or its docker service contains."""
    request: str
    """A regular expression that matches the method and the whole path, such as `POST /v3/search`."""
    problem: str
    instead: str
    sends: str = ""
    """If not empty, only a request whose body has this key is rejected."""


_RETIRED = (
    _Retired(
        "chroma",
        r"\w+ /api/v1/.*",
        "Chroma's /api/v1 is gone",
        "/api/v2/tenants/default_tenant/databases/default_database/collections/${collectionId}/…, with collectionId "
        "captured in setup and vectors from an embedding section: the server does not embed",
    ),
    _Retired(
        "supermemory.ai",
        r"POST /v3/search",
        'Supermemory\'s /v3/search takes "q", not "query"',
        'base URL …/v4 with body {q: "$.query", containerTag: "$.scope"} and contentField "$.memory | $.chunk", '
        "scoreField $.similarity",
        sends="query",
    ),
    _Retired(
        "supermemory.ai",
        r"DELETE /v\d/containers/.*",
        "Supermemory has no such path",
        "DELETE /v3/container-tags/${scope}",
    ),
    _Retired(
        "mem0.ai",
        r"POST /v[12]/memories/",
        "Mem0 no longer adds memories at this path",
        "POST /v3/memories/add/, with a wait for its event_id",
    ),
    _Retired(
        "mem0.ai",
        r"POST /v[12]/memories/search/",
        "Mem0 no longer searches at this path",
        'POST /v3/memories/search/ with body {query, filters: {user_id: "$.scope"}, top_k} and results $.results',
    ),
    _Retired(
        "mem0.ai",
        r"DELETE /v\d/memories/",
        "Mem0 ignores the body of this request",
        'query: {user_id: "$.scope"}',
        sends="user_id",
    ),
)


def check_retired(config: ProviderConfig, document: Document) -> None:
    base = (config.docker.base_url if config.docker else config.connection.base_url) or ""
    service = f"{config.name} {base} {config.docker.service if config.docker else ''}"
    base_path = re.sub(r"\w+://[^/]*", "", base).rstrip("/")
    for stage in ("add", "search", "clear"):
        call = getattr(config.endpoints, stage, None)
        if call is None:
            continue
        sent = call.body if isinstance(call.body, dict) else {}
        for retired in _RETIRED:
            if (
                retired.service in service
                and re.fullmatch(retired.request, f"{call.method} {base_path}{call.path}")
                and (not retired.sends or retired.sends in sent)
            ):
                raise BadInput(
                    document.where("endpoints", stage, "path"),
                    f"{preview(call.path)}: {retired.problem}",
                    remedy=f"use {retired.instead}",
                )
