"""Conditions by name, so that nobody has to compose any on the first day.

What each one stops and misses was measured; the table is in `docs/detection.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from langgraph_loopguard.core.conditions import (
    Condition,
    Oscillation,
    RepeatedPayload,
    StepReserve,
    UnchangedArtifact,
)
from langgraph_loopguard.core.progress import NoProgress
from langgraph_loopguard.core.restated import RestatedPayload

Preset = Literal["strict", "progress", "observe-only"]
"""Conditions that come with a guard besides its cap.

- `strict`: none but `StepReserve`: a hard cap of three cycles decides, and looks at nothing. It misses no loop, and
  stops honest work that needs a fourth cycle just the same.
- `progress`: goes on while what is open reaches new lows, and stops a pair that stands still, repeats itself or says
  the same in other words; the cap of 25 is the last resort. It misses a pair that makes something new each time and
  gets nowhere, unless a `measure` shows it; then the cap stops that one.
- `observe-only`: judges as `progress` does, but only writes and logs what it would have done; nothing is stopped, not
  even by the cap. For a trial in production.
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a preset stands for."""

    conditions: tuple[Condition, ...]
    max_cycles: int
    """The cap where the user names none."""
    observes: bool = False
    """Nothing is ever diverted."""


_PROGRESS = (
    StepReserve(),
    NoProgress(),
    UnchangedArtifact(),
    # A complaint that comes back after a fix that changed nothing needs no third time.
    UnchangedArtifact(1, stand_in=False) & RestatedPayload(times=2, window=6, same_names=False),
    RepeatedPayload(window=5),
    RestatedPayload(),
    Oscillation(laps=3),
)

PRESETS: dict[str, Rules] = {
    "strict": Rules((StepReserve(),), max_cycles=3),
    "progress": Rules(_PROGRESS, max_cycles=25),
    "observe-only": Rules(_PROGRESS, max_cycles=25, observes=True),
}
