"""The `audit` subcommand: its options, and what it prints and writes. Imports nothing heavy until it runs."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langgraph_loopguard.graph.audit.report import AuditReport

DESCRIPTION = """\
Finds the cycles that no guard cuts. Nothing of a graph is run; module:graph, file.py:graph and langgraph.json import
the code that defines it, a FOLDER (or a file.py) is only read.

Exit status: 0 when no cycle is open, 1 when one is, 2 for an error."""


class UsageError(Exception):
    """An option makes no sense; the message is one line for the user."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "audit",
        help="the cycles of a graph that no guard cuts",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "target", metavar="TARGET", help="module:graph, file.py:graph, langgraph.json, FOLDER or file.py"
    )
    formats = ("text", "json", "mermaid", "sarif")
    parser.add_argument("--format", choices=formats, default="text", help="what is printed (default: %(default)s)")
    parser.add_argument("--sarif", type=Path, metavar="FILE", help="write a SARIF 2.1.0 log too")
    parser.add_argument("--mermaid", type=Path, metavar="FILE", help="write the drawing too, open cycles in red")
    allow = "a cycle that is known and meant, for example 'model -> tools'; may be repeated"
    parser.add_argument("--allow", action="append", default=[], metavar="CYCLE", help=allow)
    limit = "cycles listed of each graph (default: %(default)s); whether one is open is exact anyway"
    parser.add_argument("--limit", type=int, default=100, metavar="N", help=limit)
    parser.set_defaults(run=run, errors=(UsageError,))


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return the exit status.

    Raises:
        UsageError: With one line for the user.
    """
    try:
        from langgraph_loopguard.graph.audit.load import AuditError, audit_target

        if args.limit < 1:
            raise UsageError(f"--limit {args.limit}: it must be at least 1")
        try:
            report = audit_target(args.target, args.limit).without(args.allow)
        except (AuditError, ValueError) as error:
            raise UsageError(str(error)) from error
        _write(args.sarif, json.dumps(report.to_sarif(), indent=2) + "\n")
        _write(args.mermaid, report.to_mermaid())
        _print(report, args.format)
    except ImportError as error:  # the extra is missing: what it says names it
        raise UsageError(str(error)) from error
    return 0 if report.ok else 1


def _write(file: Path | None, text: str) -> None:
    if file is None:
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error


def _print(report: AuditReport, kind: str) -> None:
    if kind == "text":
        from rich.console import Console

        Console(highlight=False, markup=False, emoji=False).print(report, soft_wrap=True)
        return
    texts = {"json": report.to_json, "mermaid": report.to_mermaid}
    text = texts[kind]() if kind in texts else json.dumps(report.to_sarif(), indent=2)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
