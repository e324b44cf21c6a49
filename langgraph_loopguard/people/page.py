"""An escalation as an HTML fragment, for notebooks. Escaped throughout; no script, no link, no style from outside."""

from __future__ import annotations

from collections.abc import Iterable

from langgraph_loopguard.people.text import to_html as shown
from langgraph_loopguard.people.view import Entry, EscalationView

COLOURS = {"add": "#1a7f37", "remove": "#cf222e", "hunk": "#8250df", "file": "#57606a", "same": "inherit"}
"""Colour of each kind of line of a diff; readable on light and on dark."""

LIMIT = 2_000
"""Lines of the diff that are shown."""


def to_html(view: EscalationView) -> str:
    """Return the escalation as one `<section>`. Every text of an agent is escaped, hidden characters are marked."""
    facts = "".join(f"<dt>{shown(label)}</dt><dd>{shown(value)}</dd>" for label, value in view.facts)
    out = [
        f"<h3>{shown(view.edge)}: {shown(view.outcome)}</h3>",
        f"<p>{shown(view.why)}</p>",
        f"<dl>{facts}</dl>",
    ]
    if view.redacted:
        out.append(f"<p><strong>{shown(view.redacted)}</strong></p>")
    if view.decision:
        out.append(f"<p>Decision: {shown(view.decision)}</p>")
    if view.findings:
        items = "".join(
            f"<li><code>{shown(finding.place)}</code> {shown(finding.message)}</li>" for finding in view.findings
        )
        out.append(f"<h4>Open</h4><ul>{items}</ul>")
    if view.diff:
        lines = "\n".join(
            f'<span style="color:{COLOURS[line.kind]}">{shown(line.text)}</span>' for line in view.diff[:LIMIT]
        )
        more = len(view.diff) - LIMIT
        out.append(f"<h4>Diff</h4><pre>{lines}</pre>" + (f"<p>{more:,} lines more</p>" if more > 0 else ""))
    for one in view.rounds:
        out.append(
            f"<details><summary>Cycle {one.cycle}</summary>"
            f"{_entries('Review', one.reviews)}{_entries('Fix attempt', one.fixes)}</details>"
        )
    return f"<section>{''.join(out)}</section>"


def _entries(name: str, entries: Iterable[Entry]) -> str:
    return "".join(
        f"<h5>{name} {entry.n}, {shown(entry.node)}</h5>"
        + "".join(f"<p>{shown(key)}</p><pre>{shown(text)}</pre>" for key, text in entry.parts)
        for entry in entries
    )
