"""The `queue` subcommand: its options, and which operation each one calls. Imports nothing heavy until it runs."""

from __future__ import annotations

import argparse
import getpass
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph_loopguard.people.text import one_line
from langgraph_loopguard.queue.errors import (
    AlreadyDecidedError,
    ClaimedError,
    QueueError,
    SupersededError,
)
from langgraph_loopguard.queue.rows import STATES, Filter

if TYPE_CHECKING:
    from langgraph_loopguard.queue.base import Queue
    from langgraph_loopguard.queue.store import EscalationQueue

ENVIRONMENT = "LOOPGUARD_QUEUE_URL"

DESCRIPTION = """\
Escalations that wait for a person. The queue is an SQLite file (sqlite:///queue.db), a PostgreSQL database
(postgresql://user@host/database) or a LangGraph Server (http://host:port).

An escalation may be named by the beginning of its id. Ages are like 90s, 30m, 4h, 2d or 1h30m."""

LOST = 1
"""Exit status when somebody else was faster, or something is over its limit."""

AGE = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?")


class QueueCommandError(Exception):
    """Something that the user can put right, in one line."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "queue",
        help="escalations that wait for a person",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(title="operations", metavar="OPERATION", required=True, dest="operation")

    def verb(name: str, what: str, run: Callable[[Queue, argparse.Namespace], int]) -> argparse.ArgumentParser:
        found = verbs.add_parser(name, help=what, description=what[0].upper() + what[1:] + ".")
        found.add_argument("--url", help=f"the queue (default: ${ENVIRONMENT})")
        found.add_argument("--json", action="store_true", help="print JSON, for programs")
        found.set_defaults(run=lambda args: _run(run, args), errors=(QueueCommandError, QueueError))
        return found

    _filters(verb("list", "list escalations, the oldest first", _list), state="open", limit=50)
    verb("show", "show one escalation", _show).add_argument("id")
    claim = verb("claim", "reserve an escalation for yourself", _claim)
    claim.add_argument("id")
    claim.add_argument("--lease", type=_seconds, default=900.0, metavar="AGE", help="how long (default: 15m)")
    claim.add_argument("--release", action="store_true", help="give it up")
    _by(claim)
    _decide_options(verb("decide", "decide about an escalation", _decide))
    deliver = verb("deliver", "bring decisions to their graph, and run it to its next stop", _deliver)
    _graph_options(deliver)
    deliver.add_argument("--id", action="append", help="only this one, also one that waits for its next try")
    deliver.add_argument("--limit", type=int, default=100, metavar="N", help="threads at most (default: %(default)s)")
    deliver.add_argument("--lease", type=_seconds, default=60.0, metavar="AGE", help="until others take over (1m)")
    deliver.add_argument("--every", type=_seconds, metavar="AGE", help="go on, and look again so often")
    reconcile = verb("reconcile", "bring in what waits in a graph, close what waits no longer", _reconcile)
    _graph_options(reconcile)
    reconcile.add_argument("--thread", action="append", metavar="ID", help="only this thread (default: all there are)")
    health = verb("health", "one line, and exit status 1 when something is over its limit", _health)
    health.add_argument("--max-age", type=_seconds, default=86_400.0, metavar="AGE", help="of the oldest open one (1d)")
    health.add_argument("--max-open", type=int, metavar="N", help="open ones (default: any number)")
    health.add_argument("--max-undelivered", type=_seconds, default=3_600.0, metavar="AGE", help="of a decision (1h)")
    _filters(verb("export", "print whole escalations, one JSON object per line", _export), state="all", limit=None)


def _filters(parser: argparse.ArgumentParser, *, state: str, limit: int | None) -> None:
    parser.add_argument("--state", choices=(*STATES, "all"), default=state, help="default: %(default)s")
    parser.add_argument("--loop", help="of this guard")
    parser.add_argument("--owner", help="claimed or decided by this person")
    parser.add_argument("--graph-name", metavar="LABEL", help="of the graph with this label")
    parser.add_argument("--thread", metavar="ID", help="of this thread")
    parser.add_argument("--text", help="with this in the question, the last review, or a name")
    parser.add_argument("--min-age", type=_seconds, metavar="AGE", help="at least so old")
    parser.add_argument("--max-age", type=_seconds, metavar="AGE", help="at most so old")
    if limit is not None:
        parser.add_argument("--claimed", action=argparse.BooleanOptionalAction, help="that somebody works on, or not")
        parser.add_argument("--limit", type=int, default=limit, metavar="N", help="rows (default: %(default)s)")
        parser.add_argument("--after", metavar="MARK", help="the next page: what the last one ended with")


def _decide_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id")
    parser.add_argument("action", choices=("accept", "reject", "edit", "retry"))
    parser.add_argument("--fix", type=int, metavar="N", help="accept this attempt")
    parser.add_argument("--artifact", metavar="FILE", help="edit: the work as it shall be, a text (-: standard input)")
    parser.add_argument("--artifact-json", metavar="FILE", help="edit: the same, as JSON")
    parser.add_argument("--guidance", help="retry: what shall be taken into account")
    parser.add_argument("--extra-cycles", type=int, metavar="N", help="retry: cycles added to the cap")
    parser.add_argument("--extra-tokens", type=int, metavar="N", help="retry: tokens added to the budget")
    parser.add_argument("--extra-seconds", type=float, metavar="S", help="retry: seconds added")
    parser.add_argument("--extra-usd", metavar="USD", help="retry: US dollars added to the budget")
    parser.add_argument("--note", help="why")
    _by(parser)


def _graph_options(parser: argparse.ArgumentParser) -> None:
    target = "the compiled graph, or a function that returns it or a context manager of it"
    parser.add_argument("--graph", metavar="MODULE:NAME", help=f"{target}; also FILE.py:NAME")
    parser.add_argument("--graph-name", default="", metavar="LABEL", help="its label in the queue, if it has one")
    parser.add_argument("--async", dest="asynchronous", action="store_true", help="its nodes or checkpointer are async")


def _by(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--by", metavar="NAME", help="who you are (default: your login)")


def _run(operation: Callable[[Queue, argparse.Namespace], int], args: argparse.Namespace) -> int:
    try:
        queue = _connect(args)
        try:
            return operation(queue, args)
        finally:
            queue.close()
    except (AlreadyDecidedError, ClaimedError, SupersededError) as error:
        sys.stderr.write(f"loopguard queue: {error}\n")
        return LOST
    except (ValueError, TypeError, ImportError) as error:
        raise QueueCommandError(one_line(_short(error), 500)) from error


def _short(error: Exception) -> str:
    """What is wrong with an answer, without pydantic's frame around it."""
    problems = getattr(error, "errors", None)
    if not callable(problems):
        return str(error)
    return "; ".join(f"{'.'.join(map(str, one['loc']))} {one['msg']}".strip() for one in problems())


