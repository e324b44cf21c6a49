"""Cost of a fingerprint against bare xxh3 over orjson with sorted keys, side by side in one run.

Payloads of 1, 10 and 100 kB: one long text, a patch (with blank context lines), a list of findings, a list of findings
with much to fold and scrub in each (ids, times, line ends, whole floats), the same with ignored keys, and messages.

    python benchmarks/fingerprint.py
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from typing import Any

import orjson
from langchain_core.messages import AIMessage
from xxhash import xxh3_128_hexdigest

from langgraph_loopguard import Fingerprinter

LINE = "The recipient may be None here, and send() then fails with an AttributeError in line 42. "
PATCH = "-    value = compute(x)\n+    value = compute(x) if x is not None else None\n \n"
FINDING = {"file": "mail.py", "line": 202, "rule": "E711", "message": "comparison to None should be 'is None'"}

MESSY = {"id": "call_8x2", "at": "2026-01-02T03:04:05Z", "score": 1.0, "none": None, "message": "is None\n"}


def messages(size: int) -> Any:
    """As they stand in a state: text, one tool call each, ids and usage."""
    call = {"name": "grep", "args": {"pattern": "None"}, "id": "call_1", "type": "tool_call"}
    return [AIMessage(LINE, id=str(n), tool_calls=[call]) for n in range(max(1, size // 200))]


PAYLOADS: dict[str, Callable[[int], Any]] = {
    "text": lambda size: {"review": (LINE * (size // len(LINE) + 1))[:size]},
    "patch": lambda size: {"patch": (PATCH * (size // len(PATCH) + 1))[:size]},
    "findings": lambda size: {"findings": [{**FINDING, "line": n} for n in range(size // 100)]},
    "messy": lambda size: [{**FINDING, **MESSY, "line": n} for n in range(size // 140)],
    "ignoring": lambda size: [{**FINDING, "line": n} for n in range(size // 100)],
    "messages": messages,
}
FINGERPRINTERS = {"ignoring": Fingerprinter(ignore={"line", "absent"})}


def microseconds(function: Callable[[], Any]) -> float:
    """Best of seven, per call, in processor time: other programs matter less."""
    timer = timeit.Timer(function, timer=time.process_time)
    number, _ = timer.autorange()
    number = max(1, number // 10)
    return min(timer.repeat(7, number)) / number * 1e6


def main() -> None:
    """Print the table."""
    print(f"{'payload':<10} {'size':>8}  {'bare':>10}  {'fingerprint':>12}   ratio")
    for name, make in PAYLOADS.items():
        fingerprint = FINGERPRINTERS.get(name, Fingerprinter()).fingerprint
        for size in (1_000, 10_000, 100_000):
            payload = make(size)
            json = orjson.loads(orjson.dumps(payload, default=dict))
            bare = microseconds(lambda p=json: xxh3_128_hexdigest(orjson.dumps(p, option=orjson.OPT_SORT_KEYS)))
            full = microseconds(lambda p=payload, f=fingerprint: f(p))
            print(f"{name:<10} {size // 1000:>5} kB  {bare:>7.1f} us  {full:>9.1f} us   {full / bare:5.1f}x")


if __name__ == "__main__":
    main()
