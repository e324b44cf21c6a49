"""Cycles that are known and meant: how they are named, and taken out of a report."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from langgraph_loopguard.graph.audit.report import AuditReport, Cycle

ARROW = re.compile(r"\s*->\s*")


def without(report: AuditReport, allow: Iterable[str | Collection[str]]) -> AuditReport:
    """Return a report without the open cycles that are allowed (see `AuditReport.without`)."""
    if isinstance(allow, str):
        allow = [allow]
    taken: set[int] = set()
    for entry in allow:
        found = {id(cycle) for cycle in report.open if _is(cycle, entry)}
        if not found:
            listed = "; ".join(f"{cycle.graph}/{cycle}" for cycle in report.open) or "none"
            msg = f"allow: {entry!r} is no open cycle; the open cycles are: {listed}"
            raise ValueError(msg)
        taken |= found
    graphs = tuple(
        graph.model_copy(update={"cycles": tuple(cycle for cycle in graph.cycles if id(cycle) not in taken)})
        for graph in report.graphs
    )
    return report.model_copy(update={"graphs": graphs})


def _is(cycle: Cycle, entry: str | Collection[str]) -> bool:
    if not isinstance(entry, str):
        return _same(cycle.nodes, tuple(entry))
    if entry.startswith(f"{cycle.graph}/") and _same(cycle.nodes, _names(entry[len(cycle.graph) + 1 :])):
        return True
    return _same(cycle.nodes, _names(entry))


def _names(text: str) -> tuple[str, ...]:
    names = [name for name in ARROW.split(text.strip()) if name]
    return tuple(names[:-1] if len(names) > 1 and names[-1] == "?" else names)


def _same(nodes: tuple[str, ...], named: tuple[str, ...]) -> bool:
    """Whether the names are those of a cycle, from whichever node on; the first one may stand at the end again."""
    if len(named) == len(nodes) + 1 and named[0] == named[-1]:
        named = named[:-1]
    return len(named) == len(nodes) and any(named == (*nodes[i:], *nodes[:i]) for i in range(len(nodes)))
