"""Reads the code of live functions: where it stands in its file, and what the names in it stand for."""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import inspect
import linecache
import types
from collections.abc import Iterator
from typing import Any

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from langgraph_loopguard.graph.audit.values import UNKNOWN, Code, Const, FunctionNode, Scope, Symbol, Value
from langgraph_loopguard.graph.audit.wiring import Place
from langgraph_loopguard.graph.wiring import GatedPath, RecordedNode

LIBRARIES = ("langgraph", "langchain", "langchain_core", "langgraph_loopguard")
"""Packages whose own nodes declare where they go: their code need not be read."""

NAMES_FOLLOWED = 200
"""Objects looked at from one node, in search of agents inside it."""


class LiveScope:
    """The names that a live function sees: its closure, its module, the builtins."""

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function

    def lookup(self, name: str) -> list[Value]:
        """Return what a name stands for."""
        function = self.function
        if name in function.__code__.co_freevars:
            cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
            try:
                return [Const(cell.cell_contents)]
            except ValueError:  # not assigned yet
                return [UNKNOWN]
        if name in function.__globals__:
            return [Const(function.__globals__[name])]
        return [Const(getattr(builtins, name))] if hasattr(builtins, name) else [UNKNOWN]

    def resolve(self, name: str) -> list[Value]:
        """Return a dotted name as it is: live names are objects."""
        return [Symbol(name)]

    def code_of(self, value: Any) -> Code | None:
        """Return the code of a live function of the user's; classes and libraries are not looked into."""
        if isinstance(value, type) or _library(value):
            return None
        return code_of(value)


def functions(action: Any) -> Iterator[tuple[types.FunctionType, dict[str, Any], bool]]:
    """Yield the functions behind a node, a router or a tool, with bound arguments, and whether each is a method."""
    if isinstance(action, RecordedNode):
        yield from functions(action.inner)
    elif isinstance(action, GatedPath):
        if action.path is not None:
            yield from functions(action.path)
    elif isinstance(action, BaseTool):
        for found in (getattr(action, "func", None), getattr(action, "coroutine", None)):
            if found is not None:
                yield from functions(found)
                return
        yield from functions(action._run)
    elif isinstance(action, functools.partial):
        for function, bound, method in functions(action.func):
            names = [*inspect.signature(function).parameters][method:]
            yield function, {**bound, **dict(zip(names, action.args, strict=False)), **action.keywords}, method
    elif isinstance(action, types.MethodType):
        plain = inspect.unwrap(action.__func__)
        if isinstance(plain, types.FunctionType):
            first = next(iter(inspect.signature(plain).parameters), None)
            yield plain, {first: action.__self__} if first else {}, True
    elif isinstance(action, types.FunctionType):
        plain = inspect.unwrap(action)
        yield from functions(plain) if not isinstance(plain, types.FunctionType) else [(plain, {}, False)]
    elif isinstance(action, Runnable):
        yield from _of_runnable(action)
    elif callable(action) and not isinstance(action, type):
        call = inspect.getattr_static(type(action), "__call__", None)
        if isinstance(call, types.FunctionType):
            yield from functions(types.MethodType(call, action))


def callables(action: Any) -> Iterator[Any]:
    """Yield the functions behind a node, a router or a tool; methods with their object."""
    for function, bound, method in functions(action):
        yield types.MethodType(function, next(iter(bound.values()))) if method and bound else function


def _of_runnable(action: Runnable[Any, Any]) -> Iterator[tuple[types.FunctionType, dict[str, Any], bool]]:
    for found in (getattr(action, "func", None), getattr(action, "afunc", None)):
        # A sync function has a twin for the event loop, a partial around an executor: the function is read once.
        if found is not None:
            yield from functions(found)
            return
    bound = getattr(action, "bound", None)
    if isinstance(bound, Runnable):
        yield from functions(bound)
    for step in getattr(action, "steps", ()):
        yield from functions(step)


def code_of(action: Any) -> Code | None:
    """Return the code behind a function, a method, a partial or a callable object; `None` when it cannot be read."""
    for function, bound, method in functions(action):
        node = _find(function)
        if node is not None:
            return Code(node, LiveScope(function), {name: [Const(value)] for name, value in bound.items()}, method)
    return None


def place_of(action: Any) -> Place | None:
    """Return where a node, a router or a tool is written."""
    for function, _, _ in functions(action):
        return Place(file=function.__code__.co_filename, line=function.__code__.co_firstlineno)
    return None


