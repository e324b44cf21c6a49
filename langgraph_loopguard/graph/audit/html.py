"""The report for a notebook."""

from __future__ import annotations

from html import escape

from langgraph_loopguard.graph.audit.report import AuditReport, Cycle

COLOURS = {"guarded": "#1a7f37", "weak": "#9a6700", "unknown": "#9a6700"}
RED = "#d1242f"


def to_html(report: AuditReport) -> str:
    """Return a table of the cycles, open ones first, and the Mermaid text to copy. All names are escaped."""
    rows = "".join(_row(cycle) for cycle in sorted(report.cycles, key=lambda cycle: not cycle.open))
    said = f"{len(report.open)} of {len(report.cycles)} cycles open" if report.cycles else "no cycles"
    notes = "".join(
        f"<li>{escape(note)}</li>" for note in [*report.notes, *(n for graph in report.graphs for n in graph.notes)]
    )
    head = "".join(f'<th style="text-align:left">{name}</th>' for name in ("verdict", "cycle", "graph", "reason"))
    return (
        f'<div class="loopguard-audit"><p><strong>{said}</strong></p>'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        + (f"<ul>{notes}</ul>" if notes else "")
        + f"<details><summary>Mermaid</summary><pre>{escape(report.to_mermaid())}</pre></details></div>"
    )


def _row(cycle: Cycle) -> str:
    colour = COLOURS.get(cycle.verdict, RED)
    cells = "".join(
        f'<td style="text-align:left">{escape(text)}</td>' for text in (str(cycle), cycle.graph, cycle.reason)
    )
    return f'<tr><td style="text-align:left;color:{colour};font-weight:bold">{cycle.verdict}</td>{cells}</tr>'
