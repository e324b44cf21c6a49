"""The `report` subcommand: what loops did, as tables, JSON or a picture. Imports nothing heavy until it runs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph_loopguard.core.text import shortened, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from langgraph_loopguard.report.api import Report

DESCRIPTION = """\
What guarded loops did and cost, and how they ended: of every thread, or visit by visit of one thread.

SOURCE is the SQLite file or the postgresql:// URL that the graph's checkpointer writes to. Nothing is written to it.

Exit status: 0, or 2 when the source cannot be read."""


COLUMNS = ("thread", "loop", "scope", "outcome", "cycles", "seconds", "tokens", "usd", "condition", "decision")
"""Of the table: what fits into a terminal; those in which no row has anything are left out."""

PICTURES = (".png", ".svg", ".pdf")


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that all commands over kept runs have."""
    parser.add_argument("source", metavar="SOURCE", help="a SQLite file, or a postgresql:// URL")
    parser.add_argument("--loop", metavar="NAME", help="only the guard of this name")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture: .png, .svg or .pdf")
    parser.add_argument("--theme", choices=("light", "dark"), default="light", help="of the picture")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    from langgraph_loopguard.core.errors import LoopGuardError

    parser = commands.add_parser(
        "report",
        help="what loops did and cost, and how they ended",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_source(parser)
    parser.add_argument("--thread", metavar="ID", help="one thread, visit by visit")
    parser.add_argument("--threshold", type=int, default=3, metavar="N", help="cycles that are enough (default: 3)")
    parser.add_argument("--rows", type=int, default=20, metavar="N", help="loops to list (default: 20, 0: all)")
    parser.set_defaults(run=run, errors=(LoopGuardError, ValueError, OSError))


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return the exit status.

    Raises:
        LoopGuardError, ValueError, OSError: With one line for the user.
    """
    from langgraph_loopguard.report.api import report

    check_picture(args.plot)
    config: Any = None if args.thread is None else {"configurable": {"thread_id": args.thread}}
    found = report(args.source, config, loop=args.loop, threshold=args.threshold, progress=not args.json)
    if args.json:
        print(json.dumps(found.to_json(), indent=2, ensure_ascii=True))
    else:
        console = new_console()
        console.print(summary_table(found))
        if found.visits:
            console.print(visit_table(found))
        else:
            console.print(loop_table(found, args.rows))
    if args.plot:
        from langgraph_loopguard.report.plots import plot_cycles, plot_timeline

        draw = plot_timeline if found.visits else plot_cycles
        draw(found, theme=args.theme).savefig(args.plot)
    return 0


def new_console() -> Console:
    """Return the console that prints: it takes nothing in a text for markup."""
    from langgraph_loopguard.report.errors import need

    console: Console = need("rich.console", "report").Console(highlight=False, markup=False, emoji=False)
    return console


def new_table(*columns: str, numbers: tuple[str, ...] = ()) -> Table:
    """Return a table; columns of numbers stand at the right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        if column in numbers:
            table.add_column(column, justify="right", no_wrap=True)
        else:
            table.add_column(column, overflow="fold")
    return table


def check_picture(path: Path | None) -> None:
    """See that a picture can be written there, before the runs are read.

    Raises:
        ValueError: The file's ending says of no kind of picture.
    """
    if path is not None and path.suffix not in PICTURES:
        msg = f"--plot {path}: the file must end in one of {', '.join(PICTURES)}"
        raise ValueError(msg)


def summary_table(found: Report) -> Table:
    """Return the sums as a table."""
    from rich.text import Text

    table = new_table("", "")
    table.show_header = False
    for name, text in found.summary.lines():
        table.add_row(Text(name, style="bold"), Text(visible(text)))
    return table


def loop_table(found: Report, rows: int) -> Table:
    """Return one line per loop; a name that all of them share stands above."""
    shown = [row.to_json() for row in (found.loops[:rows] if rows > 0 else found.loops)]
    columns = [name for name in COLUMNS if any(row[name] is not None for row in shown)]
    names = sorted({row.loop for row in found.loops})
    if len(names) == 1:
        columns.remove("loop")
    table = new_table(*columns, numbers=("cycles", "seconds", "tokens", "usd"))
    table.title, table.title_justify = (cell(names[0]) if len(names) == 1 else None), "left"
    for row in shown:
        if row["observed"]:  # it would have stopped the loop, and did not
            row["condition"] = f"({row['condition']})"
        table.add_row(*(cell(row[name]) for name in columns))
    if (more := len(found.loops) - len(shown)) > 0:
        table.caption = f"and {more:,} more: --rows 0 lists all"
    return table


def visit_table(found: Report) -> Table:
    """Return one line per visit; equal letters stand for equal fingerprints."""
    from langgraph_loopguard.report.plots import letters

    names = letters(found.visits)
    numbers = ("n", "cycle", "seconds", "tokens", "usd", "measure")
    shown = [
        visit.to_json() | {"same": names.get(visit.fingerprint), "fingerprint": (visit.fingerprint or "")[:8]}
        for visit in found.visits
    ]
    wanted = ("loop", "scope", "n", "cycle", "node", "same", "seconds", "tokens", "usd", "measure", "fingerprint")
    columns = [name for name in wanted if any(row[name] is not None for row in shown)]
    table = new_table(*columns, numbers=numbers)
    for row in shown:
        table.add_row(*(cell(row[name]) for name in columns))
    return table


def cell(value: Any) -> Any:
    """Return a value as text for a table: what agents wrote is shown and steers nothing."""
    from rich.text import Text

    if value is None:
        return Text("")
    if isinstance(value, float):
        return Text(f"{value:,.3f}")
    if isinstance(value, int) and not isinstance(value, bool):
        return Text(f"{value:,}")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Text(shortened(visible(text), 120))
