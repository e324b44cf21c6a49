"""The command line: what it prints, and how it exits."""

from __future__ import annotations

from pathlib import Path

import pytest

from langgraph_loopguard.cli import main
from langgraph_loopguard.demo import command, tools
from langgraph_loopguard.demo.show import record_text
from langgraph_loopguard.demo.text import visible
from tests.demo.playing import Played

RECORD = {
    "id": "1",
    "thread_id": "PR-01",
    "outcome": "escalated",
    "created_at": "now",
    "edge": "a->b",
    "reason": {"condition": "MaxCycles", "kind": "exhausted", "message": "m", "threshold": 3, "observed": 4},
    "spent": {"seconds": 1.0, "tokens": 7, "usd": None},
    "cycles": 3,
    "reviews": [{"n": 1, "node": "a", "cycle": 1, "time": "now", "content": {"review": "clear\x1b[2J \u202e"}}],
    "fixes": [{"n": 1, "node": "b", "cycle": 1, "time": "now", "content": {"other": "\x07"}}],
    "findings": ["x", {"line": 1}],
    "diff": "-a\r\n+b\x9b",
    "question": "What now?",
    "options": [{"action": "accept", "description": "take it"}],
    "decision": None,
}


def one_line_error(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was written to stderr, having checked that it is one line."""
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    return err


def test_a_run_prints_the_table_and_where_to_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row per pull request, the totals, the database and a command, within 80 columns; exit 0."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)

    status = main(["demo", "--only", "PR-01,8", "--bound", "4"])

    out = capsys.readouterr().out
    assert status == 0
    assert "PR-01" in out
    assert "4* → 2" in out
    assert "UnchangedArtifact" in out
    assert "stopped by the demo at 4 cycles" in out
    assert "1 pull request closed by the pair; 1 escalation; 1 of 1 hopeless" in out
    assert "loopguard demo --show PR-08" in out
    assert "loopguard-demo/escalations.sqlite" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_a_cap_that_is_too_tight_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An honest pull request that is escalated was not seeded so: exit 1, and it is named."""
    status = main(["demo", "--dir", str(tmp_path / "my demo"), "--only", "15", "--max-cycles", "1"])

    out = capsys.readouterr().out
    assert status == 1
    assert "Not as seeded: PR-15 ended complete unguarded, escalated guarded." in out.replace("\n", " ")
    assert f"loopguard demo --dir '{tmp_path}/my demo' --show PR-15" in out


@pytest.mark.parametrize("named", ["PR-17", "pr-17", "17"])
def test_show_prints_the_record(played: Played, capsys: pytest.CaptureFixture[str], named: str) -> None:
    """Reason, reviews, fixes, what is open, diff and question."""
    status = main(["demo", "--dir", str(played.work.root), "--show", named])

    out = capsys.readouterr().out
    assert status == 0
    for part in ("PR-17 escalated", "reason ", "REVIEWS", "FIX ATTEMPTS", "STILL OPEN", "DIFF", "QUESTION"):
        assert part in out
    assert "$ isort" in out
    assert "+from collections import" in out
    assert "Decision: none yet" in out


def test_show_says_when_there_is_no_record(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    """A pull request that the pair has closed."""
    assert main(["demo", "--dir", str(played.work.root), "--show", "PR-01"]) == 2
    assert "PR-01 was not escalated" in one_line_error(capsys)


def test_a_record_cannot_steer_the_terminal() -> None:
    """Control and direction characters are shown as escapes."""
    text = record_text(RECORD)

    assert r"clear\x1b[2J \u202e" in text
    assert r'{"other": "\u0007"}' in text
    assert "-a\\r\n+b\\x9b" in text
    assert "7 tokens" in text


def test_visible_keeps_layout_and_letters() -> None:
    """Newlines, tabs and other alphabets stay."""
    assert visible("a\tb\nžluťoučký → 漢") == "a\tb\nžluťoučký → 漢"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--show", "PR-21"], "no pull request 'PR-21': they are PR-01 to PR-20"),
        (["--show", "x"], "no pull request 'x'"),
        (["--only", "PR-01,"], "no pull request ''"),
        (["--max-cycles", "0"], "--max-cycles 0: it must be at least 1"),
        (["--bound", "-3"], "--bound -3: it must be at least 1"),
        (["--model", "nothing"], "--model 'nothing': write provider:name"),
        (["--model", ":x"], "--model ':x': write provider:name"),
        (["--model", "no_such_provider:x"], "--model 'no_such_provider:x'"),
        (["--show", "PR-01", "--dir", "/no/such/place"], "run `loopguard demo` first"),
    ],
)
def test_errors_are_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    """They name the option and the value, exit with 2 and leave nothing behind."""
    monkeypatch.chdir(tmp_path)

    assert main(["demo", *arguments]) == 2
    assert said in one_line_error(capsys)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the extra."""
    monkeypatch.setattr(tools, "MODULES", ("no_such_tool",))

    assert main(["demo"]) == 2
    assert "pip install 'langgraph-loopguard[demo]'" in one_line_error(capsys)


def test_interrupting_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C ends with the shell's own status for it."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "require_tools", interrupted)

    assert main(["demo"]) == 130
    assert "interrupted" in one_line_error(capsys)


def test_a_command_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    """Without one, argparse says so and exits with 2."""
    with pytest.raises(SystemExit) as exit_info:
        main([])

    assert exit_info.value.code == 2
    assert "COMMAND" in capsys.readouterr().err
