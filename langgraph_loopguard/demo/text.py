"""How the demo words what it prints. `visible` is the core's: output of tools and models is shown, not obeyed."""

from __future__ import annotations

from langgraph_loopguard.core.text import visible

__all__ = ["plural", "visible"]


def plural(count: int, noun: str) -> str:
    """Return the count with its noun: `1 cycle`, `2 cycles`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
