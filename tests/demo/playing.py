"""What a run of the whole demo leaves behind, for the tests that look at it."""

from __future__ import annotations

from typing import NamedTuple

from langgraph_loopguard.demo.batch import Row
from langgraph_loopguard.demo.project import OpenPull
from langgraph_loopguard.demo.workdir import WorkDir

BOUND = 5
"""Cycles after which the tests stop an unguarded run; a person waits for more."""


class Played(NamedTuple):
    """A finished run.

    Attributes:
        watched: What the watcher was told: the pull request's name, which run, the cycle.
    """

    work: WorkDir
    opened: list[OpenPull]
    rows: list[Row]
    watched: list[tuple[str, str, int]]
