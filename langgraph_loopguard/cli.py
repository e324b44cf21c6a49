"""The `loopguard` command. Each subcommand is a module with `add_parser(commands)`; here they only come together.

A subcommand's parser sets two defaults: `run`, which takes the parsed arguments and returns the exit status, and
`errors`, the exceptions whose message is one line for the user (exit status 2).
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

DISTRIBUTION = "langgraph-loopguard"

COMMANDS = (
    "langgraph_loopguard.demo.command",
    "langgraph_loopguard.graph.audit.command",
    "langgraph_loopguard.review.command",
    "langgraph_loopguard.report.command",
    "langgraph_loopguard.report.tune_command",
    "langgraph_loopguard.queue.command",
)
"""Modules of the subcommands, in the order of the help. They import what is heavy or optional when they run."""

USAGE_ERROR = 2
INTERRUPTED = 130


def build_parser() -> argparse.ArgumentParser:
    """Return the parser with all subcommands."""
    parser = argparse.ArgumentParser(prog="loopguard", description="Guards for LangGraph loops.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="command")
    for module in COMMANDS:
        import_module(module).add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status.

    Args:
        argv: The arguments without the program's name. Default: those of the process.
    """
    _never_fail_to_print()
    args = build_parser().parse_args(argv)
    try:
        status: int = args.run(args)
    except args.errors as error:
        sys.stderr.write(f"loopguard {args.command}: error: {error}\n")
        return USAGE_ERROR
    except KeyboardInterrupt:
        sys.stderr.write(f"loopguard {args.command}: interrupted\n")
        return INTERRUPTED
    return status


def _never_fail_to_print() -> None:
    """Write `?` for what the terminal's encoding lacks, rather than end in an error after the work is done."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
