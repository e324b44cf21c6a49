"""Time as records show it, and as bounds measure it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timezone


def now() -> str:
    """Return the time, ISO 8601 in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def stopwatch() -> Callable[[], float]:
    """Return a function that says how many seconds have passed."""
    started = time.monotonic()
    return lambda: round(time.monotonic() - started, 3)
