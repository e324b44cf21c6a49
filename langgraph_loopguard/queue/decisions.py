"""What is asked of a decision before it is written down, and why one comes too late."""

from __future__ import annotations

from typing import Any

from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.graph.decision import parse_decision
from langgraph_loopguard.people.redact import has_marks
from langgraph_loopguard.queue.base import LEASE, check_claim
from langgraph_loopguard.queue.errors import AlreadyDecidedError, ClaimedError, QueueError, SupersededError
from langgraph_loopguard.queue.rows import QueuedEscalation


def checked_decision(answer: Any, row: QueuedEscalation, by: str | None) -> dict[str, Any]:
    """Return a decision as plain JSON, checked against the escalation that it is for.

    Raises:
        ValueError: It does not fit, or is no plain JSON, or holds a mask in the place of what was masked.
    """
    decision = parse_decision(answer, row.record or {})
    if by is not None:
        check_claim(by, LEASE)
        decision = decision.model_copy(update={"decided_by": by})
    if to_jsonable(decision.artifact) != decision.artifact:
        msg = f"artifact must be plain JSON, got {type(decision.artifact).__name__}"
        raise ValueError(msg)
    if has_marks(decision.artifact):
        msg = "artifact holds '[redacted: ...]': put in what was masked, the queue does not have it"
        raise ValueError(msg)
    dumped: dict[str, Any] = to_jsonable(decision.model_dump())
    return dumped


def refused(row: QueuedEscalation) -> QueueError:
    """Return why an open row was needed and this one is none, or belongs to somebody else."""
    if row.state == "superseded":
        return SupersededError(row)
    return ClaimedError(row) if row.state == "open" else AlreadyDecidedError(row)
