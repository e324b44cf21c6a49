"""Records to fill a queue with."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta, timezone
from typing import Any

from langgraph_loopguard.queue import EscalationQueue

OPTIONS: dict[str, list[str]] = {
    "accept": ["fix"],
    "reject": [],
    "edit": ["artifact"],
    "retry": ["guidance", "extra_cycles"],
}
START = datetime(2026, 1, 1, tzinfo=timezone.utc)


def record(n: int, *, at: datetime | None = None, **more: Any) -> dict[str, Any]:
    """The nth record: a second older than the next one."""
    return {
        "id": hashlib.md5(str(n).encode()).hexdigest(),
        "thread_id": f"thread-{n}",
        "loop": "reviewer-fixer",
        "nodes": ["reviewer", "fixer"],
        "edge": "reviewer->fixer",
        "scope_key": None,
        "outcome": "escalated",
        "reason": {
            "condition": "MaxCycles",
            "kind": "exhausted",
            "threshold": 3,
            "observed": 4,
            "message": f"message {n}",
            "evidence": [],
        },
        "cycles": 3,
        "spent": {"seconds": 1.0, "tokens": 10, "usd": None},
        "diff": "",
        "reviews": [],
        "fixes": [{"n": 1, "cycle": 1, "node": "fixer", "time": "", "content": {"patch": "x"}}],
        "findings": [],
        "evidence": [],
        "best_fix": None,
        "question": f"question {n}",
        "options": [{"action": action, "description": "", "fields": fields} for action, fields in OPTIONS.items()],
        "created_at": (at or START + timedelta(seconds=n)).isoformat(),
        "decision": None,
        "schema_version": 1,
        **more,
    }


def fill(queue: EscalationQueue, count: int, **more: Any) -> list[str]:
    """Put `count` records in; return their ids, the oldest first."""
    records = [record(n, **more) for n in range(count)]
    for one in records:
        assert queue.put(one)
    return [one["id"] for one in records]
