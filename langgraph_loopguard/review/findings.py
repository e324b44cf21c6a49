"""The findings over rounds: carried to the current source state, rechecked there, closed with a reason.

A finding of a check is shown or closed by that check on the current source. A finding of the reviewer is remembered
as `carried` until the reviewer has answered whether this particular concern was repaired; and an answer that nothing
in the source bears out closes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph_loopguard.review.answer import Dispute, Recheck, ReviewAnswer
from langgraph_loopguard.review.change import Change
from langgraph_loopguard.review.cited import Place, Text, Texts
from langgraph_loopguard.review.matching import Placed, identity, locate, match
from langgraph_loopguard.review.models import Closed, Evidence, Finding, Provenance, Report, Scope, Status
from langgraph_loopguard.review.paths import relative
from langgraph_loopguard.review.scope import place
from langgraph_loopguard.review.source import Snapshot

SHORT = 3
"""A cited code of fewer tokens is too common to be followed into another file."""


@dataclass(frozen=True)
class Moment:
    """What findings are compared with: one round's source state.

    Attributes:
        round: The round's number, from 1.
        snapshot: The source state.
        change: The change under review.
        scope: The scope.
        texts: The files' texts.
    """

    round: int
    snapshot: Snapshot
    change: Change
    scope: Scope
    texts: Texts

    @property
    def digest(self) -> str:
        """Digest of the source state."""
        return self.snapshot.state.digest

    def closed(self, how: str, by: str) -> Closed:
        """Return the note of how a finding is closed now."""
        return Closed(how=how, by=by, round=self.round, source_state=self.digest)


def carry(findings: Sequence[Finding], moment: Moment, before: Mapping[str, str]) -> list[Finding]:
    """Return findings as they stand in a source state before anything is rechecked there.

    Args:
        findings: All that are remembered.
        moment: The current source state.
        before: Content hashes of the change's files in the round before: what has not changed since cannot have
            taken in code from elsewhere.
    """
    return [_carried(finding, moment, before) for finding in findings]


def _carried(finding: Finding, moment: Moment, before: Mapping[str, str]) -> Finding:
    if finding.status == "resolved":
        return finding.model_copy(update={"baseline": "absent"})
    if finding.provenance.source_state == moment.digest:
        return place(finding.model_copy(update={"baseline": "unchanged"}), moment.scope, moment.change)
    moved, gone = _follow(finding, moment, before)
    if gone and finding.provenance.source == "reviewer":
        how = f"{finding.file!r} is not there any more"
        return moved.model_copy(
            update={"status": "resolved", "baseline": "absent", "closed": moment.closed(how, "the source")}
        )
    status: Status = "out_of_scope" if finding.status == "out_of_scope" else "carried"
    return place(moved.model_copy(update={"status": status, "baseline": "unchanged"}), moment.scope, moment.change)


def _follow(finding: Finding, moment: Moment, before: Mapping[str, str]) -> tuple[Finding, bool]:
    """Return a finding at the place where its code is now, and whether its file is gone for good."""
    if finding.file is None:
        return finding, False
    text = moment.texts.get(finding.file)
    if text is not None and (spot := _same_place(text, finding)):
        return _moved(finding, finding.file, spot), False
    if text is None and moment.texts.hash_of(finding.file) is not None:
        return finding, False  # a binary or a link now: nothing to compare
    if text is None and (name := _renamed(finding, moment)):
        renamed = moment.texts.get(name)
        as_it_was = Place(finding.line, finding.end_line, finding.code, finding.context)
        return _moved(finding, name, (renamed and _same_place(renamed, finding)) or as_it_was), False
    changed = [
        name
        for name in moment.change.files
        if name != finding.file and before.get(name) != moment.texts.hash_of(name) and moment.texts.get(name)
    ]
    if elsewhere := _elsewhere(finding, moment, changed):
        return _moved(finding, *elsewhere), False
    # With a new file about, it may have been renamed and rewritten: the reviewer is asked.
    was_there = finding.provenance.file_hash is not None
    return finding, was_there and text is None and all(name in before for name in changed)


def _same_place(text: Text, finding: Finding) -> Place | None:
    """Return where a finding's code is in its file now; not one of the places that held the same code before."""
    places = text.find(finding.code)
    here = [spot for spot in places if spot.context == finding.context]
    moved = [spot for spot in places if spot.context not in finding.twins]
    return _nearest(here or moved, finding)


