"""The `review` subcommand: its options, and what it prints. Imports nothing heavy until it runs."""

from __future__ import annotations

import argparse
import json
import logging
import shlex
import sys
from pathlib import Path
from typing import Any

from langgraph_loopguard.review.errors import ReviewError

DESCRIPTION = """\
Review a change until it is finished: complete, blocked or escalated. The review works in a clone of its own and keeps
everything outside the repository. It approves, merges, pushes and posts nothing: a person decides.

Exit status of run, status and report, never 0 after a review: 10 recorded, 11 handed off (blocked or escalated), 12 the
same finding is open twice running, 5 failed or timed out, 2 usage."""

CHECK_HELP = "an agreed check, [[SUBJECT:]NAME=]COMMAND; checks of one subject must agree; repeatable"
REVIEWER_HELP = (
    "reads the question as JSON from standard input and answers by the schema (`loopguard review schema`);"
    " it runs in the review's clone"
)
ENV_HELP = "an environment variable that reviewer and fixer get besides the harmless ones; repeatable"
CHANGE_HELP = "the change's name, to which the budget belongs (default: the branch)"
BY_HELP = "the person who grants --extra-attempts or dismisses a finding"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "review",
        help="review a change of a git repository until it is finished",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, dest="action")
    _add_run(actions.add_parser("run", help="make one review"))
    status = actions.add_parser("status", help="say how it stands; calls and writes nothing")
    _add_place(status)
    status.set_defaults(run=_status, errors=(ReviewError,))
    report = actions.add_parser("report", help="show all of it; calls and writes nothing")
    _add_place(report)
    report.add_argument("--format", choices=("text", "json", "sarif", "html"), default="text")
    report.set_defaults(run=_report, errors=(ReviewError,))
    schema = actions.add_parser("schema", help="print the JSON schema of a reviewer's answer")
    schema.set_defaults(run=_schema, errors=())


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("repository", metavar="REPO", type=Path)
    parser.add_argument("--head", metavar="REF", help="what to review (default: what is checked out)")
    parser.add_argument("--change", metavar="NAME", help=CHANGE_HELP)
    parser.add_argument("--dir", metavar="DIR", type=Path, help="where reviews are kept (default: $LOOPGUARD_HOME)")


def _add_run(parser: argparse.ArgumentParser) -> None:
    _add_place(parser)
    parser.add_argument("--base", metavar="REF", required=True, help="what the change starts from")
    parser.add_argument("--check", metavar="COMMAND", action="append", default=[], help=CHECK_HELP)
    reviewer = parser.add_mutually_exclusive_group(required=True)
    reviewer.add_argument("--reviewer", metavar="COMMAND", help=REVIEWER_HELP)
    reviewer.add_argument("--model", metavar="PROVIDER:NAME", help="a chat model as the reviewer, through LangChain")
    parser.add_argument("--fixer", metavar="COMMAND", help="repairs what is open, in the review's own clone")
    parser.add_argument("--goal", metavar="TEXT", default="", help="what the change is meant to do")
    parser.add_argument("--context", metavar="FILE", type=Path, help="further text for reviewer and fixer")
    parser.add_argument("--file", metavar="PATTERN", action="append", default=[], help="what is in scope; repeatable")
    parser.add_argument("--lines", choices=("file", "changed"), default="file", help="scope within a changed file")
    parser.add_argument("--max-attempts", metavar="N", type=int, default=3, help="in all runs (default: %(default)s)")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=1800, help="for one call of the reviewer")
    parser.add_argument("--check-timeout", metavar="SECONDS", type=float, default=600, help="for one check")
    parser.add_argument("--max-seconds", metavar="SECONDS", type=float, help="of work, in all runs")
    parser.add_argument("--env", metavar="NAME", action="append", default=[], help=ENV_HELP)
    parser.add_argument("--check-env", metavar="NAME", action="append", default=[], help="the same for the checks")
    parser.add_argument("--retry-failed", action="store_true", help="make a failed attempt again, unchanged")
    parser.add_argument("--extra-attempts", metavar="N", type=int, default=0, help="granted by a person, in all")
    parser.add_argument("--dismiss", metavar="ID", action="append", default=[], help="a finding that is none")
    parser.add_argument("--by", metavar="NAME", help=BY_HELP)
    parser.set_defaults(run=_run, errors=(ReviewError, ValueError))


def _run(args: argparse.Namespace) -> int:
    from langgraph_loopguard.review.agents import CommandAgent
    from langgraph_loopguard.review.checks import CommandCheck
    from langgraph_loopguard.review.errors import BusyError
    from langgraph_loopguard.review.report import status_lines
    from langgraph_loopguard.review.runner import Order, model_reviewer, run
    from langgraph_loopguard.review.standing import FAILED
    from langgraph_loopguard.review.text import inline

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain("%(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    settings = {"timeout": args.check_timeout, "env": args.check_env}
    more: dict[str, Any] = {
        "goal": args.goal,
        "context": _text(args.context),
        "files": args.file,
        "lines": args.lines,
        "max_attempts": args.max_attempts,
        "max_seconds": args.max_seconds,
        "extra_attempts": args.extra_attempts,
        "timeout": args.timeout,
        "retry_failed": args.retry_failed,
    }
    order = Order(
        repository=args.repository,
        base=args.base,
        head=args.head,
        change=args.change,
        home=args.dir,
        reviewer=model_reviewer(args.model, args.env) if args.model else CommandAgent(_argv(args.reviewer), args.env),
        fixer=CommandAgent(_argv(args.fixer), args.env) if args.fixer else None,
        checks=[CommandCheck.parse(text, **settings) for text in args.check],
        dismiss=args.dismiss,
        by=args.by,
        more=more,
    )
    try:
        status, report = run(order)
    except BusyError as error:
        sys.stderr.write(f"loopguard review: {inline(error)}\n")
        return FAILED
    if report is not None:
        sys.stdout.write("\n".join(status_lines(report)) + "\n")
    return status


class _Plain(logging.Formatter):
    """Messages hold text from agents and repositories: what would steer a terminal is shown, not obeyed."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message on one line."""
        from langgraph_loopguard.review.text import inline

        return inline(super().format(record))


def _status(args: argparse.Namespace) -> int:
    from langgraph_loopguard.review.report import status_lines
    from langgraph_loopguard.review.runner import find_review

    _, report = find_review(args.repository, args.change, args.head, args.dir)
    if report is None:
        sys.stdout.write("not reviewed\n")
        return 0
    sys.stdout.write("\n".join(status_lines(report)) + "\n")
    return report.exit_status


def _report(args: argparse.Namespace) -> int:
    from langgraph_loopguard.review.report import render
    from langgraph_loopguard.review.runner import find_review

    name, report = find_review(args.repository, args.change, args.head, args.dir)
    if report is None:
        msg = f"there is no review of {name!r}"
        raise ReviewError(msg)
    sys.stdout.write(render(report, args.format))
    return report.exit_status


def _schema(args: argparse.Namespace) -> int:
    from langgraph_loopguard.review.answer import answer_schema

    sys.stdout.write(json.dumps(answer_schema(), indent=2) + "\n")
    return 0


def _argv(text: str) -> list[str]:
    argv = shlex.split(text)
    if not argv:
        msg = f"{text!r} names no command"
        raise ValueError(msg)
    return argv


def _text(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        msg = f"the context {str(path)!r} cannot be read: {error.strerror}"
        raise ReviewError(msg) from error
