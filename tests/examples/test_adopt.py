"""The five wirings of `examples/adopt`: what each does before and after, and what the audit says of both."""

from __future__ import annotations

import difflib
import subprocess
import sys
from pathlib import Path

import pytest

from langgraph_loopguard.graph.audit.load import audit_target
from langgraph_loopguard.graph.audit.source import audit_source

ADOPT = Path(__file__).parents[2] / "examples" / "adopt"

LIMIT = "recursion limit: 50 steps, and nothing to show"
CAP = "cycle 4 was asked for, the cap is 3"

WIRINGS = {
    "dict_map": (
        "missing",
        LIMIT,
        ["outcome: escalated: the last 2 attempts changed nothing", "the patch: return sum"],
    ),
    "literal_router": ("missing", LIMIT, [f"outcome: escalated: {CAP}", "the last remark: 'A"]),
    "command": ("missing", LIMIT, ["outcome: escalated: executor has written the same 2 times", "the log:"]),
    "score_threshold": (
        "weak",
        "verdict: pass with 'answer 4', score 6",
        ["outcome: escalated, verdict: fail", "the scores: 4 7 6 6"],
    ),
    "reflection": ("weak", "the end: Draft 4.", [f"outcome: escalated: {CAP}", "the end: Draft 4."]),
}
"""Verdict on the cycle before; what it prints before; what it prints after."""


def printed(file: Path) -> list[str]:
    command = [sys.executable, "-W", "error", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert 0 == done.returncode, done.stderr
    return done.stdout.splitlines()


def test_every_file_is_listed() -> None:
    """No file is without a test, and the README names each."""
    names = {f"{name}_{when}.py" for name in WIRINGS for when in ("before", "after")}
    assert {file.name for file in ADOPT.glob("*.py")} == names
    readme = (ADOPT / "README.md").read_text()
    assert [] == [name for name in names if f"({name})" not in readme]


@pytest.mark.parametrize("name", sorted(WIRINGS))
def test_before_and_after(name: str) -> None:
    """Before, nothing or something else than a guard ends it; after, a person gets the record."""
    _, before, after = WIRINGS[name]
    assert [before] == printed(ADOPT / f"{name}_before.py")
    lines = printed(ADOPT / f"{name}_after.py")
    assert [True] * len(after) == [line.startswith(said) for line, said in zip(lines, after, strict=False)]


@pytest.mark.parametrize("name", sorted(WIRINGS))
def test_what_the_audit_says(name: str) -> None:
    """One cycle, open before and guarded after; the source says the same as the graph."""
    for when, verdict in (("before", WIRINGS[name][0]), ("after", "guarded")):
        file = ADOPT / f"{name}_{when}.py"
        for report in (audit_target(f"{file}:graph"), audit_source(file)):
            assert [verdict] == [cycle.verdict for cycle in report.cycles]


@pytest.mark.parametrize("name", sorted(WIRINGS))
def test_little_has_changed(name: str) -> None:
    """A guard is adopted in fewer than sixty changed lines."""
    before, after = ((ADOPT / f"{name}_{when}.py").read_text().splitlines() for when in ("before", "after"))
    changed = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
    assert 0 < len(changed) < 60
