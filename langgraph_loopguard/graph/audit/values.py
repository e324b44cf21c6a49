"""What source may stand for, as the audit reads it: constants, functions, classes, tables, and what is unknown."""

from __future__ import annotations

import ast
import enum
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

KEPT = 1024
"""Functions whose parts are kept at hand: one is looked at several times in a row."""

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Scope(Protocol):
    """Where names are looked up."""

    def lookup(self, name: str) -> list[Value]:
        """Return what a name may stand for."""
        ...

    def code_of(self, value: Any) -> Code | None:
        """Return the code of a live function; `None` when it cannot be read."""
        ...

    def resolve(self, name: str) -> list[Value]:
        """Return what a dotted name of another module stands for: itself, when that module is not at hand."""
        ...


@dataclass(frozen=True, slots=True)
class Const:
    """A value that is known: a literal, or a live object."""

    value: Any


@dataclass(frozen=True, slots=True)
class Symbol:
    """A dotted name whose definition is not at hand."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """A function that can be read."""

    node: FunctionNode
    scope: Scope
    bound: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that are known already."""
    method: bool = False
    """The first parameter is the object that it belongs to."""


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """A class that is read, not live."""

    node: ast.ClassDef
    scope: Scope

    def method(self, name: str) -> FunctionNode | None:
        """A function of its body."""
        functions = (part for part in self.node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)))
        return next((function for function in functions if function.name == name), None)


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """An object of such a class."""

    of: Class

    def bound(self, function: FunctionNode) -> Code:
        """A method with its object."""
        arguments = [*function.args.posonlyargs, *function.args.args]
        first: dict[str, Any] = {arguments[0].arg: [self]} if arguments else {}
        return Code(function, self.of.scope, first, method=True)


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """A list, tuple or set; the alternatives of all its elements together."""

    values: tuple[Value, ...]
    exact: bool = False
    """Each of the values is one element, in the order of the list."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A dict."""

    entries: tuple[tuple[tuple[Value, ...], tuple[Value, ...]], ...]

    def values(self) -> list[Value]:
        """All that the table may give."""
        return [value for _, values in self.entries for value in values]


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """The result of calling a class or a function that is known by its name only."""

    name: str
    args: tuple[tuple[Value, ...], ...]
    keywords: Mapping[str, tuple[Value, ...]]
    call: ast.Call
    callee: tuple[Value, ...] = ()

    def argument(self, position: int, name: str) -> tuple[Value, ...]:
        """An argument by position or by name; empty when it is not given."""
        if name in self.keywords:
            return self.keywords[name]
        return self.args[position] if position < len(self.args) else ()


class _Unknown(enum.Enum):
    UNKNOWN = "unknown"


UNKNOWN = _Unknown.UNKNOWN


Value: TypeAlias = "Const | Symbol | Code | Class | Instance | Items | Table | Made | _Unknown"


def name_of(value: Value) -> str | None:
    """The last part of the name of a class or a function."""
    if isinstance(value, Symbol):
        return value.name.rsplit(".", 1)[-1]
    found = getattr(value.value, "__name__", None) if isinstance(value, Const) else None
    return found if isinstance(found, str) else None


def elements(values: Sequence[Value]) -> list[Value]:
    """Return the elements of lists, those of lists in lists too; what is no list stands for itself."""
    found: list[Value] = []
    for value in values:
        if isinstance(value, Items):
            found += elements(value.values)
        elif isinstance(value, Const) and isinstance(value.value, (list, tuple, set, frozenset)):
            found += elements([Const(item) for item in value.value])
        else:
            found.append(value)
    return found


def table_of(value: Value) -> Table | None:
    """Return a dict as a table, read or live; `None` when it is none."""
    if isinstance(value, Table):
        return value
    if isinstance(value, Const) and isinstance(value.value, dict):
        return Table(tuple(((Const(key),), (Const(item),)) for key, item in value.value.items()))
    return None


def is_list(value: Value) -> bool:
    """Whether a value is a list or a tuple, read or live."""
    return isinstance(value, Items) or (isinstance(value, Const) and isinstance(value.value, (list, tuple)))


@lru_cache(maxsize=KEPT)
def own_statements(function: ast.AST) -> Sequence[ast.AST]:
    """Return all nodes of a function's body, without those of functions and classes inside it."""
    found: list[ast.AST] = []
    waiting = deque(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.popleft()
        found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def parameters(function: FunctionNode) -> list[ast.arg]:
    """Return all parameters of a function."""
    args = function.args
    extra = [argument for argument in (args.vararg, args.kwarg) if argument is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *extra]


@lru_cache(maxsize=KEPT)
def assignments(function: FunctionNode) -> Mapping[str, list[ast.AST]]:
    """Return what gives each name inside a function its value."""
    found: dict[str, list[ast.AST]] = {}
    for node in own_statements(function):
        match node:
            case ast.Assign():
                for target in node.targets:
                    for part in ast.walk(target):
                        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                            found.setdefault(part.id, []).append(node.value if part is target else node)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found.setdefault(name, []).append(value)
            case ast.NamedExpr(target=ast.Name(id=name)):
                found.setdefault(name, []).append(node.value)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found.setdefault(node.name, []).append(node)
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                found.setdefault(name, []).append(node)
            case ast.For() | ast.AsyncFor() | ast.AugAssign() | ast.withitem():
                target_node = node.optional_vars if isinstance(node, ast.withitem) else node.target
                for part in ast.walk(target_node) if target_node is not None else ():
                    if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                        found.setdefault(part.id, []).append(node)
    return found
