"""Builds the record of a trip from the ledger and the history."""

from __future__ import annotations

import difflib
import itertools
import json
import logging
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from langchain_core.runnables import RunnableConfig
from xxhash import xxh3_128_hexdigest

from langgraph_loopguard.core.conditions import broken
from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.core.ledger import Ledger
from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import flatten
from langgraph_loopguard.graph.guard import LoopGuard, scope_name
from langgraph_loopguard.graph.models import Escalation, Outcome, Spent
from langgraph_loopguard.graph.options import options_of

logger = logging.getLogger("langgraph_loopguard")

PATCH = re.compile(r"^--- .*\n\+\+\+ .*\n@@ -\d+(,\d+)? \+\d+(,\d+)? @@", re.MULTILINE)
"""How a unified diff begins."""

DIFF_WORK = 20_000_000
"""Pairs of lines that a diff may compare; a larger change is shown as one whole replacement."""


def build_escalation(
    guard: LoopGuard, scope: str, ledger: Ledger, history: Any, config: RunnableConfig
) -> dict[str, Any]:
    """Return the record of the ledger's trip, as plain JSON.

    Should it not come about (a history that another version wrote, a value that cannot be shown), the record is a
    `blocked` one with the error, the trip and the history's own entries as its evidence: no work is lost.

    Args:
        guard: The guard that tripped.
        scope: Name of the scope key that it tripped for.
        ledger: Its ledger, tripped.
        history: The history channel's value.
        config: The escalation node's config; the record's id is the same whenever that step is run again.
    """
    try:
        record = _whole(guard, scope, ledger, history, config)
    except Exception as error:
        logger.exception("the record of guard %r could not be built", guard.name)
        record = _bare(guard, scope, ledger, history, config, error)
    dumped: dict[str, Any] = to_jsonable(record.model_dump())
    return dumped


