"""What an expression may be worth, as far as reading tells: the small evaluator that the audit reads routers with.

It runs nothing. A name is looked up where it is defined, both arms of a condition count, a table gives all its values,
a helper is followed to what it returns. What cannot be read is `UNKNOWN`, and is said so.
"""

from __future__ import annotations

import ast
import enum
import inspect
import types
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph_loopguard.graph.audit.budget import steps_left
from langgraph_loopguard.graph.audit.values import (
    UNKNOWN,
    Class,
    Code,
    Const,
    FunctionNode,
    Instance,
    Items,
    Made,
    Scope,
    Symbol,
    Table,
    Value,
    assignments,
    elements,
    is_list,
    name_of,
    own_statements,
    parameters,
    table_of,
)

DEPTH = 12
"""Calls and names followed, one inside the other."""


class Local:
    """Names inside a function: its parameters as far as they are known, and what its body assigns."""

    def __init__(self, function: FunctionNode, outer: Scope, bound: Mapping[str, list[Value]]) -> None:
        self.outer = outer
        self.bound = bound
        self.assigned = assignments(function)
        self.parameters = {argument.arg for argument in parameters(function)}
        self.busy: set[str] = set()

    def lookup(self, name: str) -> list[Value]:
        """Return what a name may stand for."""
        if name in self.busy:  # defined by itself: that adds nothing
            return []
        if name not in self.assigned:
            if name in self.bound:
                return list(self.bound[name])
            return [UNKNOWN] if name in self.parameters else self.outer.lookup(name)
        self.busy.add(name)
        try:
            found = [value for source in self.assigned[name] for value in _assigned(source, self)]
        finally:
            self.busy.discard(name)
        return found + list(self.bound.get(name, [UNKNOWN] if name in self.parameters else []))

    def code_of(self, value: Any) -> Code | None:
        """Return the code of a live function."""
        return self.outer.code_of(value)

    def resolve(self, name: str) -> list[Value]:
        """Return what a dotted name stands for."""
        return self.outer.resolve(name)


class Bound:
    """A scope with some names bound in addition, for comprehensions."""

    def __init__(self, outer: Scope, bound: Mapping[str, list[Value]]) -> None:
        self.outer = outer
        self.bound = bound

    def lookup(self, name: str) -> list[Value]:
        """Return what a name may stand for."""
        return list(self.bound[name]) if name in self.bound else self.outer.lookup(name)

    def code_of(self, value: Any) -> Code | None:
        """Return the code of a live function."""
        return self.outer.code_of(value)

    def resolve(self, name: str) -> list[Value]:
        """Return what a dotted name stands for."""
        return self.outer.resolve(name)


def returned(code: Code, depth: int = 0) -> list[Value]:
    """Return what a function may return."""
    node = code.node
    if depth > DEPTH:
        return [UNKNOWN]
    scope = local(code)
    if isinstance(node, ast.Lambda):
        return evaluate(node.body, scope, depth + 1)
    found: list[Value] = []
    for statement in own_statements(node):
        if isinstance(statement, ast.Return) and statement.value is not None:
            found += evaluate(statement.value, scope, depth + 1)
    return found


def local(code: Code) -> Local:
    """Return the scope inside a function: what is bound, and the defaults of the rest."""
    arguments = code.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    bound: dict[str, list[Value]] = {}
    for argument, default in zip(
        positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True
    ):
        bound[argument.arg] = evaluate(default, code.scope, 1)
    for argument, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword_default is not None:
            bound[argument.arg] = evaluate(keyword_default, code.scope, 1)
    bound.update({name: list(values) for name, values in code.bound.items()})
    return Local(code.node, code.scope, bound)


def bind(code: Code, args: Sequence[Sequence[Value]], keywords: Mapping[str, Sequence[Value]]) -> Code:
    """Return a function with arguments given."""
    names = [argument.arg for argument in [*code.node.args.posonlyargs, *code.node.args.args]]
    free = [name for name in names if name not in code.bound]
    bound = {**code.bound, **dict(zip(free, args, strict=False)), **keywords}
    return Code(code.node, code.scope, bound, code.method)


