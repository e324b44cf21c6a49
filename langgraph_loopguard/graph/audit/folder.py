"""A folder of source, read and never imported: its modules, and what the names in them stand for."""

from __future__ import annotations

import ast
import builtins
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langgraph_loopguard.graph.audit.evaluate import evaluate
from langgraph_loopguard.graph.audit.values import UNKNOWN, Class, Code, Const, Symbol, Value, own_statements

logger = logging.getLogger("langgraph_loopguard")

SKIPPED = frozenset({"node_modules", "site-packages", "__pycache__", "build", "dist", "venv", "env"})
"""Folders that hold nobody's own source. Those that begin with a dot are skipped too."""


class Folder:
    """The Python files under a folder. Each is parsed when it is needed, once."""

    def __init__(self, root: Path) -> None:
        self.root = root if root.is_dir() else root.parent
        self.files = sorted(_python_files(root))
        self._known = set(self.files)
        self.unreadable: list[str] = []
        self._modules: dict[Path, Module | None] = {}
        self._by_name: dict[str, list[Path]] = {}
        for file in self.files:
            self._by_name.setdefault(_dotted(file.relative_to(self.root)).rsplit(".", 1)[-1], []).append(file)

    def module(self, file: Path) -> Module | None:
        """Return a file as a module; `None` when it is not Python of this version."""
        if file not in self._modules:
            self._modules[file] = self._parse(file)
        return self._modules[file]

    def text(self, file: Path) -> str | None:
        """Return what stands in a file; `None` when it cannot be read."""
        try:
            return file.read_text(encoding="utf-8-sig", errors="replace")
        except OSError as error:
            self.unreadable.append(f"{self.name(file)}: {error.strerror}")
            return None

    def name(self, file: Path) -> str:
        """Return how the report calls a file."""
        return file.relative_to(self.root).as_posix()

    def find(self, dotted: str, near: Path, level: int = 0) -> Module | None:
        """Return the module that an import names, by where its file stands.

        Args:
            dotted: Its name.
            near: The file that imports it.
            level: Dots before the name.
        """
        if level:
            base = near.parents[level - 1] if level <= len(near.parents) else near.parent
            parts = dotted.split(".") if dotted else []
            for file in (base.joinpath(*parts).with_suffix(".py"), base.joinpath(*parts, "__init__.py")):
                if file in self._known:
                    return self.module(file)
            return None
        for file in self._by_name.get(dotted.rsplit(".", 1)[-1], ()):
            own = _dotted(file.relative_to(self.root))
            if own == dotted or own.endswith(f".{dotted}") or f"{self.root.name}.{own}" == dotted:
                return self.module(file)
        return None

    def _parse(self, file: Path) -> Module | None:
        text = self.text(file)
        if text is None:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the code that is read
                tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError) as error:
            self.unreadable.append(f"{self.name(file)}: {error}")
            logger.debug("%s cannot be read: %s", file, error)
            return None
        return Module(self, file, tree)


class Module:
    """The names of one module: what its own statements give them."""

    def __init__(self, folder: Folder, file: Path, tree: ast.Module) -> None:
        self.folder = folder
        self.file = file
        self.tree = tree
        self.given: dict[str, list[ast.AST]] = {}
        self.busy: set[str] = set()
        for node in own_statements(tree):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    self.given.setdefault(node.name, []).append(node)
                case ast.Assign():
                    for target in node.targets:
                        for part in ast.walk(target):
                            if isinstance(part, ast.Name):
                                self.given.setdefault(part.id, []).append(node.value if part is target else node)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self.given.setdefault(name, []).append(value)
                case ast.Import() | ast.ImportFrom():
                    for alias in node.names:
                        self.given.setdefault(alias.asname or alias.name.split(".")[0], []).append(node)
                case _:
                    pass

    def lookup(self, name: str) -> list[Value]:
        """Return what a name stands for."""
        if name in self.busy:
            return []
        if name not in self.given:
            return [Const(getattr(builtins, name))] if hasattr(builtins, name) else [UNKNOWN]
        self.busy.add(name)
        try:
            return [value for node in self.given[name] for value in self._value(node, name)]
        finally:
            self.busy.discard(name)

    def code_of(self, value: Any) -> Code | None:
        """Nothing is live here."""
        return None

    def resolve(self, name: str) -> list[Value]:
        """Return what a dotted name stands for, when its module is in the folder."""
        dotted, _, last = name.rpartition(".")
        if self.folder.find(name, self.file) is not None:
            return [Symbol(name)]
        found = self.folder.find(dotted, self.file) if dotted else None
        return found.lookup(last) if found is not None and found is not self else [Symbol(name)]

    def imported(self, name: str) -> tuple[Module, str] | None:
        """Return the module in the folder, and the name there, that a name is imported from."""
        for node in self.given.get(name, ()):
            if isinstance(node, ast.ImportFrom):
                alias = next(alias for alias in node.names if (alias.asname or alias.name) == name)
                found = self.folder.find(node.module or "", self.file, node.level)
                if found is not None:
                    return found, alias.name
        return None

    def _value(self, node: ast.AST, name: str) -> list[Value]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return [Code(node, self)]
            case ast.ClassDef():
                return [Class(node, self)]
            case ast.Import():
                alias = next(alias for alias in node.names if (alias.asname or alias.name.split(".")[0]) == name)
                return [Symbol(alias.name if alias.asname else name)]
            case ast.ImportFrom():
                if (found := self.imported(name)) is not None:
                    return found[0].lookup(found[1])
                alias = next(alias for alias in node.names if (alias.asname or alias.name) == name)
                inside = self.folder.find(f"{node.module or ''}.{alias.name}".lstrip("."), self.file, node.level)
                dotted = _dotted(inside.file.relative_to(self.folder.root)) if inside is not None else None
                return [Symbol(dotted or f"{node.module or ''}.{alias.name}")]
            case ast.expr():
                return evaluate(node, self, 1)
            case _:
                return [UNKNOWN]


def _python_files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
        yield from (Path(folder, name) for name in files if name.endswith(".py"))


def _dotted(file: Path) -> str:
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts and parts[-1] == "__init__" else parts)
