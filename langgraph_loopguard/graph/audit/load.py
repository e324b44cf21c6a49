"""What `loopguard audit` is pointed at: a graph in a module or a file, a `langgraph.json`, a folder."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.protocol import PregelProtocol

from langgraph_loopguard.graph.audit.api import audit
from langgraph_loopguard.graph.audit.cycles import LIMIT
from langgraph_loopguard.graph.audit.report import AuditedGraph, AuditReport
from langgraph_loopguard.graph.audit.source import audit_source


class AuditError(Exception):
    """What was asked for cannot be audited; the message is one line for the user."""


def audit_target(target: str, limit: int = LIMIT) -> AuditReport:
    """Audit what a command line names.

    Args:
        target: `module:graph`, `file.py:graph` or `langgraph.json` (the code is imported), or a folder or `file.py`
            (it is only read).
        limit: As in `audit`.

    Raises:
        AuditError: There is no such thing, or it is no graph.
    """
    path = Path(target)
    if path.is_dir() or (path.is_file() and path.suffix == ".py"):
        return audit_source(path, limit)
    if path.is_file() and path.suffix == ".json":
        return _together(_of_config(path, limit))
    where, colon, name = target.rpartition(":")
    if not colon or not where or not name:
        msg = f"{target!r} is no folder, no file, and not of the form module:graph or file.py:graph"
        raise AuditError(msg)
    return _audited(_graph(where, name, Path.cwd(), target), target, limit)


def _of_config(config: Path, limit: int) -> Iterator[AuditReport]:
    try:
        graphs = json.loads(config.read_text(encoding="utf-8"))["graphs"]
        targets = {name: spec["path"] if isinstance(spec, dict) else str(spec) for name, spec in graphs.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"{config}: no graphs are named in it ({error!r})"
        raise AuditError(msg) from error
    for name, target in targets.items():
        where, _, attribute = target.rpartition(":")
        graph = _graph(where, attribute, config.parent, f"{config}: {name}: {target}")
        yield _audited(graph, name, limit)


def _together(reports: Iterator[AuditReport]) -> AuditReport:
    graphs: list[AuditedGraph] = []
    notes: list[str] = []
    for report in reports:
        graphs += report.graphs
        notes += report.notes
    return AuditReport(graphs=tuple(graphs), notes=tuple(notes))


def _audited(graph: Any, name: str, limit: int) -> AuditReport:
    if isinstance(graph, (StateGraph, CompiledStateGraph)):
        return audit(graph, name=name, limit=limit)
    return AuditReport(graphs=(), notes=(f"{name} is no StateGraph, so it has no edges to audit",))


def _graph(where: str, name: str, base: Path, said: str) -> Any:
    module = _module(where, base, said)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            msg = f"{said}: {where} has no {name!r}"
            raise AuditError(msg)
        found = getattr(found, part)
    kinds = (StateGraph, PregelProtocol)
    if callable(found) and not isinstance(found, kinds):
        found = _called(found, said)
    if not isinstance(found, kinds):
        msg = f"{said}: {name!r} is a {type(found).__name__}, not a StateGraph or a compiled one"
        raise AuditError(msg)
    return found


def _called(factory: Any, said: str) -> Any:
    """Return what a function makes: LangGraph Server takes functions without arguments, or of a config."""
    try:
        parameters = inspect.signature(factory).parameters.values()
        needed = [one for one in parameters if one.default is one.empty and one.kind in (0, 1)]
        return asyncio.run(_opened(factory(*({"configurable": {}} for _ in needed))))
    except Exception as error:
        msg = f"{said}: calling it failed: {error!r}"
        raise AuditError(msg) from error


async def _opened(found: Any) -> Any:
    """Wait for a graph that is made by a coroutine, or lent by a context manager."""
    if inspect.isawaitable(found):
        found = await found
    if hasattr(found, "__aenter__"):
        async with found as graph:
            return graph
    if hasattr(found, "__enter__"):
        with found as graph:
            return graph
    return found


def _module(where: str, base: Path, said: str) -> ModuleType:
    file = base / where
    try:
        with redirect_stdout(sys.stderr):  # what it prints is not the report
            if where.endswith(".py"):
                return _of_file(file, said)
            with _beside(base):
                return importlib.import_module(where)
    except AuditError:
        raise
    except Exception as error:
        msg = f"{said}: importing {where} failed: {error!r}"
        raise AuditError(msg) from error


def _of_file(file: Path, said: str) -> ModuleType:
    """Import a file, with its own folder and the present one on the path, as `python file.py` has it."""
    name = f"loopguard_audited_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        msg = f"{said}: there is no file {file}"
        raise AuditError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _beside(file.resolve().parent), _beside(Path.cwd()):
        spec.loader.exec_module(module)
    return module


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