def is_library(action: Any) -> bool:
    """Whether a node or a router is one of LangGraph's or LangChain's own."""
    return any(_library(function) for function, _, _ in functions(action)) or _library(type(action), own=False)


def _library(value: Any, *, own: bool = True) -> bool:
    package = (getattr(value, "__module__", None) or "").split(".")[0]
    # Runnables that hold a user's function are of the library, and are read.
    return package in LIBRARIES and (own or not issubclass(value, Runnable))


def _index(lines: list[str]) -> dict[tuple[str, int], list[FunctionNode]]:
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return {}
    found: dict[tuple[str, int], list[FunctionNode]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.setdefault((node.name, line), []).append(node)
        elif isinstance(node, ast.Lambda):
            found.setdefault(("<lambda>", node.lineno), []).append(node)
    return found


def _find(function: types.FunctionType) -> FunctionNode | None:
    """Return the syntax tree of a function; `None` when its file is not there, or has changed its lines."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        return None
    found = _cached(code.co_filename, lines).get((code.co_name, code.co_firstlineno), [])
    if len(found) == 1:
        return found[0]
    same = [node for node in found if _starts_at(node, code)]
    return same[0] if len(same) == 1 else None


_files: dict[str, tuple[list[str], dict[tuple[str, int], list[FunctionNode]]]] = {}


def _cached(filename: str, lines: list[str]) -> dict[tuple[str, int], list[FunctionNode]]:
    known = _files.get(filename)
    if known is None or known[0] is not lines:
        known = _files[filename] = (lines, _index(lines))
    return known[1]


def _starts_at(node: FunctionNode, code: types.CodeType) -> bool:
    """Whether a lambda is the one of a code object: they are told apart by the columns (Python 3.11 and later)."""
    positions = getattr(code, "co_positions", None)
    if positions is None or not isinstance(node, ast.Lambda):
        return False
    columns = {(line, column) for line, _, column, _ in positions() if line is not None and column is not None}
    body = {(part.lineno, part.col_offset) for part in ast.walk(node.body) if isinstance(part, ast.expr)}
    inside = [column for line, column in columns if line == node.lineno and column > 0]
    end = node.end_col_offset or 0
    return bool(columns & body) and all(
        node.col_offset <= column <= end for column in inside if node.lineno == node.end_lineno
    )


def agents_in(action: Any) -> list[Any]:
    """Return the objects that a node's code refers to, as far as they are visible: where an agent may be.

    Closures, globals, attributes of the object that a method belongs to, elements of lists and dicts, and functions
    that the code calls.
    """
    found: list[Any] = []
    seen: set[int] = set()
    waiting: list[tuple[Any, int]] = [(action, 0)]
    while waiting and len(seen) < NAMES_FOLLOWED:
        value, depth = waiting.pop(0)
        if id(value) in seen or depth > 4:
            continue
        seen.add(id(value))
        found.append(value)
        if isinstance(value, (list, tuple)):
            waiting += [(item, depth + 1) for item in value[:50]]
        elif isinstance(value, dict):
            waiting += [(item, depth + 1) for item in list(value.values())[:50]]
        elif isinstance(value, RecordedNode):
            waiting.append((value.inner, depth))
        elif isinstance(value, Runnable) and (steps := getattr(value, "steps", None) or getattr(value, "bound", None)):
            waiting.append((steps, depth))
        elif tools := getattr(value, "tools_by_name", None):
            waiting.append((tools, depth))
        else:
            waiting += [(item, depth + 1) for item in _referred(value, depth)]
    return found


def _referred(action: Any, depth: int) -> Iterator[Any]:
    if depth and (isinstance(action, type) or not (callable(action) or isinstance(action, Runnable))):
        return
    for function, bound, _ in functions(action):
        if depth and _library(function):
            continue
        names = set(_names(function.__code__))
        yield from (cell.cell_contents for cell in function.__closure__ or () if _filled(cell))
        if any(name in function.__globals__ for name in names):
            used = set(_globals(function.__code__))
            yield from (function.__globals__[name] for name in sorted(used) if name in function.__globals__)
        for value in bound.values():
            yield value
            own = getattr(value, "__dict__", None) or {}
            yield from (own[name] for name in sorted(names) if name in own)


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # not assigned yet
        return False


def _globals(code: types.CodeType) -> Iterator[str]:
    """Yield the names that code reads as globals; those of attributes stand beside them in `co_names`."""
    yield from (step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals(constant)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


__all__ = ["LiveScope", "Scope", "agents_in", "callables", "code_of", "functions", "is_library", "place_of"]