def _connect(args: argparse.Namespace) -> Queue:
    url = args.url or os.environ.get(ENVIRONMENT)
    if not url:
        msg = f"give --url or set {ENVIRONMENT}"
        raise QueueCommandError(msg)
    if url.startswith(("http://", "https://")):
        from langgraph_loopguard.queue.server import ServerQueue

        return ServerQueue(url)
    from langgraph_loopguard.queue import EscalationQueue
    from langgraph_loopguard.queue.database import sqlite_file

    path = sqlite_file(url)
    if path is not None and not path.exists() and args.operation != "reconcile":
        msg = f"there is no queue at {url}: a guard with queue= makes it, or `loopguard queue reconcile`"
        raise QueueCommandError(msg)
    return EscalationQueue(url, graph=getattr(args, "graph_name", None) or "")


def _where(args: argparse.Namespace) -> Filter:
    return Filter(
        state=None if args.state == "all" else args.state,
        loop=args.loop,
        owner=args.owner,
        graph=args.graph_name,
        thread_id=args.thread,
        claimed=getattr(args, "claimed", None),
        min_age=args.min_age,
        max_age=args.max_age,
        text=args.text,
    )


def _list(queue: Queue, args: argparse.Namespace) -> int:
    from langgraph_loopguard.queue import screen

    page = queue.list(_where(args), limit=args.limit, after=args.after)
    if args.json:
        screen.write_json({"rows": [row.to_json() for row in page.rows], "next": page.next})
    else:
        screen.write_page(page)
    return 0


def _show(queue: Queue, args: argparse.Namespace) -> int:
    from langgraph_loopguard.queue import screen

    row = queue.show(queue.find(args.id))
    screen.write_json(row.to_json()) if args.json else screen.write_whole(row)
    return 0


