"""Stand-ins for providers and models whose work is recorded already: they have their names, and are never asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memorybench.journal.shelf import Shelf
from memorybench.vocabulary.contracts import Completion, Receipt, Scope
from memorybench.vocabulary.conversation import Memory, Session, Turn
from memorybench.vocabulary.errors import BadInput, ServiceError
from memorybench.vocabulary.trials import Subject


@dataclass(frozen=True, slots=True)
class Recorded:
    """Who took part in a run, as its journal knows them."""

    providers: Mapping[str, Subject]
    reader: Subject

    @classmethod
    def of(cls, shelf: Shelf, run: str) -> Recorded:
        answered = shelf.step_inputs(run, "answer")
        if answered is None:
            raise BadInput(run, "holds no answers to judge", remedy="run it with --answering-model first")
        subjects = {outcome.trial.subject.name: outcome.trial.subject for outcome in shelf.outcomes(run)}
        return cls(subjects, Subject.model_validate(json.loads(answered)["model"]))


@dataclass(frozen=True, slots=True)
class RecordedProvider:
    subject: Subject
    incarnation: str = ""

    async def add(self, scope: Scope, session: Session) -> Receipt:
        raise _unrecorded(self.subject)

    async def settle(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
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
    return ServiceError(f"this was never recorded, and {subject.name} is not asked when answers are only judged")
