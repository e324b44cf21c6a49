"""Runs all pull requests, each one unguarded and guarded, and adds up what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph_loopguard.demo.agents import Agents, Bench
from langgraph_loopguard.demo.loop import Run, escalation_of, run_guarded, run_unguarded
from langgraph_loopguard.demo.project import OpenPull
from langgraph_loopguard.demo.workdir import WorkDir

Hire = Callable[[Bench], Agents]
"""Makes the agents of one run."""

Watch = Callable[[OpenPull, str, int], None]
"""Is told the pull request, which run it is (`"unguarded"`, `"guarded"`), and the cycle that begins; first of all 0."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How the runs are made.

    Attributes:
        bound: Cycles after which the demo stops watching an unguarded run.
        max_cycles: The guard's cap.
    """

    bound: int = 12
    max_cycles: int = 3


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one pull request.

    Attributes:
        logged: Whether the guarded run's escalation can be read back from the database.
    """

    pull: OpenPull
    unguarded: Run
    guarded: Run
    logged: bool

    @property
    def as_seeded(self) -> bool:
        """Whether it ended as it was meant to: by itself, or, when hopeless, in a logged escalation."""
        if self.pull.pull.hopeless:
            return self.unguarded.ended == "stopped" and self.guarded.ended == "escalated" and self.logged
        return self.unguarded.ended == self.guarded.ended == "complete" and not self.logged

    @property
    def accounted_for(self) -> bool:
        """Whether the guarded run ended by itself, or in a logged escalation."""
        return self.guarded.ended == "complete" or self.logged


@dataclass(frozen=True, slots=True)
class Totals:
    """One column's sums: over the unguarded runs, or over the guarded ones."""

    cycles: int
    tool_runs: int
    seconds: float
    tokens: int

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Totals:
        """Add up."""
        return cls(
            sum(run.cycles for run in runs),
            sum(run.tool_runs for run in runs),
            sum(run.seconds for run in runs),
            sum(run.tokens for run in runs),
        )


def run_batch(work: WorkDir, opened: Sequence[OpenPull], hire: Hire, settings: Settings, watch: Watch) -> list[Row]:
    """Run every pull request twice.

    Args:
        work: Where; the guarded runs stay in its database.
        opened: The pull requests.
        hire: Makes the agents, anew for each run.
        settings: How.
        watch: Is told how far it is.

    Raises:
        DemoError: Git, a tool or a model failed.
    """
    runs: list[tuple[OpenPull, Run, Run]] = []
    with SqliteSaver.from_conn_string(str(work.database)) as saver:
        for pull in opened:
            watch(pull, "unguarded", 0)
            bench = Bench(work.repository, pull, "unguarded")
            unguarded = run_unguarded(bench, hire(bench), bound=settings.bound, watch=partial(watch, pull, "unguarded"))
            watch(pull, "guarded", 0)
            bench = Bench(work.repository, pull, "guarded")
            guarded = run_guarded(
                bench,
                hire(bench),
                max_cycles=settings.max_cycles,
                checkpointer=saver,
                watch=partial(watch, pull, "guarded"),
            )
            runs.append((pull, unguarded, guarded))
    # Read back through a new connection: what counts is what is in the file.
    with SqliteSaver.from_conn_string(str(work.database)) as saver:
        return [
            Row(pull, unguarded, guarded, escalation_of(pull.name, pull.pull.nodes, saver) is not None)
            for pull, unguarded, guarded in runs
        ]
