"""Where a router or a node's `Command` may go, by what its code returns."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from langgraph.types import Command, Send

from langgraph_loopguard.graph.audit.budget import bounded
from langgraph_loopguard.graph.audit.evaluate import evaluate, local, returned
from langgraph_loopguard.graph.audit.values import (
    UNKNOWN,
    Code,
    Const,
    Items,
    Made,
    Symbol,
    Value,
    elements,
    own_statements,
)

PARENT = Command.PARENT


@dataclass(slots=True)
class Targets:
    """Names of nodes that are gone to, and whether these are all."""

    names: dict[str, None] = field(default_factory=dict)
    """In the order of the code."""
    sent: dict[str, None] = field(default_factory=dict)
    """Those of them that a `Send` names."""
    complete: bool = True

    def add(self, values: Iterable[Value]) -> None:
        """Take in what a router returns or a `goto` holds."""
        for value in elements(list(values)):
            if isinstance(value, Const) and isinstance(value.value, str):
                self.names[str(getattr(value.value, "value", value.value))] = None
            elif isinstance(value, Const) and isinstance(value.value, Send):
                self.names[value.value.node] = self.sent[value.value.node] = None
            elif isinstance(value, Symbol) and value.name.rsplit(".", 1)[-1] in ENDS:
                self.names[ENDS[value.name.rsplit(".", 1)[-1]]] = None
            elif isinstance(value, Made) and value.name == "Send":
                to = Targets()
                to.add(value.argument(0, "node") or [UNKNOWN])
                self.merge(to)
                self.sent.update(to.names)
            elif not (isinstance(value, Const) and value.value is None):
                self.complete = False

    def merge(self, other: Targets) -> None:
        """Take in other targets."""
        self.names.update(other.names)
        self.sent.update(other.sent)
        self.complete = self.complete and other.complete


ENDS = {"END": "__end__", "START": "__start__"}


@dataclass(slots=True)
class Gotos:
    """Where the `Command`s of a node or a tool go."""

    here: Targets = field(default_factory=Targets)
    parent: Targets = field(default_factory=Targets)
    """Those that are for the graph around this one."""
    always_parent: bool = False
    """Whatever it returns is such a handoff."""

    def merge(self, other: Gotos) -> None:
        """Take in other commands."""
        self.here.merge(other.here)
        self.parent.merge(other.parent)


def router_targets(code: Code | None) -> Targets:
    """Return where a router goes, by its code."""
    found = Targets()
    if code is None:
        found.complete = False
        return found
    with bounded():
        values = returned(code)
    found.add(values or hinted(code, "Literal"))
    if not found.complete and (hints := hinted(code, "Literal")):
        found.complete = True
        found.add(hints)
    return found


def command_gotos(code: Code | None, *, may_command: bool) -> Gotos:
    """Return where the `Command`s of a function go.

    Args:
        code: The function; `None` when it cannot be read.
        may_command: Whether `Command` is named anywhere in what it runs: only then a value that cannot be read counts.
    """
    found = Gotos()
    if code is None:
        found.here.complete = not may_command
        return found
    with bounded():
        values = elements(returned(code))
        made = [value for value in values if _is_command(value)]
        if may_command and not made and any(map(_is_opaque, values)):
            made = _all_commands(code)
    for value in made:
        _take(value, found)
    if not found.here.complete and (hints := hinted(code, "Command")):
        found.here = Targets()
        found.here.add(hints)
    found.always_parent = bool(values) and all(_is_command(value) and _graph(value) == PARENT for value in values)
    return found


def hinted(code: Code, outer: str) -> list[Value]:
    """Return the names in a return hint: `Literal[...]`, or `Command[Literal[...]]` when `outer` is `"Command"`."""
    node = code.node
    if isinstance(node, ast.Lambda) or node.returns is None:
        return []
    hint: ast.expr = node.returns
    if isinstance(hint, ast.Constant) and isinstance(hint.value, str):
        try:
            hint = ast.parse(hint.value, mode="eval").body
        except SyntaxError:
            return []
    if outer == "Literal" and not _is_subscript_of(hint, "Literal"):
        return []
    found: list[Value] = []
    for part in ast.walk(hint):
        if not _is_subscript_of(part, outer):
            continue
        for literal in ast.walk(part):
            if isinstance(literal, ast.Subscript) and _is_subscript_of(literal, "Literal"):
                found += elements(evaluate(literal.slice, code.scope))
    return found


def _is_subscript_of(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Subscript):
        return False
    value = node.value
    return (isinstance(value, ast.Name) and value.id == name) or (
        isinstance(value, ast.Attribute) and value.attr == name
    )


def _is_command(value: Value) -> bool:
    if isinstance(value, Const):
        return isinstance(value.value, Command)
    return isinstance(value, Made) and value.name == "Command"


def _is_opaque(value: Value) -> bool:
    """Whether a value may be a `Command` for all that is known: what a function gives, not a class."""
    if not isinstance(value, Made):
        return value is UNKNOWN
    made_by = value.callee[0] if value.callee else UNKNOWN
    return not (isinstance(made_by, Const) and isinstance(made_by.value, type)) and not value.name[:1].isupper()


def _graph(value: Value) -> str | None:
    """The graph that a `Command` is for: `None` for the present one, `"?"` when it cannot be read."""
    if isinstance(value, Const):
        graph = getattr(value.value, "graph", None)
        return graph if isinstance(graph, str) else None
    if not isinstance(value, Made):
        return None
    graphs = [_graph_name(found) for found in value.argument(0, "graph")] if "graph" in value.keywords else []
    if not graphs:
        return None
    return graphs[0] if len(set(graphs)) == 1 else "?"


def _graph_name(value: Value) -> str | None:
    if isinstance(value, Symbol) and value.name.endswith(".PARENT"):
        return PARENT
    if isinstance(value, Const) and (value.value is None or isinstance(value.value, str)):
        return value.value
    return "?"


def _take(value: Value, found: Gotos) -> None:
    goto: Sequence[Value]
    if isinstance(value, Const):
        goto = [Const(value.value.goto)]
    elif isinstance(value, Made):
        goto = value.keywords.get("goto", ())
    else:
        return
    goto = [item for item in goto if not (isinstance(item, Const) and item.value in ((), [], ""))]
    graph = _graph(value)
    if graph is None or graph == "?":
        found.here.add(goto)
    if graph is not None:
        found.parent.add(goto)


def _all_commands(code: Code) -> list[Value]:
    """Return every `Command(...)` that stands in a function, when what it returns cannot be read."""
    scope = local(code)
    found: list[Value] = []
    for node in own_statements(code.node):
        if isinstance(node, ast.Call):
            found += [value for value in elements(evaluate(node, scope, 1)) if _is_command(value)]
    return found or [Made("Command", (), {"goto": (UNKNOWN,)}, ast.Call(ast.Name("Command"), [], []))]


__all__ = ["Gotos", "Items", "Targets", "command_gotos", "hinted", "router_targets"]
