"""Replaces the providers and models of a recorded run by objects with the same names. Calling one raises an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from memorybench.core.contracts import Completion, Model, Receipt, Scope
from memorybench.core.conversation import Memory, Session, Turn
from memorybench.core.errors import BadInput, ServiceError
from memorybench.core.trials import Subject
from memorybench.journal.run_reader import RunReader

from .spec import ANSWERS


class Recorded(Struct, frozen=True):
    """The providers and the answering model of a run, from its journal."""

    providers: Mapping[str, Subject]
    answerer: Subject
    """The answering model of the first repeat."""
    repeats: int = 1
    """The number of recorded answers per question."""

    @classmethod
    def of(cls, run_reader: RunReader, run: str) -> Recorded:
        answered = run_reader.step_inputs(run, "answer")
        if answered is None:
            raise BadInput(
                run, "the run has no recorded answers", remedy="start a new run with --answering-model MODEL"
            )
        subjects = {outcome.trial.subject.name: outcome.trial.subject for outcome in run_reader.outcomes(run)}
        inputs = json.loads(answered)
        answerer = _shift_seed(Subject.model_validate(inputs["model"]), 1 - inputs.get("repeat", 1))
        return cls(subjects, answerer, run_reader.run(run).spec.get(ANSWERS, 1))

    def models(self, repeats: int) -> list[Model]:
        """Return a replacement for the answering model of each repeat, with the seed of that repeat.

        If the recorded run has one answer per question, all replacements are the same.
        """
        if self.repeats == 1:
            return [RecordedModel(self.answerer)] * repeats
        return [RecordedModel(_shift_seed(self.answerer, place)) for place in range(repeats)]


class RecordedProvider(Struct, frozen=True):
    """Replaces a provider whose steps are all recorded. Calling it raises ServiceError."""

    subject: Subject
    store_id: str = ""

    async def add(self, scope: Scope, session: Session) -> Receipt:
        raise _unrecorded(self.subject)

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        raise _unrecorded(self.subject)

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        raise _unrecorded(self.subject)

    async def clear(self, scope: Scope) -> None:
        raise _unrecorded(self.subject)


class RecordedModel(Struct, frozen=True):
    """Replaces a model whose steps are all recorded. Calling it raises ServiceError."""

    subject: Subject

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> Completion:
        raise _unrecorded(self.subject)

    def highest_cost(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> float | None:
        return 0.0


def _shift_seed(subject: Subject, difference: int) -> Subject:
    seed = subject.settings.get("seed")
    if seed is None or not difference:
        return subject
    return subject.model_copy(update={"settings": {**subject.settings, "seed": seed + difference}})


def _unrecorded(subject: Subject) -> ServiceError:
    return ServiceError(f"a step of {subject.name} is not recorded; `memorybench score` calls only the judge")