def _frame(guard: LoopGuard, scope: str, trip: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
    """The fields that say which trip a record is of."""
    thread = config["configurable"].get("thread_id")
    place = f"{thread}|{_pregel.task_id(config)}|{guard.name}|{scope}"
    return {
        "id": xxh3_128_hexdigest(place.encode("utf-8", "replace")),
        "thread_id": None if thread is None else str(thread),
        "loop": guard.name,
        "nodes": list(guard.nodes),
        "edge": trip["edge"],
        "scope_key": trip.get("scope_key"),
    }


def _bare(
    guard: LoopGuard, scope: str, ledger: Ledger, history: Any, config: RunnableConfig, error: Exception
) -> Escalation:
    trip = ledger.data["tripped"] or {}
    reason = to_jsonable(broken(error, "building the record").to_json())
    entries = [entry for entry in flatten(history) if isinstance(entry, Mapping) and entry.get("node") in guard.nodes]
    return Escalation(
        **_frame(guard, scope, trip, config),
        outcome="blocked",
        reason=reason,
        cycles=ledger.cycles,
        spent=Spent(seconds=round(ledger.seconds, 6), tokens=ledger.tokens, usd=ledger.data.get("usd")),
        diff="",
        reviews=[],
        fixes=[],
        findings=[],
        evidence=[*reason["evidence"], {"trip": to_jsonable(trip)}, *({"emission": to_jsonable(e)} for e in entries)],
        best_fix=None,
        question=_question(guard, ledger, reason, None),
        options=options_of(guard, ledger, reason, 0),
        created_at=datetime.now(timezone.utc).isoformat(),
    )


def _whole(guard: LoopGuard, scope: str, ledger: Ledger, history: Any, config: RunnableConfig) -> Escalation:
    trip = ledger.data["tripped"] or {}
    entries = _entries(guard, scope, flatten(history)[int(ledger.data.get("history_from", 0)) :])
    artifact = ledger.data.get("artifact", {}) if guard.artifact is not None else {}
    by, wrote = artifact.get("by") or [], artifact.get("wrote") or []
    # Who changed it by writing it; a change that a node only saw was made beside the loop.
    makers: Sequence[str] = [node for node in by if node in wrote] or wrote or by or guard.nodes[1:]
    if set(makers) == set(guard.nodes):  # all of them write it (a log, the messages): the first one reviews
        makers = guard.nodes[1:]
    reviews, fixes = _emissions(guard, entries, makers)
    findings = _findings(guard, entries, makers)
    reason: dict[str, Any] = dict(trip["reason"])
    counted = guard.per == "thread" and reason["kind"] == "exhausted" and "StepReserve" not in reason["condition"]
    if counted and _pregel.spans_inputs(config):
        reason["message"] += " (counted over all inputs of the thread)"
    outcome: Outcome = "blocked" if reason["kind"] == "broken" else "escalated"
    best = _best_fix(guard, entries, makers)
    return Escalation(
        **_frame(guard, scope, trip, config),
        outcome=outcome,
        reason=reason,
        cycles=ledger.cycles,
        spent=Spent(seconds=round(ledger.seconds, 6), tokens=ledger.tokens, usd=ledger.data.get("usd")),
        diff=_diff(guard, entries, makers),
        reviews=reviews,
        fixes=fixes,
        findings=findings,
        evidence=list(reason.get("evidence", [])),
        best_fix=best,
        question=_question(guard, ledger, reason, best),
        options=options_of(guard, ledger, reason, len(fixes)),
        created_at=_iso(trip["at"]),
    )


def _entries(guard: LoopGuard, scope: str, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries of the guard's nodes in the trip's scope, each with its `cycle`."""
    out: list[dict[str, Any]] = []
    cycle, last = 0, None
    for entry in entries:
        node = entry.get("node")
        if node not in guard.nodes or guard.name not in entry.get("visits", {}):
            continue
        own = entry.get("scopes", {}).get(guard.name)
        if guard.key is not None and own is not None and scope_name(own) != scope:
            continue
        here = guard.nodes.index(node)
        if here == 0 or (last is not None and 0 < here <= guard.nodes.index(last) and guard.nodes.index(last) > 0):
            cycle += 1
        last = node
        out.append({**entry, "cycle": cycle})
    return out


def _emissions(
    guard: LoopGuard, entries: Sequence[dict[str, Any]], makers: Sequence[str]
) -> tuple[list[Any], list[Any]]:
    reviews: list[Any] = []
    fixes: list[Any] = []
    for entry in entries:
        into = fixes if entry["node"] in makers else reviews
        visit = entry["visits"][guard.name]
        emission = {
            "n": len(into) + 1,
            "cycle": entry["cycle"],
            "node": entry["node"],
            "time": _iso(entry["at"]),
            "content": entry["content"],
            "fingerprint": _fingerprint(visit),
            "tokens": visit.get("tokens", 0),
            "seconds": visit.get("seconds", 0.0),
            "measure": visit.get("measure"),
        }
        if into is fixes:
            emission["artifact"] = entry.get("seen", {}).get(guard.name, {}).get("artifact")
        into.append(emission)
    return reviews, fixes


def _fingerprint(visit: Mapping[str, Any]) -> str | None:
    keys = visit.get("keys")
    return xxh3_128_hexdigest(json.dumps(keys, sort_keys=True).encode()) if keys else None


def _artifact(guard: LoopGuard, entry: Mapping[str, Any]) -> Any:
    """The work product after an entry; without `artifact=` what the node wrote stands for it."""
    if guard.artifact is None:
        content: Mapping[str, Any] = entry["content"]
        return next(iter(content.values())) if len(content) == 1 else (content or None)
    seen = entry.get("seen", {}).get(guard.name, {})
    if "artifact" in seen:  # only where it is not what the node wrote
        return seen["artifact"]
    return entry["content"].get(guard.artifact) if isinstance(guard.artifact, str) else None


def _diff(guard: LoopGuard, entries: Sequence[dict[str, Any]], makers: Sequence[str]) -> str:
    versions: list[tuple[str, str]] = []
    attempt = 0
    for entry in entries:
        made = entry["node"] in makers
        attempt += made
        if not made and (guard.artifact is None or versions):
            continue
        artifact = _artifact(guard, entry)
        if artifact is not None:
            versions.append((f"attempt {attempt}" if made else "before", _as_text(artifact)))
    if not versions:
        return ""
    if _is_patch(versions[-1][1]):
        return versions[-1][1]
    if versions[0][0] != "before":
        versions.insert(0, ("before", ""))
    return "".join(_unified(old, new) for old, new in itertools.pairwise(versions))


def _is_patch(text: str) -> bool:
    """Whether a text is a patch: a git header, or a pair of file names with a hunk under it."""
    return text.startswith("diff --git ") or PATCH.search(text) is not None


def _as_text(artifact: Any) -> str:
    return artifact if isinstance(artifact, str) else json.dumps(artifact, indent=2, ensure_ascii=False, sort_keys=True)


def _unified(old: tuple[str, str], new: tuple[str, str]) -> str:
    a, b = _lines(old[1]), _lines(new[1])
    if a == b:
        return f"--- {old[0]}\n+++ {new[0]}\n(no change)\n"
    if len(a) * len(b) > DIFF_WORK:
        lines = [f"--- {old[0]}\n", f"+++ {new[0]}\n", f"@@ -1,{len(a)} +1,{len(b)} @@\n"]
        lines += ["-" + line for line in a] + ["+" + line for line in b]
    else:
        lines = list(difflib.unified_diff(a, b, old[0], new[0]))
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Split at line feeds only, as `patch` and git do: a form feed or a lone carriage return is part of its line."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _findings(guard: LoopGuard, entries: Sequence[dict[str, Any]], makers: Sequence[str]) -> list[Any]:
    """What is open: the measure's own collection, else a list of findings that the last review names."""
    for entry in reversed(entries):
        measure = entry.get("seen", {}).get(guard.name, {}).get("measure")
        if isinstance(measure, list):
            return measure
        if isinstance(measure, Mapping):
            return list(measure)
        if entry["node"] not in makers:
            for key in ("findings", "issues", "comments"):
                if isinstance(found := entry["content"].get(key), list):
                    return found
    return []


def _best_fix(guard: LoopGuard, entries: Sequence[dict[str, Any]], makers: Sequence[str]) -> dict[str, Any] | None:
    """The attempt after which the least was open, judged by the review that followed it."""
    judged: list[tuple[float, int]] = []
    attempt = 0
    for entry in entries:
        attempt += entry["node"] in makers
        measure = entry["visits"][guard.name].get("measure")
        if measure is not None and attempt:
            # A fixer's own measure may be the reviewer's of before; the next review puts it right.
            judged = [pair for pair in judged if pair[1] != attempt] + [(measure, attempt)]
    if judged:
        measure, fix = min(judged)
        return {"fix": fix, "measure": measure, "why": f"{measure:g} still open after it, the fewest of all attempts"}
    if attempt:
        return {"fix": attempt, "measure": None, "why": "the latest: nothing measures the attempts"}
    return None


def _question(guard: LoopGuard, ledger: Ledger, reason: Mapping[str, Any], best: Mapping[str, Any] | None) -> str:
    names = " and ".join(guard.nodes) if len(guard.nodes) == 2 else ", ".join(guard.nodes)
    times = f"{ledger.cycles} cycle{'s' * (ledger.cycles != 1)}"
    if reason["kind"] == "broken":
        return f"The guard on {names} failed after {times}: {reason['message']}. How shall the loop go on?"
    hint = f" The best attempt so far is number {best['fix']} ({best['why']})." if best else ""
    return f"{names} have not come to an end after {times}: {reason['message']}.{hint} What shall happen?"


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()
