"""`report`: what the loops of one run, or of all runs, did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig

from langgraph_loopguard.core.text import html_text
from langgraph_loopguard.report.errors import ReportError, need
from langgraph_loopguard.report.history import Visit, visits_of
from langgraph_loopguard.report.rows import LoopRun, loops_of
from langgraph_loopguard.report.source import Saver, Source, latest, opened, places
from langgraph_loopguard.report.summary import THRESHOLD, Summary, summarise

if TYPE_CHECKING:
    from pandas import DataFrame

Tick = Callable[[int, int], None]
"""Is told how many threads have been read, and of how many."""

SHOWN_ROWS = 20
"""Rows of a report that a notebook shows."""

COLUMNS = ("thread", "loop", "scope", "outcome", "cycles", "handoffs", "seconds", "tokens", "usd", "reason", "decision")
"""Columns of a table for people; those in which no row has anything are left out."""


@dataclass(frozen=True, slots=True)
class Report:
    """What loops did. Made by `report`.

    Attributes:
        loops: One row per thread, guard and scope key.
        summary: The rows summed up.
        visits: Every visit of a node, oldest first, when the report is about one thread.
    """

    loops: tuple[LoopRun, ...]
    summary: Summary
    visits: tuple[Visit, ...] = field(default=(), repr=False)

    def only(self, loop: str | None = None, *, scope: Any = ...) -> Report:
        """Return the report of some of the loops.

        Args:
            loop: Only the guard of this name. Default: all guards.
            scope: Only this scope key (`None`: loops of guards without one). Default: all.
        """

        def kept(one: LoopRun | Visit) -> bool:
            return loop in (None, one.loop) and (scope is ... or one.scope == scope)

        rows = tuple(row for row in self.loops if kept(row))
        summary = summarise(rows, self.summary.threshold)
        return Report(rows, summary, tuple(visit for visit in self.visits if kept(visit)))

    def frame(self) -> DataFrame:
        """Return the rows as a pandas frame: one line per thread, guard and scope key.

        Raises:
            MissingExtraError: pandas is not installed (extra `notebook`).
        """
        frame: DataFrame = need("pandas").DataFrame([row.to_json() for row in self.loops])
        return frame

    def visits_frame(self) -> DataFrame:
        """Return the visits as a pandas frame; empty when the report is about many threads.

        Raises:
            MissingExtraError: pandas is not installed (extra `notebook`).
        """
        frame: DataFrame = need("pandas").DataFrame([visit.to_json() for visit in self.visits])
        return frame

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return {
            "summary": self.summary.to_json(),
            "loops": [row.to_json() for row in self.loops],
            "visits": [visit.to_json() for visit in self.visits],
        }

    def _repr_html_(self) -> str:
        rows = [row.to_json() for row in self.loops[:SHOWN_ROWS]]
        columns = [name for name in COLUMNS if any(row[name] is not None for row in rows)]
        head = "".join(f"<th>{html_text(name)}</th>" for name in columns)
        body = "".join(f"<tr>{''.join(f'<td>{_cell(row[name])}</td>' for name in columns)}</tr>" for row in rows)
        more = len(self.loops) - len(rows)
        tail = f"<p>and {more:,} more</p>" if more else ""
        return f"{self.summary._repr_html_()}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{tail}"


def report(
    source: Source,
    config: RunnableConfig | None = None,
    *,
    loop: str | None = None,
    threshold: int = THRESHOLD,
    progress: bool = False,
) -> Report:
    """Report what loops did and cost, and how they ended.

    Args:
        source: A compiled graph, a checkpointer, the path of a SQLite file or a `postgresql://` URL.
        config: A config with a `thread_id`: this one thread, with every visit. Default: all threads.
        loop: Only the guard of this name.
        threshold: Cycles beyond which a loop should have ended or been escalated.
        progress: Show a progress bar on the standard error (in a notebook: under the cell).

    Raises:
        ReportError: The source cannot be read, or has no such thread.
        MissingExtraError: The source or the progress bar needs an extra that is not installed.
        ValueError: `config` names no thread, or `threshold` is no number of cycles.

    Example:
        ```python
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph_loopguard.report import report

        assert report(InMemorySaver()).summary.loops == 0
        ```
    """
    thread = None if config is None else _thread(config)
    with opened(source) as saver, _bar(progress) as tick:
        if thread is None:
            rows = tuple(row for row in _read(saver, tick) if loop in (None, row.loop))
            return Report(rows, summarise(rows, threshold))
        found, visits = _one_thread(saver, thread)
    return Report(tuple(found), summarise(found, threshold), tuple(visits)).only(loop)


def read_loops(source: Source, *, tick: Tick | None = None) -> Iterator[LoopRun]:
    """Read the rows of all threads one after the other, for more of them than a report should hold.

    Args:
        source: As in `report`.
        tick: Called after each thread with how many have been read, and of how many.

    Raises:
        ReportError: The source cannot be read.
    """
    with opened(source) as saver:
        yield from _read(saver, tick)


def _read(saver: Saver, tick: Tick | None) -> Iterator[LoopRun]:
    total, found = places(saver)
    for number, place in enumerate(found, 1):
        checkpoint = latest(saver, place)
        if checkpoint is not None:
            yield from loops_of(checkpoint)
        if tick is not None:
            tick(number, total)


def _one_thread(saver: Saver, thread: str) -> tuple[list[LoopRun], list[Visit]]:
    rows: list[LoopRun] = []
    visits: list[Visit] = []
    _, found = places(saver, thread)
    seen = False
    for place in found:
        checkpoint = latest(saver, place)
        if checkpoint is not None:
            seen = True
            rows += loops_of(checkpoint)
            visits += visits_of(saver, checkpoint)
    if not seen:
        msg = f"there is no thread {thread!r}"
        raise ReportError(msg)
    return rows, visits


def _thread(config: RunnableConfig) -> str:
    thread = (config.get("configurable") or {}).get("thread_id")
    if thread is None:
        msg = f'config must name a thread, {{"configurable": {{"thread_id": ...}}}}, got {config!r}'
        raise ValueError(msg)
    return str(thread)


@contextmanager
def _bar(wanted: bool) -> Iterator[Tick | None]:
    if not wanted:
        yield None
        return
    console = need("rich.console", "report").Console(stderr=True)
    bars = need("rich.progress", "report")
    columns = (bars.TextColumn("reading runs"), bars.BarColumn(), bars.MofNCompleteColumn(), bars.TimeRemainingColumn())
    hidden = not (console.is_terminal or console.is_jupyter)
    with bars.Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return html_text(round(value, 3) if isinstance(value, float) else value)
