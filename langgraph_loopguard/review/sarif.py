"""SARIF 2.1.0, read and written. Written findings carry `baselineState` and their identity as a fingerprint."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from langgraph_loopguard.review.models import Finding, Kind, Report, Severity
from langgraph_loopguard.review.paths import relative

VERSION = "2.1.0"

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

FINGERPRINT = "loopguardFinding/v1"
"""Name of the fingerprint that is a finding's id."""

BASE_ID = "SRCROOT"

LEVELS: Mapping[str, Severity] = {"error": "error", "warning": "warning", "note": "note", "none": "note"}

PROBLEMS = {"fail": "actionable", "review": "judgement", "open": "judgement"}
"""SARIF's `kind` of results that are problems, and what sort of finding they are."""


def read_sarif(data: Any, root: str | os.PathLike[str]) -> list[Report]:
    """Return the problems of a SARIF log; what is suppressed, absent or no failure is left out.

    Raises:
        ValueError: It is no SARIF 2.1.0 log, or a run says that its tool failed.
    """
    if not isinstance(data, Mapping) or data.get("version") != VERSION or not isinstance(data.get("runs"), list):
        msg = f"a SARIF log of version {VERSION} is needed"
        raise ValueError(msg)
    return [report for run in data["runs"] for report in _read_run(run, root)]


def _read_run(run: Mapping[str, Any], root: str | os.PathLike[str]) -> Iterator[Report]:
    for invocation in run.get("invocations", ()):
        if invocation.get("executionSuccessful") is False:
            msg = "the tool says that its run was not successful"
            raise ValueError(msg)
    tool = run["tool"]
    components = [tool["driver"], *tool.get("extensions", ())]
    rules = {rule["id"]: rule for component in components for rule in component.get("rules", ())}
    for result in run.get("results") or ():
        kind = PROBLEMS.get(result.get("kind", "fail"))
        if kind and result.get("baselineState") != "absent" and not _suppressed(result):
            yield _read_result(result, "judgement" if kind == "judgement" else "actionable", run, rules, root)


def _suppressed(result: Mapping[str, Any]) -> bool:
    found = result.get("suppressions") or ()
    return bool(found) and all(item.get("status", "accepted") == "accepted" for item in found)


def _read_result(
    result: Mapping[str, Any],
    kind: Kind,
    run: Mapping[str, Any],
    rules: Mapping[str, Mapping[str, Any]],
    root: str | os.PathLike[str],
) -> Report:
    rule_id = _rule_id(result, run)
    rule = rules.get(rule_id or "", {})
    level = result.get("level") or rule.get("defaultConfiguration", {}).get("level") or "warning"
    file, line, end_line, snippet = None, None, None, None
    for location in result.get("locations") or ():
        physical = location.get("physicalLocation") or {}
        file = _file(physical.get("artifactLocation") or {}, run, root)
        region = physical.get("region") or {}
        line, end_line = region.get("startLine"), region.get("endLine")
        snippet = (region.get("snippet") or {}).get("text")
        break
    return Report(
        file=file,
        line=line,
        end_line=end_line,
        rule=rule_id,
        message=_message(result.get("message") or {}, rule),
        severity=LEVELS[level],
        kind=kind,
        quote=snippet,
    )


def _rule_id(result: Mapping[str, Any], run: Mapping[str, Any]) -> str | None:
    reference = result.get("rule") or {}
    if found := result.get("ruleId") or reference.get("id"):
        return str(found)
    index = result.get("ruleIndex", reference.get("index", -1))
    component = run["tool"]["driver"]
    where = (reference.get("toolComponent") or {}).get("index", -1)
    if where >= 0:
        component = run["tool"]["extensions"][where]
    return str(component["rules"][index]["id"]) if index >= 0 else None


def _message(message: Mapping[str, Any], rule: Mapping[str, Any]) -> str:
    text = message.get("text") or message.get("markdown")
    if text is None:
        text = rule["messageStrings"][message["id"]]["text"]
    arguments = message.get("arguments") or ()

    def fill(match: re.Match[str]) -> str:
        number = int(match[1])
        return str(arguments[number]) if number < len(arguments) else match[0]

    return re.sub(r"\{(\d+)\}", fill, str(text)) if arguments else str(text)


def _file(location: Mapping[str, Any], run: Mapping[str, Any], root: str | os.PathLike[str]) -> str | None:
    if "uri" not in location and location.get("index", -1) >= 0:
        location = run["artifacts"][location["index"]]["location"]
    uri = location.get("uri")
    if not uri:
        return None
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        return str(uri)
    name = unquote(parts.path)
    base = (run.get("originalUriBaseIds") or {}).get(location.get("uriBaseId") or "", {}).get("uri")
    if not os.path.isabs(name) and base and urlsplit(base).scheme == "file":
        name = os.path.join(unquote(urlsplit(base).path), name)
    return relative(name, root)


def write_sarif(findings: Sequence[Finding], *, version: str, outcome: str | None) -> dict[str, Any]:
    """Return findings as a SARIF log.

    Args:
        findings: All that the review remembers. `baselineState` says what each one is against the review before;
            what a person or the scope has set aside is marked as suppressed.
        version: The library's version.
        outcome: How the review ended, if it has.
    """
    rules = sorted({finding.rule or "review" for finding in findings})
    driver = {
        "name": "loopguard review",
        "version": version,
        "informationUri": "https://pypi.org/project/langgraph-loopguard/",
        "rules": [{"id": rule} for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {BASE_ID: {"description": {"text": "The top of the work tree."}}},
        "results": [_result(finding, rules) for finding in findings],
        "properties": {"outcome": outcome},
    }
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def _result(finding: Finding, rules: Sequence[str]) -> dict[str, Any]:
    rule = finding.rule or "review"
    judgement = finding.kind == "judgement"
    result: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "kind": "review" if judgement else "fail",
        "level": "none" if judgement else finding.severity,
        "message": {"text": finding.message},
        "baselineState": finding.baseline,
        "partialFingerprints": {FINGERPRINT: finding.id},
        "properties": {
            "status": finding.status,
            "scope": finding.scope,
            "check": finding.provenance.check,
            "commit": finding.provenance.commit,
            "sourceState": finding.provenance.source_state,
            "firstSeen": finding.provenance.first_seen,
            "lastConfirmed": finding.provenance.last_confirmed,
        },
    }
    if finding.file is not None:
        place: dict[str, Any] = {"artifactLocation": {"uri": quote(finding.file, safe="/"), "uriBaseId": BASE_ID}}
        if finding.line is not None:
            place["region"] = {"startLine": finding.line, "endLine": max(finding.line, finding.end_line or 0)}
        result["locations"] = [{"physicalLocation": place}]
    if finding.closed is not None:
        result["properties"]["closed"] = finding.closed.model_dump()
    if finding.status == "out_of_scope":
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": finding.scope}]
    return result
