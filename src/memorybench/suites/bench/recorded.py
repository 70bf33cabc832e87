"""Stand-ins for the providers and models of a recorded run. They have the recorded names and answer no call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memorybench.core.contracts import Completion, Receipt, Scope
from memorybench.core.conversation import Memory, Session, Turn
from memorybench.core.errors import BadInput, ServiceError
from memorybench.core.trials import Subject
from memorybench.journal.run_reader import RunReader


@dataclass(frozen=True, slots=True)
class Recorded:
    """The providers and the answering model of a run, from its journal."""

    providers: Mapping[str, Subject]
    answerer: Subject

    @classmethod
    def of(cls, run_reader: RunReader, run: str) -> Recorded:
        answered = run_reader.step_inputs(run, "answer")
        if answered is None:
            raise BadInput(run, "no answers to judge", remedy="run it with --answering-model first")
        subjects = {outcome.trial.subject.name: outcome.trial.subject for outcome in run_reader.outcomes(run)}
        return cls(subjects, Subject.model_validate(json.loads(answered)["model"]))


@dataclass(frozen=True, slots=True)
class RecordedProvider:
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


@dataclass(frozen=True, slots=True)
class RecordedModel:
    subject: Subject

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> Completion:
        raise _unrecorded(self.subject)


def _unrecorded(subject: Subject) -> ServiceError:
    return ServiceError(f"step not recorded; {subject.name} is not called while recorded answers are judged")
