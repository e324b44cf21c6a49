"""What can go wrong between an escalation and the person who decides, each error with the row that it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langgraph_loopguard.core.errors import LoopGuardError
from langgraph_loopguard.people.text import one_line, visible
from langgraph_loopguard.people.view import decision_sentence

if TYPE_CHECKING:
    from langgraph_loopguard.queue.rows import QueuedEscalation


class QueueError(LoopGuardError):
    """Base of the queue's errors."""


class QueueUnavailableError(QueueError):
    """The database or the server cannot be reached, or is not a queue that this version knows."""


class UnknownEscalationError(QueueError, LookupError):
    """No escalation of this id is in the queue."""

    def __init__(self, escalation_id: str) -> None:
        super().__init__(f"escalation {one_line(str(escalation_id))!r} is not in the queue")
        self.escalation_id = escalation_id


class _RowError(QueueError):
    def __init__(self, message: str, row: QueuedEscalation) -> None:
        super().__init__(message)
        self.row = row


class AlreadyDecidedError(_RowError):
    """Somebody was faster. The message says who decided what and when, and so does `row`."""

    def __init__(self, row: QueuedEscalation) -> None:
        super().__init__(
            f"escalation {row.id} is decided already: {visible(str(decision_sentence(row.decision)))}", row
        )


class SupersededError(_RowError):
    """The escalation waits no longer: its run was answered or went on without the queue."""

    def __init__(self, row: QueuedEscalation) -> None:
        super().__init__(f"escalation {row.id} waits no longer: {visible(str(row.error))}", row)


class ClaimedError(_RowError):
    """Somebody else has claimed it, and their lease has not run out."""

    def __init__(self, row: QueuedEscalation) -> None:
        until = row.claimed_until.isoformat() if row.claimed_until else "?"
        super().__init__(f"escalation {row.id} is claimed by {one_line(str(row.owner))!r} until {until}", row)
