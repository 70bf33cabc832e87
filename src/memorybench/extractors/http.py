"""An HTTP endpoint as an extractor."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput, Malformed
from memorybench.core.extraction import MemoryState
from memorybench.core.records import digest
from memorybench.core.trials import Subject
from memorybench.files.bodies import BodyTemplate
from memorybench.files.configs import STAND_IN
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.http.addresses import check_url
from memorybench.secrets.redaction import Redactor

from .config import Auth, ExtractorConfig
from .plugin import ExtractorType, OpenContext
from .states import as_memory, dialogue, messages, redacted

if TYPE_CHECKING:
    from memorybench.http.client import Http

REQUEST_VARIABLES = frozenset({"existingMemory", "conversation", "messages"})
"""What the body may name."""
_PREFIXES = {"bearer": "Bearer ", "token": "Token ", "apikey": ""}
_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str]
    body: BodyTemplate
    output: Path
    """Path to the new memory in the reply."""


class HttpExtractor(ExtractorType):
    required_key = "url"
    keys = frozenset({"url", "method", "headers", "auth", "body", "output", "insecure", "tls", "timeout"})

    @classmethod
    def check_config(cls, config: ExtractorConfig, document: Document) -> None:
        if config.url is not None and STAND_IN not in config.url:
            _check_address(config.url, config.insecure, document.where("url"))
        _parse_body(config, document)
        Path.parse(config.output, document.where("output"))
        if config.auth.type == "none":
            return
        if config.auth.env_var is None:
            expected = "the name of the environment variable with the key"
            raise BadInput(document.where("auth"), '"envVar" is missing', expected=expected)
        if not _VARIABLE_NAME.fullmatch(config.auth.env_var):
            # the value is not shown: it is probably the key itself
            raise BadInput(
                document.where("auth", "env_var"),
                "invalid name of an environment variable",
                expected="a name such as EXTRACTOR_API_KEY",
                remedy="keep the key itself out of the file",
            )

    @classmethod
    def open(cls, context: OpenContext) -> AbstractAsyncContextManager[HttpExtractor]:
        env_var = context.config.auth.env_var
        key = context.environment.get(env_var) if env_var else None
        return open_http_extractor(context.config, key=key, redactor=context.redactor)

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
        matches = request.output.all(reply.json())
        if not matches:
            raise reply.malformed(f"no memory at {request.output.text}")
        try:
            memory = as_memory(matches[0] if request.output.singular else matches, reply.where)
        except Malformed as malformed:
            raise Malformed(self._redactor.clean(str(malformed))) from None
        return redacted(memory, self._redactor.clean)


@asynccontextmanager
async def open_http_extractor(
    config: ExtractorConfig, *, key: str | None, redactor: Redactor
) -> AsyncIterator[HttpExtractor]:
    """Open the endpoint of a config that was read with an environment. `key` is the value of `auth.envVar`."""
    where = f'extractor "{config.name}"'
    if config.url is None:
        raise BadInput(where, "missing url", expected="an http extractor")
    request = Request(
        method=config.method,
        url=config.url,
        headers={**config.headers, **_auth_headers(config.auth, key, where)},
        body=_parse_body(config, Document(where, None)),
        output=Path.parse(config.output, where),
    )
    subject = Subject(role="extractor", name=config.name, settings=_settings(config, redactor))
    from memorybench.http.client import open_http

    seconds = config.timeout / 1000
    async with open_http(redactor, insecure=config.insecure, deadline=seconds, tls=config.tls) as http:
        yield HttpExtractor(subject, http, request, redactor)


def _parse_body(config: ExtractorConfig, document: Document) -> BodyTemplate:
    body = Document(document.path, config.body, document.line_of, (*document.within, "body"))
    return BodyTemplate.parse(body, REQUEST_VARIABLES)


def _check_address(url: str, insecure: bool, where: str) -> None:
    try:
        check_url(url, insecure)
    except BadInput as bad:
        is_plain = url.startswith("http://")
        remedy = "use https, or set insecure: true if you trust the network" if is_plain else bad.remedy
        raise BadInput(where, bad.problem, expected=bad.expected, remedy=remedy) from None


def _settings(config: ExtractorConfig, redactor: Redactor) -> dict[str, str]:
    """Return what affects results. The request is a digest, because a header may contain a secret."""
    request = config.model_dump(mode="json", include={"method", "headers", "body", "output"})
    return {"type": "http", "url": redactor.clean(config.url or ""), "request": digest(request)[:16]}


def _auth_headers(auth: Auth, key: str | None, where: str) -> Mapping[str, str]:
    if auth.type == "none":
        return {}
    if not key:
        raise BadInput(where, f"missing key; {auth.env_var} is not set", remedy=f"export {auth.env_var}=…")
    prefix = _PREFIXES[auth.type] if auth.prefix is None else auth.prefix
    return {auth.header: f"{prefix}{key}"}
