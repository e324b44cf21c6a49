"""What one event costs: `observe` at 1 kB, with all conditions of a preset on, and whether it grows with the cycles."""

from __future__ import annotations

import random
import time
from typing import Any

from langgraph_loopguard import LoopGuard

WORDS = """
review code change patch function returns value None instead raising error when input empty the a of to in is that this
should check before please test add missing handle case file module class method call list dict string PaintApp main.py
W123 3 number user order request server client token header cursor index upload session
""".split()  # noqa: SIM905
EVENTS = 1000
BATCH = 50
ROUNDS = 7


def texts(size: int) -> list[str]:
    """Honest texts: no two are alike enough to trip anything."""
    r = random.Random(size)
    return [" ".join(r.choices(WORDS, k=size // 4))[:size] for _ in range(EVENTS)]


def event_cost(preset: Any, size: int = 1000, before: int = 0) -> float:
    """Microseconds per event, after a number of events: the best batch of 50, as others may use the machine too."""
    payloads = texts(size)
    best = float("inf")
    for _ in range(ROUNDS):
        guard = LoopGuard("reviewer", "fixer", max_cycles=10**9, preset=preset)
        ledger: Any = None
        for number in range(before):
            ledger, _ = guard.observe(
                ledger, guard.nodes[number % 2], payloads[number % EVENTS], measure=10**7 - number
            )
        began = time.perf_counter()
        for number, payload in enumerate(payloads, 1):
            left = 10**6 - number // 4  # a new low every other cycle
            ledger, verdict = guard.observe(ledger, guard.nodes[number % 2], payload, measure=left)
            if number % BATCH == 0:
                now = time.perf_counter()
                best, began = min(best, (now - began) / BATCH * 1e6), now
        if verdict.tripped:
            msg = f"the honest run must not trip: {verdict.reason}"
            raise AssertionError(msg)
    return best
