"""Pictures: what they show is what happened, for every eye, on light and on dark ground."""

from __future__ import annotations

import itertools
import struct
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from matplotlib.colors import to_hex

from langgraph_loopguard.report import (
    Report,
    ReportError,
    plot_cost,
    plot_cycles,
    plot_timeline,
    plot_tuning,
    report,
    summarise,
    tune,
)
from langgraph_loopguard.report.plots import LONGEST, MOST_CYCLES
from langgraph_loopguard.report.style import (
    END_COLOURS,
    GROUND,
    HATCHES,
    HUES,
    INK,
    QUIET,
    contrast,
    ink_on,
    label,
)
from tests.graph.pairs import pair, thread
from tests.report.runs import every_end, row, spend

THEMES: list[Any] = ["light", "dark"]


def repeating(cycles: int = 6, name: str = "thread") -> Report:
    """A loop whose Fixer writes two patches in turn."""
    app, _ = pair(spend, lambda n: {"patch": "ab"[n % 2]}, max_cycles=cycles)
    app.invoke({}, thread(name))
    return report(app, thread(name))


def texts(drawn: Any) -> list[str]:
    """Every text in a picture."""
    return [text.get_text() for text in drawn.findobj(lambda one: hasattr(one, "get_text")) if text.get_text()]


def squares(drawn: Any) -> list[str]:
    """Colours of the timeline's marks, in order."""
    return [to_hex(mark.get_facecolor()[0]).upper() for mark in drawn.axes[0].collections]


@pytest.mark.parametrize("theme", THEMES)
def test_equal_fingerprints_have_equal_colours_and_letters(theme: Any) -> None:
    """And what was written once is grey and has no letter."""
    found = repeating()
    drawn = plot_timeline(found, theme=theme)
    colours = dict(zip((visit.n for visit in found.visits), squares(drawn), strict=True))
    fixes = [colours[visit.n] for visit in found.visits if visit.node == "fixer"]
    assert fixes == fixes[:2] * 3
    assert 2 == len(set(fixes))
    assert {QUIET[theme].upper()} == {colours[visit.n] for visit in found.visits if visit.node == "reviewer"}
    marks = [text for text in texts(drawn) if text in ("A", "B")]
    assert ["A", "B"] * 3 == marks
    assert any("stopped by MaxCycles" in text for text in texts(drawn))


def test_a_long_timeline_shows_its_end() -> None:
    """And says how much it leaves out."""
    drawn = plot_timeline(repeating(60))
    assert LONGEST == len(squares(drawn))
    assert any(f"{121 - LONGEST} earlier visits not shown" in text for text in texts(drawn))


def test_a_cost_is_stacked_by_node_and_adds_up() -> None:
    """Tokens where they are known, seconds where not; the unit may be named."""
    found = repeating()
    drawn = plot_cost(found)
    assert found.loops[0].spent.tokens == sum(bar.get_height() for bar in drawn.axes[0].patches)
    assert "tokens" in texts(drawn)
    seconds = plot_cost(found, unit="seconds")
    assert found.loops[0].spent.seconds == pytest.approx(sum(bar.get_height() for bar in seconds.axes[0].patches))
    app, _ = pair(max_cycles=2)
    app.invoke({}, thread())
    assert "seconds" in texts(plot_cost(report(app, thread())))


def test_cycles_are_counted_by_end() -> None:
    """Every loop stands in one bar; the threshold is marked; very long ones stand together."""
    drawn = plot_cycles(report(every_end()))
    assert 9 == sum(bar.get_height() for bar in drawn.axes[0].patches)
    assert {"complete", "escalated", "blocked", "open", " beyond 3"} <= set(texts(drawn))
    loops = (row(2), row(5000), row(MOST_CYCLES + 7))
    drawn = plot_cycles(Report(loops, summarise(loops)))
    assert 3 == sum(bar.get_height() for bar in drawn.axes[0].patches)
    assert f"{MOST_CYCLES}+" in texts(drawn)


