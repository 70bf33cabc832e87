"""A strict OTLP/HTTP collector: it decodes every request, and refuses what the protocol does not allow.

with Collector() as collector:
    ...                                  # --otel collector.url
    assert [span.name for span in collector.spans] == ["run bench"]
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.doubles.stub import Call, Stub

PROTOBUF = "application/x-protobuf"


@dataclass(frozen=True)
class Seen:
    """A span as the collector received it."""

    name: str
    id: bytes
    parent: bytes
    trace: bytes
    kind: int
    attributes: Mapping[str, Any]
    events: tuple[tuple[str, Mapping[str, Any]], ...]
    start: int
    end: int
    is_error: bool


@dataclass
class Collector:
    stub: Stub = field(default_factory=Stub)
    spans: list[Seen] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Why requests were refused."""
    rejected: int = 0
    """Spans to reject of each request."""

    def __enter__(self) -> Self:
        self.stub.__enter__()
        self.stub.always(self._take)
        return self

    def __exit__(self, *error: object) -> None:
        self.stub.__exit__(*error)

    @property
    def url(self) -> str:
        return self.stub.url

    def named(self, name: str) -> list[Seen]:
        return [span for span in self.spans if span.name == name]

    def tree(self) -> dict[str, list[str]]:
        """The names of the children of each span, by its name."""
        names = {span.id: span.name for span in self.spans}
        found: dict[str, list[str]] = {}
        for span in self.spans:
            found.setdefault(names.get(span.parent, ""), []).append(span.name)
        return found

    def json_lines(self) -> str:
        """What the file exporter of the OpenTelemetry collector writes: one request in OTLP JSON per line.

        Ids are hexadecimal in OTLP JSON, unlike in the JSON of Protocol Buffers.
        """
        return "".join(f"{_otlp_json(body)}\n" for body in self.bodies)

    async def _take(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        try:
            body = self._decode(call)
        except ValueError as error:
            self.refused.append(str(error))
            return web.Response(status=400, text=str(error))
        self.bodies.append(body)
        reply = ExportTraceServiceResponse()
        reply.partial_success.rejected_spans = self.rejected
        return web.Response(body=reply.SerializeToString(), content_type=PROTOBUF)

    def _decode(self, call: Call) -> bytes:
        headers = {name.lower(): value for name, value in call.headers.items()}
        if (call.method, call.path, headers.get("content-type")) != ("POST", "/v1/traces", PROTOBUF):
            raise ValueError(f"{call.method} {call.path} {headers.get('content-type')}")
        body = gzip.decompress(call.body) if headers.get("content-encoding") == "gzip" else call.body
        message = ExportTraceServiceRequest.FromString(body)
        if message.SerializeToString() != body and message.ByteSize() != len(body):
            raise ValueError("unknown fields")
        for resource in message.resource_spans:
            if "service.name" not in _values(resource.resource.attributes):
                raise ValueError("no service.name")
            for scope in resource.scope_spans:
                if not scope.scope.name:
                    raise ValueError("no instrumentation scope")
                self.spans += [self._span(span) for span in scope.spans]
        return body

    def _span(self, span: Any) -> Seen:
        if len(span.trace_id) != 16 or len(span.span_id) != 8 or not any(span.trace_id) or not any(span.span_id):
            raise ValueError("invalid id")
        if len(span.parent_span_id) not in (0, 8):
            raise ValueError("invalid parent")
        if any(span.span_id == other.id for other in self.spans):
            raise ValueError(f"{span.name} was sent twice")
        if not span.name or not 0 < span.start_time_unix_nano <= span.end_time_unix_nano:
            raise ValueError(f"invalid name or time of {span.name!r}")
        if len({pair.key for pair in span.attributes}) != len(span.attributes):
            raise ValueError(f"{span.name} has an attribute twice")
        events = tuple((event.name, _values(event.attributes)) for event in span.events)
        return Seen(
            span.name,
            span.span_id,
            span.parent_span_id,
            span.trace_id,
            span.kind,
            _values(span.attributes),
            events,
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            span.status.code == 2,
        )


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        raise ValueError("an attribute without a value")
    found = getattr(value, kind)
    return [_value(one) for one in found.values] if kind == "array_value" else found


def _otlp_json(body: bytes) -> str:
    import base64
    import json

    def with_hex_ids(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: base64.b64decode(one).hex() if key in ("traceId", "spanId", "parentSpanId") else with_hex_ids(one)
                for key, one in value.items()
            }
        return [with_hex_ids(one) for one in value] if isinstance(value, list) else value

    message = ExportTraceServiceRequest.FromString(body)
    return json.dumps(with_hex_ids(json.loads(MessageToJson(message))))


def walk(spans: list[Seen]) -> Iterator[tuple[str, Any]]:
    """Yield every name and value of an attribute, of spans and events."""
    for span in spans:
        yield from span.attributes.items()
        for _, attributes in span.events:
            yield from attributes.items()
