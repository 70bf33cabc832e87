"""Creates spans for a run, its trials and their steps while the engine performs them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memorybench.core import genai_names as genai
from memorybench.core.trials import STATUSES, Outcome, Trial
from memorybench.engine.observing import EndedStep
from memorybench.journal.rows import Run
from memorybench.secrets.redaction import redact_strings

from .conventions import content_attributes, operation_of, span_name, step_attributes

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

Redact = Callable[[str], str]


class RunSpans:
    """Creates the spans of a run. Implements memorybench.engine.observing.Observer. Each process of a run has one."""

    def __init__(self, tracer: Tracer, run: Run, redact: Redact, *, with_content: bool, is_resumed: bool) -> None:
        from opentelemetry.trace import set_span_in_context

        self.tracer = tracer
        self.with_content = with_content
        self._redact = redact
        self._counts: Counter[str] = Counter()
        attributes = {
            "memorybench.run.id": run.id,
            "memorybench.run.suite": run.suite,
            "memorybench.run.benchmarks": run.spec.get("benchmarks"),
            "memorybench.run.subjects": run.spec.get("subjects"),
            "memorybench.run.planned": run.planned,
            "memorybench.run.resumed": is_resumed,
        }
        self._span = tracer.start_span(f"run {run.suite}", attributes=self.clean(attributes))
        self.context = set_span_in_context(self._span)

    def start(self, trial: Trial | None) -> TrialSpans:
        return TrialSpans(self, trial)

    def count(self, status: str) -> None:
        self._counts[status] += 1

    def end(self, status: str) -> None:
        """End the span of the run. `status` is the status of the run when this process ends, such as "partial"."""
        counts = {f"memorybench.trials.{name}": self._counts[name] for name in STATUSES}
        self._span.set_attributes(self.clean({"memorybench.run.status": status, **counts}))
        self._span.end()

    def clean(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Remove secrets from the values of attributes, and leave out attributes whose value is None."""
        return clean_attributes(attributes, self._redact)

    def clean_text(self, text: str) -> str:
        """Return a text with secrets removed."""
        return _encodable(self._redact(text))

    def clean_json(self, text: str) -> Any:
        """Parse JSON and redact its strings. JSON may write a secret with escapes, so that it must be parsed first."""
        return redact_strings(json.loads(text), self._redact)


class TrialSpans:
    """Creates the spans of a trial and its steps. Implements memorybench.engine.observing.TrialObserver."""

    def __init__(self, run: RunSpans, trial: Trial | None) -> None:
        from opentelemetry.trace import set_span_in_context

        self._run = run
        self._context = run.context
        self._span: Span | None = None
        if trial is not None:
            attributes = {
                "memorybench.trial.case_id": trial.case_id,
                "memorybench.trial.benchmark": trial.benchmark,
                "memorybench.trial.variant": trial.variant or None,
                "memorybench.trial.repeat": trial.repeat,
                "memorybench.subject.name": trial.subject.name,
                "memorybench.subject.role": trial.subject.role,
            }
            name = run.clean_text(f"trial {trial.subject.name}")
            self._span = run.tracer.start_span(name, run.context, attributes=run.clean(attributes))
            self._context = set_span_in_context(self._span)

    def add_step(self, step: EndedStep) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        operation = operation_of(step)
        attributes = step_attributes(step, operation)
        if self._run.with_content:
            attributes |= content_attributes(step, operation, self._run.clean_json(step.inputs))
        span = self._run.tracer.start_span(
            self._run.clean_text(span_name(step, operation)),
            self._context,
            SpanKind.CLIENT if operation else SpanKind.INTERNAL,
            self._run.clean(attributes),
            start_time=_start_of(step),
        )
        if step.error is not None:
            span.set_status(Status(StatusCode.ERROR))
        span.end(step.ended)

    def end(self, outcome: Outcome | None) -> None:
        span = self._span
        if span is None:
            return
        if outcome is None:
            span.set_attribute("memorybench.trial.status", "interrupted")
            span.end()
            return
        from opentelemetry.trace import Status, StatusCode

        self._run.count(outcome.status)
        attributes: dict[str, Any] = {"memorybench.trial.status": outcome.status}
        if outcome.failure is not None:
            attributes[genai.ERROR_TYPE] = outcome.failure.kind
        if outcome.status == "failed":
            span.set_status(Status(StatusCode.ERROR))
        if self._run.with_content:
            shown = outcome.shown
            attributes |= {
                "memorybench.trial.asked": shown.asked or None,
                "memorybench.trial.expected": shown.expected or None,
                "memorybench.trial.got": shown.got or None,
                "memorybench.trial.error": outcome.failure.message if outcome.failure else None,
            }
        span.set_attributes(self._run.clean(attributes))
        for score in outcome.scores:
            result = {genai.EVALUATION_NAME: score.name, genai.EVALUATION_VALUE: score.value}
            if self._run.with_content:
                explanation = score.reason or (outcome.shown.reason if score.name == "correct" else "")
                result |= {genai.EXPLANATION: explanation or None}
            span.add_event(genai.EVALUATION_EVENT, self._run.clean(result))
        span.end()


def clean_attributes(attributes: Mapping[str, Any], redact: Redact) -> dict[str, Any]:
    """Remove secrets from the values of attributes, and leave out attributes whose value is None."""
    return {name: _clean(value, redact) for name, value in attributes.items() if value is not None}


def _clean(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return _encodable(redact(value))
    if isinstance(value, Sequence):
        return [_encodable(redact(str(one))) for one in value]
    return value


def _start_of(step: EndedStep) -> int:
    """Return when the call of a step began, in nanoseconds since 1970, without the wait for a slot before it.

    For a step with retries, return when the first try began.
    """
    if step.tries == 1:
        return step.ended - int(step.seconds * 1e9)
    return min(step.ended, int(datetime.fromisoformat(step.started).timestamp() * 1e9))


def _encodable(text: str) -> str:
    """Escape lone surrogates, which OTLP cannot encode: one of them would make the whole batch fail."""
    return text.encode("utf-8", "backslashreplace").decode()
