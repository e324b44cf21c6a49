"""The audited graphs as a Mermaid flowchart."""

from __future__ import annotations

from itertools import pairwise

from langgraph_loopguard.graph.audit.report import AuditedGraph, AuditReport

OPEN = "stroke:#d1242f,stroke-width:3px,color:#d1242f"
GUARDED = "stroke:#1a7f37,stroke-width:3px"
OPEN_NODE = "classDef open fill:#ffebe9,stroke:#d1242f,stroke-width:2px,color:#82071e"


def to_mermaid(report: AuditReport) -> str:
    """Return all graphs as one flowchart: open cycles in red, guarded edges thick and green, labelled so that colour is
    not all that tells them apart."""
    lines = ["flowchart TD"]
    red: list[str] = []
    green: list[str] = []
    links = 0
    for position, graph in enumerate(report.graphs):
        lines.append(f'  subgraph g{position}["{escaped(graph.name)}"]')
        ids = {node: f"g{position}n{number}" for number, node in enumerate(graph.nodes)}
        open_nodes = {node for cycle in graph.open for node in cycle.nodes}
        for node, name in ids.items():
            mark = ":::open" if node in open_nodes else ""
            lines.append(f'    {name}["{escaped(node)}"]{mark}')
        in_red = _open_pairs(graph)
        for edge in graph.edges:
            is_open = not edge.guards and (edge.source, edge.target) in in_red
            arrow = "==>" if edge.guards else "-->" if edge.declared else "-.->"
            label = ", ".join(edge.guards) if edge.guards else "open" if is_open else ""
            text = f'|"{escaped(label)}"|' if label else ""
            lines.append(f"    {ids[edge.source]} {arrow}{text} {ids[edge.target]}")
            (green if edge.guards else red if is_open else []).append(str(links))
            links += 1
        for cycle in graph.cycles:
            if cycle.verdict == "unknown":
                lines.append(f'    {ids[cycle.nodes[0]]} -.->|"unknown"| {ids[cycle.nodes[0]]}')
                red.append(str(links))
                links += 1
        lines.append("  end")
    lines.append(f"  {OPEN_NODE}")
    lines += [f"  linkStyle {','.join(found)} {style}" for found, style in ((red, OPEN), (green, GUARDED)) if found]
    return "\n".join(lines) + "\n"


def _open_pairs(graph: AuditedGraph) -> set[tuple[str, str]]:
    return {
        pair for cycle in graph.open if cycle.verdict != "unknown" for pair in pairwise((*cycle.nodes, cycle.nodes[0]))
    }


def escaped(text: str) -> str:
    """Return a text that is only text to Mermaid: entities for what it gives a meaning to."""
    return "".join(
        character if character.isalnum() or character in " _-./,:" else f"#{ord(character)};" for character in text
    )
