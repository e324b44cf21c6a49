"""Follows source that builds graphs, statement by statement, without running it.

Both ways of an `if` are taken, loops over what is known are gone through, functions and methods that build graphs are
followed into, in other files of the folder too. What cannot be followed is left out, and noted where it names a node.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from langgraph_loopguard.graph.audit.actions import Actions
from langgraph_loopguard.graph.audit.budget import bounded
from langgraph_loopguard.graph.audit.calls import Calls
from langgraph_loopguard.graph.audit.drawing import Drawing, Self
from langgraph_loopguard.graph.audit.evaluate import Bound, bind, evaluate, local
from langgraph_loopguard.graph.audit.folder import Folder, Module
from langgraph_loopguard.graph.audit.frames import Frame, module_of
from langgraph_loopguard.graph.audit.makers import Makers
from langgraph_loopguard.graph.audit.values import (
    UNKNOWN,
    Class,
    Code,
    Const,
    FunctionNode,
    Instance,
    Items,
    Symbol,
    Value,
    elements,
)

MAKERS = frozenset(
    {"StateGraph", "MessageGraph", "create_agent", "create_react_agent", "create_swarm", "create_supervisor"}
)
"""What makes a graph. Only source that names one of them is followed."""

DEPTH = 8
"""Calls followed, one inside the other."""

ROUNDS = 64
"""Rounds of a loop gone through."""


class Program:
    """The graphs of a folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.drawings: list[Drawing] = []
        self.calls = Calls(self)
        self.makers = Makers(self)
        self.actions = Actions(self)
        self._frames: dict[Module, Frame] = {}
        self._followed: set[ast.AST] = set()
        self._making: dict[ast.AST, bool] = {}
        self._active: list[ast.AST] = []
        self._modules_deep = 0

    def read(self) -> list[Drawing]:
        """Follow every file that makes a graph, and return the graphs."""
        for file in self.folder.files:
            text = self.folder.text(file)
            if text is not None and any(maker in text for maker in MAKERS):
                module = self.folder.module(file)
                if module is not None:
                    self._read_module(module)
        return self.drawings

    def _read_module(self, module: Module) -> None:
        try:
            self.frame_of(module)
        except RecursionError:
            self.folder.unreadable.append(f"{self.folder.name(module.file)}: nested too deep:")

    def frame_of(self, module: Module) -> Frame:
        """Follow a module, once: its statements, then the functions and classes that nothing has called."""
        if module in self._frames:
            return self._frames[module]
        frame = self._frames[module] = Frame(module, module)
        if self._modules_deep >= DEPTH:  # a long chain of imports: what it ends in is read by itself
            del self._frames[module]
            return frame
        self._modules_deep += 1
        try:
            self._follow_module(module, frame)
        finally:
            self._modules_deep -= 1
        return frame

    def _follow_module(self, module: Module, frame: Frame) -> None:
        self.follow(module.tree.body, frame)
        for node in module.tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and self._left_over(node):
                self.enter(Code(node, module), {}, frame)
            elif isinstance(node, ast.ClassDef) and self.makes(node):
                self.enter_class(Class(node, module), {}, frame, rest=True)

    def _left_over(self, node: ast.AST) -> bool:
        return node not in self._followed and self.makes(node)

    def makes(self, node: ast.AST) -> bool:
        """Whether some code names what makes a graph."""
        if node not in self._making:
            names = (part.id if isinstance(part, ast.Name) else getattr(part, "attr", "") for part in ast.walk(node))
            self._making[node] = any(name in MAKERS for name in names)
        return self._making[node]

    # -- statements -----------------------------------------------------------------------------------------------

    def follow(self, statements: Sequence[ast.stmt], frame: Frame) -> None:
        """Follow statements in their order."""
        for statement in statements:
            with bounded():
                self._statement(statement, frame)

    def _statement(self, statement: ast.stmt, frame: Frame) -> None:
        match statement:
            case ast.Assign():
                self._assign(statement.targets, self.run(statement.value, frame), frame)
            case ast.AnnAssign(value=ast.expr() as value):
                self._assign([statement.target], self.run(value, frame), frame)
            case ast.Expr():
                self.run(statement.value, frame)
            case ast.Return(value=ast.expr() as value):
                found = self.run(value, frame)
                frame.result = frame.result if found is None else found
            case ast.For() | ast.AsyncFor():
                for turn in self._turns(statement.target, statement.iter, frame):
                    self.follow(statement.body, turn)
                    frame.result = frame.result or turn.result
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass
            case _:
                for part in ast.iter_child_nodes(statement):
                    if isinstance(part, ast.expr):
                        self.run(part, frame)
                    elif isinstance(part, ast.withitem):
                        self.run(part.context_expr, frame)
                self.follow(list(_inside(statement)), frame)

    def _assign(self, targets: Sequence[ast.expr], found: object, frame: Frame) -> None:
        if found is None:
            return
        for target in targets:
            if isinstance(target, ast.Name):
                frame.graphs[target.id] = found
                name = target.id
            elif isinstance(target, ast.Attribute) and isinstance(owner := self.run(target.value, frame), Self):
                owner.attributes[target.attr] = found
                name = target.attr
            elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(found, list):
                for part, one in zip(target.elts, found, strict=False):
                    self._assign([part], one, frame)
                continue
            else:
                continue
            if isinstance(found, Drawing) and found.name is None:
                found.name = name

    def _turns(self, target: ast.expr, over: ast.expr, frame: Frame) -> Iterator[Frame]:
        """Yield a frame for each round of a loop; one with unknown names when it is not known what it goes over."""
        values = evaluate(over, frame.scope)
        each: list[Value] = []
        for value in values:
            each += value.values if isinstance(value, Items) else elements([value])
        for value in each[:ROUNDS] or [UNKNOWN]:
            bound: dict[str, list[Value]] = {}
            if isinstance(target, ast.Name):
                bound[target.id] = [value]
            elif isinstance(target, (ast.Tuple, ast.List)):
                known = _parts(value)
                for number, part in enumerate(target.elts):
                    if isinstance(part, ast.Name):
                        bound[part.id] = [known[number]] if len(known) == len(target.elts) else [UNKNOWN]
            yield Frame(frame.module, Bound(frame.scope, bound), frame.graphs, frame, depth=frame.depth)

    # -- expressions ----------------------------------------------------------------------------------------------

    def run(self, node: ast.expr, frame: Frame) -> object:
        """Return the graph, the guard or the object that an expression is; `None` when it is none of them."""
        match node:
            case ast.Name():
                found = frame.find(node.id)
                return found if found is not None else self._imported(node.id, frame)
            case ast.Attribute():
                owner = self.run(node.value, frame)
                if isinstance(owner, Self):
                    return owner.attributes.get(node.attr)
                if isinstance(owner, Drawing):
                    return owner if node.attr == "builder" else None
                return self._of_module(node, frame)
            case ast.Await() | ast.NamedExpr() | ast.Starred():
                found = self.run(node.value, frame)
                if isinstance(node, ast.NamedExpr):
                    self._assign([node.target], found, frame)
                return found
            case ast.List() | ast.Tuple():
                each = [self.run(part, frame) for part in node.elts]
                return each if any(one is not None for one in each) else None
            case ast.ListComp(generators=[generator]):
                turns = self._turns(generator.target, generator.iter, frame)
                each = [self.run(node.elt, turn) for turn in turns]
                return each if any(one is not None for one in each) else None
            case ast.IfExp() | ast.BoolOp():
                parts = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
                each = [self.run(part, frame) for part in parts]
                return next((one for one in each if one is not None), None)
            case ast.Compare():
                self.run(node.left, frame)
                return None
            case ast.Call():
                return self.calls.run(node, frame)
            case _:
                return None

    def _imported(self, name: str, frame: Frame) -> object:
        found = frame.module.imported(name)
        if found is None:
            return None
        module, there = found
        definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        if all(isinstance(node, definitions) for node in module.given.get(there, ())) or not self.makes(module.tree):
            return None
        return self.frame_of(module).find(there)

    def _of_module(self, node: ast.Attribute, frame: Frame) -> object:
        if not isinstance(node.value, (ast.Name, ast.Attribute)):
            return None
        for value in evaluate(node.value, frame.scope):
            if isinstance(value, Symbol) and (module := self.folder.find(value.name, frame.module.file)) is not None:
                return self.frame_of(module).graphs.get(node.attr) if self.makes(module.tree) else None
        return None

    # -- functions and classes ------------------------------------------------------------------------------------

    def enter(
        self, code: Code, graphs: Mapping[str, object], frame: Frame, args: Mapping[str, Sequence[Value]] | None = None
    ) -> object:
        """Follow a function, and return the graph that it returns.

        Args:
            code: The function.
            graphs: Its parameters that are graphs.
            frame: Where it is called.
            args: Its other parameters.
        """
        if frame.depth >= DEPTH or code.node in self._active or isinstance(code.node, ast.Lambda):
            return None
        self._followed.add(code.node)
        self._active.append(code.node)
        try:
            module = module_of(code.scope) or frame.module
            around = self.frame_of(module) if module is not frame.module else _outermost(frame)
            objects: dict[str, Sequence[Value]] = {
                name: [found.of] for name, found in graphs.items() if isinstance(found, Self)
            }
            scope = local(bind(code, [], {**(args or {}), **objects}))
            inside = Frame(module, scope, dict(graphs), around, depth=frame.depth + 1)
            self.follow(code.node.body, inside)
            if isinstance(inside.result, Drawing) and inside.result.name is None:
                inside.result.name = code.node.name
            return inside.result
        finally:
            self._active.pop()

    def enter_class(
        self, found: Class, graphs: Mapping[str, object], frame: Frame, *, rest: bool = False
    ) -> Self | None:
        """Follow what makes an object, and with `rest` the methods that nothing has called.

        Returns:
            The object, for the graphs that its attributes hold.
        """
        if frame.depth >= DEPTH:
            return None
        made = Self(Instance(found))
        methods = [part for part in found.node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))]
        first = [method for method in methods if method.name == "__init__"]
        if rest and not any(self._left_over(method) for method in methods):
            return None
        for method in [*first, *(method for method in methods if rest and method not in first)]:
            if method in first or self._left_over(method):
                self.enter(Code(method, found.scope), {**graphs, _first(method): made}, frame)
        return made


def _first(method: FunctionNode) -> str:
    arguments = [*method.args.posonlyargs, *method.args.args]
    return arguments[0].arg if arguments else "self"


def _outermost(frame: Frame) -> Frame:
    while frame.around is not None:
        frame = frame.around
    return frame


def _inside(statement: ast.stmt) -> Iterator[ast.stmt]:
    for part in ast.iter_child_nodes(statement):
        if isinstance(part, ast.stmt):
            yield part
        elif isinstance(part, (ast.ExceptHandler, ast.match_case)):
            yield from part.body


def _parts(value: Value) -> list[Value]:
    if isinstance(value, Items):
        return list(value.values)
    if isinstance(value, Const) and isinstance(value.value, (list, tuple)):
        return [Const(part) for part in value.value]
    return []
