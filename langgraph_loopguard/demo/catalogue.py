"""The twenty pull requests in the order of their numbers: the hopeless ones stand among the others, as in life."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from langgraph_loopguard.demo.errors import DemoError
from langgraph_loopguard.demo.honest import ONE_CYCLE, THREE_CYCLES, TWO_CYCLES
from langgraph_loopguard.demo.hopeless import (
    NO_ROOM,
    NOBODY_KNOWS,
    OPERATOR_SIDES,
    THREE_IN_A_RING,
    TWO_FORMATTERS,
)
from langgraph_loopguard.demo.pulls import PullRequest, name

SPARES = ("py_compile", "cmd", "numbers", "pyclbr", "keyword", "queue")
"""Modules that stand in where one is missing, or does not pass the house's checks in this Python."""

CATALOGUE: Mapping[int, PullRequest] = MappingProxyType(
    dict(
        enumerate(
            (
                ONE_CYCLE[0],
                TWO_CYCLES[0],
                ONE_CYCLE[1],
                TWO_FORMATTERS,
                ONE_CYCLE[2],
                THREE_CYCLES[0],
                TWO_CYCLES[1],
                NOBODY_KNOWS,
                ONE_CYCLE[3],
                ONE_CYCLE[4],
                TWO_CYCLES[2],
                THREE_CYCLES[1],
                OPERATOR_SIDES,
                ONE_CYCLE[5],
                TWO_CYCLES[3],
                TWO_CYCLES[4],
                THREE_IN_A_RING,
                ONE_CYCLE[6],
                THREE_CYCLES[2],
                NO_ROOM,
            ),
            start=1,
        )
    )
)
"""Pull requests by number."""


def number_of(text: str) -> int:
    """Return the number of a pull request that a user names: `PR-17`, `pr-17` or `17`.

    Raises:
        DemoError: There is no such pull request.
    """
    digits = text.strip().lower().removeprefix("pr-")
    number = int(digits) if digits.isascii() and digits.isdigit() else 0
    if number not in CATALOGUE:
        msg = f"no pull request {text!r}: they are {name(min(CATALOGUE))} to {name(max(CATALOGUE))}"
        raise DemoError(msg)
    return number