def _renamed(finding: Finding, moment: Moment) -> str | None:
    if found := moment.change.renamed_to(finding.file or ""):
        return found
    wanted = finding.provenance.file_hash
    same = [name for name, entry in moment.snapshot.files.items() if entry.oid == wanted]
    return same[0] if len(same) == 1 else None


def _elsewhere(finding: Finding, moment: Moment, names: Sequence[str]) -> tuple[str, Place] | None:
    """Return where a code went: the one place among the files that changed since, if it is long enough to tell."""
    if len(finding.code.split()) < SHORT:
        return None
    found: list[tuple[str, Place]] = []
    for name in names:
        text = moment.texts.get(name)
        found += [(name, spot) for spot in (text.find(finding.code) if text else ())]
    same = [pair for pair in found if pair[1].context == finding.context]
    other = [pair for pair in found if pair[1].context not in finding.twins]
    return next((pairs[0] for pairs in (same, other) if len(pairs) == 1), None)


def _nearest(places: Sequence[Place], finding: Finding) -> Place | None:
    return min(places, key=lambda spot: abs((spot.line or 0) - (finding.line or 0)), default=None)


def _moved(finding: Finding, file: str, spot: Place) -> Finding:
    update = {"file": file, "line": spot.line, "end_line": spot.end_line, "context": spot.context}
    return finding.model_copy(update=update)


def take_evidence(findings: Sequence[Finding], evidence: Evidence, moment: Moment) -> list[Finding]:
    """Return findings after a check has run on the current source state.

    What it reports is `verified`; what it reported before and does no longer is resolved. A check that is unavailable,
    or that changed the source, says nothing: its findings stay as they are.
    """
    if evidence.result == "unavailable" or not evidence.fresh(moment.snapshot.state):
        return list(findings)
    reports = list(evidence.reports)
    if evidence.result == "fail" and not reports:
        why = f"the check {evidence.check!r} fails: {evidence.why}"
        reports = [Report(rule=f"check:{evidence.check}", message=why, severity="error")]
    own = [finding for finding in findings if finding.provenance.check == evidence.check]
    placed = [locate(report, moment.texts) for report in reports]
    matched = match(placed, own)
    seen = {finding.id for finding in matched.values()}
    out: list[Finding] = []
    updated = {known.id: _confirmed(known, placed[index], "verified", moment) for index, known in matched.items()}
    for finding in findings:
        if finding.provenance.check == evidence.check and finding.id not in seen and finding.status != "resolved":
            how = f"the check {evidence.check!r} does not report it any more ({evidence.result})"
            finding = _resolved(finding, moment.closed(how, evidence.check))
        out.append(updated.get(finding.id, finding))
    return out + _new(placed, set(matched), {finding.id for finding in findings}, evidence.check, moment)


def take_answer(findings: Sequence[Finding], answer: ReviewAnswer, moment: Moment) -> list[Finding]:
    """Return findings after the reviewer has answered about the current source state."""
    answers = {recheck.id: recheck for recheck in answer.rechecks}
    rechecked = [
        _rechecked(finding, answers[finding.id], moment) if finding.id in answers else finding for finding in findings
    ]
    placed = [locate(_named(item.report(), moment), moment.texts) for item in answer.findings]
    matched = match(placed, rechecked)
    updated = {}
    for index, known in matched.items():
        if known.provenance.source == "reviewer":  # what a check shows, the check alone closes or confirms
            updated[known.id] = _confirmed(known, placed[index], "open", moment)
    kept = [updated.get(finding.id, finding) for finding in rechecked]
    return kept + _new(placed, set(matched), {finding.id for finding in kept}, None, moment)


def _named(report: Report, moment: Moment) -> Report:
    """Return a report with its file named as the source names it (not absolute, not with a `./`)."""
    if report.file is None or report.file in moment.snapshot.files:
        return report
    return report.model_copy(update={"file": relative(report.file, moment.snapshot.root)})


