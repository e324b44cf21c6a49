"""What a review is set up with, checked once, when it is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from langgraph_loopguard.review.agents import Agent, as_agent
from langgraph_loopguard.review.checks import Check, as_check
from langgraph_loopguard.review.models import Scope
from langgraph_loopguard.review.store import ReviewStore


@dataclass(frozen=True)
class Settings:
    """The settings of one review.

    Attributes:
        root: The source's folder.
        scope: What the review is about.
        base: The commit or ref that the change starts from; `None` outside git.
        checks: The agreed checks.
        reviewer: Who reviews.
        fixer: Who repairs, if anyone does.
        context: Further text for both.
        max_attempts: Calls of the reviewer, over all runs.
        max_seconds: Seconds of work, over all runs.
        extra_attempts: What a person has added to `max_attempts`, in all.
        granted_by: Who has.
        timeout: Seconds for one call of the reviewer or the fixer, if it is a command.
        retry_failed: Whether a failed attempt is made again though nothing has changed.
        store: What it remembers.
        head: The ref that a fixer's patch is made against. Default: the commit on which it began.
    """

    root: Path
    scope: Scope
    base: str | None
    checks: tuple[Check, ...]
    reviewer: Agent
    fixer: Agent | None
    context: str
    max_attempts: int
    max_seconds: float | None
    extra_attempts: int
    granted_by: str | None
    timeout: float
    retry_failed: bool
    store: ReviewStore
    head: str | None = None

    @property
    def commands(self) -> list[list[str]]:
        """What the checks are, for the record."""
        return [[check.name, check.subject, *check.command] for check in self.checks]


def make_settings(
    root: str | Path,
    *,
    reviewer: Any,
    fixer: Any,
    store: ReviewStore,
    goal: str,
    base: str | None,
    files: Sequence[str],
    checks: Sequence[Any],
    lines: Literal["file", "changed"],
    context: str,
    max_attempts: int,
    max_seconds: float | None,
    extra_attempts: int,
    granted_by: str | None,
    timeout: float,
    retry_failed: bool,
    head: str | None = None,
) -> Settings:
    """Return the settings, checked.

    Raises:
        ValueError: One of them makes no sense; with its name and value.
    """
    for name, value, least in (("max_attempts", max_attempts, 1), ("extra_attempts", extra_attempts, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            msg = f"{name} must be a whole number of at least {least}, got {value!r}"
            raise ValueError(msg)
    for name, seconds in (("timeout", timeout), ("max_seconds", max_seconds)):
        if seconds is not None and not seconds > 0:
            msg = f"{name} must be positive, got {seconds!r}"
            raise ValueError(msg)
    if extra_attempts and not granted_by:
        msg = f"extra_attempts={extra_attempts} needs granted_by: only a person extends a budget, by name"
        raise ValueError(msg)
    if lines not in ("file", "changed"):
        msg = f"lines must be 'file' or 'changed', got {lines!r}"
        raise ValueError(msg)
    agreed = tuple(as_check(check) for check in checks)
    names = [check.name for check in agreed]
    if twice := next((name for name in names if names.count(name) > 1), None):
        msg = f"checks must have different names, got {twice!r} twice"
        raise ValueError(msg)
    return Settings(
        root=Path(root).resolve(),
        scope=Scope(goal=goal, files=list(files), checks=names, base=base, lines=lines),
        base=base,
        checks=agreed,
        reviewer=as_agent(reviewer, "reviewer"),
        fixer=None if fixer is None else as_agent(fixer, "fixer"),
        context=context,
        max_attempts=max_attempts,
        max_seconds=max_seconds,
        extra_attempts=extra_attempts,
        granted_by=granted_by,
        timeout=timeout,
        retry_failed=retry_failed,
        store=store,
        head=head,
    )
