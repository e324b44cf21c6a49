"""The progress bar while the pull requests run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from langgraph_loopguard.demo.batch import Watch
from langgraph_loopguard.demo.project import OpenPull


@contextmanager
def progress(console: Console, runs: int) -> Iterator[Watch]:
    """Show a bar that moves with each finished run, and what is running at the moment.

    Args:
        console: Where; without a terminal only the finished bar is printed.
        runs: How many runs there will be.
    """
    columns = (
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=runs)
        begun = 0

        def watch(pull: OpenPull, run: str, cycle: int) -> None:
            nonlocal begun
            begun += cycle == 0
            what = f"{pull.name} {run}" + (f", cycle {cycle}" if cycle else "")
            bar.update(task, completed=begun - 1, description=what)

        yield watch
        bar.update(task, completed=runs, description="done")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the guard's warnings out of the progress bar; whoever has set up logging still gets them."""
    logger = logging.getLogger("langgraph_loopguard")
    handler = logging.NullHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
