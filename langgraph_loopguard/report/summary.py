"""What many loops did together, summed up one row at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from langgraph_loopguard.core.text import html_table
from langgraph_loopguard.report.rows import ENDS, Cost, LoopRun

THRESHOLD = 3
"""Cycles that a loop may take before it counts as going on too long: the default cap."""


@dataclass(slots=True)
class Summary:
    """Sums over loops. It holds no rows, so its size does not grow with them.

    Attributes:
        threshold: Cycles beyond which a loop should have ended or been escalated.
        loops: How many there were.
        outcomes: How many of them ended how.
        conditions: How many were stopped by which condition, or would have been.
        decisions: How many were decided how.
        cycles: How many took how many cycles.
        beyond: Loops that passed the threshold and had neither ended nor been escalated by then.
        would_stop: Loops that a watching guard would have stopped.
        would_stop_complete: Those of them that came to an end by themselves afterwards: false alarms.
        before: What was spent until the first stop (real, or what would have been one), by all loops.
        after: What was spent after it.
    """

    threshold: int = THRESHOLD
    loops: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    conditions: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)
    cycles: Counter[int] = field(default_factory=Counter)
    beyond: int = 0
    would_stop: int = 0
    would_stop_complete: int = 0
    before: Cost = field(default_factory=Cost)
    after: Cost = field(default_factory=Cost)

    def __post_init__(self) -> None:
        if not isinstance(self.threshold, int) or isinstance(self.threshold, bool) or self.threshold < 0:
            msg = f"threshold must be a number of cycles, 0 or more, got {self.threshold!r}"
            raise ValueError(msg)

    def add(self, row: LoopRun) -> None:
        """Add one loop."""
        self.loops += 1
        self.outcomes[row.outcome] += 1
        self.cycles[row.spent.cycles] += 1
        self.beyond += row.beyond(self.threshold)
        if row.condition is not None:
            self.conditions[row.condition] += 1
        if row.decision is not None:
            self.decisions[row.decision] += 1
        if row.observed:
            self.would_stop += 1
            self.would_stop_complete += row.outcome == "complete"
        self.before = _plus(self.before, row.before)
        self.after = _plus(self.after, row.after)

    @property
    def beyond_share(self) -> float | None:
        """Share of all loops that passed the threshold without an end or an escalation; `None` without loops."""
        return self._share(self.beyond)

    @property
    def escalation_rate(self) -> float | None:
        """Share of all loops that a guard stopped (`escalated` or `blocked`); `None` without loops."""
        return self._share(self.outcomes["escalated"] + self.outcomes["blocked"])

    def to_json(self) -> dict[str, Any]:
        """Return the sums as plain JSON."""
        return {
            "loops": self.loops,
            "outcomes": {end: self.outcomes[end] for end in ENDS},
            "threshold": self.threshold,
            "beyond": self.beyond,
            "beyond_share": self.beyond_share,
            "escalation_rate": self.escalation_rate,
            "would_stop": self.would_stop,
            "would_stop_complete": self.would_stop_complete,
            "conditions": dict(self.conditions.most_common()),
            "decisions": dict(self.decisions.most_common()),
            "cycles": {str(cycles): count for cycles, count in sorted(self.cycles.items())},
            "before": _cost_json(self.before),
            "after": _cost_json(self.after),
        }

    def lines(self) -> list[tuple[str, str]]:
        """Return the sums as pairs of a name and a text, for tables."""
        ends = ", ".join(f"{self.outcomes[end]:,} {end}" for end in ENDS if self.outcomes[end])
        lines = [("loops", f"{self.loops:,}" + (f": {ends}" if ends else ""))]
        lines += [("escalation rate", _percent(self.escalation_rate))]
        name = f"beyond {self.threshold} cycles without an end or an escalation"
        lines += [(name, f"{_percent(self.beyond_share)} ({self.beyond:,})")]
        if self.would_stop:
            late = f"{self.would_stop:,}; {self.would_stop_complete:,} of them came to an end by themselves"
            lines += [("a watching guard would have stopped", late)]
        if self.conditions:
            lines += [("stopped by", ", ".join(f"{name} {n:,}" for name, n in self.conditions.most_common()))]
        if self.decisions:
            lines += [("decisions", ", ".join(f"{name} {n:,}" for name, n in self.decisions.most_common()))]
        lines += [("cost before the first stop", cost_text(self.before))]
        lines += [("cost after it", cost_text(self.after))]
        return lines

    def _share(self, count: int) -> float | None:
        return count / self.loops if self.loops else None

    def _repr_html_(self) -> str:
        return html_table("Loops", self.lines())


def summarise(rows: Iterable[LoopRun], threshold: int = THRESHOLD) -> Summary:
    """Sum up rows, one at a time.

    Raises:
        ValueError: `threshold` is no number of cycles.
    """
    summary = Summary(threshold)
    for row in rows:
        summary.add(row)
    return summary


def cost_text(cost: Cost) -> str:
    """Return a cost in words: cycles, seconds, tokens, and dollars where they are known."""
    parts = [f"{cost.cycles:,} cycle{'s' * (cost.cycles != 1)}", f"{cost.seconds:,.1f} s", f"{cost.tokens:,} tokens"]
    return ", ".join(parts if cost.usd is None else [*parts, f"${cost.usd:,.2f}"])


def _plus(one: Cost, other: Cost) -> Cost:
    usd = one.usd if other.usd is None else other.usd + (one.usd or 0.0)
    return Cost(
        cycles=one.cycles + other.cycles,
        seconds=one.seconds + other.seconds,
        tokens=one.tokens + other.tokens,
        usd=usd,
    )


def _cost_json(cost: Cost) -> dict[str, Any]:
    return {"cycles": cost.cycles, "seconds": round(cost.seconds, 6), "tokens": cost.tokens, "usd": cost.usd}


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"
