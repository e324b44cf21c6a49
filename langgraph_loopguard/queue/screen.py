"""What the `queue` subcommand prints: tables for people, JSON for programs. No text of an agent acts."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from langgraph_loopguard.people.terminal import shown, to_rich
from langgraph_loopguard.people.text import one_line, visible
from langgraph_loopguard.people.view import EscalationView, decision_sentence
from langgraph_loopguard.queue.rows import Health, Page, QueuedEscalation, short

if TYPE_CHECKING:
    from langgraph_loopguard.queue.courier import Reconciled
    from langgraph_loopguard.queue.delivery import Delivery


def write_json(value: Any) -> None:
    """Print a value as JSON on one line, in ASCII: whatever is in it, the terminal sees none of it."""
    sys.stdout.write(json.dumps(value) + "\n")


def write_page(page: Page) -> None:
    """Print a listing."""
    console, now = _console(), datetime.now(timezone.utc)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("id", "age", "state", "loop", "thread"):
        table.add_column(name, no_wrap=True)
    table.add_column("question", ratio=1, no_wrap=True, overflow="ellipsis")
    for row in page.rows:
        table.add_row(
            visible(row.id[:12]),
            short(row.age(now)),
            _state(row, now),
            one_line(row.loop, 24),
            one_line(row.thread_id or "", 20),
            one_line(row.question, 300),
        )
    console.print(table if page.rows else "nothing")
    if page.next is not None:
        console.print(f"more: --after {page.next}", soft_wrap=True)


def write_whole(row: QueuedEscalation) -> None:
    """Print one escalation, whole."""
    console = _console()
    console.print(_status(row), soft_wrap=True)
    for part in to_rich(EscalationView.of(row.record or {})):
        console.print(part, soft_wrap=isinstance(part, Text))


def write_row(row: QueuedEscalation) -> None:
    """Print where one escalation stands now."""
    _console().print(_status(row), soft_wrap=True)


def write_deliveries(deliveries: Sequence[Delivery], *, as_json: bool) -> None:
    """Print what became of decisions."""
    if as_json:
        write_json([asdict(one) for one in deliveries])
        return
    console = _console()
    for one in deliveries:
        detail = f": {one_line(one.detail, 1_000)}" if one.detail else ""
        console.print(f"{one.id} of thread {one_line(one.thread_id)}: {one.outcome}{detail}", soft_wrap=True)
    if not deliveries:
        console.print("nothing to deliver")


def write_reconciled(done: Reconciled, *, as_json: bool) -> None:
    """Print what a comparison has changed."""
    if as_json:
        write_json(asdict(done))
        return
    console = _console()
    for what, ids in (("added", done.added), ("superseded", done.superseded)):
        for one in ids:
            console.print(f"{one_line(one)}: {what}", soft_wrap=True)
    console.print(f"{done.threads} threads, {len(done.added)} added, {len(done.superseded)} superseded")


def write_health(health: Health, problems: Sequence[str], *, as_json: bool) -> None:
    """Print one line: what is over its limit, or the numbers."""
    if as_json:
        write_json({**health.to_json(), "problems": list(problems)})
        return
    oldest = f", the oldest for {short(health.oldest_open)}" if health.oldest_open is not None else ""
    numbers = f"{health.open} open ({health.claimed} claimed){oldest}, {health.undelivered} undelivered"
    failing = f" ({health.failing} failing)" if health.failing else ""
    sys.stdout.write(f"{'; '.join(problems)} [{numbers}{failing}]\n" if problems else f"ok: {numbers}{failing}\n")


def _state(row: QueuedEscalation, now: datetime) -> Text:
    if row.is_claimed(now):
        return shown(f"claimed by {one_line(str(row.owner), 20)}", "cyan")
    styles = {"open": "yellow", "decided": "blue", "applied": "green", "superseded": "dim"}
    return Text(row.state, style=styles[row.state])


def _status(row: QueuedEscalation) -> Text:
    now = datetime.now(timezone.utc)
    line = Text.assemble(f"{row.id}: ", _state(row, now))
    if row.decision:
        line.append_text(shown(f", {decision_sentence(row.decision)}"))
    if row.error:
        line.append_text(shown(f" ({row.error})"))
    return line


def _console() -> Console:
    return Console(highlight=False, markup=False, emoji=False)
