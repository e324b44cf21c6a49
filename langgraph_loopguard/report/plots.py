"""Pictures of one run: who handed over what, and what each cycle cost."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from langgraph_loopguard.report.api import Report
from langgraph_loopguard.report.errors import ReportError
from langgraph_loopguard.report.history import Visit
from langgraph_loopguard.report.rows import ENDS, LoopRun
from langgraph_loopguard.report.style import (
    END_COLOURS,
    FAINT,
    HATCHES,
    HUES,
    INK,
    QUIET,
    Theme,
    figure,
    ink_on,
    label,
    legend,
    title,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Unit = Literal["usd", "tokens", "seconds"]
"""What a cost is counted in."""

UNITS = {"usd": "US dollars", "tokens": "tokens", "seconds": "seconds"}

LONGEST = 40
"""Visits that a timeline shows; of a longer run the last ones."""

MOST_CYCLES = 30
"""Cycles that a histogram shows one by one; what took longer stands together in the last bar."""


def plot_timeline(report: Report, *, theme: Theme = "light") -> Figure:
    """Draw the handoffs of one loop in order. What was written more than once has a colour and a letter of its own.

    Args:
        report: Of one thread, with one loop and scope key (see `Report.only`).
        theme: The ground that it is for.

    Raises:
        ReportError: The report holds no visits, or those of several loops.
        MissingExtraError: matplotlib is not installed (extra `notebook`).
        ValueError: There is no such theme.
    """
    visits = _one_loop(report)
    shown = visits[-LONGEST:]
    nodes = list(dict.fromkeys(visit.node for visit in visits))
    drawn, ax = figure(theme, max(6.5, 2.4 + 0.32 * len(shown)), 1.5 + 0.55 * len(nodes))
    again = letters(visits)
    colours = dict(zip(again, itertools.cycle(HUES[theme]), strict=False))
    at = [nodes.index(visit.node) for visit in shown]
    numbers = [visit.n for visit in shown]
    ax.plot(numbers, at, color=FAINT[theme], linewidth=1.5, zorder=1)
    for number, (one, row) in enumerate(zip(shown, at, strict=True)):
        if number and one.cycle != shown[number - 1].cycle:
            ax.axvline(one.n - 0.5, color=FAINT[theme], linewidth=1, linestyle=(0, (1, 2)), zorder=0)
        colour = colours.get(one.fingerprint, QUIET[theme])
        ax.scatter([one.n], [row], s=190, marker="s", color=colour, edgecolors=INK[theme], linewidths=0.6, zorder=2)
        if name := again.get(one.fingerprint):
            look: dict[str, Any] = {"fontsize": 8, "weight": "bold", "color": ink_on(colour)}
            ax.text(one.n, row, name, ha="center", va="center", zorder=3, **look)
    ax.set_yticks(range(len(nodes)), [label(node, 24) for node in nodes])
    ax.set_ylim(len(nodes) - 0.4, -0.6)
    ax.set_xlim(numbers[0] - 0.8, numbers[-1] + 0.8)
    ax.set_xlabel("visit (dotted: a new cycle)")
    ax.xaxis.get_major_locator().set_params(integer=True)
    run = _run_of(report, visits[0])
    title(ax, _timeline_title(run, len(visits) - len(shown), bool(again)), theme)
    return drawn  # type: ignore[no-any-return]


def plot_cost(report: Report, *, unit: Unit | None = None, theme: Theme = "light") -> Figure:
    """Draw what each cycle of one loop cost, by node.

    Args:
        report: Of one thread, with one loop and scope key.
        unit: What to count. Default: dollars where they are known, else tokens, else seconds.
        theme: The ground that it is for.

    Raises:
        ReportError: The report holds no visits, or those of several loops.
        MissingExtraError: matplotlib is not installed (extra `notebook`).
        ValueError: There is no such unit or theme.
    """
    visits = _one_loop(report)
    if unit not in (None, *get_args(Unit)):
        msg = f"unit must be one of {', '.join(map(repr, get_args(Unit)))}, got {unit!r}"
        raise ValueError(msg)
    unit = unit or _best_unit(visits)
    nodes = list(dict.fromkeys(visit.node for visit in visits))
    cycles = list(range(min(v.cycle for v in visits), max(v.cycle for v in visits) + 1))
    drawn, ax = figure(theme, min(14.0, max(6.5, 2.5 + 0.3 * len(cycles))), 3.2)
    below = [0.0] * len(cycles)
    for number, node in enumerate(nodes):
        heights = [sum(getattr(v, unit) or 0 for v in visits if v.node == node and v.cycle == c) for c in cycles]
        colour = HUES[theme][number % len(HUES[theme])]
        edge = {"edgecolor": INK[theme], "linewidth": 0.4}
        ax.bar(cycles, heights, 0.72, bottom=below, color=colour, label=label(node, 24), **edge)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    _whole(ax, cycles)
    ax.set_xlabel("cycle")
    ax.set_ylabel(UNITS[unit])
    ax.yaxis.grid(True, color=FAINT[theme], linewidth=0.8)
    ax.set_ylim(0, max(below) * 1.08 or 1)
    _plain_numbers(ax)
    run = _run_of(report, visits[0])
    title(ax, f"{label(run.loop)} in {label(run.thread, 24)}: what each cycle cost", theme)
    legend(ax, theme, loc="upper left", bbox_to_anchor=(1.0, 1.0), reverse=True)
    return drawn  # type: ignore[no-any-return]


def plot_cycles(report: Report, *, theme: Theme = "light") -> Figure:
    """Draw how many cycles loops took, by how they ended.

    Args:
        report: Of any number of threads.
        theme: The ground that it is for.

    Raises:
        ReportError: The report holds no loops.
        MissingExtraError: matplotlib is not installed (extra `notebook`).
        ValueError: There is no such theme.
    """
    if not report.loops:
        msg = "there is no guarded loop to draw"
        raise ReportError(msg)
    longest = max(row.spent.cycles for row in report.loops)
    last = min(longest, MOST_CYCLES)
    counts = Counter((row.outcome, min(row.spent.cycles, last)) for row in report.loops)
    cycles = list(range(last + 1))
    drawn, ax = figure(theme, max(6.5, 2.8 + 0.3 * len(cycles)), 3.4)
    below = [0] * len(cycles)
    for end in ENDS:
        heights = [counts[end, cycle] for cycle in cycles]
        if not any(heights):
            continue
        colours = {"facecolor": END_COLOURS[theme][end], "edgecolor": INK[theme], "linewidth": 0.4}
        ax.bar(cycles, heights, 0.76, bottom=below, label=end, hatch=HATCHES[end], **colours)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    threshold = report.summary.threshold
    if threshold < last:
        ax.axvline(threshold + 0.5, color=INK[theme], linewidth=1.2, linestyle="--")
        place = {"xy": (threshold + 0.5, 1.0), "xycoords": ax.get_xaxis_transform()}
        said = f" beyond {threshold}"
        ax.annotate(
            said, **place, va="top", ha="left", fontsize=9, color=INK[theme], xytext=(3, -2), textcoords="offset points"
        )
    _whole(ax, cycles)
    if longest > last:
        ax.set_xticks([*range(0, last, 5), last], [*map(str, range(0, last, 5)), f"{last}+"])
    ax.set_xlabel("cycles")
    ax.set_ylabel("loops")
    ax.yaxis.grid(True, color=FAINT[theme], linewidth=0.8)
    ax.set_ylim(0, max(below) * 1.15)
    title(ax, f"How many cycles {len(report.loops):,} loops took, and how they ended", theme)
    legend(ax, theme, loc="upper left", bbox_to_anchor=(1.0, 1.0), reverse=True)
    return drawn  # type: ignore[no-any-return]


def letters(visits: Sequence[Visit]) -> dict[str | None, str]:
    """Return a name for each fingerprint that comes more than once: A to Z, then A2, B2 and so on."""
    counts = Counter(visit.fingerprint for visit in visits if visit.fingerprint is not None)
    again = [fingerprint for fingerprint, count in counts.items() if count > 1]
    names = (chr(ord("A") + place) + (str(lap + 1) if lap else "") for lap in itertools.count() for place in range(26))
    return dict(zip(again, names, strict=False))


def _one_loop(report: Report) -> Sequence[Visit]:
    if not report.visits:
        msg = "there are no visits to draw: make the report of one thread, report(source, config)"
        raise ReportError(msg)
    found = list(dict.fromkeys((visit.loop, str(visit.scope)) for visit in report.visits))
    if len(found) > 1:
        names = ", ".join(f"{loop} {scope}" for loop, scope in found)
        msg = f"the report holds several loops or scope keys ({names}): draw one, report.only(loop, scope=...)"
        raise ReportError(msg)
    return report.visits


def _run_of(report: Report, visit: Visit) -> LoopRun:
    return next(row for row in report.loops if row.loop == visit.loop and row.scope == visit.scope)


def _timeline_title(run: LoopRun, hidden: int, again: bool) -> str:
    end = (
        run.outcome
        if run.condition is None
        else f"{run.outcome}, {'would have been ' * run.observed}stopped by {run.condition}"
    )
    said = f"{label(run.loop)} in {label(run.thread, 24)}: {label(end, 60)}"
    said += "\nthe same letter: the same was written again" if again else "\nnothing was written twice"
    return said + (f"; {hidden} earlier visits not shown" if hidden else "")


def _best_unit(visits: Sequence[Visit]) -> Unit:
    if any(visit.usd for visit in visits):
        return "usd"
    return "tokens" if any(visit.tokens for visit in visits) else "seconds"


def _whole(ax: Any, cycles: Sequence[int]) -> None:
    ax.set_xlim(cycles[0] - 0.6, cycles[-1] + 0.6)
    ax.set_xticks(cycles if len(cycles) <= 16 else range(cycles[0], cycles[-1] + 1, 5))


def _plain_numbers(ax: Any) -> None:
    if ax.get_ylim()[1] >= 1000:
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
