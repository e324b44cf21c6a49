"""What a pull request of the demo is, and the edit that it makes."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from textwrap import dedent

from langgraph_loopguard.demo.tools import Check

PAIR = ("reviewer", "fixer")
RING = ("reviewer", "formatter", "sorter")


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """One seeded pull request on one copied module.

    Attributes:
        module: The module that it is meant for; another one stands in where this one is missing.
        title: What it adds.
        code: The code that it adds at the module's end.
        imports: Import statements that it adds on top.
        checks: What the Reviewer insists on; the Fixer works on the first of them that is not met.
        nodes: The loop.
        cycles: Cycles that it takes; `None` when it never ends.
        why: For one that never ends: why not.
    """

    module: str
    title: str
    code: str
    imports: str = ""
    checks: tuple[Check, ...]
    nodes: tuple[str, ...] = PAIR
    cycles: int | None
    why: str = ""

    @property
    def hopeless(self) -> bool:
        """Whether it can never end."""
        return self.cycles is None

    def edit(self, text: str) -> str:
        """Return the module's text with this pull request's change."""
        lines = text.splitlines(keepends=True)
        at = _first_import(text)
        added = [line + "\n" for line in dedent(self.imports).strip().splitlines()]
        if added and at == _after_docstring(text):
            added = ["\n", *added]
        before = "".join([*lines[:at], *added, *lines[at:]]).rstrip("\n")
        after = dedent(self.code).strip("\n")
        return f"{before}\n\n\n{after}\n"


def name(number: int) -> str:
    """Return a pull request's name, which is its thread's and its branch's too: `PR-07`."""
    return f"PR-{number:02d}"


def _first_import(text: str) -> int:
    """Return the 0-based line of the first import of a module (not `__future__`), or the line after its docstring."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__"):
            return node.lineno - 1
    return _after_docstring(text)


def _after_docstring(text: str) -> int:
    """Return the 0-based line where a module's code can begin: after its docstring and `__future__` imports."""
    line = 0
    for node in ast.parse(text).body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        line = node.end_lineno or node.lineno
    return line
