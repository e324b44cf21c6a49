"""The stop rule: when a review is finished. A pure function of scope, bounds, evidence and findings.

The tests come in this order: bound, evidence, findings. A review is complete only with fresh passing evidence for
every agreed check and no actionable finding open in scope; blocked when evidence cannot be obtained, or a bound is
reached without it; escalated when a person must judge. What a reviewer says about being done is no input at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langgraph_loopguard.review.models import Budget, Evidence, Finding, Ruling
from langgraph_loopguard.review.source import SourceState


@dataclass(frozen=True)
class Standing:
    """All that the stop rule looks at.

    Attributes:
        checks: Names of the agreed checks.
        source: The current source state; `None` when it cannot be read.
        budget: The bounds, and what is used of them.
        evidence: All evidence gathered, in the order of time.
        findings: All findings.
        reviewed: Digest of the source state that the reviewer has last answered about; `None` before the first.
        questions: What the reviewer asks a person.
        recurring: Findings that were open at the end of each of the last two reviews.
        problem: Why the source cannot be read.
        failure: Why the last call of the reviewer gave no answer.
    """

    checks: Sequence[str]
    source: SourceState | None
    budget: Budget
    evidence: Sequence[Evidence] = ()
    findings: Sequence[Finding] = ()
    reviewed: str | None = None
    questions: Sequence[str] = ()
    recurring: Sequence[str] = ()
    problem: str | None = None
    failure: str | None = None


def judge(standing: Standing) -> Ruling:
    """Return how a review stands: finished in a named state, or not finished and why."""
    if standing.source is None:
        why = f"the source state cannot be read: {standing.problem or 'unknown'}"
        return Ruling(outcome="blocked", reason="source", message=why, needs=["a source that can be read"])
    latest = {item.check: item for item in standing.evidence if item.fresh(standing.source)}
    missing = [name for name in standing.checks if name not in latest]
    dead = [latest[name] for name in standing.checks if name in latest and latest[name].result == "unavailable"]
    reviewed = standing.reviewed == standing.source.digest
    if bound := standing.budget.spent:
        return _at_bound(standing, bound, latest, missing, dead, reviewed)
    return (
        _evidence(standing, dead)
        or _disagreement(standing)
        or _judgement(standing)
        or _recurring(standing)
        or _unfinished(standing, latest, missing, reviewed)
        or _complete(standing)
    )


def may_review(standing: Standing) -> Ruling | None:
    """Return why the reviewer must not be started; `None` when it may. Bound first, then evidence, then findings."""
    ruling = judge(standing)
    return ruling if ruling.outcome in ("blocked", "escalated") else None


def disagreeing(evidence: Sequence[Evidence], source: SourceState) -> list[tuple[Evidence, Evidence]]:
    """Return pairs of results that cannot both be right: one subject, one source state, pass and fail."""
    fresh = [item for item in evidence if item.fresh(source) and item.result != "unavailable"]
    passed = [item for item in fresh if item.result == "pass"]
    return [(one, other) for other in fresh if other.result == "fail" for one in passed if one.subject == other.subject]


def taking_turns(evidence: Sequence[Evidence]) -> tuple[str, str] | None:
    """Return two checks that have been failing by turns over three source states: to please one fails the other."""
    states: list[dict[str, str]] = []
    digests: list[str] = []
    for item in evidence:
        if item.source.digest not in digests:
            digests.append(item.source.digest)
            states.append({})
        states[digests.index(item.source.digest)][item.check] = item.result
    last = states[-TURNS:]
    if len(last) < TURNS:
        return None
    names = sorted(set.intersection(*(set(state) for state in last)))
    history = {name: [state[name] for state in last] for name in names}
    by_turns = [name for name, results in history.items() if results in (FAIL_FIRST, PASS_FIRST)]
    for one in by_turns:
        for other in by_turns:
            if history[one] == FAIL_FIRST and history[other] == PASS_FIRST:
                return one, other
    return None


TURNS = 3
FAIL_FIRST = ["fail", "pass", "fail"]
PASS_FIRST = ["pass", "fail", "pass"]


def actionable(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that someone can act on and that hold the review up."""
    return [finding for finding in findings if finding.holds and finding.kind == "actionable"]


def _at_bound(
    standing: Standing,
    bound: str,
    latest: dict[str, Evidence],
    missing: Sequence[str],
    dead: Sequence[Evidence],
    reviewed: bool,
) -> Ruling:
    if missing or dead:
        names = [*missing, *(item.check for item in dead)]
        why = f"{bound}, and there is no evidence of {_listed(names)} on the current source"
        needs = [f"a result of {name}" for name in names]
        return Ruling(outcome="blocked", reason="bound", message=why, needs=needs, decision=_extend(standing))
    if standing.failure is not None or not reviewed:
        why = f"{bound}, and the current source is not reviewed"
        if standing.failure is not None:
            why += f": {standing.failure}"
        need = ["a review of the current source"]
        return Ruling(outcome="blocked", reason="bound", message=why, needs=need, decision=_extend(standing))
    ruling = _disagreement(standing) or _judgement(standing)
    if ruling:
        return ruling
    failing = [name for name in standing.checks if latest[name].result == "fail"]
    held = [finding for finding in standing.findings if finding.holds]
    if not failing and not held:
        return _complete(standing)
    parts = []
    if failing:
        parts.append(f"{_listed(failing)} {'fails' if len(failing) == 1 else 'fail'}")
    if held:
        parts.append(f"{len(held)} finding{'s are' if len(held) > 1 else ' is'} open")
    ask = "Accept the change as it stands, change it by hand, give it up, or grant further attempts by name?"
    ids = [finding.id for finding in held]
    why = f"{bound}, and {' and '.join(parts)}"
    return Ruling(outcome="escalated", reason="bound", message=why, decision=ask, findings=ids)


