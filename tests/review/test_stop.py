"""The stop rule: the table of terminal states, and what it must never say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_loopguard.review.models import Budget, Evidence, Finding, Provenance
from langgraph_loopguard.review.source import SourceState
from langgraph_loopguard.review.stop import Standing, judge, may_review

NOW = SourceState(kind="git", commit="c2", tree="t2", changes=None, files=1)
BEFORE = SourceState(kind="git", commit="c1", tree="t1", changes=None, files=1)
OTHERS = [SourceState(kind="git", commit=f"x{i}", tree=f"x{i}", changes=None, files=1) for i in range(4)]


def evidence(check: str = "tests", result: str = "pass", source: SourceState = NOW, **more: Any) -> Evidence:
    values = {"subject": check, "command": [check], "exit_status": 0, "why": "it says so", "output": ""}
    values |= {"output_size": 0, "output_sha256": "", "started_at": "", "seconds": 0} | more
    return Evidence(check=check, result=result, source=source, **values)


def finding(status: str = "open", kind: str = "actionable", identity: str = "f1") -> Finding:
    provenance = Provenance(source="reviewer", source_state=NOW.digest, first_seen=1, last_confirmed=1)
    return Finding(
        id=identity,
        file="a.py",
        line=1,
        rule="r",
        message="It breaks.",
        severity="error",
        kind=kind,
        status=status,
        provenance=provenance,
    )


FREE = Budget(max_attempts=3, used=1)
SPENT = Budget(max_attempts=3, used=3)
OUT_OF_TIME = Budget(max_attempts=3, used=1, max_seconds=60, seconds=61)
DONE = NOW.digest
PASSES = [evidence()]
FAILS = [evidence(result="fail")]
DEAD = [evidence(result="unavailable")]
STALE = [evidence(source=BEFORE)]

# budget, evidence, findings, reviewed, more -> outcome, reason
TABLE: list[tuple[Budget, list[Evidence], list[Finding], str | None, dict[str, Any], str | None, str]] = [
    # complete: fresh passing evidence for every check, nothing actionable open
    (FREE, PASSES, [], DONE, {}, "complete", "complete"),
    (FREE, PASSES, [finding("resolved")], DONE, {}, "complete", "complete"),
    (FREE, PASSES, [finding("out_of_scope")], DONE, {}, "complete", "complete"),
    (FREE, PASSES, [finding("out_of_scope", "judgement")], DONE, {}, "complete", "complete"),
    (SPENT, PASSES, [], DONE, {}, "complete", "complete"),
    (FREE, [], [], DONE, {"checks": []}, "complete", "complete"),
    # not finished
    (FREE, [], [], DONE, {}, None, "evidence"),
    (FREE, STALE, [], DONE, {}, None, "evidence"),
    (FREE, PASSES, [], None, {}, None, "review"),
    (FREE, PASSES, [], BEFORE.digest, {}, None, "review"),
    (FREE, FAILS, [], DONE, {}, None, "findings"),
    (FREE, PASSES, [finding("open")], DONE, {}, None, "findings"),
    (FREE, PASSES, [finding("verified")], DONE, {}, None, "findings"),
    (FREE, PASSES, [finding("carried")], DONE, {}, None, "findings"),
    (FREE, PASSES, [], DONE, {"failure": "it answered no JSON"}, None, "failed"),
    # blocked: evidence that cannot be obtained, or a bound reached without it
    (FREE, PASSES, [], DONE, {"source": None, "problem": "no permission"}, "blocked", "source"),
    (FREE, DEAD, [], DONE, {}, "blocked", "check_unavailable"),
    (FREE, DEAD, [finding("open")], DONE, {}, "blocked", "check_unavailable"),
    (FREE, [*PASSES, *DEAD], [], DONE, {}, "blocked", "check_unavailable"),
    (FREE, [evidence(changed_source=True)], [], DONE, {}, "blocked", "check_unavailable"),
    (SPENT, [], [], DONE, {}, "blocked", "bound"),
    (SPENT, STALE, [], DONE, {}, "blocked", "bound"),
    (SPENT, DEAD, [finding("open")], DONE, {}, "blocked", "bound"),
    (SPENT, PASSES, [], None, {}, "blocked", "bound"),
    (SPENT, PASSES, [], BEFORE.digest, {}, "blocked", "bound"),
    (SPENT, PASSES, [], DONE, {"failure": "timed out"}, "blocked", "bound"),
    (OUT_OF_TIME, STALE, [], DONE, {}, "blocked", "bound"),
    # escalated: judgement, unclear intent, checks that disagree, a bound with everything known
    (SPENT, FAILS, [], DONE, {}, "escalated", "bound"),
    (SPENT, PASSES, [finding("open")], DONE, {}, "escalated", "bound"),
    (OUT_OF_TIME, PASSES, [finding("open")], DONE, {}, "escalated", "bound"),
    (FREE, PASSES, [finding("open", "judgement")], DONE, {}, "escalated", "judgement"),
    (FREE, PASSES, [finding("carried", "judgement")], None, {}, None, "review"),
    (FREE, PASSES, [finding("carried", "judgement")], DONE, {}, "escalated", "judgement"),
    (FREE, FAILS, [finding("verified", "judgement")], DONE, {}, "escalated", "judgement"),
    (SPENT, PASSES, [finding("open", "judgement")], DONE, {}, "escalated", "judgement"),
    (FREE, PASSES, [finding("disputed")], DONE, {}, "escalated", "disputed"),
    (FREE, PASSES, [], DONE, {"questions": ["Is zero allowed?"]}, "escalated", "question"),
    (FREE, PASSES, [finding()], DONE, {"recurring": ["f1"]}, "escalated", "recurring"),
    (FREE, PASSES, [finding("resolved")], DONE, {"recurring": ["f1"]}, "complete", "complete"),
    (FREE, PASSES, [finding("out_of_scope")], DONE, {"recurring": ["f1"]}, "complete", "complete"),
    (
        FREE,
        [evidence("black", subject="format"), evidence("yapf", "fail", subject="format")],
        [],
        DONE,
        {"checks": ["black", "yapf"]},
        "escalated",
        "disagreement",
    ),
    (FREE, [evidence(result="fail"), evidence(result="pass")], [], DONE, {}, "escalated", "disagreement"),
    (
        FREE,
        [
            item
            for i, source in enumerate([*OTHERS[:2], NOW])
            for item in (
                evidence("a", "pass" if i % 2 else "fail", source),
                evidence("b", "fail" if i % 2 else "pass", source),
            )
        ],
        [],
        DONE,
        {"checks": ["a", "b"]},
        "escalated",
        "disagreement",
    ),
    # a check that fails where another one passes is no disagreement
    (FREE, [evidence("a"), evidence("b", "fail")], [], DONE, {"checks": ["a", "b"]}, None, "findings"),
]


def standing(
    budget: Budget, found: list[Evidence], findings: list[Finding], reviewed: str | None, **more: Any
) -> Standing:
    values: dict[str, Any] = {"checks": ["tests"], "source": NOW, **more}
    return Standing(budget=budget, evidence=found, findings=findings, reviewed=reviewed, **values)


@pytest.mark.parametrize("row", TABLE)
def test_the_table(row: Any) -> None:
    budget, found, findings, reviewed, more, outcome, reason = row
    ruling = judge(standing(budget, found, findings, reviewed, **more))
    assert (ruling.outcome, ruling.reason) == (outcome, reason), ruling.message
    assert ruling.message
    if outcome == "blocked":
        assert ruling.needs
    if outcome == "escalated":
        assert ruling.decision


def test_bound_then_evidence_then_findings() -> None:
    everything = standing(SPENT, DEAD, [finding("open", "judgement")], None)
    assert judge(everything).reason == "bound"
    without_bound = standing(FREE, DEAD, [finding("open", "judgement")], None)
    assert judge(without_bound).reason == "check_unavailable"
    without_either = standing(FREE, PASSES, [finding("open", "judgement")], None)
    assert judge(without_either).reason == "judgement"


def test_the_reviewer_is_not_started_without_need() -> None:
    assert may_review(standing(SPENT, PASSES, [], None)) is not None
    assert may_review(standing(FREE, DEAD, [], None)) is not None
    assert may_review(standing(FREE, PASSES, [], None)) is None


STATUSES = st.sampled_from(["open", "verified", "carried", "resolved", "out_of_scope", "disputed"])
FINDINGS = st.lists(
    st.builds(finding, STATUSES, st.sampled_from(["actionable", "judgement"]), st.sampled_from(["f1", "f2", "f3"])),
    max_size=4,
)
EVIDENCE = st.lists(
    st.builds(
        evidence,
        st.sampled_from(["tests", "types"]),
        st.sampled_from(["pass", "fail", "unavailable"]),
        st.sampled_from([NOW, BEFORE]),
        changed_source=st.booleans(),
    ),
    max_size=5,
)
STANDINGS = st.builds(
    Standing,
    checks=st.sampled_from([["tests"], ["tests", "types"]]),
    source=st.sampled_from([NOW, None]),
    budget=st.builds(
        Budget, used=st.integers(0, 4), max_seconds=st.sampled_from([None, 10]), seconds=st.sampled_from([0, 11])
    ),
    evidence=EVIDENCE,
    findings=FINDINGS,
    reviewed=st.sampled_from([None, NOW.digest, BEFORE.digest]),
    questions=st.sampled_from([(), ("What is meant?",)]),
    recurring=st.sampled_from([(), ("f1",)]),
    failure=st.sampled_from([None, "timed out"]),
)


@given(STANDINGS)
def test_complete_means_complete(case: Standing) -> None:
    """Whatever else is the case, `complete` has all its conditions; and every standing has an answer."""
    ruling = judge(case)
    assert ruling == judge(case)
    if ruling.outcome != "complete":
        return
    assert case.source is not None
    assert case.reviewed == case.source.digest
    assert case.failure is None
    assert not case.questions
    assert not [item for item in case.findings if item.holds]
    for check in case.checks:
        fresh = [item for item in case.evidence if item.check == check and item.fresh(case.source)]
        assert fresh[-1].result == "pass"
        assert "fail" not in {item.result for item in fresh}


@given(STANDINGS)
def test_at_a_bound_every_review_has_ended(case: Standing) -> None:
    if case.budget.spent is not None:
        assert judge(case).outcome is not None
