"""What a call does to a graph that source draws: the methods of a builder, the makers of agents, and the guards."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from langgraph_loopguard.graph.audit.builders import LIMITS, NO_LIMIT
from langgraph_loopguard.graph.audit.drawing import (
    Drawing,
    InPieces,
    Self,
    agent_level,
    supervisor_level,
    swarm_level,
)
from langgraph_loopguard.graph.audit.level import Branch, Function, Level, Node, names_command
from langgraph_loopguard.graph.audit.targets import ENDS
from langgraph_loopguard.graph.audit.values import (
    Class,
    Code,
    Const,
    Instance,
    Made,
    Symbol,
    Table,
    Value,
    elements,
    evaluate,
    name_of,
)
from langgraph_loopguard.graph.audit.wiring import Facts, Guard, Place

if TYPE_CHECKING:
    from langgraph_loopguard.graph.audit.program import Frame, Program

WRAPPERS = frozenset({"partial", "RunnableLambda", "RunnableCallable", "tool", "coerce_to_runnable"})
"""Makers whose first argument is the function that runs."""


ROUTERS = {"tools_condition": ("tools", ENDS["END"])}
"""Routers of LangGraph's own, and where they go."""

OWN = "langgraph_loopguard"


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
            maker: Callable[..., object] | None = getattr(self, f"_make_{self._known_name(callee)}", None)
            if maker is not None:
                return maker(node, frame, given)
            if isinstance(callee, Code) and (self.program.makes(callee.node) or _any([*given, *named.values()])):
                return self._enter(callee, node, frame, given, named)
            if isinstance(callee, Class) and self.program.makes(callee.node):
                return self.program.enter_class(callee, {}, frame)
        return None

    @staticmethod
    def _known_name(callee: Value) -> str | None:
        """The name of something that is not in the folder; of this package's own, when the folder holds it."""
        from langgraph_loopguard.graph.audit.program import module_of

        if isinstance(callee, Symbol):
            return name_of(callee)
        if isinstance(callee, (Code, Class)):
            module = module_of(callee.scope)
            own = module is not None and OWN in module.file.parts
            return getattr(callee.node, "name", None) if own else None
        return None

    # -- makers ---------------------------------------------------------------------------------------------------

    def _make_StateGraph(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> Drawing:
        return self._draw(Level("graph", self.place(node, frame)), frame)

    _make_MessageGraph = _make_StateGraph

    def _make_create_agent(
        self, node: ast.Call, frame: Frame, given: Sequence[object], *, model: str = "model"
    ) -> Drawing:
        tools: list[Function] = []
        inner: list[Level] = []
        asked = self.argument(node, 1, "tools")
        for value in elements(evaluate(asked, frame.scope)) if asked is not None else []:
            function = self.tool(value)
            tools.append(function)
            if function.code is not None:
                inner += self.agents_in(function.code, frame)
        middleware = self.argument(node, -1, "middleware")
        made = elements(evaluate(middleware, frame.scope)) if middleware is not None else []
        limit = next((name for value in made if isinstance(value, Made) and (name := value.name) in LIMITS), None)
        place = self.place(node, frame)
        drawing = self._draw(agent_level(place, tools, model=model, limit=limit, inner=inner), frame)
        drawing.agent = self.text(self.argument(node, -1, "name"), frame)
        return drawing

    def _make_create_react_agent(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> Drawing:
        return self._make_create_agent(node, frame, given, model="agent")

    def _make_create_swarm(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> Drawing:
        agents = self._agents(node, frame, given)
        return self._draw(swarm_level(self.place(node, frame), agents), frame)

    def _make_create_supervisor(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> Drawing:
        name = self.text(self.argument(node, -1, "supervisor_name"), frame) or "supervisor"
        return self._draw(supervisor_level(self.place(node, frame), self._agents(node, frame, given), name), frame)

    def _make_guard_loop(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> object:
        drawing = given[0] if given else None
        if isinstance(drawing, Drawing):
            drawing.add_guard(self.guard(node, frame, node.args[1:]))
        return None

    def _make_guard_compiled(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> object:
        drawing = given[0] if given else None
        if not isinstance(drawing, Drawing):
            return None
        copy = drawing.copy()
        drawing.part = True
        copy.add_guard(self.guard(node, frame, node.args[1:]))
        self.program.drawings.append(copy)
        return copy

    def _make_LoopGuard(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> InPieces:
        return InPieces(self.guard(node, frame, node.args))

    def _draw(self, level: Level, frame: Frame) -> Drawing:
        drawing = Drawing(level, self.program.folder.name(frame.module.file))
        self.program.drawings.append(drawing)
        return drawing

    def _agents(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> list[Drawing]:
        named = self.argument(node, -1, "agents")
        found = given[0] if given else self.program.run(named, frame) if named is not None else None
        agents = [agent for agent in found if isinstance(agent, Drawing)] if isinstance(found, list) else []
        for agent in agents:
            agent.part = True
        return agents

    def guard(self, node: ast.Call, frame: Frame, names: Sequence[ast.expr]) -> Guard:
        """Return the guard that a call makes."""
        nodes = tuple(
            value.value
            for argument in names
            for value in elements(evaluate(argument, frame.scope))
            if isinstance(value, Const) and isinstance(value.value, str)
        )
        name = self.text(self.argument(node, -1, "name"), frame) or "-".join(nodes)
        observes = self.text(self.argument(node, -1, "mode"), frame) == "observe"
        return Guard(name, nodes, observes, self.text(self.argument(node, -1, "escalate_to"), frame))

    # -- methods --------------------------------------------------------------------------------------------------

    def _method(self, drawing: Drawing, name: str, node: ast.Call, frame: Frame) -> object:
        level = drawing.level
        match name:
            case "add_node":
                self._add_node(level, node, frame)
            case "add_edge":
                start, end = self.argument(node, 0, "start_key"), self.argument(node, 1, "end_key")
                starts = self.names(start, frame)
                for target in self.names(end, frame):
                    if isinstance(start, (ast.List, ast.Tuple)) or len(starts) > 1:
                        level.joins.append((tuple(starts), target, ()))
                    else:
                        level.plain += [(source, target, ()) for source in starts]
                if not starts or not self.names(end, frame):
                    level.notes.append(f"line {node.lineno} adds an edge whose ends are known at run time only")
            case "add_conditional_edges":
                self._add_branch(level, node, frame)
            case "add_sequence":
                self._add_sequence(level, node, frame)
            case "set_finish_point":
                level.plain += [(source, ENDS["END"], ()) for source in self.names(node.args[0], frame)]
            case "with_config":
                for value in evaluate(node.args[0], frame.scope) if node.args else ():
                    level.recursion_limit = _limit(value) or level.recursion_limit
                extra = self.argument(node, -1, "recursion_limit")
                for value in evaluate(extra, frame.scope) if extra is not None else ():
                    level.recursion_limit = _number(value) or level.recursion_limit
            case "compile":
                for word in ("interrupt_before", "interrupt_after"):
                    for asked in self.names(self.argument(node, -1, word), frame):
                        if asked in level.nodes:
                            level.nodes[asked].facts |= Facts(asks_person=True)
            case "set_entry_point" | "set_conditional_entry_point" | "set_node_defaults":
                pass
            case _:
                return None
        return drawing

    def _add_node(self, level: Level, node: ast.Call, frame: Frame) -> None:
        first, action = self.argument(node, 0, "node"), self.argument(node, 1, "action")
        if first is None:
            return
        names = [value.value for value in evaluate(first, frame.scope) if isinstance(value, Const)]
        names = [name for name in names if isinstance(name, str)] if action is not None else []
        action = first if action is None else action
        drawn = self.program.run(action, frame)
        names = names or (self._own_name(first, drawn, frame) if action is first else [])
        if not names:
            level.notes.append(f"line {node.lineno} adds a node whose name is known at run time only")
        for name in names:
            made = self.node(action, drawn, frame)
            made.place = made.place or self.place(node, frame)
            destinations = self.argument(node, -1, "destinations")
            made.ends = tuple(self.names(destinations, frame)) if destinations is not None else ()
            handler = self.argument(node, -1, "error_handler")
            if handler is not None:
                made.handler = f"__error_handler__{name}"
                level.nodes[made.handler] = self.node(handler, None, frame)
            level.nodes[name] = made

    def _own_name(self, action: ast.expr, drawn: object, frame: Frame) -> list[str]:
        if isinstance(drawn, Drawing):
            return [drawn.agent or "LangGraph"]
        for value in evaluate(action, frame.scope):
            if isinstance(value, Code) and not isinstance(value.node, ast.Lambda):
                return [value.node.name]
            if isinstance(value, Instance):
                return [value.of.node.name]
            if isinstance(value, Symbol):
                return [value.name.rsplit(".", 1)[-1]]
        return []

    def _add_branch(self, level: Level, node: ast.Call, frame: Frame) -> None:
        gates: tuple[str, ...] = ()
        source, path = self.argument(node, 0, "source"), self.argument(node, 1, "path")
        path_map = self.argument(node, 2, "path_map")
        fixed = False
        while isinstance(inner := path.value if isinstance(path, ast.Starred) else path, ast.Call):
            guard = self.program.run(inner.func.value, frame) if isinstance(inner.func, ast.Attribute) else None
            if not isinstance(guard, InPieces):
                break
            gates = (*gates, guard.guard.name)
            path, path_map = self.argument(inner, 1, "path"), self.argument(inner, 2, "path_map") or path_map
        if source is None or path is None:
            return
        values = evaluate(path, frame.scope)
        ends, partial = self._ends(path_map, frame)
        if ends is None and any(name_of(value) in ROUTERS for value in values):
            ends = ROUTERS[next(name for value in values if (name := name_of(value)) in ROUTERS)]
        if gates and values and isinstance(values[0], Const) and isinstance(values[0].value, str):
            ends, fixed = (values[0].value,), True  # a gated plain edge names its one target
        code = next((found for value in values if (found := _code(value)) is not None), None)
        name = getattr(code.node, "name", "condition") if code is not None else "condition"
        for start in self.names(source, frame):
            router = Function(code)
            level.branches.append(Branch(start, name, router, ends, gates, fixed=fixed, partial=partial))

    def _ends(self, path_map: ast.expr | None, frame: Frame) -> tuple[tuple[str, ...] | None, bool]:
        """Return where a map leads (`None` without one), and whether a part of it cannot be read."""
        if path_map is None or (isinstance(path_map, ast.Constant) and path_map.value is None):
            return None, False
        found: list[Value] = []
        for value in evaluate(path_map, frame.scope):
            found += value.values() if isinstance(value, Table) else elements([value])
        names = [_name(value) for value in found]
        return tuple(name for name in names if name is not None), None in names

    def _add_sequence(self, level: Level, node: ast.Call, frame: Frame) -> None:
        steps = node.args[0].elts if node.args and isinstance(node.args[0], (ast.List, ast.Tuple)) else []
        before: str | None = None
        for step in steps:
            pair = step.elts if isinstance(step, ast.Tuple) and len(step.elts) == 2 else None
            action = pair[1] if pair else step
            drawn = self.program.run(action, frame)
            name = self.text(pair[0], frame) if pair else next(iter(self._own_name(step, drawn, frame)), None)
            if name is None:
                level.notes.append(f"line {node.lineno} adds a node whose name is known at run time only")
                continue
            level.nodes[name] = self.node(action, drawn, frame)
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

    # -- arguments ------------------------------------------------------------------------------------------------

    def argument(self, node: ast.Call, position: int, name: str) -> ast.expr | None:
        """Return an argument by position (never, when it is below 0) or by name."""
        for word in node.keywords:
            if word.arg == name:
                return word.value
        return node.args[position] if 0 <= position < len(node.args) else None

    def names(self, node: ast.expr | None, frame: Frame) -> list[str]:
        """Return the names of nodes that an expression may be."""
        if node is None:
            return []
        return [name for value in elements(evaluate(node, frame.scope)) if (name := _name(value)) is not None]

    def text(self, node: ast.expr | None, frame: Frame) -> str | None:
        """Return the text that an expression is."""
        return next(iter(self.names(node, frame)), None)

    def place(self, node: ast.AST, frame: Frame) -> Place:
        """Return where some code stands."""
        return Place(file=str(frame.module.file), line=getattr(node, "lineno", 1))

    # -- nodes ----------------------------------------------------------------------------------------------------

    def node(self, action: ast.expr, drawn: object, frame: Frame) -> Node:
        """Return what a node is, by its action, and by the graph that it is (if it is one)."""
        if isinstance(action, ast.Call) and isinstance(action.func, ast.Attribute) and action.func.attr == "node":
            pieces = self.program.run(action.func.value, frame)
            inner = self.argument(action, 1, "action")
            if isinstance(pieces, InPieces) and inner is not None:
                node = self.node(inner, self.program.run(inner, frame), frame)
                node.gates = (*node.gates, pieces.guard.name)
                return node
        if isinstance(drawn, Drawing):
            drawn.part = True
            return Node(inner=[drawn.level], place=drawn.level.place)
        for value in evaluate(action, frame.scope):
            if isinstance(value, Made) and value.name == "ToolNode":
                tools = tuple(self.tool(tool) for tool in elements(list(value.argument(0, "tools"))))
                agents = [level for tool in tools if tool.code for level in self.agents_in(tool.code, frame)]
                return Node(tools=tools, inner=agents)
            code = _code(value)
            if code is not None:
                owner = self.program.run(action.value, frame) if isinstance(action, ast.Attribute) else None
                inner_levels = self.agents_in(code, frame, owner if isinstance(owner, Self) else None)
                place = self._place_of(code, frame)
                return Node(Function(code, names_command(code.node)), inner=inner_levels, place=place)
        return Node(opaque=True)

    def _place_of(self, code: Code, frame: Frame) -> Place:
        from langgraph_loopguard.graph.audit.program import module_of

        module = module_of(code.scope) or frame.module
        return Place(file=str(module.file), line=code.node.lineno)

    def tool(self, value: Value) -> Function:
        """Return what a tool does."""
        if isinstance(value, Made) and value.name == "create_handoff_tool":
            to = [name for found in value.argument(-1, "agent_name") if (name := _name(found)) is not None]
            return Function(hands_to=tuple(to))
        code = _code(value)
        return Function(code, code is not None and names_command(code.node))

    def agents_in(self, code: Code, frame: Frame, owner: Self | None = None) -> list[Level]:
        """Return the graphs that a function names: those it may call."""
        from langgraph_loopguard.graph.audit.program import module_of

        module = module_of(code.scope)
        around = frame
        if module is not None and module is not frame.module and self.program.makes(module.tree):
            around = self.program.frame_of(module)
        found: dict[int, Level] = {}
        for part in ast.walk(code.node):
            graph: object = None
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                graph = self.program.run(part, around)
            elif isinstance(part, ast.Attribute) and owner is not None and isinstance(part.value, ast.Name):
                graph = owner.attributes.get(part.attr)
            for one in graph if isinstance(graph, list) else [graph]:
                if isinstance(one, Drawing):
                    one.part = True
                    found[id(one.level)] = one.level
        return list(found.values())


def _any(found: Sequence[object]) -> bool:
    return any(one is not None for one in found)


def _name(value: Value) -> str | None:
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value
    return ENDS.get(value.name.rsplit(".", 1)[-1]) if isinstance(value, Symbol) else None


def _code(value: Value) -> Code | None:
    """Return the function behind a value: a function, an object that can be called, or a wrapper of either."""
    if isinstance(value, Code):
        return value
    if isinstance(value, Instance):
        call = value.of.method("__call__")
        return value.bound(call) if call is not None else None
    if isinstance(value, Made) and value.name in WRAPPERS and value.args:
        inner = next((code for part in value.args[0] if (code := _code(part)) is not None), None)
        if inner is not None and value.name == "partial":
            from langgraph_loopguard.graph.audit.values import bind

            return bind(inner, value.args[1:], value.keywords)
        return inner
    return None


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
