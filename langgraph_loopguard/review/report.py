"""The report of a review: text, JSON, SARIF and HTML, readable by someone who was not there."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from langgraph_loopguard.review.models import Attempt, Evidence, Finding, Status
from langgraph_loopguard.review.sarif import write_sarif
from langgraph_loopguard.review.standing import ReviewReport
from langgraph_loopguard.review.text import block, inline

ReportFormat = Literal["text", "json", "sarif", "html"]

SECTIONS: tuple[tuple[Status, str], ...] = (
    ("verified", "Verified: an agreed check shows it on the current source"),
    ("open", "Open: the reviewer says that it holds in the current source"),
    ("carried", "Carried: remembered from an earlier source, not yet rechecked"),
    ("disputed", "Disputed: a person decides"),
    ("resolved", "Resolved"),
    ("out_of_scope", "Out of scope: kept, and holds nothing up"),
)

WAITS = {
    "complete": "The review is complete. Whether the change is accepted is a person's decision.",
    "blocked": "The review is blocked: it waits for something that the system can obtain.",
    "escalated": "The review is escalated: it waits for a person.",
    None: "The review is not finished.",
}

SHOWN_OUTPUT = 2000
"""Characters of a failed check's output in a report for people."""


def render(report: ReviewReport, form: ReportFormat) -> str:
    """Return a report in a format; it ends in a line feed."""
    match form:
        case "json":
            return json.dumps(report.model_dump(mode="json"), indent=2) + "\n"
        case "sarif":
            outcome = report.ruling.outcome if report.ruling else None
            return json.dumps(write_sarif(report.findings, version=_version(), outcome=outcome), indent=2) + "\n"
        case "html":
            return _html(report)
        case "text":
            return "\n".join(text_lines(report)) + "\n"


def status_lines(report: ReviewReport) -> Iterator[str]:
    """Yield the few lines of `status`."""
    ruling, budget = report.ruling, report.budget
    state = "running" if report.running else (ruling.outcome if ruling and ruling.outcome else "not finished")
    yield f"{inline(report.change)}: {state}"
    if ruling is not None:
        yield f"  {inline(ruling.message)}"
    granted = f" ({budget.extra_attempts} granted by {inline(budget.granted_by)})" if budget.extra_attempts else ""
    yield f"  attempts: {budget.used} of {budget.allowed}{granted}"
    if report.attempts:
        yield f"  last attempt: {_attempt(report.attempts[-1], running=report.running)}"
    counts = [(status, len(report.by_status(status))) for status, _ in SECTIONS]
    yield "  findings: " + (", ".join(f"{count} {status}" for status, count in counts if count) or "none")


def text_lines(report: ReviewReport) -> Iterator[str]:
    """Yield the lines of the report for a terminal."""
    ruling, handoff, scope = report.ruling, report.handoff, report.scope
    outcome = ruling.outcome if ruling else None
    yield f"Review of {inline(report.change)}: {outcome or ('running' if report.running else 'not finished')}"
    yield ""
    yield WAITS[outcome]
    if ruling is not None:
        yield f"Why: {inline(ruling.message)}"
        if outcome != "complete":
            for need in ruling.needs:
                yield f"Needed: {inline(need)}"
        if ruling.decision:
            yield f"Decision asked for: {inline(ruling.decision)}"
    if handoff is not None:
        for question in handoff.questions:
            yield f"Open question: {inline(question)}"
    yield ""
    yield "Scope"
    if scope is not None:
        yield f"  goal: {inline(scope.goal) or '(none given)'}"
        yield f"  files: {', '.join(map(inline, scope.files)) or 'those of the change'}"
    budget = report.budget
    by = f", {budget.extra_attempts} of them granted by {inline(budget.granted_by)}" if budget.extra_attempts else ""
    yield f"  attempts: {budget.used} of {budget.allowed} used{by}; {budget.seconds:.0f} s of work"
    yield ""
    yield "Checks"
    for item in _latest(report):
        yield f"  {item.result:<11} {inline(item.check)}: {inline(item.why)}"
        yield f"              on {_source(item)}, {item.started_at}"
        if item.result != "pass" and item.output.strip():
            yield block(item.output[-SHOWN_OUTPUT:].strip("\n"), "              | ")
    if not report.evidence:
        yield "  none has run"
    for status, title in SECTIONS:
        found = report.by_status(status)
        if found:
            yield ""
            yield f"{title} ({len(found)})"
            for finding in found:
                yield from _finding_lines(finding)
    yield ""
    yield "Attempts"
    for attempt in report.attempts:
        yield f"  {attempt.n}. {_attempt(attempt, running=report.running)}"
        if attempt.fresh_scope:
            yield f"     the whole scope anew: {inline(attempt.fresh_scope)}"
        if attempt.summary:
            yield block(attempt.summary, "     ")
    if not report.attempts:
        yield "  none"
    if handoff is not None and handoff.patch:
        yield ""
        yield "Proposed by the fixer, waits for acceptance"
        yield block(handoff.patch.rstrip("\n"))


def _latest(report: ReviewReport) -> list[Evidence]:
    latest = {item.check: item for item in report.evidence}
    return list(latest.values())


def _source(item: Evidence) -> str:
    state = item.source
    commit = f"commit {state.commit[:12]}" if state.commit else f"contents {state.tree[:12]}"
    return f"{commit} with changes {state.changes[:12]}" if state.changes else commit


def _finding_lines(finding: Finding) -> Iterator[str]:
    rule = f" [{inline(finding.rule)}]" if finding.rule else ""
    kind = " (for judgement)" if finding.kind == "judgement" else ""
    yield f"  {inline(finding.place)}: {finding.severity}{rule}{kind}: {inline(finding.message)}"
    origin = f"check {inline(finding.provenance.check)}" if finding.provenance.check else "the reviewer"
    rounds = (
        f"first seen in round {finding.provenance.first_seen}, last confirmed in {finding.provenance.last_confirmed}"
    )
    back = f", came back {finding.reopened} times" if finding.reopened else ""
    yield f"      {finding.id}, by {origin}, {rounds}{back}"
    if finding.closed is not None:
        yield f"      closed in round {finding.closed.round}: {inline(finding.closed.how)}"
    elif finding.note:
        yield f"      {inline(finding.note)}"
    if finding.status == "out_of_scope":
        yield f"      {inline(finding.scope)}"


def _attempt(attempt: Attempt, *, running: bool) -> str:
    status = attempt.status.replace("_", " ")
    if attempt.status == "reserved":
        status = "running" if running else "interrupted"
    took = f", {attempt.seconds:.0f} s" if attempt.seconds is not None else ""
    error = f": {inline(attempt.error)}" if attempt.error else ""
    return f"{status}{error} ({attempt.started_at}{took}, {inline(attempt.reviewer)})"


PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 62em; padding: 0 1em; }}
pre {{ background: #f4f4f4; overflow-x: auto; padding: .7em; white-space: pre-wrap; }}
h1 small {{ font-weight: normal; }}
</style>
</head>
<body>
<h1>{title}</h1>
<pre>{body}</pre>
</body>
</html>
"""


def _html(report: ReviewReport) -> str:
    """The same text in a page of its own that loads and runs nothing."""
    lines = list(text_lines(report))
    return PAGE.format(title=html.escape(lines[0]), body=html.escape("\n".join(lines[1:]).strip("\n")))


def _version() -> str:
    try:
        return version("langgraph-loopguard")
    except PackageNotFoundError:
        return "0"
