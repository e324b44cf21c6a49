"""Errors of a review. None of them is retried by LangGraph's default retry policy."""

from __future__ import annotations

from langgraph_loopguard.core.errors import LoopGuardError


class ReviewError(LoopGuardError):
    """Base of the errors of a review; the message is one line for the user."""


class SourceError(ReviewError):
    """The source state cannot be read: no repository, no such commit, a file that cannot be opened."""


class ReportError(ReviewError, ValueError):
    """A tool's report or an agent's answer does not have the shape that it must have."""


class BusyError(ReviewError):
    """Another process is at work on the same change."""
