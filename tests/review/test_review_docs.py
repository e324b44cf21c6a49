"""The review's page and docstrings run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import langgraph_loopguard.review
from tests.review.repositories import Repo

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/review.md"


def blocks(text: str, language: str) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(code) for _, code in found]


def test_the_pages_commands_run(tmp_path: Path) -> None:
    """The commands of the page, one after the other, with its own reviewer on a change that has its trouble."""
    (script,) = blocks(PAGE.read_text(), "py")
    (tmp_path / "reviewer.py").write_text(script)
    repo = Repo(tmp_path / "repo")
    test = "import unittest\n\n\nclass Test(unittest.TestCase):\n    def test(self):\n        pass\n"
    repo.commit(files={"test_calc.py": test})
    repo.git("checkout", "--quiet", "-b", "feature")
    repo.commit(files={"calc.py": "def calc(text):\n    return eval(text)\n"})
    (session,) = blocks(PAGE.read_text(), "console")
    commands = [line[2:] for line in session.splitlines() if line.startswith("$ ")]
    assert len(commands) == 3
    here = {
        "HOME": str(tmp_path),
        "LOOPGUARD_HOME": str(tmp_path / "home"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }

    def run(command: str) -> tuple[int, str]:
        argv = shlex.split(command.partition(" > ")[0].replace("$HOME", str(tmp_path)))
        argv[:1] = [sys.executable, "-m", "langgraph_loopguard.cli"]
        done = subprocess.run(argv, cwd=repo.path, env=os.environ | here, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    for command in commands:
        status, out = run(command)
        assert status == 10, out
        assert "It runs any text as code." in out
    repo.commit(files={"calc.py": "def calc(text):\n    return float(text)\n"})
    status, out = run(commands[0])
    assert (status, out.partition("\n")[0]) == (10, "feature: complete")


def test_every_option_of_the_page_is_one() -> None:
    """The page names no option that the command does not have."""
    argv = [sys.executable, "-m", "langgraph_loopguard.cli", "review", "run", "--help"]
    help_text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout + "--format"
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE.read_text()))
    assert {option for option in named if option not in help_text} == set()


@pytest.mark.parametrize("name", langgraph_loopguard.review.__all__)
def test_public_names_are_documented_and_their_examples_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    doc = getattr(langgraph_loopguard.review, name).__doc__
    assert doc
    for code in blocks(doc, "python"):
        exec(compile(code, name, "exec"), {"__name__": name})
