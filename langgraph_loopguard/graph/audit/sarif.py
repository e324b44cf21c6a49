"""The open cycles as a SARIF 2.1.0 log."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from langgraph_loopguard.graph.audit.report import AuditReport, Cycle

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

RULES: dict[str, tuple[str, str]] = {
    "missing": ("error", "Nothing bounds this cycle of the graph."),
    "bypassed": ("error", "This cycle goes round a guard."),
    "ineffective": ("error", "A counter is meant to bound this cycle, and does not."),
    "weak": ("warning", "This cycle is bounded only by something that is not a guard."),
    "unknown": ("warning", "Where this node goes cannot be read, so it may be in a cycle."),
}


def to_sarif(report: AuditReport) -> dict[str, Any]:
    """Return a log with one result for each open cycle."""
    rules = [
        {
            "id": f"loopguard/{verdict}",
            "name": f"{verdict.capitalize()}Guard",
            "shortDescription": {"text": text},
            "defaultConfiguration": {"level": level},
        }
        for verdict, (level, text) in RULES.items()
    ]
    driver: dict[str, Any] = {"name": "loopguard", "version": _version(), "rules": rules}
    results = [_result(cycle) for cycle in report.open]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(cycle: Cycle) -> dict[str, Any]:
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": f"{cycle.graph}/{cycle}", "kind": "function"}]
    }
    if cycle.place is not None:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": uri(cycle.place.file)},
            "region": {"startLine": cycle.place.line},
        }
    return {
        "ruleId": f"loopguard/{cycle.verdict}",
        "ruleIndex": list(RULES).index(cycle.verdict),
        "level": RULES[cycle.verdict][0],
        "message": {"text": f"{cycle} ({cycle.graph}): {cycle.reason}."},
        "locations": [location],
        "partialFingerprints": {"loopguardCycle/v1": f"{cycle.graph}/{cycle}"},
    }


def uri(file: str) -> str:
    """Return a file as a URI: relative to the working directory where it lies inside it, as code hosts want it."""
    path = Path(file)
    if not path.is_absolute():
        return quote(path.as_posix())
    here = Path.cwd()
    return quote(path.relative_to(here).as_posix()) if path.is_relative_to(here) else path.as_uri()


def _version() -> str:
    try:
        return version("langgraph-loopguard")
    except PackageNotFoundError:
        return "0"
