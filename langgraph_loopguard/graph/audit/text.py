"""The report as text for a terminal."""

from __future__ import annotations

import io
import os

from langgraph_loopguard.graph.audit.report import AuditedGraph, AuditReport, Cycle

try:
    from rich.console import Console, Group
    from rich.text import Text
except ImportError as error:
    msg = 'the audit\'s text needs rich: pip install "langgraph-loopguard[audit]"'
    raise ImportError(msg) from error

STYLES = {
    "guarded": "green",
    "weak": "yellow",
    "unknown": "yellow",
    "missing": "bold red",
    "ineffective": "bold red",
    "bypassed": "bold red",
}


def to_text(report: AuditReport) -> str:
    """Return the report without colours."""
    console = Console(file=io.StringIO(), width=120, color_system=None, force_terminal=False, highlight=False)
    with console.capture() as captured:
        console.print(to_rich(report), soft_wrap=True)
    return captured.get()


def to_rich(report: AuditReport) -> Group:
    """Return the report for rich: the graphs that have a cycle or something to say, and a last line with the sums."""
    parts = [_graph(graph) for graph in report.graphs if graph.cycles or graph.notes]
    notes = [Text(f"note: {visible(note)}") for note in report.notes]
    return Group(*parts, *notes, summary(report))


def summary(report: AuditReport) -> Text:
    """Return the sums in one line."""
    found = len(report.open)
    more = "" if all(graph.complete for graph in report.graphs) else "at least "
    said = f"{more}{_plural(len(report.cycles), 'cycle')} in {_plural(len(report.graphs), 'graph')}: "
    return Text(said + (f"{found} open" if found else "none open"), style="bold red" if found else "green")


def _graph(graph: AuditedGraph) -> Text:
    text = Text(visible(graph.name), style="bold")
    if graph.place is not None:
        text.append(f"  {visible(_short(graph.place.file))}:{graph.place.line}", style="dim")
    for cycle in sorted(graph.cycles, key=lambda cycle: not cycle.open):
        text.append("\n")
        text.append_text(_cycle(cycle))
    if not graph.complete:
        text.append("\n  and more cycles, not listed", style="dim")
    for note in graph.notes:
        text.append(f"\n  note: {visible(note)}", style="dim")
    return text


def _cycle(cycle: Cycle) -> Text:
    text = Text(f"  {cycle.verdict:<12}", style=STYLES[cycle.verdict])
    text.append(f"{visible(str(cycle))}\n", style="default")
    where = f" ({_short(cycle.place.file)}:{cycle.place.line})" if cycle.open and cycle.place is not None else ""
    text.append(visible(f"{'':14}{cycle.reason}{where}"), style="dim")
    return text


def visible(text: str) -> str:
    """Return a text in which what a terminal would obey is shown instead."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def _short(file: str) -> str:
    relative = os.path.relpath(file) if os.path.isabs(file) else file
    return file if relative.startswith("..") else relative


def _plural(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
