"""`InvalidPayload`: a handoff that fails its schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from pydantic import BaseModel

from langgraph_loopguard import InvalidPayload, LoopGuard, Verdict
from langgraph_loopguard.core.schema import ERRORS, TEXT
from tests.core.payloads import ANYTHING


class Review(BaseModel):
    verdict: str
    findings: list[int]


GOOD = {"verdict": "no", "findings": [1]}


def judged(condition: InvalidPayload, payload: Any, node: str = "a") -> Verdict:
    """The verdict on one emission; its ledger is plain JSON."""
    ledger, verdict = LoopGuard("a", "b", stop_when=condition).observe(None, node, payload)
    assert ledger == json.loads(json.dumps(ledger))
    return verdict


@pytest.mark.parametrize(
    ("condition", "payload"),
    [
        (InvalidPayload(Review), GOOD),
        (InvalidPayload(Review), Review(verdict="no", findings=[])),
        (InvalidPayload(Review), json.dumps(GOOD)),
        (InvalidPayload(Review, node="b"), "no review at all"),
        (InvalidPayload(Review, key="review"), {"patch": "x"}),
        (InvalidPayload(Review, key="review"), {"review": json.dumps(GOOD), "patch": "x"}),
        (InvalidPayload(Review, key="review"), "text"),
        (InvalidPayload(Review), None),
        (InvalidPayload(Review), {}),
        (InvalidPayload(list[int], key="n"), {"n": [1, 2]}),
        (InvalidPayload(str), "text"),
    ],
)
def test_what_fits_goes_on(condition: InvalidPayload, payload: Any) -> None:
    """A value, a model, JSON in a text; and what is not looked at."""
    assert not judged(condition, payload).tripped


def test_what_does_not_fit_trips() -> None:
    """With the place and the message, and without the value."""
    verdict = judged(InvalidPayload(Review), {"verdict": "secret value", "findings": ["x"]})
    reason = verdict.reason
    assert verdict.tripped
    assert reason is not None
    assert ("InvalidPayload", "invalid", "Review", 1) == (
        reason.condition,
        reason.kind,
        reason.threshold,
        reason.observed,
    )
    assert reason.message.startswith(
        "what a handed over is no valid Review in findings.0: Input should be a valid integer"
    )
    assert "secret" not in json.dumps(reason.to_json())


@pytest.mark.parametrize("payload", ["no json", '{"verdict": 1}', {"verdict": "no"}, 5, [GOOD]])
def test_any_other_form_trips(payload: Any) -> None:
    """A text that is no JSON, JSON of another shape, a value of another kind."""
    assert judged(InvalidPayload(Review), payload).tripped


def test_only_the_last_handoff_counts() -> None:
    """An invalid one that a retry has let pass does not hold the loop for ever."""
    guard = LoopGuard("a", "b", stop_when=InvalidPayload(Review, node="a"))
    ledger, verdict = guard.observe(None, "a", {"verdict": 1})
    assert verdict.tripped
    ledger = guard.decide(ledger, "retry", extra_cycles=1)
    ledger, verdict = guard.observe(ledger, "b", "patch")
    assert not verdict.tripped
    ledger, verdict = guard.observe(ledger, "a", GOOD)
    assert not verdict.tripped


def test_the_evidence_is_bounded() -> None:
    """However much is wrong."""
    verdict = judged(InvalidPayload(Review), {"verdict": "x", "findings": ["y" * 9999] * 500})
    assert verdict.reason is not None
    (evidence,) = verdict.reason.evidence
    assert (500, ERRORS) == (evidence["count"], len(evidence["errors"]))
    assert all(len(one["message"]) <= TEXT for one in evidence["errors"])


@given(ANYTHING)
def test_it_takes_anything(payload: Any) -> None:
    """It says yes or no; it never breaks."""
    verdict = judged(InvalidPayload(Review), payload)
    assert verdict.reason is None or "invalid" == verdict.reason.kind


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "Review"}, r"InvalidPayload\(model\) must be a type that pydantic can check, got 'Review'"),
        ({"model": Review, "node": ""}, r"InvalidPayload\(node\) must be a name, got ''"),
        ({"model": Review, "key": 3}, r"InvalidPayload\(key\) must be a name, got 3"),
    ],
)
def test_nonsense_is_refused(settings: dict[str, Any], message: str) -> None:
    """With the parameter and the value."""
    with pytest.raises(ValueError, match=message):
        InvalidPayload(**settings)
