"""Finds the real source files: modules of the running Python's standard library."""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from langgraph_loopguard.demo.errors import DemoError
from langgraph_loopguard.demo.findings import FOLDER


def file_of(module: str) -> str:
    """Return a module's path in the demo's repository."""
    return f"{FOLDER}/{module}.py"


def read_modules(names: Sequence[str], folder: Path | None = None) -> dict[str, str]:
    """Return the source of those modules that are there and can be read, by name.

    Args:
        names: Names of modules.
        folder: Where to look. Default: the running Python's standard library.

    Raises:
        DemoError: None is there.
    """
    folder = folder or Path(sysconfig.get_path("stdlib"))
    sources = {name: text for name in names if (text := _read(folder / f"{name}.py")) is not None}
    if not sources:
        msg = f"no source files of the standard library in {folder}: this Python ({sys.version.split()[0]}) has none"
        raise DemoError(msg)
    return sources


def assign(wanted: Sequence[str], clean: Sequence[str]) -> list[str]:
    """Return a module for each wanted one: itself, or the next that nobody else wants, or, at need, one for several.

    Args:
        wanted: The modules that the pull requests are meant for.
        clean: The modules that can be used; at least one.
    """
    usable = set(clean)
    spare = [name for name in clean if name not in wanted] or list(clean)
    out: list[str] = []
    taken = 0
    for name in wanted:
        if name in usable:
            out.append(name)
        else:
            out.append(spare[taken % len(spare)])
            taken += 1
    return out


def _read(path: Path) -> str | None:
    try:
        text = path.read_bytes().decode("utf-8")
        ast.parse(text)
    except (OSError, ValueError, SyntaxError):
        return None
    return text.replace("\r\n", "\n")
