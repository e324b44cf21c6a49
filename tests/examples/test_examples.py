"""Every example runs in a process of its own, with warnings as errors, and prints what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

CAP = "cycle 4 was asked for, the cap is 3"

LINES = {
    "quickstart": [
        "outcome: escalated",
        f"reason: {CAP}",
        "waiting: 1 question",
        "record: 4 reviews, 3 fixes",
        "+++ attempt 3",
        "+    return x or DEFAULT_3",
        "after retry: 4 cycles, waiting: 1",
        "decision: accept",
        "    return x or 0",
        "next: ()",
    ],
    "explicit_wiring": [
        "outcome: escalated",
        "edge: fixer->reviewer",
        "reason: UnchangedArtifact (stalled): the last 2 attempts changed nothing",
        "cycles: 3",
    ],
    "command_handoffs": [
        "fixer: now with tabs",
        "reviewer: please use spaces",
        "outcome: escalated",
        "reason: Oscillation: reviewer repeats a cycle of 2 emissions, 2 times over",
        "cycles: 3 of at most 20",
    ],
    "ring_of_three": [
        "path: planner coder tester planner coder tester coder tester coder tester",
        "outcome: escalated",
        "cycles: 4",
        "edge: tester->coder",
    ],
    "scope_keys": [
        "done: easy.py hard.py",
        """cycles: {'"easy.py"': 1, '"hard.py"': 3, '"hopeless.py"': 3, '"worse.py"': 3}""",
        f"waiting: hopeless.py: {CAP}",
        f"waiting: worse.py: {CAP}",
        "decided: {'hopeless.py': 'reject', 'worse.py': 'reject'}",
    ],
    "agents_as_nodes": [
        "outcome: escalated",
        "reason: TokenBudget: 3000 tokens are spent, the budget is 3000",
        "spent: 3000 tokens in 3 cycles",
        "fix 3: 600 tokens: I have handled it. (3)",
    ],
    "agent_tools_edge": [
        "outcome: escalated",
        f"reason: {CAP}",
        "  ai: Let me run the tests. call-3",
        "  tool: Not run: the loop guard stopped the loop.",
        "next turn: Sorry. The tests have failed all the time. (1)",
    ],
    "swarm": [
        "outcome: escalated",
        "edge: billing->support",
        "handoffs: {'billing->support': 3, 'support->billing': 3}",
        "waiting: 1 question",
        "decision: reject by ada",
    ],
    "supervisor": [
        "outcome: escalated",
        "edge: supervisor->researcher",
        "handoffs: {'supervisor->researcher': 3, 'researcher->supervisor': 3}",
        "report 3: Report 3: I have found nothing new.",
    ],
    "functional_api": [
        f"first: {{'why': '{CAP}', 'patch': 'return x or 0 or 0 or 0'",
        "retry: {'why': 'cycle 6 was asked for, the cap is 5', 'patch': 'return x or 0 or 0 or 0 or 0 or 0'",
        "accept: return x or 0 or 0 or 0 or 0 or 0",
        "next input: {'why': 'cycle 6 was asked for, the cap is 5', 'patch': 'return y'",
    ],
}
"""Beginnings of lines that each example prints, in this order."""

LET_PASS = {"supervisor": "ignore:create_react_agent has been moved:DeprecationWarning"}
"""Warnings of other packages: langgraph-supervisor stands on `create_react_agent`, which LangGraph has deprecated."""


def test_every_example_is_listed() -> None:
    """No example is without a test, and the README of the examples names each."""
    files = {path.stem for path in EXAMPLES.glob("*.py")}
    assert set(LINES) == files
    readme = (EXAMPLES / "README.md").read_text()
    assert [] == [name for name in files if f"]({name}.py)" not in readme]


@pytest.mark.parametrize("name", sorted(LINES))
def test_example_prints_what_it_promises(name: str) -> None:
    """The example ends well and says the expected things in the expected order."""
    warnings = ["-W", "error"] + (["-W", LET_PASS[name]] if name in LET_PASS else [])
    done = subprocess.run(
        [sys.executable, *warnings, str(EXAMPLES / f"{name}.py")],
        cwd=EXAMPLES,
        env={**os.environ, "PYTHONPATH": str(ROOT), "LANGSMITH_TRACING": "false"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert 0 == done.returncode, done.stderr
    printed = iter(done.stdout.splitlines())
    missing = [line for line in LINES[name] if not any(found.startswith(line) for found in printed)]
    assert [] == missing, done.stdout