def _rechecked(finding: Finding, recheck: Recheck, moment: Moment) -> Finding:
    if finding.status == "resolved" or finding.provenance.source == "check":
        return finding
    note = recheck.reason or None
    if recheck.repaired == "yes":
        if finding.provenance.source_state == moment.digest:
            why = "the reviewer says that it is repaired, and nothing in the source has changed since it was reported"
            return finding.model_copy(update={"status": "disputed", "note": _also(why, note)})
        closed = moment.closed(_also("the reviewer says that it is repaired", note), "the reviewer")
        return _resolved(finding, closed).model_copy(update={"note": note})
    if recheck.file is not None or recheck.line is not None:
        report = Report(file=recheck.file or finding.file, line=recheck.line, message=finding.message)
        spot = locate(report, moment.texts)
        finding = finding.model_copy(
            update={
                "file": spot.report.file,
                "line": spot.place.line,
                "end_line": None,
                "code": spot.place.code or finding.code,
                "context": spot.place.context,
                "twins": _twins(spot.report.file, spot.place, moment),
            }
        )
    unsure = recheck.repaired == "unsure"
    update: dict[str, Any] = {"status": "open", "note": note, "provenance": _provenance(finding, moment)}
    if unsure:
        update |= {"kind": "judgement", "note": _also("the reviewer cannot say whether it is repaired", note)}
    return place(finding.model_copy(update=update), moment.scope, moment.change)


def dispute(findings: Sequence[Finding], disputes: Sequence[Dispute]) -> list[Finding]:
    """Return findings after the fixer has said which ones it holds to be wrong: a person decides about them."""
    reasons = {item.id: item.reason for item in disputes}
    return [
        finding.model_copy(
            update={"status": "disputed", "note": _also("the fixer holds it to be wrong", reasons[finding.id])}
        )
        if finding.id in reasons and finding.holds
        else finding
        for finding in findings
    ]


def dismiss(finding: Finding, by: str, round: int) -> Finding:
    """Return a finding that a person holds to be none; a later report does not open it again."""
    closed = Closed(
        how=f"dismissed by {by}",
        by=by,
        round=round,
        source_state=finding.provenance.source_state,
        person=True,
    )
    return _resolved(finding, closed)


def _also(first: str, second: str | None) -> str:
    return f"{first}: {second}" if second else first


def _resolved(finding: Finding, closed: Closed) -> Finding:
    return finding.model_copy(update={"status": "resolved", "baseline": "absent", "closed": closed})


def _provenance(finding: Finding, moment: Moment) -> Provenance:
    return finding.provenance.model_copy(
        update={
            "commit": moment.snapshot.state.commit,
            "source_state": moment.digest,
            "file_hash": moment.texts.hash_of(finding.file),
            "last_confirmed": moment.round,
        }
    )


def _confirmed(finding: Finding, placed: Placed, status: Status, moment: Moment) -> Finding:
    """Return a known finding as it was reported again."""
    report, spot = placed
    was_closed = finding.closed
    if was_closed is not None and was_closed.person:
        return finding
    came_back = was_closed is not None and was_closed.round != moment.round
    same = (spot.code, report.file) == (finding.code, finding.file)
    updated = finding.model_copy(
        update={
            "file": report.file,
            "line": spot.line,
            "end_line": spot.end_line,
            "code": spot.code,
            "context": spot.context,
            "twins": _twins(report.file, spot, moment),
            "message": report.message,
            "severity": report.severity,
            "kind": report.kind,
            "status": status,
            "baseline": "new" if came_back else "unchanged" if same else "updated",
            "closed": None,
            "reopened": finding.reopened + came_back,
        }
    )
    updated = updated.model_copy(update={"provenance": _provenance(updated, moment)})
    return place(updated, moment.scope, moment.change)


def _twins(file: str | None, spot: Place, moment: Moment) -> list[str]:
    text = moment.texts.get(file)
    return text.twins(spot) if text and spot.code else []


def _new(
    placed: Sequence[Placed], matched: set[int], taken: set[str], check: str | None, moment: Moment
) -> list[Finding]:
    out: list[Finding] = []
    for index, item in enumerate(placed):
        if index in matched:
            continue
        report, spot = item
        known = identity(item, check or "reviewer", taken)
        taken.add(known)
        provenance = Provenance(
            source="check" if check else "reviewer",
            check=check,
            file=report.file,
            commit=moment.snapshot.state.commit,
            source_state=moment.digest,
            file_hash=moment.texts.hash_of(report.file),
            first_seen=moment.round,
            last_confirmed=moment.round,
        )
        finding = Finding(
            id=known,
            file=report.file,
            line=spot.line,
            end_line=spot.end_line,
            rule=report.rule,
            message=report.message,
            severity=report.severity,
            kind=report.kind,
            status="verified" if check else "open",
            provenance=provenance,
            code=spot.code,
            context=spot.context,
            twins=_twins(report.file, spot, moment),
        )
        out.append(place(finding, moment.scope, moment.change))
    return out
