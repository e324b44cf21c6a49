"""How far code is followed for one answer: code that calls itself in many ways is not followed for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

STEPS = 20_000
"""Expressions looked at for one answer."""

_left: ContextVar[list[int] | None] = ContextVar("_left", default=None)


@contextmanager
def bounded() -> Iterator[None]:
    """Give what is evaluated inside its share of steps."""
    token = _left.set([STEPS])
    try:
        yield
    finally:
        _left.reset(token)


def steps_left() -> list[int]:
    """Return the count of what is left here, to be lowered in place."""
    left = _left.get()
    return [STEPS] if left is None else left
