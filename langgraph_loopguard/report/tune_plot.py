"""The picture of a tuning: the chance of one more cycle, the share resolved, and the money, by cap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langgraph_loopguard.report.errors import ReportError
from langgraph_loopguard.report.style import FAINT, HUES, INK, Theme, figure, label, legend, title
from langgraph_loopguard.report.tuning import Tuning

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_tuning(tuning: Tuning, *, theme: Theme = "light") -> Figure:
    """Draw the chance that one more cycle resolves, the share resolved, and the money where prices are known.

    Args:
        tuning: What `tune` returned.
        theme: The ground that it is for.

    Raises:
        ReportError: No cap could be judged.
        MissingExtraError: matplotlib is not installed (extra `notebook`).
        ValueError: There is no such theme.
    """
    rows = tuning.rows()
    if not rows:
        msg = f"there is nothing to draw: {tuning.why}"
        raise ReportError(msg)
    priced = rows[0]["usd"] is not None
    drawn, axes = figure(theme, max(6.5, 2.8 + 0.35 * len(rows)), 6.2 + 2.2 * priced, rows=2 + priced)
    caps = [row["cap"] for row in rows]
    level = f"{tuning.level:.0%} intervals"
    for ax, name, said, hue in (
        (axes[0], "chance", f"Chance that a loop ends in the cycle it got to ({level})", 0),
        (axes[1], "resolved", f"Share of loops that end within the cap ({level})", 2),
    ):
        middle = [row[name] for row in rows]
        spread = [[row[name] - row[f"{name}_low"] for row in rows], [row[f"{name}_high"] - row[name] for row in rows]]
        colour = HUES[theme][hue]
        ax.errorbar(caps, middle, yerr=spread, fmt="o", color=colour, markersize=6, capsize=4, elinewidth=1.5)
        ax.set_ylim(0, 1.02)
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        title(ax, said, theme)
    if priced:
        ax = axes[2]
        loop, person = [row["loop_usd"] for row in rows], [row["person_usd"] for row in rows]
        edge = {"edgecolor": INK[theme], "linewidth": 0.4}
        ax.bar(caps, loop, 0.7, color=HUES[theme][0], label="the loop's cycles", **edge)
        colour = HUES[theme][4 if theme == "light" else 1]
        ax.bar(caps, person, 0.7, bottom=loop, color=colour, label="a person's time", **edge)
        ax.set_ylim(0, max(row["usd"] for row in rows) * 1.15 or 1)
        ax.yaxis.set_major_formatter(lambda value, _: rf"\${value:,.2f}")
        if tuning.recommended is not None:
            top = rows[tuning.recommended - 1]["usd"]
            said = f"{tuning.recommended}{' or more' if tuning.at_least else ''}"
            ax.annotate(
                said, (tuning.recommended, top), (0, 5), textcoords="offset points", ha="center", color=INK[theme]
            )
        title(ax, f"Dollars a loop, on average: {label(tuning.why.split(':')[0], 70)}", theme)
        legend(ax, theme, loc="upper left", bbox_to_anchor=(1.0, 1.0), reverse=True)
    for ax in axes:
        ax.set_xlim(0.4, caps[-1] + 0.6)
        ax.set_xticks(caps if len(caps) <= 16 else range(5, caps[-1] + 1, 5))
        ax.yaxis.grid(True, color=FAINT[theme], linewidth=0.8)
    axes[0].set_xlabel("cycle")
    for ax in axes[1:]:
        ax.set_xlabel("cap")
    return drawn  # type: ignore[no-any-return]
