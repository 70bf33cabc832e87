"""Everything that can go wrong on purpose.

MemorybenchError
├── Refusal                refused before anything was spent or changed: exit 2
│   ├── BadInput           a file, a value or a flag is wrong: where, what, expected, remedy
│   └── RunConflict        another process holds the run, or it no longer fits what was started
├── JournalError           results can not be read or written: the run stops, what is recorded stays
├── ServiceError           the subject or its service failed: the trial is `failed`
│   ├── Transient          worth another try; `retry_after` and `uncertain` tell how
│   ├── Denied             401, 402, 403: asking again is no use, the subject is left alone from now on
│   ├── Malformed          the reply is not what the API promises
│   └── NotReady           what was added did not become searchable in time
├── Unreadable             the instrument could not read or decide: the trial is `unscored`
├── Lacking                the subject has no such capability: the trial is `skipped`
├── Refused                a store declined a write and said so: what a defence looks like
└── Blocked                the cost gate or the budget held it back: the trial is `blocked`
"""

from __future__ import annotations


class MemorybenchError(Exception):
    """Its text is one line that a user can act on."""


class Refusal(MemorybenchError):
    pass


class BadInput(Refusal):
    """`where: what is wrong; expected what; what to do`."""

    def __init__(self, where: str, problem: str, *, expected: str = "", remedy: str = "") -> None:
        self.where = where
        self.problem = problem
        self.expected = expected
        self.remedy = remedy
        said = "; ".join(part for part in (problem, expected and f"expected {expected}", remedy) if part)
        super().__init__(f"{where}: {said}" if where else said)


class RunConflict(Refusal):
    pass


class JournalError(MemorybenchError):
    pass


class ServiceError(MemorybenchError):
    pass


class Transient(ServiceError):
    def __init__(self, message: str, *, retry_after: float | None = None, uncertain: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds the service asked us to wait; None: it did not say."""
        self.uncertain = uncertain
        """The service may have done (and charged) the work although we have no reply."""


class Denied(ServiceError):
    pass


class Malformed(ServiceError):
    pass


class NotReady(ServiceError):
    pass


class Unreadable(MemorybenchError):
    pass


class Lacking(MemorybenchError):
    pass


class Refused(MemorybenchError):
    pass


class Blocked(MemorybenchError):
    pass
