"""What a call does to a graph that source draws."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langgraph_loopguard.graph.audit.builders import NO_LIMIT
from langgraph_loopguard.graph.audit.drawing import Drawing, InPieces, Self
from langgraph_loopguard.graph.audit.evaluate import evaluate
from langgraph_loopguard.graph.audit.frames import Frame, argument, function_of, names, node_name, place, text
from langgraph_loopguard.graph.audit.level import Branch, Function, Level
from langgraph_loopguard.graph.audit.targets import ENDS
from langgraph_loopguard.graph.audit.values import Class, Code, Const, Table, Value, elements, name_of
from langgraph_loopguard.graph.audit.wiring import Facts

if TYPE_CHECKING:
    from langgraph_loopguard.graph.audit.program import Program

ROUTERS = {"tools_condition": ("tools", ENDS["END"])}
"""Routers of LangGraph's own, and where they go."""


class Calls:
    """Reads calls for a program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, node: ast.Call, frame: Frame) -> object:
        """Return the graph, the guard or the object that a call returns; `None` when it is none of them."""
        if isinstance(node.func, ast.Attribute):
            owner = self.program.run(node.func.value, frame)
            if isinstance(owner, Drawing):
                return self._method(owner, node.func.attr, node, frame)
            if isinstance(owner, InPieces):
                return self._pieces(owner, node.func.attr, node, frame)
            if isinstance(owner, Self):
                return self._of_self(owner, node.func, node, frame)
        given = [self.program.run(argument, frame) for argument in node.args]
        named = {word.arg: self.program.run(word.value, frame) for word in node.keywords if word.arg}
        for callee in evaluate(node.func, frame.scope):
            maker = self.program.makers.find(callee)
            if maker is not None:
                return maker(node, frame, given)
            if isinstance(callee, Code) and (self.program.makes(callee.node) or _any([*given, *named.values()])):
                return self._enter(callee, node, frame, given, named)
            if isinstance(callee, Class) and self.program.makes(callee.node):
                return self.program.enter_class(callee, {}, frame)
        return None

    def _method(self, drawing: Drawing, name: str, node: ast.Call, frame: Frame) -> object:
        level = drawing.level
        match name:
            case "add_node":
                self._add_node(level, node, frame)
            case "add_edge":
                start, end = argument(node, 0, "start_key"), argument(node, 1, "end_key")
                starts = names(start, frame)
                for target in names(end, frame):
                    if isinstance(start, (ast.List, ast.Tuple)) or len(starts) > 1:
                        level.joins.append((tuple(starts), target, ()))
                    else:
                        level.plain += [(source, target, ()) for source in starts]
                if not starts or not names(end, frame):
                    level.unread.append(f"line {node.lineno} adds an edge whose ends are known at run time only")
            case "add_conditional_edges":
                self._add_branch(level, node, frame)
            case "add_sequence":
                self._add_sequence(level, node, frame)
            case "set_finish_point":
                level.plain += [(source, ENDS["END"], ()) for source in names(node.args[0], frame)]
            case "with_config":
                for value in evaluate(node.args[0], frame.scope) if node.args else ():
                    level.recursion_limit = _limit(value) or level.recursion_limit
                extra = argument(node, -1, "recursion_limit")
                for value in evaluate(extra, frame.scope) if extra is not None else ():
                    level.recursion_limit = _number(value) or level.recursion_limit
            case "compile":
                for word in ("interrupt_before", "interrupt_after"):
                    for asked in names(argument(node, -1, word), frame):
                        if asked in level.nodes:
                            level.nodes[asked].facts |= Facts(asks_person=True)
            case "set_entry_point" | "set_conditional_entry_point" | "set_node_defaults":
                pass
            case _:
                return None
        return drawing

    def _add_node(self, level: Level, node: ast.Call, frame: Frame) -> None:
        first, action = argument(node, 0, "node"), argument(node, 1, "action")
        if first is None:
            return
        found = [value.value for value in evaluate(first, frame.scope) if isinstance(value, Const)]
        called = [name for name in found if isinstance(name, str)] if action is not None else []
        action = first if action is None else action
        drawn = self.program.run(action, frame)
        called = called or (self.program.actions.own_name(first, drawn, frame) if action is first else [])
        if not called:
            level.unread.append(f"line {node.lineno} adds a node whose name is known at run time only")
        for name in called:
            made = self.program.actions.node(action, drawn, frame)
            made.place = made.place or place(node, frame)
            destinations = argument(node, -1, "destinations")
            made.ends = tuple(names(destinations, frame)) if destinations is not None else ()
            handler = argument(node, -1, "error_handler")
            if handler is not None:
                made.handler = f"__error_handler__{name}"
                level.nodes[made.handler] = self.program.actions.node(handler, None, frame)
            level.nodes[name] = made

    def _add_branch(self, level: Level, node: ast.Call, frame: Frame) -> None:
        gates: tuple[str, ...] = ()
        source, path = argument(node, 0, "source"), argument(node, 1, "path")
        path_map = argument(node, 2, "path_map")
        fixed = False
        while isinstance(inner := path.value if isinstance(path, ast.Starred) else path, ast.Call):
            guard = self.program.run(inner.func.value, frame) if isinstance(inner.func, ast.Attribute) else None
            if not isinstance(guard, InPieces):
                break
            gates = (*gates, guard.guard.name)
            path, path_map = argument(inner, 1, "path"), argument(inner, 2, "path_map") or path_map
        if source is None or path is None:
            return
        values = evaluate(path, frame.scope)
        ends, partial = self._ends(path_map, frame)
        if ends is None and any(name_of(value) in ROUTERS for value in values):
            ends = ROUTERS[next(name for value in values if (name := name_of(value)) in ROUTERS)]
        if gates and values and isinstance(values[0], Const) and isinstance(values[0].value, str):
            ends, fixed = (values[0].value,), True  # a gated plain edge names its one target
        code = next((found for value in values if (found := function_of(value)) is not None), None)
        name = getattr(code.node, "name", "condition") if code is not None else "condition"
        for start in names(source, frame):
            router = Function(code)
            level.branches.append(Branch(start, name, router, ends, gates, fixed=fixed, partial=partial))

    def _ends(self, path_map: ast.expr | None, frame: Frame) -> tuple[tuple[str, ...] | None, bool]:
        """Return where a map leads (`None` without one), and whether a part of it cannot be read."""
        if path_map is None or (isinstance(path_map, ast.Constant) and path_map.value is None):
            return None, False
        found: list[Value] = []
        for value in evaluate(path_map, frame.scope):
            found += value.values() if isinstance(value, Table) else elements([value])
        names = [node_name(value) for value in found]
        return tuple(name for name in names if name is not None), None in names

    def _add_sequence(self, level: Level, node: ast.Call, frame: Frame) -> None:
        steps = node.args[0].elts if node.args and isinstance(node.args[0], (ast.List, ast.Tuple)) else []
        before: str | None = None
        for step in steps:
            pair = step.elts if isinstance(step, ast.Tuple) and len(step.elts) == 2 else None
            action = pair[1] if pair else step
            drawn = self.program.run(action, frame)
            name = text(pair[0], frame) if pair else next(iter(self.program.actions.own_name(step, drawn, frame)), None)
            if name is None:
                level.unread.append(f"line {node.lineno} adds a node whose name is known at run time only")
                continue
            level.nodes[name] = self.program.actions.node(action, drawn, frame)
            if before is not None:
                level.plain.append((before, name, ()))
            before = name

    def _pieces(self, pieces: InPieces, name: str, node: ast.Call, frame: Frame) -> object:
        drawing = self.program.run(node.args[0], frame) if name == "add_to" and node.args else None
        if isinstance(drawing, Drawing):
            drawing.level.guards.append(pieces.guard)
        return drawing

    def _of_self(self, owner: Self, func: ast.Attribute, node: ast.Call, frame: Frame) -> object:
        given = [self.program.run(argument, frame) for argument in node.args]
        named = {word.arg: self.program.run(word.value, frame) for word in node.keywords if word.arg}
        for value in evaluate(func, frame.scope):
            if isinstance(value, Code):
                return self._enter(value, node, frame, [owner, *given], named)
        return None

    def _enter(
        self, code: Code, node: ast.Call, frame: Frame, given: Sequence[object], named: dict[str, Any]
    ) -> object:
        names = [argument.arg for argument in [*code.node.args.posonlyargs, *code.node.args.args]]
        shift = len(given) - len(node.args)
        graphs = {name: found for name, found in zip(names, given, strict=False) if found is not None}
        graphs |= {name: found for name, found in named.items() if found is not None}
        args = {
            name: evaluate(argument, frame.scope)
            for name, argument in zip(names[shift:], node.args, strict=False)
            if name not in graphs
        }
        args |= {word.arg: evaluate(word.value, frame.scope) for word in node.keywords if word.arg}
        return self.program.enter(code, graphs, frame, args)


def _any(found: Sequence[object]) -> bool:
    return any(one is not None for one in found)


def _limit(value: Value) -> int | None:
    if not isinstance(value, Table):
        return None
    for keys, values in value.entries:
        if any(isinstance(key, Const) and key.value == "recursion_limit" for key in keys):
            return next((found for one in values if (found := _number(one)) is not None), None)
    return None


def _number(value: Value) -> int | None:
    number = value.value if isinstance(value, Const) else None
    return number if isinstance(number, int) and number < NO_LIMIT else None
