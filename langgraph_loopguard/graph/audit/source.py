"""Audits source without importing it: one file, or all Python files under a folder."""

from __future__ import annotations

from pathlib import Path

from langgraph_loopguard.graph.audit.cycles import LIMIT
from langgraph_loopguard.graph.audit.folder import Folder
from langgraph_loopguard.graph.audit.level import wire
from langgraph_loopguard.graph.audit.program import Program
from langgraph_loopguard.graph.audit.report import AuditedGraph, AuditReport
from langgraph_loopguard.graph.audit.verdict import judge


def audit_source(path: Path, limit: int = LIMIT) -> AuditReport:
    """Find the cycles of the graphs that source builds. Nothing of it is imported or run.

    Args:
        path: A Python file, or a folder: then all Python files under it, without virtual environments.
        limit: As in `audit`.

    Raises:
        FileNotFoundError: There is nothing at `path`.
    """
    if not path.exists():
        raise FileNotFoundError(path)
    folder = Folder(path)
    drawings = [drawing for drawing in Program(folder).read() if not drawing.part]
    graphs: dict[AuditedGraph, None] = {}
    for drawing in drawings:
        name = f"{drawing.file}:{drawing.name}" if drawing.name else drawing.file
        for level in wire(drawing.named(name)).levels():
            # A function that is called twice builds the same graph twice.
            graphs[judge(level, limit)] = None
    return AuditReport(graphs=tuple(graphs), notes=tuple(f"{file} cannot be read" for file in folder.unreadable))
