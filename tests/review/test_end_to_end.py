"""Whole reviews of real code: a package from PyPI, with pytest, ruff and mypy as checks, reviewer and fixer."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import pytest

from langgraph_loopguard.cli import main
from tests.review.repositories import Repo

pytestmark = pytest.mark.slow

PYTHON = sys.executable

REVIEWER = """\
# A reviewer made of ruff: what it reports in the change's files is a finding, what it reports no longer is repaired.
import json, subprocess, sys

question = json.load(sys.stdin)
files = [item["file"] for item in question["scope"]["files"] if item["file"].endswith(".py")]
argv = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=B,E,F,SIM,UP",
        "--output-format=json", *files]
found = json.loads(subprocess.run(argv, capture_output=True, text=True).stdout)
found = [(item["filename"].rpartition("/src/")[2], item) for item in found]
rules = {item["code"] for _, item in found}
rechecks = [{"id": item["id"], "repaired": "no" if item["rule"] in rules else "yes"} for item in question["retained"]]
known = {item["rule"] for item in question["retained"]}
findings = [
    {"file": "src/" + name, "line": item["location"]["row"], "rule": item["code"], "message": item["message"]}
    for name, item in found if item["code"] not in known
]
print(json.dumps({"rechecks": rechecks, "findings": findings, "summary": f"ruff has {len(found)} remarks"}))
"""

TESTS = """\
from inifiles import IniConfig


def test_sections():
    ini = IniConfig("x.ini", data="[one]\\na = 1\\n[two]\\nb = 2\\n")
    assert [section.name for section in ini] == ["one", "two"]
    assert ini["one"]["a"] == "1"


def test_merge():
    from inifiles.merge import merge

    assert merge("[one]\\na = 1\\n", "[one]\\na = 2\\n") == {"one": {"a": "2"}}
"""

MERGE = """\
import os
from typing import Dict

from inifiles import IniConfig


def merge(*texts: str) -> Dict[str, Dict[str, str]]:
    out: Dict[str, Dict[str, str]] = {}
    for text in texts:
        for section in IniConfig("merge", data=text):
            out.setdefault(section.name, {}).update(section.items())
    return out
"""

PYTEST = f"tests={PYTHON} -m pytest -q -p no:cacheprovider -p no:asyncio tests"
MYPY = f"types={PYTHON} -m mypy --output=json --cache-dir=/dev/null --follow-imports=silent src/inifiles/merge.py"
RUFF = f"lint={PYTHON} -m ruff check --isolated --no-cache --select=F --output-format=json src"


@pytest.fixture
def package(tmp_path: Path) -> Repo:
    """The package `iniconfig` as it is on PyPI, and a branch that adds a module to it.

    It is given another name, because pytest itself has imported the one that is installed.
    """
    spec = importlib.util.find_spec("iniconfig")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    repo = Repo(tmp_path / "iniconfig")
    source = repo.path / "src/inifiles"
    shutil.copytree(spec.submodule_search_locations[0], source, ignore=shutil.ignore_patterns("__pycache__"))
    for path in source.glob("*.py"):
        path.write_text(path.read_text().replace("iniconfig", "inifiles"))
    repo.write(
        {
            "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n[tool.mypy]\nmypy_path = "src"\n',
            "tests/test_ini.py": TESTS.partition("\n\ndef test_merge")[0] + "\n",
        }
    )
    repo.commit("as released")
    repo.git("checkout", "--quiet", "-b", "merge")
    repo.commit("add merge", {"src/inifiles/merge.py": MERGE, "tests/test_ini.py": TESTS})
    return repo


def review(package: Repo, *options: str) -> int:
    reviewer = package.path.parent / "reviewer.py"
    reviewer.write_text(REVIEWER)
    argv = ["review", "run", str(package.path), "--base", "main", "--dir", str(package.path.parent / "home")]
    return main([*argv, "--reviewer", f"{PYTHON} {reviewer}", "--goal", "merge several ini files", *options])


def report(package: Repo, capsys: pytest.CaptureFixture[str], form: str = "text") -> str:
    capsys.readouterr()
    main(["review", "report", str(package.path), "--dir", str(package.path.parent / "home"), "--format", form])
    return capsys.readouterr().out


def test_one_ends_complete(package: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    fixer = f"{PYTHON} -m ruff check --isolated --no-cache --select=F,UP --fix --exit-zero src/inifiles/merge.py"
    checks = [item for check in (PYTEST, MYPY, RUFF) for item in ("--check", check)]
    assert review(package, *checks, "--fixer", fixer) == 10
    text = report(package, capsys)
    for words in (
        "Review of merge: complete",
        "Whether the change is accepted is a person's decision",
        "goal: merge several ini files",
        "pass        tests",
        "pass        types",
        "pass        lint",
        "src/inifiles/merge.py:1: warning [F401]: `os` imported but unused",
        "closed in round 2: the check 'lint' does not report it any more (pass)",
        "closed in round 2: the reviewer says that it is repaired",
        "2. recorded",
        "-import os",
    ):
        assert words in text, text
    data = json.loads(report(package, capsys, "json"))
    commit = package.git("rev-parse", "HEAD")
    assert {item["source"]["commit"] for item in data["evidence"]} == {commit}
    assert package.git("status", "--porcelain") == ""


def test_one_ends_blocked(package: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    broken = f"cover={PYTHON} -m pytest --no-such-option tests"
    assert review(package, "--check", PYTEST, "--check", broken) == 11
    text = report(package, capsys)
    for words in (
        "Review of merge: blocked",
        "it waits for something that the system can obtain",
        "Needed: that 'cover' can run: exit status 4: it could not do its work",
        "unavailable cover",
        "no-such-option",
        "attempts: 0 of 3 used",
    ):
        assert words in text, text


def test_one_ends_escalated(package: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    files = "src/inifiles/merge.py"
    package.commit("modern", {files: "xs = [1, 2]\nn = 0\nrest = xs[n + 1 :]\n"})
    black = f"format:black={PYTHON} -m black --check --quiet {files}"
    yapf = f"format:yapf={PYTHON} -m yapf --diff --style=pep8 {files}"
    assert review(package, "--check", black, "--check", yapf) == 11
    text = report(package, capsys)
    for words in (
        "Review of merge: escalated",
        "it waits for a person",
        "Decision asked for: Which of the two counts about 'format': 'black' or 'yapf'?",
        "pass        black",
        "fail        yapf",
    ):
        assert words in text, text
