"""Who is in scope. It rests on files, on lines of the diff, and on checks; never on what a model says about scope."""

from __future__ import annotations

from langgraph_loopguard.review.change import Change
from langgraph_loopguard.review.models import Finding, Scope
from langgraph_loopguard.review.paths import covers


def judge_scope(finding: Finding, scope: Scope, change: Change) -> tuple[bool, str]:
    """Return whether a finding is in scope, and why."""
    check = finding.provenance.check
    if check is not None:
        agreed = check in scope.checks
        return (
            agreed,
            f"the agreed check {check!r} reports it" if agreed else f"the check {check!r} is not agreed any more",
        )
    if finding.file is None:
        return False, "it cites no file"
    if not covers(scope.files, finding.file):
        return False, f"{finding.file!r} is not among the files in scope"
    changed = change.files.get(finding.file)
    if changed is None:
        return False, f"{finding.file!r} is not a file of the change"
    if scope.lines == "file":
        return True, f"{finding.file!r} is a file of the change"
    if finding.line is None:
        return False, "it cites no line, and only changed lines are in scope"
    if changed.touches(finding.line, finding.end_line or finding.line):
        return True, f"line {finding.line} was changed"
    return False, f"line {finding.line} was not changed"


def place(finding: Finding, scope: Scope, change: Change) -> Finding:
    """Return an unresolved finding with the status that its scope gives it.

    What was in scope stays so when the change moves away from it (its file is reverted, deleted, renamed): it is to
    be rechecked, not to be forgotten. Only the agreed list of files or checks can take it out.
    """
    if finding.status == "resolved":
        return finding
    inside, why = judge_scope(finding, scope, change)
    of_check = finding.provenance.check is not None
    if not inside and finding.in_scope and not of_check and covers(scope.files, finding.file or ""):
        return finding if finding.scope.startswith(WAS) else finding.model_copy(update={"scope": WAS + finding.scope})
    status = finding.status
    if not inside:
        status = "out_of_scope"
    elif status == "out_of_scope":
        status = "carried"  # the change has come to include it; whether it still holds is not known
    return finding.model_copy(update={"status": status, "in_scope": inside, "scope": why})


WAS = "in scope when it was reported: "
