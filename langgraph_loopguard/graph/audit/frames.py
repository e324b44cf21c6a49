"""Where source stands while it is followed, and what the arguments of a call are there."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from langgraph_loopguard.graph.audit.evaluate import bind, evaluate
from langgraph_loopguard.graph.audit.folder import Module
from langgraph_loopguard.graph.audit.targets import ENDS
from langgraph_loopguard.graph.audit.values import Code, Const, Instance, Made, Scope, Symbol, Value, elements
from langgraph_loopguard.graph.audit.wiring import Place

WRAPPERS = frozenset({"partial", "RunnableLambda", "RunnableCallable", "tool", "coerce_to_runnable"})
"""Makers whose first argument is the function that runs."""


@dataclass(slots=True)
class Frame:
    """Where a statement stands: its names that hold graphs, and the scope for all others."""

    module: Module
    scope: Scope
    graphs: dict[str, object] = field(default_factory=dict)
    around: Frame | None = None
    result: object = None
    depth: int = 0

    def find(self, name: str) -> object:
        """Return the graph of a name; `None` when it holds none."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.graphs:
                return frame.graphs[name]
            frame = frame.around
        return None


def module_of(scope: object) -> Module | None:
    """Return the module that a scope is in."""
    while scope is not None and not isinstance(scope, Module):
        scope = getattr(scope, "outer", None)
    return scope


def argument(node: ast.Call, position: int, name: str) -> ast.expr | None:
    """Return an argument by position (never, when it is below 0) or by name."""
    for word in node.keywords:
        if word.arg == name:
            return word.value
    return node.args[position] if 0 <= position < len(node.args) else None


def names(node: ast.expr | None, frame: Frame) -> list[str]:
    """Return the names of nodes that an expression may be."""
    if node is None:
        return []
    return [name for value in elements(evaluate(node, frame.scope)) if (name := node_name(value)) is not None]


def text(node: ast.expr | None, frame: Frame) -> str | None:
    """Return the text that an expression is."""
    return next(iter(names(node, frame)), None)


def place(node: ast.AST, frame: Frame) -> Place:
    """Return where some code stands."""
    return Place(file=str(frame.module.file), line=getattr(node, "lineno", 1))


def node_name(value: Value) -> str | None:
    """Return the name of a node that a value is."""
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value
    return ENDS.get(value.name.rsplit(".", 1)[-1]) if isinstance(value, Symbol) else None


def function_of(value: Value) -> Code | None:
    """Return the function behind a value: a function, an object that can be called, or a wrapper of either."""
    if isinstance(value, Code):
        return value
    if isinstance(value, Instance):
        call = value.of.method("__call__")
        return value.bound(call) if call is not None else None
    if isinstance(value, Made) and value.name in WRAPPERS and value.args:
        inner = next((code for part in value.args[0] if (code := function_of(part)) is not None), None)
        if inner is not None and value.name == "partial":
            return bind(inner, value.args[1:], value.keywords)
        return inner
    return None
