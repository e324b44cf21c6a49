"""The tools are real, and they disagree for real."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from langgraph_loopguard.demo import tools
from langgraph_loopguard.demo.catalogue import CATALOGUE
from langgraph_loopguard.demo.errors import DemoError
from langgraph_loopguard.demo.findings import from_diff, from_pycodestyle, from_ruff
from langgraph_loopguard.demo.hopeless import NO_ROOM, NOBODY_KNOWS, OPERATOR_SIDES, THREE_IN_A_RING, TWO_FORMATTERS
from langgraph_loopguard.demo.pulls import PullRequest
from langgraph_loopguard.demo.shell import Shell
from langgraph_loopguard.demo.tools import Command

FILE = "lib/sample.py"
BASE = '"""A module."""\n\nimport os\n\nprint(os.name)\n'

Opened = Callable[[PullRequest], tuple[Shell, Path]]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Make a folder with a pull request's file in it."""

    def make(pull: PullRequest) -> tuple[Shell, Path]:
        for name, text in tools.CONFIG_FILES.items():
            (tmp_path / name).write_text(text)
        path = tmp_path / FILE
        path.parent.mkdir()
        path.write_text(pull.edit(BASE))
        return Shell(tmp_path), path

    return make


def texts(shell: Shell, path: Path, *commands: Command) -> list[str]:
    """Return the file after each command."""
    after = []
    for command in commands:
        shell.fix(command, [FILE])
        after.append(path.read_text())
    return after


def test_two_formatters_undo_each_other(opened: Opened) -> None:
    """A-B-A-B, to the letter."""
    shell, path = opened(TWO_FORMATTERS)

    a, b, *more = texts(shell, path, *(tools.BLACK.fixes + tools.YAPF.fixes) * 2)

    assert a != b
    assert [a, b] == more


def test_one_tool_undoes_itself(opened: Opened) -> None:
    """The rules for the two sides of an operator have autopep8 move them back and forth."""
    shell, path = opened(OPERATOR_SIDES)

    a, b, *more = texts(shell, path, *(tools.autopep8("W503"), tools.autopep8("W504")) * 2)

    assert a != b
    assert [a, b] == more


def test_a_ring_never_settles(opened: Opened) -> None:
    """The sorter puts back what the formatter has laid out."""
    shell, path = opened(THREE_IN_A_RING)
    shell.fix(tools.ISORT_ALONE.fixes[0], [FILE])

    a, b, *more = texts(shell, path, *(tools.BLACK.fixes + tools.ISORT_ALONE.fixes) * 2)

    assert a != b
    assert [a, b] == more


def test_no_tool_fixes_an_undefined_name(opened: Opened) -> None:
    """Fixing changes nothing, and the finding stays."""
    shell, path = opened(NOBODY_KNOWS)
    before = path.read_text()

    assert [before] == texts(shell, path, tools.UNDEFINED.fix(0, "F821"))
    assert [found["rule"] for found in shell.find([tools.UNDEFINED], [FILE])] == ["F821"]


def test_different_attempts_leave_the_long_line(opened: Opened) -> None:
    """Each attempt gives another file, and none is shorter where it counts."""
    shell, path = opened(NO_ROOM)

    after = texts(shell, path, *(tools.TOO_LONG.fix(attempt, "E501") for attempt in range(3)))

    assert [found["rule"] for found in shell.find([tools.TOO_LONG], [FILE])] == ["E501"]
    assert after[0] != after[1]


def test_runs_are_counted(opened: Opened) -> None:
    """One for each process."""
    shell, _ = opened(TWO_FORMATTERS)

    shell.find([tools.BLACK, tools.YAPF], [FILE])
    shell.fix(tools.BLACK.fixes[0], [FILE])

    assert shell.runs == 3


