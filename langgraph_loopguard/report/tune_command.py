"""The `tune` subcommand: what each cap would have done, and which one is recommended."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from langgraph_loopguard.core.text import visible
from langgraph_loopguard.report.command import add_source, check_picture, new_console, new_table

if TYPE_CHECKING:
    from rich.table import Table

    from langgraph_loopguard.report.survival import Interval
    from langgraph_loopguard.report.tuning import Tuning

DESCRIPTION = """\
What each cap would have done to the loops that were kept, and which cap costs least for a stated price of a person's
minute. Capped loops count as unfinished, not as failed; watched ones (mode="observe") say most.

SOURCE is the SQLite file or the postgresql:// URL that the graph's checkpointer writes to. Nothing is written to it.

Exit status: 0 with a recommendation, 1 without one (too few runs to say, or no price), 2 for an error."""

NOTHING_TO_SAY = 1


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    from langgraph_loopguard.core.errors import LoopGuardError

    parser = commands.add_parser(
        "tune",
        help="which cap one's own history recommends",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_source(parser)
    parser.add_argument("--minute-usd", type=float, metavar="USD", help="price of a person's minute")
    parser.add_argument("--minutes", type=float, default=10.0, metavar="N", help="minutes an escalation takes (10)")
    parser.add_argument("--cycle-usd", type=float, metavar="USD", help="price of a cycle (default: as recorded)")
    tokens = "price of a million tokens, where no dollars were recorded"
    parser.add_argument("--million-tokens-usd", type=float, metavar="USD", help=tokens)
    parser.add_argument("--level", type=float, default=0.95, metavar="P", help="of the intervals (0.95)")
    parser.set_defaults(run=run, errors=(LoopGuardError, ValueError, OSError))


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return the exit status.

    Raises:
        LoopGuardError, ValueError, OSError: With one line for the user.
    """
    from langgraph_loopguard.report.api import report
    from langgraph_loopguard.report.recommend import tune

    check_picture(args.plot)
    found = tune(
        report(args.source, loop=args.loop, progress=not args.json),
        loop=args.loop,
        minute_usd=args.minute_usd,
        minutes=args.minutes,
        cycle_usd=args.cycle_usd,
        million_tokens_usd=args.million_tokens_usd,
        level=args.level,
    )
    if args.json:
        print(json.dumps(found.to_json(), indent=2, ensure_ascii=True))
    else:
        console = new_console()
        seen = found.endings
        said = f"{found.loop}: {seen['resolved']:,} loops ended by themselves, {seen['stopped']:,} were stopped by a"
        said += f" condition, {seen['censored']:,} were cut off by a cap or are unfinished"
        console.print(visible(said), soft_wrap=True)
        if found.caps:
            console.print(cap_table(found))
        console.print(visible(found.why), soft_wrap=True)
    if args.plot:
        from langgraph_loopguard.report.tune_plot import plot_tuning

        plot_tuning(found, theme=args.theme).savefig(args.plot)
    return 0 if found.recommended is not None else NOTHING_TO_SAY


def cap_table(found: Tuning) -> Table:
    """Return one line per cap: loops that got so far, the chance and the share in percent, and averages per loop."""
    priced = found.caps[0].loop_usd is not None, found.caps[0].person_usd is not None
    names = ["cap", "loops", "chance", "resolved", "cycles", "min"]
    names += ["loop $"] * priced[0] + ["person $"] * priced[1] + ["both $"] * all(priced)
    table = new_table(*names, numbers=tuple(names))
    for cap in found.caps:
        step = found.steps[cap.cap]
        cells = [str(cap.cap), f"{step.at_risk:,}", _interval(step.chance), _interval(step.share)]
        cells += [f"{cap.cycles:.2f}", f"{cap.minutes:.2f}"]
        cells += [f"{usd:,.2f}" for usd in (cap.loop_usd, cap.person_usd, cap.usd) if usd is not None]
        table.add_row(*cells, style="bold" if cap.cap == found.recommended else "")
    return table


def _interval(interval: Interval) -> str:
    return f"{interval.estimate:.0%} ({100 * interval.low:.0f}-{100 * interval.high:.0f})"
