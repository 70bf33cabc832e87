"""Sends spans to an OTLP/HTTP endpoint. If the collector is down, the run continues and prints one warning."""

from __future__ import annotations

import logging
import secrets
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from memorybench import __version__
from memorybench.core.errors import BadInput
from memorybench.http.addresses import check_url

from .spans import Redact, RunSpans, clean_attributes

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    from memorybench.journal.rows import Run

FLAG = "--otel"
_PATH = "/v1/traces"
_TIMEOUT = 5.0
"""Timeout in seconds for sending one batch, including its retries."""
_LAST_SECONDS = 10.0
"""The most seconds that a run waits at its end for its last spans to be sent."""
_QUEUE = 2**14
"""Maximum number of spans that wait in memory. If the collector is slower than the run, the oldest are dropped and
counted."""
_LONGEST_REPLY = 2**16
"""Maximum number of bytes that are read of a collector's reply, which is empty or says how many spans were rejected."""
_LOGGER = "opentelemetry"


def endpoint_of(url: str, *, with_content: bool) -> str:
    """Return the address to send spans to, for the URL of `--otel`: it ends in `/v1/traces`.

    Raise BadInput if the URL is not allowed or the OpenTelemetry SDK is not installed.
    """
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace

        opentelemetry.sdk.trace.SpanLimits()
    except ImportError:
        raise BadInput(
            FLAG, "the OpenTelemetry SDK is not installed", remedy='pip install "memorybench[otel]"'
        ) from None
    except ValueError as error:  # a variable such as OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT is invalid
        raise BadInput(FLAG, str(error), remedy="correct or unset the environment variable") from None
    try:
        # without content, a collector on the local network may be reached by plain http
        parsed = check_url(url, insecure=not with_content)
    except BadInput as error:
        remedy = error.remedy or "give an address such as http://localhost:4318"
        if "exposes keys" in error.problem:
            remedy = "use https, or a collector on this machine, or leave out --otel-content"
        elif "user name or password" in error.problem:
            remedy = "set OTEL_EXPORTER_OTLP_HEADERS instead"
        raise BadInput(FLAG, error.problem, expected=error.expected, remedy=remedy) from None
    if parsed.raw_query_string or parsed.raw_fragment:
        raise BadInput(FLAG, "the URL contains a query or a fragment", remedy="set OTEL_EXPORTER_OTLP_HEADERS instead")
    path = parsed.raw_path.rstrip("/")
    return str(parsed.with_path(path if path.endswith(_PATH) else f"{path}{_PATH}", encoded=True))


@contextmanager
def sending_spans(
    endpoint: str, run: Run, redact: Redact, *, with_content: bool, is_resumed: bool
) -> Iterator[RunSpans]:
    """Yield an observer of the run, and send the spans that the observer creates.

    At the end of the `with` block, wait a short time until the last spans are sent, and print a warning if some are
    lost. The block must call the observer's `end`, unless it raises an exception.
    """
    with _quiet():
        sender = _Sender(endpoint, redact)
        tracer = sender.provider.get_tracer("memorybench", __version__)
        spans = RunSpans(tracer, run, redact, with_content=with_content, is_resumed=is_resumed)
        try:
            yield spans
        except BaseException:
            with suppress(Exception):
                spans.end("partial")
            raise
        finally:
            with suppress(Exception):
                sender.close()
    if sender.lost:
        reason = f": {sender.session.problem}" if sender.session.problem else ""
        with suppress(OSError):
            text = f"memorybench: {FLAG}: {sender.lost} of {sender.ended} spans were not sent to {endpoint}{reason}"
            print(redact(text), file=sys.stderr)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the SDK's log messages, which may contain headers; the user gets one warning at the end instead."""
    logger = logging.getLogger(_LOGGER)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


