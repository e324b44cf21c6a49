"""What makes a graph or a guard in source: builders, agents, swarms, supervisors, and the guards of this package."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from langgraph_loopguard.graph.audit.builders import LIMITS
from langgraph_loopguard.graph.audit.drawing import Drawing, InPieces, agent_level, supervisor_level, swarm_level
from langgraph_loopguard.graph.audit.evaluate import evaluate
from langgraph_loopguard.graph.audit.frames import Frame, argument, module_of, place, text
from langgraph_loopguard.graph.audit.level import Function, Level
from langgraph_loopguard.graph.audit.values import Class, Code, Const, Made, Symbol, Value, elements, name_of
from langgraph_loopguard.graph.audit.wiring import Guard

if TYPE_CHECKING:
    from langgraph_loopguard.graph.audit.program import Program

HOMES = {
    "StateGraph": "langgraph",
    "MessageGraph": "langgraph",
    "LoopGuard": "langgraph_loopguard",
    "guard_loop": "langgraph_loopguard",
    "guard_compiled": "langgraph_loopguard",
}
"""Makers that are known even when the folder holds the package that they are from."""

Maker = Callable[[ast.Call, Frame, Sequence[object]], object]


class Makers:
    """Reads makers for a program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def find(self, callee: Value) -> Maker | None:
        """Return what reads a call of a maker; `None` when it is none that is known."""
        maker: Maker | None = getattr(self, f"_{_known_name(callee)}", None)
        return maker

    def _StateGraph(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> Drawing:
        return self._draw(Level("graph", place(node, frame)), frame)

    _MessageGraph = _StateGraph

    def _create_agent(self, node: ast.Call, frame: Frame, given: Sequence[object], *, model: str = "model") -> Drawing:
        tools: list[Function] = []
        inner: list[Level] = []
        asked = argument(node, 1, "tools")
        for value in elements(evaluate(asked, frame.scope)) if asked is not None else []:
            function = self.program.actions.tool(value)
            tools.append(function)
            if function.code is not None:
                inner += self.program.actions.agents_in(function.code, frame)
        middleware = argument(node, -1, "middleware")
        made = elements(evaluate(middleware, frame.scope)) if middleware is not None else []
        limit = next((name for value in made if isinstance(value, Made) and (name := value.name) in LIMITS), None)
        level = agent_level(place(node, frame), tools, model=model, limit=limit, inner=inner)
        drawing = self._draw(level, frame)
        drawing.agent = text(argument(node, -1, "name"), frame)
        return drawing

    def _create_react_agent(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> Drawing:
        return self._create_agent(node, frame, given, model="agent")

    def _create_swarm(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> Drawing:
        agents = self._agents(node, frame, given)
        return self._draw(swarm_level(place(node, frame), agents), frame)

    def _create_supervisor(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> Drawing:
        name = text(argument(node, -1, "supervisor_name"), frame) or "supervisor"
        return self._draw(supervisor_level(place(node, frame), self._agents(node, frame, given), name), frame)

    def _guard_loop(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> object:
        drawing = given[0] if given else None
        if isinstance(drawing, Drawing):
            drawing.add_guard(self._guard(node, frame, node.args[1:]))
        return None

    def _guard_compiled(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> object:
        drawing = given[0] if given else None
        if not isinstance(drawing, Drawing):
            return None
        copy = drawing.copy()
        drawing.part = True
        copy.add_guard(self._guard(node, frame, node.args[1:]))
        self.program.drawings.append(copy)
        return copy

    def _LoopGuard(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> InPieces:
        return InPieces(self._guard(node, frame, node.args))

    def _draw(self, level: Level, frame: Frame) -> Drawing:
        drawing = Drawing(level, self.program.folder.name(frame.module.file))
        self.program.drawings.append(drawing)
        return drawing

    def _agents(self, node: ast.Call, frame: Frame, given: Sequence[object]) -> list[Drawing]:
        named = argument(node, -1, "agents")
        found = given[0] if given else self.program.run(named, frame) if named is not None else None
        agents = [agent for agent in found if isinstance(agent, Drawing)] if isinstance(found, list) else []
        for agent in agents:
            agent.part = True
        return agents

    def _guard(self, node: ast.Call, frame: Frame, names: Sequence[ast.expr]) -> Guard:
        nodes = tuple(
            value.value
            for argument in names
            for value in elements(evaluate(argument, frame.scope))
            if isinstance(value, Const) and isinstance(value.value, str)
        )
        name = text(argument(node, -1, "name"), frame) or "-".join(nodes)
        observes = text(argument(node, -1, "mode"), frame) == "observe"
        return Guard(name, nodes, observes, text(argument(node, -1, "escalate_to"), frame))


def _known_name(callee: Value) -> str | None:
    if isinstance(callee, Symbol):
        return name_of(callee)
    if not isinstance(callee, (Code, Class)):
        return None
    name, module = getattr(callee.node, "name", ""), module_of(callee.scope)
    if module is None or name not in HOMES:
        return None
    return (
        name if HOMES[name] in (module.folder.root.name, *module.file.relative_to(module.folder.root).parts) else None
    )
