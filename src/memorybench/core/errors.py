"""All errors that memorybench raises on purpose.

MemorybenchError
├── Refusal                the command is rejected before anything is spent or changed: exit code 2
│   ├── BadInput           a file, a value or a flag is invalid: where, problem, expected, remedy
│   │   ├── ConsentRequired    a file would run code or send a variable that this command line does not allow
│   │   └── DatabaseUnreachable    the database of --journal does not accept the connection
│   └── RunConflict        another process uses the run, or the run does not match the command
├── JournalError           results cannot be read or written: the run stops, recorded results stay
│   └── DatabaseLost       the connection to the database ended; a process that connects again can continue
├── ServiceError           the subject or its service failed: the trial is `failed`
│   ├── Transient          may succeed when repeated; see `retry_after` and `uncertain`
│   ├── Denied             401, 402, 403: a retry cannot help, the subject is not called again
│   ├── Malformed          the reply does not match the API
│   └── NotReady           added data did not become searchable in time
├── Unreadable             judge or code could not read or decide a result: the trial is `unscored`
├── Lacking                the subject does not have the capability: the trial is `skipped`
├── Refused                a store rejected a write and reported it, which counts as a defence
└── Blocked                the budget is used up, or consent to costs is missing: the trial is `blocked`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .uses import Use


class MemorybenchError(Exception):
    """The base class of all errors in this module. The message is one line and says what the user can do."""


class Refusal(MemorybenchError):
    pass


class BadInput(Refusal):
    """A file, a value or a flag is invalid. The message has the form `where: problem; expected what; what to do`."""

    def __init__(self, where: str, problem: str, *, expected: str = "", remedy: str = "") -> None:
        self.where = where
        self.problem = problem
        self.expected = expected
        self.remedy = remedy
        text = "; ".join(part for part in (problem, expected and f"expected {expected}", remedy) if part)
        super().__init__(f"{where}: {text}" if where else text)


class ConsentRequired(BadInput):
    def __init__(self, where: str, problem: str, uses: Sequence[Use], *, remedy: str) -> None:
        """`uses` are the things that the user has not allowed; `problem` names all of them."""
        super().__init__(where, problem, remedy=remedy)
        self.uses = tuple(uses)


class DatabaseUnreachable(BadInput):
    pass


class RunConflict(Refusal):
    pass


class JournalError(MemorybenchError):
    pass


class DatabaseLost(JournalError):
    pass


class ServiceError(MemorybenchError):
    def __init__(self, message: str, *, status: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status of the service's reply; None if there was no reply, or the service does not use HTTP."""
        self.reason = reason
        """Why TLS failed, such as "unknown certificate authority"; "" for other errors."""
        self.may_leave_data = False
        """Whether a failed add may have stored something, so that the scope must be cleared."""


class Transient(ServiceError):
    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        uncertain: bool = False,
        unreachable: bool = False,
    ) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after
        """The seconds that the service asked to wait before a retry; None if it did not ask."""
        self.uncertain = uncertain
        """Whether the service may have done the work, and charged for it, although no reply arrived."""
        self.unreachable = unreachable
        """Whether no connection was made: it was refused or timed out, or the host name is unknown."""


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