def _evidence(standing: Standing, dead: Sequence[Evidence]) -> Ruling | None:
    if not dead:
        return None
    why = "; ".join(f"the check {item.check!r} is unavailable: {item.why}" for item in dead)
    needs = [f"that {item.check!r} can run: {item.why}" for item in dead]
    return Ruling(outcome="blocked", reason="check_unavailable", message=why, needs=needs)


def _disagreement(standing: Standing) -> Ruling | None:
    assert standing.source is not None
    pairs = disagreeing(standing.evidence, standing.source)
    if pairs:
        one, other = pairs[0]
        if one.check == other.check:
            why = f"the check {one.check!r} both passed and failed on one source state"
            return Ruling(outcome="escalated", reason="disagreement", message=why, decision="Which result counts?")
        subject = f" about {one.subject!r}" if one.subject not in (one.check, other.check) else ""
        why = f"checks disagree{subject}: {one.check!r} passes and {other.check!r} fails on the same source"
        ask = f"Which of the two counts{subject}: {one.check!r} or {other.check!r}?"
        return Ruling(outcome="escalated", reason="disagreement", message=why, decision=ask)
    turns = taking_turns(standing.evidence)
    if turns:
        why = f"checks disagree: {turns[0]!r} and {turns[1]!r} fail by turns, what pleases one fails the other"
        ask = f"Which of the two counts: {turns[0]!r} or {turns[1]!r}?"
        return Ruling(outcome="escalated", reason="disagreement", message=why, decision=ask)
    return None


def _judgement(standing: Standing) -> Ruling | None:
    disputed = [finding for finding in standing.findings if finding.status == "disputed"]
    # One that is only remembered is put to the reviewer first: the source may have settled it.
    reviewed = standing.source is not None and standing.reviewed == standing.source.digest
    judged = [
        finding
        for finding in standing.findings
        if finding.holds and finding.kind == "judgement" and (reviewed or finding.status != "carried")
    ]
    if standing.questions:
        ask = " ".join(standing.questions)
        why = f"the reviewer asks what only a person can say: {ask}"
        return Ruling(outcome="escalated", reason="question", message=why, decision=ask)
    for findings, reason, ask in (
        (disputed, "disputed", "Does it hold?"),
        (judged, "judgement", "What shall be done about it?"),
    ):
        if findings:
            first = findings[0]
            more = f" ({len(findings)} in all)" if len(findings) > 1 else ""
            why = f"a finding needs a person's judgement{more}: {first.place}: {first.message}"
            if first.note:
                why += f" ({first.note})"
            ids = [finding.id for finding in findings]
            return Ruling(
                outcome="escalated", reason=reason, message=why, decision=f"{first.message} {ask}", findings=ids
            )
    return None


def _recurring(standing: Standing) -> Ruling | None:
    held = {finding.id: finding for finding in actionable(standing.findings)}
    again = [held[identity] for identity in standing.recurring if identity in held]
    if not again:
        return None
    first = again[0]
    more = f" and {len(again) - 1} more" if len(again) > 1 else ""
    why = f"the same finding is open twice running: {first.place}: {first.message}{more}"
    ask = "The repairs do not close it: how is it to be repaired, or does it not hold?"
    ids = [finding.id for finding in again]
    return Ruling(outcome="escalated", reason="recurring", message=why, decision=ask, findings=ids)


def _unfinished(
    standing: Standing, latest: dict[str, Evidence], missing: Sequence[str], reviewed: bool
) -> Ruling | None:
    if missing:
        changed = [item.check for item in standing.evidence if item.changed_source and item.check in missing]
        if changed:
            why = f"{_listed(changed)} changed the source while running, which leaves no evidence for either state"
            return Ruling(outcome="blocked", reason="check_unavailable", message=why, needs=["checks that only look"])
        why = f"there is no evidence of {_listed(missing)} on the current source"
        return Ruling(outcome=None, reason="evidence", message=why, needs=[f"run {name}" for name in missing])
    if standing.failure is not None:
        need = ["a changed input, or a person's order to try again"]
        return Ruling(outcome=None, reason="failed", message=standing.failure, needs=need)
    if not reviewed:
        why = "the current source is not reviewed"
        return Ruling(outcome=None, reason="review", message=why, needs=["a review"])
    failing = [name for name in standing.checks if latest[name].result == "fail"]
    held = actionable(standing.findings)
    if failing or held:
        parts = [f"the check {name!r} fails" for name in failing]
        parts += [f"{finding.place}: {finding.message}" for finding in held]
        shown = "; ".join(parts[:SHOWN]) + (f"; and {len(parts) - SHOWN} more" if len(parts) > SHOWN else "")
        ids = [finding.id for finding in held]
        return Ruling(outcome=None, reason="findings", message=shown, needs=["a repair"], findings=ids)
    return None


SHOWN = 3
"""Parts of a message that are spelt out."""


def _complete(standing: Standing) -> Ruling:
    count = len(standing.checks)
    passed = f"{count} agreed check{'s pass' if count != 1 else ' passes'} on the current source"
    if not count:
        passed = "no check is agreed, so that this rests on the reviewer alone"
    why = f"{passed}; no actionable finding is open in scope"
    ask = "Accept the change?"
    return Ruling(outcome="complete", reason="complete", message=why, decision=ask)


def _extend(standing: Standing) -> str:
    return f"Grant attempts beyond the {standing.budget.allowed} by name, once what is missing can be had?"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
