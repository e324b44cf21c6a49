"""The hand-off: what a person who was not there needs, and how it flows into the escalation record."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.graph.models import Emission, Escalation, Spent
from langgraph_loopguard.review.models import Attempt, Budget, Finding, HandOff, Ruling
from langgraph_loopguard.review.settings import Settings
from langgraph_loopguard.review.source import SourceState
from langgraph_loopguard.review.store import Memory
from langgraph_loopguard.review.times import now

KINDS = {"bound": "exhausted", "recurring": "stalled", "unchanged": "stalled", "source": "broken"}
"""What sort of stop a ruling is, in the guard's words; every other one is `stalled`."""

OPTIONS: tuple[dict[str, Any], ...] = (
    {"action": "accept", "description": "End the review and take the change as it is.", "fields": []},
    {"action": "reject", "description": "End the review without taking the change.", "fields": []},
    {
        "action": "retry",
        "description": "Let the review go on, with `guidance`; `extra_cycles` grants attempts, by `decided_by`.",
        "fields": ["guidance", "extra_cycles", "decided_by"],
        "respond_with": {},
    },
)


def build_handoff(
    settings: Settings, state: Mapping[str, Any], memory: Memory, budget: Budget, thread: str | None
) -> dict[str, Any]:
    """Return the update that ends a pass: the ruling, and in a terminal state the hand-off and the escalation.

    A review that has not finished (it waits for a repair) has no outcome and no hand-off.
    """
    tripped = _tripped(state)
    ruling = Ruling.model_validate(state["ruling"]) if tripped is None else _guard_ruling(tripped)
    if ruling.outcome is None:
        return {"ruling": ruling.model_dump()}
    handoff = make_handoff(settings, state, memory, budget, ruling)
    data = to_jsonable(handoff.model_dump())
    update: dict[str, Any] = {"ruling": ruling.model_dump(), "handoff": data, "outcome": ruling.outcome}
    if ruling.outcome != "complete":
        record = tripped or to_jsonable(_escalation(settings, handoff, memory, thread).model_dump())
        record = {**record, "handoff": data}
        update |= {"escalation": record, "escalations": {record["id"]: record}}
    return update


def make_handoff(
    settings: Settings, state: Mapping[str, Any], memory: Memory, budget: Budget, ruling: Ruling
) -> HandOff:
    """Return the hand-off record."""
    originals = set(memory.facts.get("original") or ())
    recorded = [attempt for attempt in memory.attempts if attempt.status == "recorded"]
    source = state.get("source")
    return HandOff(
        outcome=ruling.outcome or "escalated",
        ruling=ruling,
        scope=settings.scope,
        source=None if source is None else SourceState.model_validate(source),
        budget=budget,
        original_findings=[finding for finding in memory.findings if finding.id in originals],
        findings=memory.findings,
        evidence=memory.evidence,
        attempts=memory.attempts,
        latest_review=recorded[-1].summary if recorded else None,
        patch=state.get("patch") or "",
        questions=list(memory.facts.get("questions") or ()),
        decision=ruling.decision,
        created_at=now(),
    )


def _tripped(state: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the record of a guard that stopped the loop before the stop rule did; one of ours has a hand-off."""
    record: dict[str, Any] | None = state.get("escalation")
    return record if record and record["decision"] is None and "handoff" not in record else None


def _guard_ruling(record: Mapping[str, Any]) -> Ruling:
    return Ruling(
        outcome=record["outcome"],
        reason="guard",
        message=record["reason"]["message"],
        needs=["more cycles"] if record["outcome"] == "blocked" else [],
        decision=record["question"],
    )


def _escalation(settings: Settings, handoff: HandOff, memory: Memory, thread: str | None) -> Escalation:
    ruling, budget = handoff.ruling, handoff.budget
    place = f"{settings.store.path}|{memory.facts.get('round')}|{ruling.reason}"
    need = "; ".join(ruling.needs)
    question = ruling.decision or f"It waits for: {need}. What shall happen?"
    return Escalation(
        id=hashlib.sha256(place.encode("utf-8", "replace")).hexdigest()[:32],
        thread_id=thread,
        loop="review",
        nodes=["review", "fix"],
        edge="judge->fix",
        scope_key=settings.store.path.parent.name,
        outcome=handoff.outcome,
        reason={
            "condition": f"StopRule:{ruling.reason}",
            "kind": KINDS.get(ruling.reason, "stalled"),
            "threshold": budget.allowed,
            "observed": budget.used,
            "message": ruling.message,
            "evidence": [item.model_dump(include=BRIEF) for item in handoff.evidence[-len(settings.checks) or None :]],
        },
        cycles=budget.used,
        spent=Spent(seconds=budget.seconds),
        diff=handoff.patch,
        reviews=[_emission(attempt) for attempt in handoff.attempts],
        fixes=[],
        findings=[_brief(finding) for finding in handoff.findings if finding.holds],
        evidence=[item.model_dump(include=BRIEF) for item in handoff.evidence],
        best_fix=None,
        question=question,
        options=[dict(option) for option in OPTIONS],
        created_at=handoff.created_at,
    )


BRIEF = {"check", "command", "result", "why", "output_sha256", "started_at", "source"}


def _emission(attempt: Attempt) -> Emission:
    content = {"status": attempt.status, "summary": attempt.summary, "error": attempt.error, "text": attempt.text}
    return Emission(
        n=attempt.n,
        cycle=attempt.n,
        node="review",
        time=attempt.started_at,
        content=content,
        seconds=attempt.seconds or 0.0,
        measure=float(len(attempt.open_after)),
    )


def _brief(finding: Finding) -> dict[str, Any]:
    return finding.model_dump(include={"id", "file", "line", "rule", "message", "severity", "kind", "status", "note"})