@pytest.mark.parametrize("theme", THEMES)
def test_a_tuning_names_its_cap(theme: Any) -> None:
    """Three parts with prices, two without."""
    loops = [row(1)] * 50 + [row(2)] * 30
    drawn = plot_tuning(tune(loops, minute_usd=1.0, cycle_usd=0.1), theme=theme)
    assert 3 == len(drawn.axes)
    assert "2" in [text.get_text() for text in drawn.axes[2].texts]
    assert 2 == len(plot_tuning(tune(loops), theme=theme).axes)
    with pytest.raises(ReportError, match="too few runs"):
        plot_tuning(tune(loops[:5]), theme=theme)


@pytest.mark.parametrize("theme", THEMES)
def test_every_picture_is_drawn_whole(theme: Any) -> None:
    """As PNG, as a notebook asks for it; no text of it stands outside."""
    one, many = repeating(name="a $x^2$ _{b} \\frac <b>\n\x1b[2J" + "long " * 40), report(every_end())
    tuned = tune([row(1)] * 50 + [row(2)] * 30, minute_usd=1.0, cycle_usd=0.1)
    for drawn in (
        plot_timeline(one, theme=theme),
        plot_cost(one, theme=theme),
        plot_cycles(many, theme=theme),
        plot_tuning(tuned, theme=theme),
    ):
        image = drawn._repr_png_()  # type: ignore[attr-defined]
        assert image.startswith(b"\x89PNG")
        width, height = struct.unpack(">II", image[16:24])
        box = drawn.get_tightbbox()
        assert box.x0 >= -0.02
        assert box.y0 >= -0.02
        assert box.x1 * drawn.dpi <= width + 3
        assert box.y1 * drawn.dpi <= height + 3


def test_names_are_text_and_no_formula() -> None:
    """Dollar signs, controls and line ends are shown; long ones are cut."""
    assert r"a \$x\$ \x1b[0m\n" == label("a $x$ \x1b[0m\n")
    assert 40 == len(label("x" * 100))


@pytest.mark.parametrize("theme", THEMES)
def test_texts_can_be_read_on_their_ground(theme: str) -> None:
    """By the measure of WCAG: 4.5 and more for texts."""
    assert contrast(INK[theme], GROUND[theme]) >= 7
    for colour in HUES[theme]:
        assert contrast(ink_on(colour), colour) >= 4.5


MATRICES = {
    # Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour: str, eye: str | None) -> np.ndarray:
    """A colour in CIE L*a*b*, as an eye sees it."""
    rgb = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    if eye is not None:
        linear = np.clip(np.array(MATRICES[eye]) @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ linear / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eye", [None, *MATRICES])
@pytest.mark.parametrize("theme", THEMES)
def test_colours_differ_for_every_eye(theme: str, eye: str | None) -> None:
    """Far apart in L*a*b* (a difference of 2.3 is just seen); ends differ by their hatches, too."""
    for colours in (HUES[theme], tuple(END_COLOURS[theme].values())):
        for one, other in itertools.combinations((*colours, GROUND[theme]), 2):
            assert np.linalg.norm(lab(one, eye) - lab(other, eye)) > 10
    assert 4 == len(set(HATCHES.values()))


@pytest.mark.parametrize("draw", [plot_timeline, plot_cost])
def test_what_cannot_be_drawn(draw: Any) -> None:
    """Many threads, several loops, no loops, no such theme."""
    with pytest.raises(ReportError, match="make the report of one thread"):
        draw(report(every_end()))
    app, _ = pair(spend, rounds=9, key="pr")
    for key in ("a", "b"):
        app.invoke({"pr": key, "n": 8}, thread())
    with pytest.raises(ReportError, match="several loops or scope keys"):
        draw(report(app, thread()))
    assert draw(report(app, thread()).only(scope="a"))
    with pytest.raises(ReportError, match="no guarded loop"):
        plot_cycles(report(InMemorySaver()))
    with pytest.raises(ValueError, match="theme must be one of 'light', 'dark', got 'grey'"):
        draw(repeating(), theme="grey")
    with pytest.raises(ValueError, match="unit must be one of"):
        plot_cost(repeating(), unit="euros")  # type: ignore[arg-type]


def test_pictures_leave_pyplot_alone() -> None:
    """No figure is kept behind the user's back, and no window is opened."""
    code = (
        "import sys; from tests.report.test_plots import repeating; from langgraph_loopguard.report import plot_cost; "
    )
    code += "plot_cost(repeating())._repr_png_(); print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "False" == done.stdout.strip()
