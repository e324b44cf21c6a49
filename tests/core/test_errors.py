"""The package's errors: what they are, and that LangGraph does not retry them."""

from __future__ import annotations

import pytest
from langgraph.types import RetryPolicy

from langgraph_loopguard import EscalationError, FingerprintError, LoopGuardError, StaleDecisionError

ERRORS = [LoopGuardError("x"), FingerprintError("x"), StaleDecisionError("x"), EscalationError("x", {"id": "e1"})]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_are_not_retried(error: Exception) -> None:
    """A trip or a wrong answer is no hiccup: LangGraph's default policy lets it pass at once."""
    retry_on = RetryPolicy().retry_on
    assert callable(retry_on)
    assert not retry_on(error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_have_one_base(error: Exception) -> None:
    """A user can catch all of them by one name."""
    assert isinstance(error, LoopGuardError)


def test_the_usual_kinds_are_kept() -> None:
    """What is wrong with a value is a `TypeError` or a `ValueError` as well."""
    assert (True, True) == (issubclass(FingerprintError, TypeError), issubclass(StaleDecisionError, ValueError))


def test_an_escalation_error_carries_the_record() -> None:
    """Without a checkpointer the error is all that is left of the run."""
    assert ({"id": "e1"}, "x") == (ERRORS[3].escalation, str(ERRORS[3]))  # type: ignore[attr-defined]
