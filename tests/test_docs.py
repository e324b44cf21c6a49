"""Every example in the README and in public docstrings runs."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

import langgraph_loopguard
import langgraph_loopguard.report

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```", re.DOTALL | re.MULTILINE)


def _blocks(text: str) -> list[str]:
    return [textwrap.dedent(code) for _, code in BLOCK.findall(text)]


def _documented() -> list[str]:
    return [
        name
        for name in langgraph_loopguard.__all__
        if "```python" in (getattr(langgraph_loopguard, name).__doc__ or "")
    ]


def test_readme_runs_from_top_to_bottom() -> None:
    """The README's blocks are one session."""
    code = "\n".join(_blocks((ROOT / "README.md").read_text()))
    assert "guard_loop(" in code
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_pages_run_from_top_to_bottom(page: Path) -> None:
    """A page's blocks are one session."""
    code = "\n".join(_blocks(page.read_text()))
    exec(compile(code, page.name, "exec"), {"__name__": "page"})


@pytest.mark.parametrize("name", ["report", "tune"])
def test_examples_of_reports_run(name: str) -> None:
    """Those of the functions that are not in the package itself."""
    (code,) = _blocks(getattr(langgraph_loopguard.report, name).__doc__ or "")
    exec(compile(code, name, "exec"), {"__name__": name})


@pytest.mark.parametrize("name", _documented())
def test_docstring_examples_run(name: str) -> None:
    """An example in a public docstring stands by itself."""
    for code in _blocks(getattr(langgraph_loopguard, name).__doc__):
        exec(compile(code, name, "exec"), {"__name__": name})


def test_all_public_names_are_documented() -> None:
    """Each exported name has a docstring of its own."""
    bare = [name for name in langgraph_loopguard.__all__ if not getattr(langgraph_loopguard, name).__doc__]
    reports = langgraph_loopguard.report
    bare += [name for name in reports.__all__ if not getattr(reports, name).__doc__]
    assert bare == []


def test_readme_names_the_two_commands() -> None:
    """A newcomer finds how to see it and how to test it, within 120 lines."""
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text
    assert len(text.splitlines()) <= 120
