"""The runner: one review of a change in a git repository, in a clone of its own.

It reads the repository once and never writes to it. It approves, merges, pushes and posts nothing.
"""

from __future__ import annotations

import logging
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

from langgraph_loopguard.review.clone import BASE_REF, HEAD_REF, prepare
from langgraph_loopguard.review.errors import ReviewError, SourceError
from langgraph_loopguard.review.findings import dismiss
from langgraph_loopguard.review.lock import locked
from langgraph_loopguard.review.place import Desk, desk
from langgraph_loopguard.review.repository import Repository
from langgraph_loopguard.review.source import SourceState
from langgraph_loopguard.review.standing import FAILED, ReviewReport, read_report
from langgraph_loopguard.review.store import ReviewStore, read_memory

if TYPE_CHECKING:
    from langgraph_loopguard.review.agents import CommandAgent

logger = logging.getLogger("langgraph_loopguard")

OID = re.compile(r"[0-9a-fA-F]{7,64}")

RECURSION_LIMIT = 10_000


class Stopped(BaseException):
    """A signal asked the run to end."""


@dataclass(frozen=True)
class Order:
    """What a user asks the runner for; see the command's help.

    Attributes:
        repository: The repository to review.
        base: The ref that the change starts from.
        reviewer: The reviewer.
        head: The ref to review. Default: what is checked out.
        change: The change's name, to which the budget belongs. Default: the branch of the head.
        home: Where reviews are kept.
        fixer: The fixer, if there is one.
        checks: The agreed checks.
        dismiss: Ids of findings that a person holds to be none.
        by: That person.
        more: Further settings of `review_loop`.
    """

    repository: Path
    base: str
    reviewer: Any
    head: str | None = None
    change: str | None = None
    home: Path | None = None
    fixer: Any = None
    checks: Sequence[Any] = ()
    dismiss: Sequence[str] = ()
    by: str | None = None
    more: dict[str, Any] = field(default_factory=dict)


def find(path: Path, change: str | None, head: str | None, home: Path | None) -> tuple[Repository, str, Desk]:
    """Return the repository, the change's name, and where its review is kept.

    The budget belongs to that name: a new commit, a moved base or a rewritten history is the same change.

    Raises:
        ReviewError: There is no repository.
    """
    repository = Repository.find(path)
    if repository is None:
        msg = f"{str(path)!r} is not a git repository"
        raise ReviewError(msg)
    name = change
    if name is None and head is not None and head != "HEAD" and not OID.fullmatch(head):
        name = head.removeprefix("refs/heads/")
    if name is None:
        name = repository.branch() or "detached"
    return repository, name, desk(repository.common, name, top=repository.top, root=home)


def find_review(path: Path, change: str | None, head: str | None, home: Path | None) -> tuple[str, ReviewReport | None]:
    """Return a change's name and how its review stands; unnamed, the repository's only one. Writes nothing.

    Raises:
        ReviewError: There is no repository, or there are several reviews to choose from.
    """
    repository, name, where = find(path, change, head, home)
    report = read_report(where, name)
    if report is not None or change is not None or head is not None:
        return name, report
    known: dict[str, Desk] = {}
    for folder in sorted(where.folder.parent.glob("*/")):
        memory = read_memory(Desk(folder).store)
        if memory is not None and memory.facts.get("repository") == str(repository.common):
            known[memory.facts["change"]] = Desk(folder)
    if len(known) > 1:
        msg = f"there is no review of {name!r}; name one by --change: {', '.join(sorted(known))}"
        raise ReviewError(msg)
    for only, its in known.items():
        return only, read_report(its, only)
    return name, None


def run(order: Order) -> tuple[int, ReviewReport | None]:
    """Review a change; return the exit status and how the review stands. The status is never 0.

    Raises:
        ReviewError: The order makes no sense, or another process is at work on the change.
        ValueError: As for `review_loop`.
    """
    # A status and a report read only: they need not wait for LangGraph to be imported.
    from langgraph_loopguard.review.loop import build_graph
    from langgraph_loopguard.review.settings import make_settings

    repository, name, where = find(order.repository, order.change, order.head, order.home)
    base = repository.git.resolve(order.base)
    head = repository.git.resolve(order.head or "HEAD")
    _warn_of_changes(repository, order)
    where.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _stoppable(), locked(where.lock):
        store = ReviewStore(where.store)
        for attempt in store.interrupt():
            logger.warning("attempt %d was interrupted: the process that ran it is gone", attempt.n)
        if order.dismiss:
            _dismiss(store, order)
        store.note(change=name, repository=str(repository.common))
        try:
            prepare(repository, where.work, base, head)
            settings = make_settings(
                where.work,
                reviewer=order.reviewer,
                fixer=order.fixer,
                store=store,
                base=BASE_REF,
                head=HEAD_REF,
                checks=order.checks,
                granted_by=order.by,
                **_DEFAULTS | order.more,
            )
            graph = build_graph(settings, ask_human=False).compile(name="review")
            graph.invoke({}, {"recursion_limit": RECURSION_LIMIT})
        except SourceError as error:
            logger.error("the source cannot be brought into the review's clone: %s", error)
            return FAILED, None
        except (KeyboardInterrupt, Stopped) as error:
            logger.warning("the run was stopped: %s", str(error) or type(error).__name__)
            return FAILED, None
    report = read_report(where, name)
    assert report is not None
    return report.exit_status, report


_DEFAULTS: dict[str, Any] = {
    "goal": "",
    "files": (),
    "lines": "file",
    "context": "",
    "max_attempts": 3,
    "max_seconds": None,
    "extra_attempts": 0,
    "timeout": 1800.0,
    "retry_failed": False,
}


def model_reviewer(spec: str, env: Sequence[str], role: Literal["reviewer", "fixer"] = "reviewer") -> CommandAgent:
    """Return a chat model as a command of its own process, so that a time limit and a kill reach it.

    Raises:
        ValueError: The name has no provider.
    """
    from langgraph_loopguard.review.agents import CommandAgent

    provider, separator, name = spec.partition(":")
    if not (provider and separator and name):
        msg = f"model must be provider:name, got {spec!r}"
        raise ValueError(msg)
    return CommandAgent([sys.executable, "-m", "langgraph_loopguard.review.model", role, spec], env)


def _warn_of_changes(repository: Repository, order: Order) -> None:
    """Say so when what is checked out is reviewed without what is not committed."""
    if repository.bare or order.head not in (None, "HEAD"):
        return
    if not SourceState.of(repository.top).clean:
        logger.warning("the work tree has changes that are not committed: they are not reviewed")


def _dismiss(store: ReviewStore, order: Order) -> None:
    if not order.by:
        msg = "a finding is dismissed by a person: name them with --by"
        raise ReviewError(msg)
    memory = store.load()
    known = {finding.id for finding in memory.findings}
    for identity in order.dismiss:
        if identity not in known:
            msg = f"there is no finding {identity!r} in this review"
            raise ReviewError(msg)
    number = int(memory.facts.get("round", 0))
    findings = [
        dismiss(finding, order.by, number) if finding.id in order.dismiss else finding for finding in memory.findings
    ]
    store.save(findings)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Turn the signals that ask a process to end into an exception, so that what runs is ended and written down."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(signal.Signals(number).name)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
