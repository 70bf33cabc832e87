"""An HTTP endpoint as an extractor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memorybench.core.conversation import Turn
from memorybench.core.errors import Malformed
from memorybench.core.extraction import MemoryState
from memorybench.core.records import digest
from memorybench.core.trials import Subject
from memorybench.files.bodies import BodyTemplate
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.http.config import auth_headers, check_address, check_auth
from memorybench.secrets.redaction import Redactor, redact_strings

from .config import ExtractorConfig
from .plugin import ExtractorType, OpenContext
from .states import as_memory, dialogue, messages

if TYPE_CHECKING:
    from memorybench.http.client import Http

REQUEST_VARIABLES = frozenset({"existingMemory", "conversation", "messages"})
"""The variables that the request body may use."""


@dataclass(eq=False)
class HttpExtractor(ExtractorType):
    subject: Subject
    http: Http
    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: BodyTemplate
    output: Path
    """JSONPath to the new memory in the reply."""
    redactor: Redactor

    required_key = "url"
    keys = frozenset({"url", "method", "headers", "auth", "body", "output", "insecure", "tls", "timeout"})

    @classmethod
    def check_config(cls, config: ExtractorConfig, document: Document) -> None:
        check_address(config.url or "", document.where("url"), insecure=config.insecure, insecure_key="insecure")
        _parse_body(config, document)
        Path.parse(config.output, document.where("output"))
        check_auth(config.auth, document)

    @classmethod
    @asynccontextmanager
    async def open(cls, context: OpenContext) -> AsyncIterator[HttpExtractor]:
        """Yield an extractor that calls the endpoint of a config. The config must have values in place of `${VAR}`."""
        from memorybench.http.client import open_http

        config, redactor, where = context.config, context.redactor, f'extractor "{context.config.name}"'
        assert config.url is not None
        # a digest, because a header may contain a secret
        request = digest(config.model_dump(mode="json", include={"method", "headers", "body", "output"}))[:16]
        settings = {"type": "http", "url": redactor.clean(config.url), "request": request}
        key = context.environment.get(config.auth.env_var) if config.auth.env_var else None
        deadline = config.timeout / 1000
        async with open_http(redactor, insecure=config.insecure, deadline=deadline, tls=config.tls) as http:
            yield cls(
                subject=Subject(role="extractor", name=config.name, settings=settings),
                http=http,
                method=config.method,
                url=config.url,
                headers={**config.headers, **auth_headers(config.auth, key, where)},
                body=_parse_body(config, Document(where, None)),
                output=Path.parse(config.output, where),
                redactor=redactor,
            )

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState:
        values = {
            "existingMemory": existing,
            "messages": messages(conversation),
            "conversation": dialogue(conversation),
        }
        json = self.body.render(values)
        reply = await self.http.request(self.method, self.url, headers=self.headers, json=json)
        matches = self.output.all(reply.json())
        if not matches:
            raise reply.malformed(f"the reply has no memory at {self.output.text}")
        try:
            memory = as_memory(matches[0] if self.output.singular else matches, reply.where)
        except Malformed as malformed:
            raise Malformed(self.redactor.clean(str(malformed))) from None
        return redact_strings(memory, self.redactor.clean)  # a service may return the key that it was called with


def _parse_body(config: ExtractorConfig, document: Document) -> BodyTemplate:
    body = Document(document.path, config.body, document.line_of, (*document.within, "body"))
    return BodyTemplate.parse(body, REQUEST_VARIABLES)
