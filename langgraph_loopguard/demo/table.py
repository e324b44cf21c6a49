"""The table that the demo ends in, and the lines under it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from langgraph_loopguard.demo.batch import Row, Settings, Totals
from langgraph_loopguard.demo.loop import THE_LINE, Run
from langgraph_loopguard.demo.text import plural, visible
from langgraph_loopguard.demo.workdir import WorkDir

STYLES = {"complete": "green", "escalated": "yellow", "blocked": "red", "stopped": "red"}

Cell = Callable[[Run], str]


def result_table(rows: Sequence[Row]) -> Table:
    """Return one row per pull request: the unguarded run, an arrow, the guarded run; one number where they agree."""
    tokens = any(run.tokens for row in rows for run in (row.unguarded, row.guarded))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_footer=True)
    before, after = Totals.of([row.unguarded for row in rows]), Totals.of([row.guarded for row in rows])
    table.add_column("pull request", "total")
    table.add_column("cycles", f"{before.cycles} → {after.cycles}", justify="right", no_wrap=True)
    table.add_column("tool runs", f"{before.tool_runs} → {after.tool_runs}", justify="right", no_wrap=True)
    table.add_column("seconds", f"{before.seconds:.1f} → {after.seconds:.1f}", justify="right", no_wrap=True)
    if tokens:
        table.add_column("tokens", f"{before.tokens:,} → {after.tokens:,}", justify="right", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    table.add_column("reason", no_wrap=True)
    for row in rows:
        cells = [_both(row, _cycles), _both(row, lambda run: str(run.tool_runs)), _both(row, _seconds)]
        if tokens:
            cells.append(_both(row, lambda run: f"{run.tokens:,}"))
        table.add_row(_title(row), *cells, _outcome(row.guarded), Text(visible(row.guarded.condition or "")))
    return table


def escalation_table(rows: Sequence[Row]) -> Table:
    """Return what each escalated pull request was stopped for, beside why it was hopeless."""
    table = Table.grid(padding=(0, 1))
    for row in rows:
        if row.guarded.condition is not None:
            why = f"{row.pull.pull.why}. " if row.pull.pull.hopeless else ""
            said = visible(f"{why}{row.guarded.condition}: {row.guarded.message}.")
            table.add_row(Text(row.pull.name, style="bold"), Text(said))
    return table


def summary(rows: Sequence[Row], settings: Settings) -> Text:
    """Return what the numbers mean, and the totals."""
    lines = []
    if any(row.unguarded.ended == "stopped" for row in rows):
        lines.append(
            f"* stopped by the demo at {plural(settings.bound, 'cycle')}: nothing in the unguarded graph would have."
        )
    lines += [
        f"Numbers are unguarded → guarded. {THE_LINE.format(max_cycles=settings.max_cycles)} is the difference.",
        "",
        _saved(rows),
        _escalated(rows),
    ]
    lines += [
        f"Not as seeded: {row.pull.name} ended {row.unguarded.ended} unguarded, {row.guarded.ended} guarded."
        for row in rows
        if not row.as_seeded
    ]
    return Text(visible("\n".join(lines)))


def where_to_look(rows: Sequence[Row], work: WorkDir, command: str) -> Text:
    """Return where the runs are kept, and commands that show them.

    Args:
        rows: The results.
        work: Where the runs are kept.
        command: The command line that reads from there, as far as the pull request's name.
    """
    lines = ["", f"Guarded runs and escalations are in {work.database}"]
    logged = next((row.pull.name for row in rows if row.logged), None)
    if logged:
        lines.append(f"Look at one:   {command} {logged}")
    lines += [
        f"See each fix:  git -C {shlex.quote(str(work.repository))} log --oneline --graph --all",
    ]
    return Text(visible("\n".join(lines)))


def _saved(rows: Sequence[Row]) -> str:
    before, after = Totals.of([row.unguarded for row in rows]), Totals.of([row.guarded for row in rows])
    saved = [
        plural(before.cycles - after.cycles, "cycle"),
        plural(before.tool_runs - after.tool_runs, "tool run"),
        f"{before.seconds - after.seconds:.1f} seconds",
    ]
    if before.tokens:
        saved.append(plural(before.tokens - after.tokens, "token"))
    return f"The guard saved {', '.join(saved[:-1])} and {saved[-1]}."


def _escalated(rows: Sequence[Row]) -> str:
    hopeless = [row for row in rows if row.pull.pull.hopeless]
    escalated = [row for row in rows if row.guarded.ended in ("escalated", "blocked")]
    logged = sum(row.logged for row in hopeless)
    closed = sum(row.guarded.ended == "complete" for row in rows)
    return (
        f"{plural(closed, 'pull request')} closed by the pair; {plural(len(escalated), 'escalation')};"
        f" {logged} of {len(hopeless)} hopeless ones are logged for a person."
    )


def _both(row: Row, cell: Cell) -> str:
    before, after = cell(row.unguarded), cell(row.guarded)
    return after if before == after else f"{before} → {after}"


def _cycles(run: Run) -> str:
    return f"{run.cycles}*" if run.ended == "stopped" else str(run.cycles)


def _seconds(run: Run) -> str:
    return f"{run.seconds:.1f}"


def _outcome(run: Run) -> Text:
    return Text(run.ended, style=STYLES[run.ended])


def _title(row: Row) -> Text:
    text = f"{row.pull.name} {row.pull.title}"
    # What does not fit is cut, not wrapped: one row per pull request, whatever the width.
    return Text(text, style="bold" if row.pull.pull.hopeless else "", no_wrap=True, overflow="ellipsis")
