"""The package's own names."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import langgraph_loopguard
import langgraph_loopguard.report
import langgraph_loopguard.review

PACKAGES = [langgraph_loopguard, langgraph_loopguard.report, langgraph_loopguard.review]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_imported_from_where_the_type_checker_finds_it(package: Any) -> None:
    """The table of late imports says the same as the imports that only the type checker reads."""
    tree = ast.parse(Path(package.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    assert seen == {name: f"{package.__name__}.{module}" for name, module in package.MODULES.items()}
    assert sorted(seen) == sorted(package.__all__)
    assert set(package.__all__) <= set(dir(package))


@pytest.mark.parametrize(("package", "name"), [(package, name) for package in PACKAGES for name in package.__all__])
def test_every_public_name_is_there(package: Any, name: str) -> None:
    """Asked for once or twice, it is one thing."""
    assert getattr(package, name) is getattr(package, name)


def test_an_unknown_name_is_refused() -> None:
    """As Python does for any module."""
    with pytest.raises(AttributeError, match="module 'langgraph_loopguard' has no attribute 'gard_loop'"):
        langgraph_loopguard.gard_loop


def test_importing_the_package_imports_none_of_its_modules() -> None:
    """They come when a name is asked for; what is optional comes when it is used."""
    code = (
        "import sys, langgraph_loopguard as l; print([m for m in sys.modules if m.startswith('langgraph_loopguard.')]);"
        "l.guard_loop; l.Decision; l.Fingerprinter();"
        "print([m for m in ('genai_prices', 'pandas', 'rustworkx', 'sqlalchemy', 'starlette') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ["['langgraph_loopguard.late']", "[]"] == done.stdout.splitlines()


def test_a_command_that_only_reads_does_not_import_langgraph() -> None:
    """`loopguard review status` answers before LangGraph would have been imported."""
    code = (
        "import sys; from langgraph_loopguard.cli import build_parser; build_parser();"
        "from langgraph_loopguard.review.runner import find_review;"
        "from langgraph_loopguard.review.report import status_lines, render;"
        "print([m for m in ('langgraph.graph', 'langgraph.pregel') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "[]" == done.stdout.strip()
