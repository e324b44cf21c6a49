"""Sphinx: `make docs` builds the pages of this folder as one site."""

from __future__ import annotations

from importlib import metadata
from typing import Any

project = "langgraph-loopguard"
release = metadata.version("langgraph-loopguard")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
html_theme = "furo"
html_title = project
myst_heading_anchors = 3
default_role = "code"
autodoc_typehints = "description"
exclude_patterns = ["_build"]


def fences_to_blocks(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Turn the Markdown fences of docstrings into blocks that Sphinx knows."""
    out: list[str] = []
    inside = False
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        if line.strip().startswith("```"):
            inside = not inside
            out += [f"{indent}.. code-block:: {line.strip()[3:]}", ""] if inside else [""]
        else:
            out.append(f"   {line}" if inside and line.strip() else line)
    lines[:] = out


def setup(app: Any) -> None:
    """Let Sphinx call `fences_to_blocks` after the sections of a docstring are read."""
    app.connect("autodoc-process-docstring", fences_to_blocks, priority=900)
