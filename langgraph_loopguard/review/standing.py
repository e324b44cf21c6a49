"""How a review stands, read from its store: for `status` and `report`, which call nothing and write nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from langgraph_loopguard.review.lock import is_locked
from langgraph_loopguard.review.models import (
    SCHEMA_VERSION,
    Attempt,
    Budget,
    Evidence,
    Finding,
    HandOff,
    Ruling,
    Scope,
    Status,
)
from langgraph_loopguard.review.place import Desk
from langgraph_loopguard.review.store import Memory, interrupted, read_memory

RECORDED = 10
"""Exit status: a review is recorded; it is complete, or it waits for a repair."""

HANDED_OFF = 11
"""Exit status: blocked or escalated."""

RECURRING = 12
"""Exit status: the same finding is open twice running."""

FAILED = 5
"""Exit status: the attempt failed, timed out or was interrupted."""

USAGE = 2
"""Exit status: the command makes no sense."""


class ReviewReport(BaseModel):
    """All that is known about the review of one change."""

    schema_version: int = SCHEMA_VERSION
    change: str
    running: bool
    """Whether a process is at work on it now."""
    ruling: Ruling | None
    scope: Scope | None
    budget: Budget
    findings: list[Finding]
    evidence: list[Evidence]
    attempts: list[Attempt]
    handoff: HandOff | None

    @property
    def exit_status(self) -> int:
        """The exit status of a run that ended like this."""
        return exit_status(self.ruling, self.attempts)

    def by_status(self, *statuses: Status) -> list[Finding]:
        """Return the findings of some statuses."""
        return [finding for finding in self.findings if finding.status in statuses]


def exit_status(ruling: Ruling | None, attempts: list[Attempt]) -> int:
    """Return the exit status that says how a review stands; never 0."""
    if ruling is not None and ruling.reason == "recurring":
        return RECURRING
    if ruling is not None and ruling.outcome in ("blocked", "escalated"):
        return HANDED_OFF
    if ruling is None or ruling.reason == "failed" or (attempts and attempts[-1].status == "interrupted"):
        return FAILED
    return RECORDED


def read_report(desk: Desk, change: str) -> ReviewReport | None:
    """Return how the review of a change stands; `None` when there has been none.

    An attempt that is reserved while nobody holds the lock was interrupted: it is shown so, and nothing is written.
    """
    running = is_locked(desk.lock)
    memory = read_memory(desk.store)
    if memory is None:
        return None
    attempts = memory.attempts
    if not running:
        attempts = [
            interrupted(attempt, "the process that ran it is gone") if attempt.status == "reserved" else attempt
            for attempt in attempts
        ]
    return _report(memory, attempts, change, running)


def _report(memory: Memory, attempts: list[Attempt], change: str, running: bool) -> ReviewReport:
    facts: Mapping[str, Any] = memory.facts
    grant = facts.get("grant") or {}
    ruling, handoff = facts.get("ruling"), facts.get("handoff")
    finished = ruling is not None and ruling["outcome"] is not None
    budget = Budget(
        max_attempts=facts.get("max_attempts", 3),
        extra_attempts=grant.get("extra", 0),
        granted_by=grant.get("by"),
        used=len(attempts),
        seconds=facts.get("seconds", 0.0),
    )
    return ReviewReport(
        change=change,
        running=running,
        ruling=Ruling.model_validate(ruling) if ruling else None,
        scope=Scope.model_validate(facts["scope"]) if "scope" in facts else None,
        budget=budget,
        findings=memory.findings,
        evidence=memory.evidence,
        attempts=attempts,
        handoff=HandOff.model_validate(handoff) if finished and handoff else None,
    )
