"""`tune`: which cap one's own history recommends, or that there are too few runs to say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.pregel import Pregel

from langgraph_loopguard.report.api import Report, read_loops
from langgraph_loopguard.report.errors import ReportError, need
from langgraph_loopguard.report.rows import LoopRun
from langgraph_loopguard.report.source import Source
from langgraph_loopguard.report.survival import ENDINGS, CycleStep, curve, observation, tally
from langgraph_loopguard.report.tuning import Cap, Tuning

LEAST = 20
"""Loops that must have got to a cycle before anything is said about a cap of so many."""

RESAMPLES = 2000
"""How often the loops are drawn again to see whether the recommended cap is a matter of chance."""

BATCH = 100
"""Draws at a time, which bounds the memory."""

AGREEMENT = 0.9
"""Share of those draws that must put the best cap within one of the recommended one."""


def tune(
    source: Source | Report | Iterable[LoopRun],
    *,
    loop: str | None = None,
    minute_usd: float | None = None,
    minutes: float = 10.0,
    cycle_usd: float | None = None,
    million_tokens_usd: float | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Tuning:
    """Say what each cap would have done, and recommend one.

    A cap costs the cycles that it lets run and the minutes of the person who gets what is left. The other conditions of
    the guard stay as they are. Loops that were only watched (`mode="observe"`) say most: no cap has cut them off.

    Args:
        source: A source as in `report`, a `Report`, or its rows.
        loop: The guard's name; may be left out when there is one only.
        minute_usd: What a person's minute costs, in US dollars. Without it no cap is recommended.
        minutes: What an escalation takes of a person's time, in minutes.
        cycle_usd: What a cycle costs, in US dollars. Default: as recorded, or by the tokens.
        million_tokens_usd: What a million tokens costs, for loops that recorded tokens and no dollars.
        level: Of the intervals, between 0 and 1.
        seed: Of the resampling that tells chance from fact; the same input gives the same answer.

    Raises:
        ReportError: There is no such loop, several, or the cost of a cycle is not known.
        MissingExtraError: statsmodels is not installed (extra `report`).
        ValueError: A price or a share makes no sense.

    Example:
        ```python
        from langgraph_loopguard.report import Cost, LoopRun, tune

        def ended(thread, cycles):
            spent = Cost(cycles=cycles, tokens=1000 * cycles)
            return LoopRun(
                thread=thread, namespace="", loop="review", scope=None, outcome="complete", handoffs=0, spent=spent
            )

        rows = [ended(str(n), 1 + n % 2) for n in range(200)]
        assert tune(rows, minute_usd=1, cycle_usd=0.02).recommended == 2
        assert tune(rows[:10], minute_usd=1, cycle_usd=0.02).recommended is None
        ```
    """
    _check(level, minutes, minute_usd=minute_usd, cycle_usd=cycle_usd, million_tokens_usd=million_tokens_usd)
    name, rows = _one_loop(source, loop)
    found = [seen for row in rows if (seen := observation(row)) is not None]
    counts = tally(found)
    steps = curve(counts, level)
    most = max((step.cycle for step in steps if step.at_risk >= LEAST), default=0)
    price = _cycle_price(rows, cycle_usd, million_tokens_usd)
    if minute_usd is not None and price is None:
        msg = f"loop {name!r} recorded no dollars: give cycle_usd=, or million_tokens_usd= where it recorded tokens"
        raise ReportError(msg)
    total = sum(row.spent.cycles for row in rows)
    pace = sum(row.spent.seconds for row in rows) / total if total else 0.0
    cycles, resolved = _outlook(counts)
    caps = tuple(
        _cap(cap, float(resolved[cap]), float(cycles[cap]), pace, minutes, price, minute_usd)
        for cap in range(1, most + 1)
    )
    endings = Counter(ending for _, ending in found)
    best, open_end, agreement, why = _recommend(counts, caps, steps, price, minute_usd, minutes, seed)
    return Tuning(
        loop=name,
        endings={ending: endings[ending] for ending in ENDINGS},
        level=level,
        steps=steps,
        caps=caps,
        recommended=best,
        at_least=open_end,
        agreement=agreement,
        why=why,
    )


def _recommend(
    counts: Any,
    caps: tuple[Cap, ...],
    steps: tuple[CycleStep, ...],
    price: float | None,
    minute_usd: float | None,
    minutes: float,
    seed: int,
) -> tuple[int | None, bool, float | None, str]:
    loops = int(counts.sum())
    if not caps:
        return None, False, None, f"too few runs to say: {loops} loops, and a cap is judged by {LEAST} that got so far"
    if minute_usd is None or price is None:
        return None, False, None, "no cap is recommended without the price of a person's minute"
    np = need("numpy", "report")
    prices = np.array([cap.usd for cap in caps])
    best = int(prices.argmin()) + 1
    others = _best_again(counts, len(caps), price, minute_usd * minutes, seed)
    agreement = float((abs(others - best) <= 1).mean())
    if agreement < AGREEMENT:
        low, high = np.percentile(others, (5, 95))
        span = f"drawn again, the same loops put the best cap anywhere from {low:.0f} to {high:.0f}"
        return None, False, agreement, f"too few runs to say: {span}"
    open_end = steps[len(caps)].left > 0 and (others == len(caps)).mean() > 1 - AGREEMENT
    said = f"a cap of {best}{' or more' if open_end else ''} costs least: ${prices[best - 1]:.2f} a loop"
    if open_end:
        said += f"; nothing is known of more than {len(caps)}, for fewer than {LEAST} loops went further"
    return best, bool(open_end), agreement, said


def _best_again(counts: Any, most: int, price: float, person_usd: float, seed: int) -> Any:
    """Return the best cap of each resampled history, an array of `RESAMPLES`."""
    np = need("numpy", "report")
    # What lies beyond the caps that are looked at matters only as loops that went so far.
    near = counts[:, : most + 2].copy()
    near[0, -1] += counts[:, most + 2 :].sum()
    random, loops = np.random.default_rng(seed), int(near.sum())
    best = []
    for _ in range(RESAMPLES // BATCH):
        drawn = random.multinomial(loops, near.ravel() / loops, size=BATCH).reshape(BATCH, *near.shape)
        cycles, resolved = _outlook(drawn)
        best.append((price * cycles + person_usd * (1 - resolved))[:, 1 : most + 1].argmin(1) + 1)
    return np.concatenate(best)


def _outlook(counts: Any) -> tuple[Any, Any]:
    """Return the average cycles of a loop and the share resolved, by cap (the last axis), for one history or many."""
    np = need("numpy", "report")
    at_risk = counts.sum(-2)[..., ::-1].cumsum(-1)[..., ::-1]
    alive = np.maximum(at_risk, 1)
    left = np.cumprod(1 - counts[..., 1:, :].sum(-2) / alive, axis=-1)
    before = np.concatenate((np.ones_like(left[..., :1]), left[..., :-1]), axis=-1)
    resolved = np.cumsum(before * counts[..., 1, :] / alive, axis=-1)
    begun = np.concatenate((np.zeros_like(left[..., :1]), left[..., :-1]), axis=-1)
    return np.cumsum(begun, axis=-1), resolved


def _cap(
    cap: int,
    resolved: float,
    cycles: float,
    pace: float,
    minutes: float,
    price: float | None,
    minute_usd: float | None,
) -> Cap:
    escalated = max(0.0, 1 - resolved)
    loop_usd = None if price is None else price * cycles
    person_usd = None if minute_usd is None else minute_usd * minutes * escalated
    return Cap(
        cap=cap,
        resolved=resolved,
        escalated=escalated,
        cycles=cycles,
        seconds=pace * cycles,
        minutes=minutes * escalated,
        loop_usd=loop_usd,
        person_usd=person_usd,
        usd=None if loop_usd is None or person_usd is None else loop_usd + person_usd,
    )


def _one_loop(source: Source | Report | Iterable[LoopRun], loop: str | None) -> tuple[str, list[LoopRun]]:
    rows: Iterable[LoopRun]
    if isinstance(source, Report):
        rows = source.loops
    elif isinstance(source, (Pregel, BaseCheckpointSaver, str, Path)):
        rows = read_loops(source)
    else:
        rows = source
    kept = [row for row in rows if loop in (None, row.loop)]
    names = sorted({row.loop for row in kept})
    if not names:
        msg = "there is no guarded loop" if loop is None else f"there is no loop {loop!r}"
        raise ReportError(msg)
    if len(names) > 1:
        msg = f"loop must name one of {', '.join(map(repr, names))}: each has a cap of its own"
        raise ReportError(msg)
    return names[0], kept


def _cycle_price(rows: list[LoopRun], cycle_usd: float | None, million_tokens_usd: float | None) -> float | None:
    if cycle_usd is not None:
        return cycle_usd
    paid = [row.spent for row in rows if row.spent.usd is not None]
    if cycles := sum(cost.cycles for cost in paid):
        return sum(cost.usd or 0.0 for cost in paid) / cycles
    tokens, cycles = sum(row.spent.tokens for row in rows), sum(row.spent.cycles for row in rows)
    return million_tokens_usd * tokens / cycles / 1e6 if million_tokens_usd is not None and tokens and cycles else None


def _check(level: float, minutes: float, **prices: float | None) -> None:
    if not 0 < level < 1:
        msg = f"level must be between 0 and 1, got {level!r}"
        raise ValueError(msg)
    for name, value in (("minutes", minutes), *prices.items()):
        if value is not None and not (math.isfinite(value) and value >= 0):
            msg = f"{name} must be 0 or more, got {value!r}"
            raise ValueError(msg)
