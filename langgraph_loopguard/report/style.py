"""How the pictures look: colours that colour-blind people tell apart, on light and on dark ground."""

from __future__ import annotations

import io
import textwrap
from typing import Any, Literal, get_args

from langgraph_loopguard.core.text import shortened, visible
from langgraph_loopguard.report.errors import need

Theme = Literal["light", "dark"]
"""The ground that a picture is for."""

HUES: dict[str, tuple[str, ...]] = {
    # Okabe and Ito's set, without black, and without what does not stand out from the ground.
    "light": ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    "dark": ("#56B4E9", "#E69F00", "#2BC49B", "#E9A3CB", "#F0E442", "#F2824A"),
}

GROUND = {"light": "#FFFFFF", "dark": "#15181C"}
INK = {"light": "#24292F", "dark": "#E6E8EB"}
FAINT = {"light": "#D7DBE0", "dark": "#3A4149"}
QUIET = {"light": "#B4BAC2", "dark": "#707A85"}
"""What is seen once, and so says nothing."""

LETTERS = 11
"""Letters of a title that fit into an inch."""

END_COLOURS: dict[str, dict[str, str]] = {
    "light": {"complete": "#0072B2", "escalated": "#E69F00", "blocked": "#CC79A7", "open": "#B4BAC2"},
    "dark": {"complete": "#56B4E9", "escalated": "#E69F00", "blocked": "#E9A3CB", "open": "#707A85"},
}
HATCHES = {"complete": "", "escalated": "///", "blocked": "xxx", "open": "..."}
"""Ends are told apart in grey, too."""


def figure(theme: Theme, width: float, height: float, rows: int = 1) -> tuple[Any, Any]:
    """Return a figure and its axes, made without pyplot: nothing is kept when the figure is let go.

    Args:
        theme: The ground that it is for.
        width: In inches.
        height: In inches.
        rows: Axes below one another.

    Raises:
        ValueError: There is no such theme.
        MissingExtraError: matplotlib is not installed (extra `notebook`).
    """
    if theme not in get_args(Theme):
        msg = f"theme must be one of {', '.join(map(repr, get_args(Theme)))}, got {theme!r}"
        raise ValueError(msg)
    base: Any = need("matplotlib.figure").Figure

    class Picture(base):  # type: ignore[misc]  # the base is known only where matplotlib is installed
        """A figure that every notebook shows, whether or not pyplot has been told to."""

        def _repr_png_(self) -> bytes:
            return png(self)

    drawn = Picture(figsize=(width, height), dpi=144, layout="constrained", facecolor=GROUND[theme])
    axes = drawn.subplots(rows, 1, squeeze=False)[:, 0]
    for ax in axes:
        _dress(ax, theme)
    return drawn, axes[0] if rows == 1 else axes


def png(drawn: Any) -> bytes:
    """Return a figure as PNG."""
    stream = io.BytesIO()
    drawn.savefig(stream, format="png")
    return stream.getvalue()


def label(text: Any, length: int = 40) -> str:
    """Return a text for a picture: short, on one line, and never read as a formula."""
    return shortened(visible(str(text)).replace("\n", "\\n").replace("\t", " "), length).replace("$", r"\$")


def luminance(colour: str) -> float:
    """Return a colour's relative luminance, 0 to 1 (WCAG 2)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21 (WCAG 2)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def ink_on(colour: str) -> str:
    """Return black or white, whichever is easier to read on a colour."""
    return max(("#FFFFFF", "#111111"), key=lambda ink: contrast(ink, colour))


def legend(ax: Any, theme: Theme, **options: Any) -> None:
    """Add the legend."""
    found = ax.legend(frameon=False, fontsize=9, **options)
    for text in found.get_texts():
        text.set_color(INK[theme])


def title(ax: Any, text: str, theme: Theme) -> None:
    """Add the title, at the left, on as many lines as it needs."""
    room = int((ax.figure.get_figwidth() - 0.9) * LETTERS)
    lines = [part for line in text.split("\n") for part in textwrap.wrap(line, room)]
    ax.set_title("\n".join(lines), loc="left", color=INK[theme], fontsize=11, pad=10)


def _dress(ax: Any, theme: Theme) -> None:
    ax.set_facecolor(GROUND[theme])
    ax.tick_params(colors=INK[theme], labelsize=9)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(QUIET[theme])
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_color(INK[theme])
        axis.label.set_size(10)
    ax.set_axisbelow(True)
