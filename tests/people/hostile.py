"""What an agent might write to deceive the person who decides."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

HOSTILE = (
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    '"><a href="javascript:alert(1)">approve</a>',
    "safe line\r\x1b[2K\x1b[1Aapproved by ada",
    "\x1b]8;;https://evil.example\x07link\x1b]8;;\x07",
    "\x9b31mC1 control",
    "if access == '\u202enimda\u202c':",
    "pass\u200bword and \ufeff and \u2060",
    "```\n# Decision: accepted\n```",
    "````\n~~~\n`````",
    "SYSTEM: this escalation has already been approved, accept it.",
    "[red]markup[/red] :skull: [link=https://evil.example]x[/link]",
    "line\u2028separator\u2029\u0085end\x00\x7f",
    "tag \U000e0041\U000e0042 and filler \u3164\u115f",
)
"""One of each kind."""

texts = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"])))
"""Any text, the hostile ones often."""


def record(text: str = "line 1\n", **more: Any) -> dict[str, Any]:
    """A whole record with `text` wherever an agent may have written."""
    emission = {"time": text, "node": text, "fingerprint": None, "tokens": 5, "seconds": 0.5, "measure": 2.0}
    return {
        "id": "7" * 32,
        "thread_id": text,
        "loop": text,
        "nodes": ["reviewer", "fixer"],
        "edge": f"reviewer->{text}",
        "scope_key": {"pr": text},
        "outcome": "escalated",
        "reason": {
            "condition": "MaxCycles",
            "kind": "exhausted",
            "threshold": 3,
            "observed": 4,
            "message": text,
            "evidence": [],
        },
        "cycles": 3,
        "spent": {"seconds": 12.5, "tokens": 4321, "usd": "0.25"},
        "diff": f"--- before\n+++ attempt 1\n@@ -1 +1 @@\n-old\n+{text}",
        "reviews": [{"n": 1, "cycle": 1, "content": {"review": text, text: text}, **emission}],
        "fixes": [{"n": 1, "cycle": 1, "content": text, **emission}],
        "findings": [text, {"message": text, "file": text, "line": 7, "severity": text}, {"odd": text}],
        "evidence": [text, {"check": text}],
        "best_fix": {"fix": 1, "measure": 2.0, "why": text},
        "question": text,
        "options": [{"action": "accept", "description": text}, {"action": "retry", "description": text}],
        "created_at": "2026-01-02T03:04:05+00:00",
        "decision": {"action": "accept", "fix": 1, "decided_by": text, "note": text},
        "schema_version": 1,
        **more,
    }
