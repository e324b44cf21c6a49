"""What a node of a graph in source is: a function, tools, or a graph of its own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from langgraph_loopguard.graph.audit.drawing import Drawing, InPieces, Self
from langgraph_loopguard.graph.audit.evaluate import evaluate
from langgraph_loopguard.graph.audit.frames import Frame, argument, function_of, module_of, node_name
from langgraph_loopguard.graph.audit.level import Function, Level, Node, names_command
from langgraph_loopguard.graph.audit.values import Code, Instance, Made, Symbol, Value, elements
from langgraph_loopguard.graph.audit.wiring import Place

if TYPE_CHECKING:
    from langgraph_loopguard.graph.audit.program import Program


class Actions:
    """Reads the actions of nodes for a program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def node(self, action: ast.expr, drawn: object, frame: Frame) -> Node:
        """Return what a node is, by its action, and by the graph that it is (if it is one)."""
        if isinstance(action, ast.Call) and isinstance(action.func, ast.Attribute) and action.func.attr == "node":
            pieces = self.program.run(action.func.value, frame)
            inner = argument(action, 1, "action")
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
            code = function_of(value)
            if code is not None:
                owner = self.program.run(action.value, frame) if isinstance(action, ast.Attribute) else None
                inner_levels = self.agents_in(code, frame, owner if isinstance(owner, Self) else None)
                place = self._place_of(code, frame)
                return Node(Function(code, names_command(code.node)), inner=inner_levels, place=place)
        return Node(opaque=True)

    def _place_of(self, code: Code, frame: Frame) -> Place:
        module = module_of(code.scope) or frame.module
        return Place(file=str(module.file), line=code.node.lineno)

    def tool(self, value: Value) -> Function:
        """Return what a tool does."""
        if isinstance(value, Made) and value.name == "create_handoff_tool":
            to = [name for found in value.argument(-1, "agent_name") if (name := node_name(found)) is not None]
            return Function(hands_to=tuple(to))
        code = function_of(value)
        return Function(code, code is not None and names_command(code.node))

    def agents_in(self, code: Code, frame: Frame, owner: Self | None = None) -> list[Level]:
        """Return the graphs that a function names: those it may call."""
        module = module_of(code.scope)
        around = frame
        if module is not None and module is not frame.module and self.program.makes(module.tree):
            around = self.program.frame_of(module)
        found: dict[int, Level] = {}
        named: dict[str, ast.Name] = {}
        held: dict[str, object] = {}
        for part in ast.walk(code.node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                named.setdefault(part.id, part)
            elif isinstance(part, ast.Attribute) and owner is not None and isinstance(part.value, ast.Name):
                held[part.attr] = owner.attributes.get(part.attr)
        for graph in (*(self.program.run(part, around) for part in named.values()), *held.values()):
            for one in graph if isinstance(graph, list) else [graph]:
                if isinstance(one, Drawing):
                    one.part = True
                    found[id(one.level)] = one.level
        return list(found.values())

    def own_name(self, action: ast.expr, drawn: object, frame: Frame) -> list[str]:
        """Return the name that a node has when none is given."""
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
