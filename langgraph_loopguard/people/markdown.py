"""An escalation as Markdown, for issues, chats and files. What agents wrote stands in fences that it cannot leave."""

from __future__ import annotations

from langgraph_loopguard.people.text import fenced, inline, one_line
from langgraph_loopguard.people.view import Entry, EscalationView

LIMIT = 20_000
"""Characters of the diff, and of each part of an entry, that are shown."""


def to_markdown(view: EscalationView) -> str:
    """Return the escalation as Markdown. Every text of an agent is in code, where no markup counts."""
    out = [f"## Escalation {inline(view.id)}\n", fenced(view.why)]
    out.append(f"{inline(view.edge)}, {view.outcome}, {inline(view.created_at)}\n")
    out += [f"- {label}: {inline(value)}" for label, value in view.facts]
    if view.redacted:
        out.append(f"\n{view.redacted}")
    if view.decision:
        out.append(f"\nDecision: {inline(view.decision)}")
    out.append("\n### Question\n")
    out.append(fenced(view.question))
    if view.findings:
        out.append("### Open\n")
        out += [f"- {inline(f'{finding.place} {finding.message}'.strip())}" for finding in view.findings]
        out.append("")
    if view.diff:
        out.append("### Diff\n")
        out.append(fenced(_cut("\n".join(line.text for line in view.diff)), "diff"))
    for one in view.rounds:
        out.append(f"### Cycle {one.cycle}\n")
        for name, entries in (("Review", one.reviews), ("Fix attempt", one.fixes)):
            out += [_entry(name, entry) for entry in entries]
    if view.evidence:
        out.append("### Evidence\n")
        out += [fenced(_cut(text)) for text in view.evidence]
    out.append("### Options\n")
    out += [f"- {inline(action)}: {one_line(what)}" for action, what in view.options]
    return "\n".join(out) + "\n"


def _entry(name: str, entry: Entry) -> str:
    out = [f"{name} {entry.n} by {inline(entry.node)}, {inline(entry.time)}\n"]
    for key, text in entry.parts:
        out.append((f"{inline(key)}\n\n" if key else "") + fenced(_cut(text)))
    return "\n".join(out)


def _cut(text: str) -> str:
    return text if len(text) <= LIMIT else f"{text[:LIMIT]}\n[{len(text) - LIMIT:,} characters more]"
