"""Errors of the package. None of them is retried by LangGraph's default retry policy."""

from __future__ import annotations

from typing import Any


class LoopGuardError(RuntimeError):
    """Base of the errors that a guard raises at run time."""


class FingerprintError(LoopGuardError, TypeError):
    """A payload has no canonical form: an object of an unknown kind, too deep, or one that contains itself."""


class EscalationError(LoopGuardError):
    """A guard tripped, a person was asked for (`ask_human=True`), and the graph has no checkpointer to wait with.

    Attributes:
        escalation: The record, as plain JSON: nothing of what the loop did is lost with the run.
    """

    def __init__(self, message: str, escalation: dict[str, Any]) -> None:
        super().__init__(message)
        self.escalation = escalation


class StaleDecisionError(LoopGuardError, ValueError):
    """A decision names an escalation that does not wait for one (decided already, of an earlier round, or unknown)."""