def evaluate(node: ast.expr, scope: Scope, depth: int = 0) -> list[Value]:
    """Return what an expression may be worth."""
    left = steps_left()
    left[0] -= 1
    if depth > DEPTH or left[0] < 0:
        return [UNKNOWN]
    deeper = depth + 1
    match node:
        case ast.Constant():
            return [Const(node.value)]
        case ast.Name():
            return scope.lookup(node.id)
        case ast.Await() | ast.NamedExpr() | ast.Starred():
            return evaluate(node.value, scope, deeper)
        case ast.IfExp():
            return evaluate(node.body, scope, deeper) + evaluate(node.orelse, scope, deeper)
        case ast.BoolOp():
            return [value for part in node.values for value in evaluate(part, scope, deeper)]
        case ast.List() | ast.Tuple() | ast.Set():
            parts = [evaluate(part, scope, deeper) for part in node.elts]
            exact = all(len(part) == 1 for part in parts) and not isinstance(node, ast.Set)
            return [Items(tuple(value for part in parts for value in part), exact)]
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return [Items(tuple(evaluate(node.elt, _comprehended(node.generators, scope, deeper), deeper)))]
        case ast.Dict():
            entries = [
                (tuple(evaluate(key, scope, deeper)), tuple(evaluate(value, scope, deeper)))
                if key is not None
                else ((UNKNOWN,), tuple(_unpacked(evaluate(value, scope, deeper))))
                for key, value in zip(node.keys, node.values, strict=True)
            ]
            return [Table(tuple(entries))]
        case ast.BinOp(op=ast.Add()):
            both = evaluate(node.left, scope, deeper) + evaluate(node.right, scope, deeper)
            return [Items(tuple(elements(both)))] if both and all(map(is_list, both)) else [UNKNOWN]
        case ast.Subscript():
            found = [_item(value, node.slice, scope, deeper) for value in evaluate(node.value, scope, deeper)]
            return [value for values in found for value in values]
        case ast.Attribute():
            found = [attribute(value, node.attr, scope) for value in evaluate(node.value, scope, deeper)]
            return [value for values in found for value in values]
        case ast.Lambda():
            return [Code(node, scope)]
        case ast.Call():
            return _call(node, scope, deeper)
        case _:
            return [UNKNOWN]


def attribute(value: Value, name: str, scope: Scope) -> list[Value]:
    """Return an attribute without running a property."""
    if isinstance(value, Symbol):
        return scope.resolve(f"{value.name}.{name}")
    if isinstance(value, Class):
        return _of_class(value, name)
    if isinstance(value, Instance):
        return _of_instance(value, name)
    if not isinstance(value, Const):
        return [UNKNOWN]
    if name == "value" and isinstance(value.value, str):  # a member of an enum that is read, not live
        return [value]
    owner = value.value
    if isinstance(owner, types.ModuleType):
        return [Const(vars(owner)[name])] if name in vars(owner) else [UNKNOWN]
    static = inspect.getattr_static(owner, name, UNKNOWN)
    if isinstance(owner, enum.Enum) and name in ("value", "name"):
        return [Const(getattr(owner, name))]
    if static is UNKNOWN or isinstance(static, property):
        return [UNKNOWN]
    if isinstance(static, (types.FunctionType, staticmethod, classmethod)):
        return [Const(getattr(owner, name))]
    return [UNKNOWN] if hasattr(static, "__get__") and not isinstance(owner, type) else [Const(static)]


def _of_class(found: Class, name: str) -> list[Value]:
    """What a name of its body stands for."""
    if (function := found.method(name)) is not None:
        return [Code(function, found.scope)]
    values: list[Value] = []
    for part in found.node.body:
        match part:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                values += evaluate(value, found.scope, 1)
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
                values += evaluate(value, found.scope, 1)
            case _:
                pass
    return values or [UNKNOWN]


