"""How many cycles loops need: shares with intervals, by cycle, from loops of which many were cut off.

A loop that its cap stopped says only that it needs more cycles than that: it is *censored*. A loop that another
condition stopped (a repeat, a budget) would be stopped there under any cap: that is an ending of its own, which
competes with the one hoped for. So the share that comes to an end by itself is the Aalen-Johansen estimate, which is
one minus Kaplan-Meier where nothing but a cap stops loops; both by statsmodels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from langgraph_loopguard.core.conditions import MaxCycles, StepReserve
from langgraph_loopguard.report.errors import need
from langgraph_loopguard.report.rows import LoopRun

Ending = Literal["censored", "resolved", "stopped"]
"""How a loop's count of cycles is to be read.

- `censored`: it needs more cycles than these (a cap stopped it), or nobody knows (it still runs, its guard broke).
- `resolved`: it came to an end by itself after so many.
- `stopped`: a condition other than the cap stopped it there, as it would have under any cap.
"""

ENDINGS: tuple[Ending, ...] = ("censored", "resolved", "stopped")


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence limits."""

    estimate: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        """Return plain JSON."""
        return {"estimate": self.estimate, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleStep:
    """What is known of one cycle.

    Attributes:
        cycle: Its number; 0 is an end before any handoff.
        at_risk: Loops that got so far.
        resolved: How many of them ended here by themselves.
        chance: The chance that a loop which got so far ends here by itself (exact binomial interval).
        share: Share of all loops that have ended by themselves up to here.
        left: Share of all loops that go on after it.
    """

    cycle: int
    at_risk: int
    resolved: int
    chance: Interval
    share: Interval
    left: float


def observation(row: LoopRun) -> tuple[int, Ending] | None:
    """Return after how many cycles a loop ended, and how to read it; `None` when it says nothing.

    What happens after a person has decided is no longer the loop by itself: it counts until its first stop only.
    """
    if row.stopped is not None and row.condition is not None:
        by_cap = row.condition == MaxCycles.__name__
        cut_off = by_cap or row.kind == "broken" or StepReserve.__name__ in row.condition
        if not cut_off:
            return row.stopped.cycles, "stopped"
        if not row.observed:
            return row.stopped.cycles, "censored"
    if row.outcome == "complete":
        return row.spent.cycles, "resolved"
    # The cycle that it is in has not ended yet.
    return (row.spent.cycles - 1, "censored") if row.spent.cycles > 0 else None


def tally(observations: Iterable[tuple[int, Ending]]) -> Any:
    """Return how many loops ended how after how many cycles: an array of shape (3, longest + 1), rows as `ENDINGS`."""
    np = need("numpy", "report")
    found = list(observations)
    counts = np.zeros((len(ENDINGS), 1 + max((cycles for cycles, _ in found), default=0)), dtype=np.int64)
    for cycles, ending in found:
        counts[ENDINGS.index(ending), cycles] += 1
    return counts


def curve(counts: Any, level: float = 0.95) -> tuple[CycleStep, ...]:
    """Return what is known of each cycle.

    Args:
        counts: As `tally` returns them.
        level: Of the intervals, for one cycle at a time.

    The interval of a share is the exact binomial one for the number of uncensored loops that would be as certain: by
    the estimate's variance, or by the loops that are left where that is fewer (as Peto has it, and Dorey and Korn).
    """
    np = need("numpy", "report")
    at_risk = counts.sum(0)[::-1].cumsum()[::-1]
    if not at_risk[0]:
        return ()
    estimates, errors, left = _incidence(counts)
    chances = counts[1] / at_risk
    alike = at_risk / np.concatenate(([1.0], left[:-1]))
    known = (estimates > 0) & (estimates < 1) & (errors > 0)
    greenwood = estimates * (1 - estimates) / np.where(known, errors, 1.0) ** 2
    alike = np.where(known, np.minimum(alike, greenwood), alike)
    now, so_far = _exact(counts[1], at_risk, level), _exact(estimates * alike, alike, level)
    return tuple(
        CycleStep(
            cycle=cycle,
            at_risk=int(at_risk[cycle]),
            resolved=int(counts[1, cycle]),
            chance=Interval(float(chances[cycle]), *now[cycle]),
            share=Interval(float(estimates[cycle]), *so_far[cycle]),
            left=float(left[cycle]),
        )
        for cycle in range(counts.shape[1])
    )


def _exact(successes: Any, trials: Any, level: float) -> list[tuple[float, float]]:
    """The exact (Clopper-Pearson) limits of shares; trials need not be whole numbers."""
    proportion = need("statsmodels.stats.proportion", "report").proportion_confint
    low, high = proportion(successes, trials, alpha=1 - level, method="beta")
    # Limits that are no number (nothing or everything was seen) are the ends of the scale.
    return [(0.0 if a != a else float(a), 1.0 if b != b else float(b)) for a, b in zip(low, high, strict=True)]


def _incidence(counts: Any) -> tuple[Any, Any, Any]:
    """Share resolved, its standard error, and share left, by cycle."""
    np = need("numpy", "report")
    module = need("statsmodels.duration.survfunc", "report")
    cycles = np.arange(counts.shape[1])
    times = np.concatenate([np.repeat(cycles, row) for row in counts])
    status = np.repeat(np.arange(len(ENDINGS)), counts.sum(1))
    estimates, errors, left = np.zeros(len(cycles)), np.zeros(len(cycles)), np.ones(len(cycles))
    # Where everything ends the variance is 0/0: no number, and not needed.
    with np.errstate(divide="ignore", invalid="ignore"):
        if counts[1].any():
            found = module.CumIncidenceRight(times, status)
            at = np.searchsorted(found.times, cycles, side="right") - 1
            estimates = np.where(at >= 0, found.cinc[0][at], 0.0)
            errors = np.nan_to_num(np.where(at >= 0, found.cinc_se[0][at], 0.0), nan=0.0, posinf=0.0)
        if counts[1:].any():
            kept = module.SurvfuncRight(times, status > 0)
            at = np.searchsorted(kept.surv_times, cycles, side="right") - 1
            left = np.where(at >= 0, kept.surv_prob[at], 1.0)
    return np.clip(estimates, 0.0, 1.0), errors, left
