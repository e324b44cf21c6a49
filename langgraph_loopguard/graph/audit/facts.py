"""What the code of nodes and routers says about bounds: counters, lengths, steps left, questions to a person."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from langgraph_loopguard.graph.audit.evaluate import bind, evaluate, local
from langgraph_loopguard.graph.audit.values import Code, Const, FunctionNode, Made, name_of
from langgraph_loopguard.graph.audit.wiring import Facts

STEPS = frozenset({"remaining_steps", "is_last_step", "recursion_limit", "RemainingSteps", "IsLastStep"})
MODEL_CALLS = frozenset({"invoke", "ainvoke", "with_structured_output", "predict", "generate", "create", "complete"})
MODEL_SAYS = frozenset({"tool_calls", "tools_condition"})
HELPERS = 20
"""Functions read for one node."""


def facts_of(code: Code | None) -> Facts:
    """Return what a function's code, and the helpers that it hands the state to, say."""
    found: list[Facts] = []
    seen: set[FunctionNode] = set()
    waiting = [] if code is None else [code]
    while waiting and len(seen) < HELPERS:
        one = waiting.pop(0)
        if one.node not in seen:
            seen.add(one.node)
            found.append(_Reading(one).facts())
            waiting += _helpers(one)
    return Facts.of(found)


class _Reading:
    """One function, read for what it does with the keys of its state."""

    def __init__(self, code: Code) -> None:
        self.node: FunctionNode = code.node
        arguments = [argument.arg for argument in [*self.node.args.posonlyargs, *self.node.args.args]]
        arguments = [name for name in arguments if name not in code.bound]
        self.state = arguments[0] if arguments else None
        self.keys_of: dict[str, frozenset[str]] = {}
        self.lengths_of: dict[str, frozenset[str]] = {}
        self.body = list(ast.walk(self.node))
        # Twice, so that a name that stands for another name is found whatever the order.
        for _ in range(2):
            for part in self.body:
                if isinstance(part, ast.Assign) and len(part.targets) == 1:
                    self._assign(part.targets[0], part.value)
                elif isinstance(part, (ast.AnnAssign, ast.NamedExpr)) and part.value is not None:
                    self._assign(part.target, part.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.keys_of[target.id] = self.keys_of.get(target.id, frozenset()) | frozenset(self.reads(value))
            self.lengths_of[target.id] = self.lengths_of.get(target.id, frozenset()) | frozenset(self.lengths(value))

    def key(self, node: ast.AST) -> str | None:
        """The key that an expression reads from the state: `state["k"]`, `state.get("k")`, `state.k`."""
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key)) if name == self.state:
                return key
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="get" | "setdefault"),
                args=[ast.Constant(value=str() as key), *_],
            ) if name == self.state:
                return key
            case ast.Attribute(value=ast.Name(id=name), attr=key) if name == self.state and key not in _OF_DICTS:
                return key
            case _:
                return None

    def reads(self, node: ast.AST) -> Iterator[str]:
        """Keys whose value goes into an expression; a length of one does not count as its value."""
        waiting = [node]
        while waiting:
            part = waiting.pop()
            if _is_length(part):
                continue
            key = self.key(part)
            if key is not None:
                yield key
            elif isinstance(part, ast.Name):
                yield from self.keys_of.get(part.id, ())
            else:
                waiting += ast.iter_child_nodes(part)

    def lengths(self, node: ast.AST) -> Iterator[str]:
        """Keys whose length goes into an expression."""
        for part in ast.walk(node):
            if _is_length(part):
                for inner in ast.iter_child_nodes(part):
                    yield from self.reads(inner)
                    if any(isinstance(name, ast.Name) and name.id == self.state for name in ast.walk(inner)):
                        yield "messages"
            elif isinstance(part, ast.Name):
                yield from self.lengths_of.get(part.id, ())

    def facts(self) -> Facts:
        """Return what the function says."""
        raised: set[str] = set()
        written: set[str] = set()
        in_place: set[str] = set()
        compared: set[str] = set()
        measured: set[str] = set()
        for part in self.body:
            match part:
                case ast.BinOp(op=ast.Add()) if _has_number(part.left) or _has_number(part.right):
                    raised |= {*self.reads(part.left), *self.reads(part.right)}
                case ast.AugAssign(op=ast.Add() | ast.Sub()):
                    key = self.key(part.target)
                    if key is not None:
                        in_place.add(key)
                        raised.add(key)
                    elif isinstance(part.target, ast.Name):
                        raised |= self.keys_of.get(part.target.id, frozenset())
                case ast.Assign():
                    in_place |= {key for target in part.targets if (key := self.key(target)) is not None}
                case ast.Compare():
                    compared |= set(self.reads(part))
                    measured |= set(self.lengths(part))
                case ast.Dict():
                    written |= {str(key.value) for key in part.keys if isinstance(key, ast.Constant)}
                case ast.keyword(arg=str() as name):
                    written.add(name)
                case _:
                    pass
        names = {part.id for part in self.body if isinstance(part, ast.Name)}
        names |= {part.attr for part in self.body if isinstance(part, ast.Attribute)}
        texts = {part.value for part in self.body if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        return Facts(
            counts_up=frozenset(raised & (written | in_place)),
            in_place=frozenset(in_place),
            compared=frozenset(compared),
            measured=frozenset(measured),
            steps_left=bool(STEPS & (names | texts)),
            asks_person="interrupt" in names,
            asks_model=bool((MODEL_CALLS | MODEL_SAYS) & names),
        )


_OF_DICTS = frozenset({"get", "setdefault", "items", "keys", "values", "update", "copy", "pop", "model_copy"})


def _is_length(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("len", "sum")


def _has_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool)


def _helpers(code: Code) -> Iterator[Code]:
    """Yield the functions that are handed the state."""
    scope = local(code)
    names = [argument.arg for argument in [*code.node.args.posonlyargs, *code.node.args.args]]
    free = [name for name in names if name not in code.bound]
    if not free:
        return
    for part in ast.walk(code.node):
        if not isinstance(part, ast.Call):
            continue
        position = next((i for i, arg in enumerate(part.args) if isinstance(arg, ast.Name) and arg.id == free[0]), None)
        if position is None:
            continue
        for callee in evaluate(part.func, scope):
            helper = scope.code_of(callee.value) if isinstance(callee, Const) else callee
            if isinstance(helper, Code) and helper.node is not code.node:
                known = {name: values for name, values in helper.bound.items()}
                parameters = [argument.arg for argument in [*helper.node.args.posonlyargs, *helper.node.args.args]]
                before = [name for name in parameters if name not in known][:position]
                yield bind(helper, [], {name: [] for name in before})


__all__ = ["Made", "facts_of", "name_of"]
