"""An escalation on a terminal, by rich. No text of an agent is markup, and no control character gets out."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from langgraph_loopguard.people.text import one_line, pieces, visible
from langgraph_loopguard.people.view import EscalationView

STYLES = {"add": "green", "remove": "red", "hunk": "cyan", "file": "bold", "same": ""}
"""Style of each kind of line of a diff."""


def shown(text: str, style: str = "") -> Text:
    """Return a text of an agent for rich, hidden characters reversed."""
    out = Text(style=style)
    for piece, hidden in pieces(text):
        out.append(piece, "reverse" if hidden else "")
    return out


def to_rich(view: EscalationView) -> Iterator[RenderableType]:
    """Yield what to print for an escalation, from top to bottom."""
    yield shown(view.why, "bold")
    facts = Table.grid(padding=(0, 2))
    for label, value in (
        ("id", view.id),
        ("edge", view.edge),
        ("thread", view.thread_id or ""),
        ("scope key", view.scope_key or ""),
        ("since", view.created_at),
        *view.facts,
        ("best attempt", view.best_fix or ""),
        ("decision", view.decision or ""),
    ):
        if value:
            facts.add_row(label, shown(value))
    yield facts
    if view.redacted:
        yield Text(visible(view.redacted), style="yellow")
    if view.findings:
        yield Rule("open", align="left")
        for finding in view.findings:
            yield shown(" ".join(filter(None, (finding.severity, finding.place, finding.message))))
    if view.diff:
        yield Rule("diff", align="left")
        for line in view.diff:
            yield shown(line.text, STYLES[line.kind])
    for one in view.rounds:
        yield Rule(f"cycle {one.cycle}", align="left")
        for name, entries in (("review", one.reviews), ("fix attempt", one.fixes)):
            for entry in entries:
                yield Text(f"{name} {entry.n} by {one_line(entry.node)}", style="bold")
                for key, text in entry.parts:
                    yield shown(f"{key}:\n{text}" if key else text)
    if view.evidence:
        yield Rule("evidence", align="left")
        yield from (shown(text) for text in view.evidence)
    yield Rule("question", align="left")
    yield shown(view.question)
    for action, what in view.options:
        yield Text.assemble((f"{one_line(action):<8}", "bold"), visible(what))