def _of_instance(found: Instance, name: str) -> list[Value]:
    """A method with its object, a class variable, or what a method assigns to `self`."""
    function = found.of.method(name)
    if function is not None:
        return [found.bound(function)]
    values: list[Value] = []
    for part in found.of.node.body:
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for node in own_statements(part):
            if isinstance(node, ast.Assign) and any(_is_self(target, name) for target in node.targets):
                values += evaluate(node.value, local(found.bound(part)), 1)
    return values or _of_class(found.of, name)


def _is_self(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == name and isinstance(target.value, ast.Name)


def _call(node: ast.Call, scope: Scope, depth: int) -> list[Value]:
    if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        tables = evaluate(node.func.value, scope, depth)
        if tables and all(table_of(value) is not None for value in tables):
            default = [value for extra in node.args[1:2] for value in evaluate(extra, scope, depth)]
            found = [_item(value, node.args[0], scope, depth) for value in tables]
            return [value for values in found for value in values] + default
    args = tuple(tuple(evaluate(argument, scope, depth)) for argument in node.args)
    keywords = {word.arg: tuple(evaluate(word.value, scope, depth)) for word in node.keywords if word.arg}
    found_values: list[Value] = []
    for callee in evaluate(node.func, scope, depth):
        code = callee if isinstance(callee, Code) else None
        if isinstance(callee, Const):
            code = scope.code_of(callee.value)
        if code is not None:
            found_values += returned(bind(code, args, keywords), depth)
        elif isinstance(callee, Class):
            found_values.append(Instance(callee))
        elif (name := name_of(callee)) is not None:
            found_values.append(Made(name, args, keywords, node, (callee,)))
        else:
            found_values.append(UNKNOWN)
    return found_values or [UNKNOWN]


def _comprehended(generators: Sequence[ast.comprehension], scope: Scope, depth: int) -> Scope:
    for generator in generators:
        if isinstance(generator.target, ast.Name):
            scope = Bound(scope, {generator.target.id: elements(evaluate(generator.iter, scope, depth)) or [UNKNOWN]})
        else:
            names = {part.id: [UNKNOWN] for part in ast.walk(generator.target) if isinstance(part, ast.Name)}
            scope = Bound(scope, {name: list[Value](values) for name, values in names.items()})
    return scope


def _item(value: Value, key: ast.expr, scope: Scope, depth: int) -> list[Value]:
    table = table_of(value)
    wanted = evaluate(key, scope, depth)
    if table is None:
        return _element(value, wanted) if is_list(value) else [UNKNOWN]
    if len(wanted) == 1 and isinstance(wanted[0], Const):
        for keys, values in table.entries:
            if len(keys) == 1 and isinstance(keys[0], Const) and keys[0].value == wanted[0].value:
                return list(values)
    return table.values() or [UNKNOWN]


def _element(value: Value, wanted: Sequence[Value]) -> list[Value]:
    known = value.values if isinstance(value, Items) and value.exact else ()
    if isinstance(value, Const):
        known = tuple(Const(item) for item in value.value)
    index = wanted[0].value if len(wanted) == 1 and isinstance(wanted[0], Const) else None
    if isinstance(index, int) and -len(known) <= index < len(known):
        return [known[index]]
    return elements([value])


def _unpacked(values: Sequence[Value]) -> list[Value]:
    tables = [table_of(value) for value in values]
    return [value for table in tables for value in (table.values() if table is not None else [UNKNOWN])]


def _assigned(source: ast.AST, scope: Scope) -> list[Value]:
    if isinstance(source, ast.expr):
        return evaluate(source, scope, 1)
    if isinstance(source, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [Code(source, scope)]
    if isinstance(source, ast.For) and isinstance(source.target, ast.Name):
        return elements(evaluate(source.iter, scope, 1)) or [UNKNOWN]
    return [UNKNOWN]
