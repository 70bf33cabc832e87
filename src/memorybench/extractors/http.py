"""An HTTP endpoint as an extractor, described by YAML."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, Malformed
from memorybench.core.extraction import MemoryState
from memorybench.core.records import digest
from memorybench.core.trials import Subject
from memorybench.files.bodies import BodyTemplate
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.http.client import Http, open_http
from memorybench.secrets.redaction import Redactor

from .config import Auth, ExtractorConfig
from .config_reading import parse_body
from .states import as_memory, dialogue, messages, redacted

_PREFIXES = {"bearer": "Bearer ", "token": "Token ", "apikey": ""}


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str]
    body: BodyTemplate
    output: Path
    """Where in the reply the new memory stands."""


class HttpExtractor:
    """Opened by `open_http_extractor`."""

    def __init__(self, subject: Subject, http: Http, request: Request, redactor: Redactor) -> None:
        self.subject = subject
        self._http = http
        self._request = request
        self._redactor = redactor

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
        request = self._request
        values = {
            "existingMemory": existing,
            "messages": messages(conversation),
            "conversation": dialogue(conversation),
        }
        reply = await self._http.request(
            request.method, request.url, headers=request.headers, json=request.body.render(values)
        )
        found = request.output.all(reply.json())
        if not found:
            raise reply.malformed(f"no memory at {request.output.text}")
        try:
            memory = as_memory(found[0] if request.output.singular else found, reply.where)
        except Malformed as malformed:
            raise Malformed(self._redactor.clean(str(malformed))) from None
        return redacted(memory, self._redactor.clean)


@asynccontextmanager
async def open_http_extractor(
    config: ExtractorConfig, *, key: str | None, redactor: Redactor
) -> AsyncIterator[HttpExtractor]:
    """`config` as it was read with an environment; `redactor` knows `key`, the value of `auth.envVar`."""
    where = f'extractor "{config.name}"'
    if config.url is None:
        raise BadInput(where, "has no url", expected="an http extractor")
    request = Request(
        method=config.method,
        url=config.url,
        headers={**config.headers, **_auth_headers(config.auth, key, where)},
        body=parse_body(config, Document(where, None)),
        output=Path.parse(config.output, where),
    )
    subject = Subject(role="extractor", name=config.name, settings=_settings(config, redactor))
    seconds = config.timeout / 1000
    async with open_http(redactor, insecure=config.insecure, deadline=seconds, tls=config.tls) as http:
        yield HttpExtractor(subject, http, request, redactor)


def _settings(config: ExtractorConfig, redactor: Redactor) -> dict[str, str]:
    """What makes a difference to results. The request is told by its digest: a header may hold a secret."""
    request = config.model_dump(mode="json", include={"method", "headers", "body", "output"})
    return {"type": "http", "url": redactor.clean(config.url or ""), "request": digest(request)[:16]}


def _auth_headers(auth: Auth, key: str | None, where: str) -> Mapping[str, str]:
    if auth.type == "none":
        return {}
    if not key:
        raise BadInput(where, f"its key is missing; {auth.env_var} is not set", remedy=f"export {auth.env_var}=…")
    prefix = _PREFIXES[auth.type] if auth.prefix is None else auth.prefix
    return {auth.header: f"{prefix}{key}"}