class _Sender:
    """Queues spans and sends them in batches from a thread."""

    def __init__(self, endpoint: str, redact: Redact) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
        from opentelemetry.sdk.trace.id_generator import IdGenerator
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON

        self.ended = 0
        self._sent = 0
        self.session = _session()
        self._is_failing = False
        self._deadline: float | None = None
        sender = self

        class Counter(SpanProcessor):
            def on_end(self, span: ReadableSpan) -> None:
                sender.ended += 1

        class Exporter(SpanExporter):
            def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
                return SpanExportResult.SUCCESS if sender._send(spans) else SpanExportResult.FAILURE

            def shutdown(self) -> None:
                sender._exporter.shutdown()

        class RandomIds(IdGenerator):
            """Ids from `secrets`. The SDK uses `random`, which adapters may seed: two runs would have the same ids."""

            def generate_span_id(self) -> int:
                return secrets.randbits(64) or 1

            def generate_trace_id(self) -> int:
                return secrets.randbits(128) or 1

        self._exporter: SpanExporter = OTLPSpanExporter(endpoint, timeout=_TIMEOUT, session=self.session)
        self._processor: Any = BatchSpanProcessor(
            Exporter(), max_queue_size=_QUEUE, schedule_delay_millis=1000, max_export_batch_size=256
        )
        resource = Resource.create({"service.name": "memorybench", "service.version": __version__})
        # redacted, because variables such as OTEL_RESOURCE_ATTRIBUTES add attributes
        resource = Resource(clean_attributes(resource.attributes, redact), resource.schema_url)
        self.provider: TracerProvider = TracerProvider(
            ALWAYS_ON, resource, shutdown_on_exit=False, id_generator=RandomIds()
        )
        self.provider.add_span_processor(Counter())
        self.provider.add_span_processor(self._processor)

    @property
    def lost(self) -> int:
        return self.ended - self._sent

    def close(self) -> None:
        """Send the queued spans; drop them if the collector fails, or after `_LAST_SECONDS`."""
        self._deadline = time.monotonic() + _LAST_SECONDS
        if self._is_failing:
            self._exporter.shutdown()  # if it waits before a retry, end the wait
        # a thread, because the processor exceeds its timeout if the reply arrives byte by byte
        ending = threading.Thread(target=self._processor.shutdown, daemon=True)
        ending.start()
        ending.join(_LAST_SECONDS)
        if ending.is_alive():
            self.session.problem = "timed out"

    def _send(self, spans: Sequence[ReadableSpan]) -> bool:
        from opentelemetry.sdk.trace.export import SpanExportResult

        if self._deadline is not None and (self._is_failing or time.monotonic() > self._deadline):
            return False
        self.session.rejected = 0
        result = self._exporter.export(spans)
        self._is_failing = result is not SpanExportResult.SUCCESS
        if not self._is_failing:
            self._sent += len(spans) - self.session.rejected
        return not self._is_failing


def _session() -> Any:
    """Return an HTTP session that records why the collector did not accept spans."""
    import requests
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    class Session(requests.Session):
        def __init__(self) -> None:
            super().__init__()
            self.problem = ""
            self.rejected = 0
            self.auth = lambda request: request  # otherwise credentials of ~/.netrc would be sent

        def request(self, *arguments: Any, **options: Any) -> requests.Response:
            try:
                response = super().request(*arguments, **{**options, "stream": True})
                content = _read_reply(response)
            except requests.RequestException as error:
                self.problem = _error_text(error)
                raise
            if response.status_code >= 300:
                self.problem = f"HTTP status {response.status_code}"
            if 300 <= response.status_code < 400:
                raise requests.TooManyRedirects(self.problem)  # the exporter would count a redirect as a success
            if response.ok and _is_page(response, content):
                self.problem = (
                    "the reply is an HTML page, so no collector is at this address; check host, port and path"
                )
                raise requests.RequestException(self.problem)
            if response.ok and content:
                reply = ExportTraceServiceResponse()
                with suppress(Exception):  # a reply that cannot be parsed counts as a success
                    reply.ParseFromString(content)
                if reply.partial_success.rejected_spans:
                    self.rejected = reply.partial_success.rejected_spans
                    self.problem = "the collector rejected them"
            return response

    return Session()


def _read_reply(response: requests.Response) -> bytes:
    """Return a reply, or the first `_LONGEST_REPLY` bytes of a longer one.

    Raise requests.Timeout if reading takes longer than `_TIMEOUT`.
    """
    import requests

    deadline, content = time.monotonic() + _TIMEOUT, b""
    with response:
        for piece in response.iter_content(_LONGEST_REPLY):
            content += piece
            if len(content) >= _LONGEST_REPLY:
                break
            if time.monotonic() > deadline:
                raise requests.Timeout
    return content


def _is_page(response: requests.Response, content: bytes) -> bool:
    """Return whether a reply is an HTML page. A reply without content is not, whatever its `Content-Type` says.

    OTLP allows Protocol Buffers and JSON, and neither begins with `<`:
    https://opentelemetry.io/docs/specs/otlp/#otlphttp-response
    """
    kind = response.headers.get("Content-Type", "")
    return bool(content) and ("html" in kind.lower() or content.startswith(b"<"))


def _error_text(error: Exception) -> str:
    import requests

    if isinstance(error, requests.exceptions.SSLError):
        return "TLS error"
    if isinstance(error, requests.Timeout):
        return "timed out"
    return "no connection" if isinstance(error, requests.ConnectionError) else type(error).__name__
