"""The `demo` subcommand: its options, and what it does in which order. Imports nothing heavy until it runs."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from langgraph_loopguard.demo.catalogue import CATALOGUE, number_of
from langgraph_loopguard.demo.errors import DemoError
from langgraph_loopguard.demo.tools import require_tools

if TYPE_CHECKING:
    from rich.console import Console

    from langgraph_loopguard.demo.batch import Hire
    from langgraph_loopguard.demo.pulls import PullRequest

DEFAULT_DIR = "loopguard-demo"

DESCRIPTION = """\
Twenty pull requests on a git repository made from the running Python's standard library. The Reviewer and the Fixer
are real tools (ruff, pycodestyle, black, yapf, isort, autopep8). Fifteen pull requests are closed within three cycles,
five never can be. Each is run without a guard, until the demo stops it, and with one.

Exit status: 0 when all ended as seeded, 1 when not, 2 for an error. With --model nothing is certain beforehand: 0 when
every guarded run was closed or escalated."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "demo",
        help="twenty pull requests, with and without a guard",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dir", type=Path, default=Path(DEFAULT_DIR), help="where to work (default: ./%(default)s)")
    parser.add_argument("--show", metavar="PR", help="print the escalation of one pull request of the last run")
    parser.add_argument("--model", metavar="PROVIDER:NAME", help="a chat model for both agents, through LangChain")
    parser.add_argument("--only", metavar="PR,...", help="only these pull requests, for example PR-03,PR-17")
    parser.add_argument("--max-cycles", type=int, default=3, metavar="N", help="the guard's cap (default: %(default)s)")
    stop = "cycles until the demo stops an unguarded run (default: %(default)s)"
    parser.add_argument("--bound", type=int, default=12, metavar="N", help=stop)
    parser.set_defaults(run=run, errors=(DemoError,))


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return the exit status.

    Raises:
        DemoError: With one line for the user.
    """
    require_tools()
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=bool(args.show))
    if args.show:
        return show(args.dir, args.show, console)
    for option, value in (("--max-cycles", args.max_cycles), ("--bound", args.bound)):
        if value < 1:
            msg = f"{option} {value}: it must be at least 1"
            raise DemoError(msg)
    return play(args, console)


def show(root: Path, named: str, console: Console) -> int:
    """Print one escalation."""
    from langgraph_loopguard.demo.show import read_record, record_text
    from langgraph_loopguard.demo.workdir import find_existing

    number = number_of(named)
    console.print(record_text(read_record(find_existing(root), number)))
    return 0


def play(args: argparse.Namespace, console: Console) -> int:
    """Make the repository, run everything, print the table."""
    from langgraph_loopguard.demo.batch import Settings, run_batch
    from langgraph_loopguard.demo.progress import progress, quiet
    from langgraph_loopguard.demo.project import make_project
    from langgraph_loopguard.demo.table import escalation_table, result_table, summary, where_to_look

    settings = Settings(bound=args.bound, max_cycles=args.max_cycles)
    hire, catalogue = _hire(args.model), _chosen(args.only)
    with console.status("Making the repository..."):
        work, opened = make_project(args.dir, catalogue)
    with quiet(), progress(console, len(opened) * 2) as watch:
        rows = run_batch(work, opened, hire, settings, watch)
    console.print(result_table(rows))
    console.print(summary(rows, settings))
    console.print(escalation_table(rows))
    console.print(where_to_look(rows, work, _show_command(args.dir)), soft_wrap=True)
    passed = (row.accounted_for if args.model else row.as_seeded for row in rows)
    return 0 if all(passed) else 1


def _show_command(root: Path) -> str:
    where = "" if root == Path(DEFAULT_DIR) else f" --dir {shlex.quote(str(root))}"
    return f"loopguard demo{where} --show"


def _hire(spec: str | None) -> Hire:
    if spec is None:
        from langgraph_loopguard.demo.agents import tool_agents

        return tool_agents
    from langgraph_loopguard.demo.chat import chat_agents, load_chat_model

    return partial(chat_agents, model=load_chat_model(spec))


def _chosen(only: str | None) -> Mapping[int, PullRequest]:
    if only is None:
        return CATALOGUE
    numbers = sorted({number_of(part) for part in only.split(",")})
    return {number: CATALOGUE[number] for number in numbers}
