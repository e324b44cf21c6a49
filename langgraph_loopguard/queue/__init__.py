"""Escalations that wait for a person: list, claim, decide, deliver; in a database or on a LangGraph Server."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from langgraph_loopguard.queue.base import Queue
from langgraph_loopguard.queue.errors import (
    AlreadyDecidedError,
    ClaimedError,
    QueueError,
    QueueUnavailableError,
    SupersededError,
    UnknownEscalationError,
)
from langgraph_loopguard.queue.rows import Filter, Health, Page, QueuedEscalation

if TYPE_CHECKING:
    from langgraph_loopguard.queue.courier import Reconciled
    from langgraph_loopguard.queue.delivery import Delivery
    from langgraph_loopguard.queue.server import ServerQueue
    from langgraph_loopguard.queue.store import EscalationQueue

LAZY = {
    "Delivery": "langgraph_loopguard.queue.delivery",
    "EscalationQueue": "langgraph_loopguard.queue.store",
    "Reconciled": "langgraph_loopguard.queue.courier",
    "ServerQueue": "langgraph_loopguard.queue.server",
}
"""Names that bring SQLAlchemy or LangGraph's client with them, and the modules that have them."""

__all__ = [
    "AlreadyDecidedError",
    "ClaimedError",
    "Delivery",
    "EscalationQueue",
    "Filter",
    "Health",
    "Page",
    "Queue",
    "QueueError",
    "QueueUnavailableError",
    "QueuedEscalation",
    "Reconciled",
    "ServerQueue",
    "SupersededError",
    "UnknownEscalationError",
]


def __getattr__(name: str) -> Any:
    if name in LAZY:
        try:
            module = import_module(LAZY[name])
        except ModuleNotFoundError as error:
            if error.name not in ("sqlalchemy", "alembic"):
                raise
            msg = f"{name} needs {error.name}: pip install 'langgraph-loopguard[queue]'"
            raise ImportError(msg) from error
        return getattr(module, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