def _claim(queue: Queue, args: argparse.Namespace) -> int:
    from langgraph_loopguard.queue import screen

    found, by = queue.find(args.id), args.by or _login()
    row = queue.release(found, by) if args.release else queue.claim(found, by, lease=args.lease)
    screen.write_json(row.without_record().to_json()) if args.json else screen.write_row(row)
    return 0


def _decide(queue: Queue, args: argparse.Namespace) -> int:
    from langgraph_loopguard.queue import screen

    answer: dict[str, Any] = {
        "action": args.action,
        "fix": args.fix,
        "artifact": _artifact(args),
        "guidance": args.guidance,
        "extra_cycles": args.extra_cycles,
        "extra_tokens": args.extra_tokens,
        "extra_seconds": args.extra_seconds,
        "extra_usd": args.extra_usd,
        "note": args.note,
    }
    given = {key: value for key, value in answer.items() if value is not None}
    row = queue.decide(queue.find(args.id), given, by=args.by or _login())
    screen.write_json(row.without_record().to_json()) if args.json else screen.write_row(row)
    return 0


def _artifact(args: argparse.Namespace) -> Any:
    name = args.artifact or args.artifact_json
    if name is None:
        return None
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"the artifact cannot be read: {error}"
        raise QueueCommandError(msg) from error
    if args.artifact is not None:
        return text
    import json

    return json.loads(text)


def _deliver(queue: Queue, args: argparse.Namespace) -> int:
    from langgraph_loopguard.queue import screen
    from langgraph_loopguard.queue.loading import run_with_graph

    database = _database(queue, args)
    chosen = None if args.id is None else [queue.find(one) for one in args.id]
    options: dict[str, Any] = {"ids": chosen, "limit": args.limit, "lease": args.lease}
    well = True
    for deliveries in run_with_graph(
        args.graph,
        lambda graph: database.deliver(graph, **options),
        lambda graph: database.adeliver(graph, **options),
        asynchronous=args.asynchronous,
        every=args.every,
    ):
        screen.write_deliveries(deliveries, as_json=args.json)
        well = all(one.outcome in ("applied", "superseded") for one in deliveries)
    return 0 if well else LOST


def _reconcile(queue: Queue, args: argparse.Namespace) -> int:
    from langgraph_loopguard.queue import screen
    from langgraph_loopguard.queue.loading import run_with_graph

    database = _database(queue, args)
    for done in run_with_graph(
        args.graph,
        lambda graph: database.reconcile(graph, threads=args.thread),
        lambda graph: database.areconcile(graph, threads=args.thread),
        asynchronous=args.asynchronous,
    ):
        screen.write_reconciled(done, as_json=args.json)
    return 0


def _database(queue: Queue, args: argparse.Namespace) -> EscalationQueue:
    from langgraph_loopguard.queue import EscalationQueue

    if not isinstance(queue, EscalationQueue):
        msg = f"a LangGraph Server runs its graphs itself: there is nothing to {args.operation}"
        raise QueueCommandError(msg)
    if args.graph is None:
        msg = f"{args.operation} needs --graph MODULE:NAME or FILE.py:NAME"
        raise QueueCommandError(msg)
    return queue


def _health(queue: Queue, args: argparse.Namespace) -> int:
    from langgraph_loopguard.queue import screen

    health = queue.health()
    problems = health.problems(max_age=args.max_age, max_open=args.max_open, max_undelivered=args.max_undelivered)
    screen.write_health(health, problems, as_json=args.json)
    return LOST if problems else 0


def _export(queue: Queue, args: argparse.Namespace) -> int:
    from langgraph_loopguard.queue import screen

    for row in queue.export(_where(args)):
        screen.write_json(row.to_json())
    return 0


def _seconds(text: str) -> float:
    """Read an age; seconds where there is no unit."""
    found = AGE.fullmatch(text)
    if not text or found is None:
        msg = f"{text!r} is not like 90s, 30m, 4h, 2d or 1h30m"
        raise argparse.ArgumentTypeError(msg)
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return days * 86_400 + hours * 3_600 + minutes * 60 + seconds


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:  # a container whose user has no name
        msg = "give --by: your login has no name"
        raise QueueCommandError(msg) from error
