"""What a reviewer and a fixer are asked, as JSON; and the hash that tells one question from another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from langgraph_loopguard.review.answer import PROTOCOL, QUESTION, answer_schema
from langgraph_loopguard.review.change import Change
from langgraph_loopguard.review.models import Evidence, Finding, Scope
from langgraph_loopguard.review.source import SourceState

SHOWN_OUTPUT = 8000
"""Characters of a check's output that are passed on, from its end."""


def review_question(
    *,
    scope: Scope,
    context: str,
    source: SourceState,
    change: Change,
    findings: Sequence[Finding],
    evidence: Sequence[Evidence],
    fresh_scope: str | None,
    changed_since: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the question to a reviewer.

    Args:
        scope: What the review is about.
        context: Further text from the user.
        source: The source state.
        change: The change.
        findings: All findings; those that the reviewer has to recheck are asked about, one by one.
        evidence: The results of the checks on this source state.
        fresh_scope: Why the whole scope is reviewed anew, where it is.
        changed_since: Files that changed since the last review; `None` for a review of the whole scope.
    """
    return {
        "protocol": PROTOCOL,
        "mode": "whole_scope" if changed_since is None else "follow_up",
        "changed_since_last_review": changed_since,
        "goal": scope.goal,
        "context": context,
        "scope": {
            "files": [{"file": file.name, "status": file.status} for file in change.files.values()],
            "only": scope.files,
            "lines": scope.lines,
            "checks": scope.checks,
        },
        "base": change.base,
        "source": source.model_dump(),
        "fresh_scope": fresh_scope,
        "diff": change.patch,
        "diff_truncated": change.truncated,
        "retained": [_retained(finding) for finding in findings if _is_asked(finding)],
        "checks": [_shown(item) for item in evidence],
        "reported_by_checks": [_retained(f) for f in findings if f.holds and f.provenance.source == "check"],
        "answer_schema": answer_schema(),
    }


def fix_question(
    *, scope: Scope, context: str, change: Change, findings: Sequence[Finding], evidence: Sequence[Evidence]
) -> dict[str, Any]:
    """Return the question to a fixer."""
    return {
        "protocol": PROTOCOL,
        "goal": scope.goal,
        "context": context,
        "findings": [_retained(finding) for finding in findings],
        "checks": [_shown(item) for item in evidence if item.result == "fail"],
        "diff": change.patch,
    }


def question_hash(
    *, source: SourceState, base: str | None, context: str, scope: Scope, commands: Sequence[Sequence[str]], model: str
) -> str:
    """Return the hash of what a review rests on: source state, base, context, model, protocol. Not of findings."""
    parts = [source.digest, base, context_hash(context, scope, commands), model, PROTOCOL]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def context_hash(context: str, scope: Scope, commands: Sequence[Sequence[str]]) -> str:
    """Return the hash of what a review is told besides the source: goal, context, scope and checks."""
    about = scope.model_dump(exclude={"base"})
    return hashlib.sha256(json.dumps([context, about, [list(command) for command in commands]]).encode()).hexdigest()


def _is_asked(finding: Finding) -> bool:
    return finding.holds and finding.provenance.source == "reviewer"


def _retained(finding: Finding) -> dict[str, Any]:
    kept = {"id", "file", "line", "end_line", "rule", "message", "severity", "kind", "status", "note"}
    return {
        **finding.model_dump(include=kept),
        "first_seen_in_round": finding.provenance.first_seen,
        "question": QUESTION,
    }


def _shown(item: Evidence) -> dict[str, Any]:
    return {
        "check": item.check,
        "command": item.command,
        "result": item.result,
        "why": item.why,
        "output": item.output[-SHOWN_OUTPUT:],
    }
