"""A review's budget over all of its runs: heads, bases and contexts come and go, it stays."""

from __future__ import annotations

from langgraph_loopguard.review.errors import ReviewError
from langgraph_loopguard.review.models import Budget
from langgraph_loopguard.review.settings import Settings
from langgraph_loopguard.review.store import Memory


def current_budget(settings: Settings, memory: Memory, seconds: float = 0.0) -> Budget:
    """Return what bounds the review and what is used; every attempt counts, however it ended.

    Args:
        settings: The review's settings.
        memory: What it remembers.
        seconds: Seconds of work that are not yet written down.
    """
    grant = memory.facts.get("grant") or {}
    agreed = memory.facts.get("max_attempts", settings.max_attempts)
    return Budget(
        max_attempts=min(agreed, settings.max_attempts),
        extra_attempts=grant.get("extra", 0),
        granted_by=grant.get("by"),
        used=len(memory.attempts),
        max_seconds=settings.max_seconds,
        seconds=round(float(memory.facts.get("seconds", 0.0)) + seconds, 3),
    )


def agree(settings: Settings) -> None:
    """Write the budget down when a change is first reviewed, and what a person has granted since.

    Raises:
        ReviewError: The settings would raise the agreed number of attempts without a person's name.
    """
    memory = settings.store.load()
    agreed = memory.facts.get("max_attempts")
    if agreed is None:
        settings.store.note(max_attempts=settings.max_attempts)
    elif settings.max_attempts > agreed:
        msg = (
            f"max_attempts={settings.max_attempts} would raise the {agreed} agreed for this change; "
            "a person extends it by extra_attempts, with a name"
        )
        raise ReviewError(msg)
    grant = memory.facts.get("grant") or {"extra": 0}
    if settings.extra_attempts > grant["extra"]:
        settings.store.note(
            grant={"extra": settings.extra_attempts, "by": settings.granted_by, "at": len(memory.attempts)}
        )