def test_settings_of_the_user_do_not_matter(opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a home directory with settings, nor variables."""
    shell, _ = opened(CATALOGUE[9])
    home = tmp_path / "home" / ".config"
    home.mkdir(parents=True)
    (home / "pycodestyle").write_text("[pycodestyle]\nignore = W2\n")
    monkeypatch.setenv("HOME", str(home.parent))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("FORCE_COLOR", "1")

    assert {"W291"} == {found["rule"] for found in shell.find([tools.BLANKS], [FILE])}


def test_a_linter_finds_that_a_file_is_not_python(opened: Opened) -> None:
    """What it does not understand is a finding."""
    shell, path = opened(TWO_FORMATTERS)
    path.write_text("def (:\n")

    assert shell.find([tools.UNUSED], [FILE])


@pytest.mark.parametrize("check", [tools.BLACK, tools.YAPF], ids=lambda check: check.label)
def test_a_check_that_fails_is_not_a_check_that_passes(opened: Opened, check: tools.Check) -> None:
    """A formatter that cannot read the file is an error in one line."""
    shell, path = opened(TWO_FORMATTERS)
    path.write_text("def (:\n")

    with pytest.raises(DemoError) as failed:
        shell.find([check], [FILE])

    assert str(failed.value).startswith(f"{check.command[0]} failed on {FILE}")
    assert len(str(failed.value).splitlines()) == 1


def test_a_fix_that_fails_is_one_line(opened: Opened) -> None:
    """The tool's own words, its exit status and the file."""
    shell, path = opened(TWO_FORMATTERS)
    path.write_text("def (:\n")

    with pytest.raises(DemoError, match=r"black failed on lib/sample\.py \(exit 123\)"):
        shell.fix(("black", "--config", "pyproject.toml"), [FILE])


def test_missing_tools_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setattr(tools, "MODULES", ("no_such_tool", "ruff"))

    with pytest.raises(DemoError, match=r"needs no_such_tool: pip install 'langgraph-loopguard\[demo\]'"):
        tools.require_tools()


@pytest.mark.parametrize("number", CATALOGUE)
def test_every_edit_leaves_python(number: int) -> None:
    """What a pull request adds parses, after a docstring, after imports and in an empty module."""
    for base in (BASE, '"""A module."""\n', '"""A module."""\n\nfrom __future__ import annotations\n\nimport os\n', ""):
        ast.parse(CATALOGUE[number].edit(base))


def test_imports_go_after_the_future() -> None:
    """`__future__` stays first."""
    base = '"""A module."""\n\nfrom __future__ import annotations\n\nx = 1\n'

    lines = CATALOGUE[1].edit(base).splitlines()

    assert lines[2:5] == ["from __future__ import annotations", "", "import itertools"]


def test_ruff_findings() -> None:
    """File, line, rule and message."""
    output = (
        '[{"filename": "/x/lib/a.py", "code": "F401", "message": "unused", "location": {"row": 3, "column": 8}},'
        ' {"filename": "/x/lib/a.py", "code": null, "message": "not Python", "location": {"row": 4, "column": 1}}]'
    )

    found = from_ruff("ruff F401", output)

    assert [item["id"] for item in found] == ["F401 lib/a.py:3:8", "syntax lib/a.py:4:1"]


def test_pycodestyle_findings() -> None:
    """Lines that are no findings are passed over."""
    found = from_pycodestyle("pycodestyle W291", "lib/a.py:12:5: W291 trailing whitespace\nsomething else\n")

    assert [(item["file"], item["line"], item["rule"], item["message"]) for item in found] == [
        ("lib/a.py", 12, "W291", "trailing whitespace")
    ]


def test_diff_findings() -> None:
    """One for each hunk, at the first line that would change; content that looks like a header is content."""
    output = (
        "--- lib/a.py\t(original)\n+++ lib/a.py\t(reformatted)\n@@ -1,3 +1,3 @@\n one\n---- x\n+++ y\n"
        "@@ -9,2 +9,3 @@\n nine\n+\n ten\n"
    )

    found = from_diff("black", output)

    assert [(item["id"], item["message"]) for item in found] == [
        ("black lib/a.py:2", "would reformat `--- x`"),
        ("black lib/a.py:10", "would add blank lines"),
    ]
