"""What the nodes of one run wrote, visit by visit, from the history that its checkpoints keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from langgraph_loopguard.core.ledger import EDGE
from langgraph_loopguard.graph.channels import (
    ESCALATIONS,
    HISTORY,
    LEDGERS,
    HistoryChannel,
    append_blocks,
    flatten,
    known_ledgers,
)
from langgraph_loopguard.graph.guard import scope_name
from langgraph_loopguard.report.repeats import fingerprints
from langgraph_loopguard.report.rows import scope_value
from langgraph_loopguard.report.source import Saver


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One visit of a node in one loop: what it handed over, as a fingerprint, and what it cost.

    Attributes:
        loop: The guard's name.
        scope: The scope key; `None` for a guard without one.
        n: Its number among the visits of the loop and scope key, from 1.
        cycle: The cycle that it belongs to, from 1; 0 for visits before the ring's first node.
        node: The node.
        at: When it ended, in seconds since the epoch.
        seconds: How long it took.
        tokens: Tokens, in and out.
        usd: US dollars; `None` where no price is known.
        fingerprint: Equal for visits of a node that wrote the same, counters aside; `None` when it wrote nothing.
        measure: What was still open after it; `None` where nothing measures.
    """

    loop: str
    scope: Any
    n: int
    cycle: int
    node: str
    at: float
    seconds: float
    tokens: int
    usd: float | None
    fingerprint: str | None
    measure: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the visit as plain JSON; the time as ISO 8601."""
        return {**asdict(self), "at": datetime.fromtimestamp(self.at, timezone.utc).isoformat()}


def visits_of(saver: Saver, found: CheckpointTuple) -> list[Visit]:
    """Return the visits of one checkpoint's loops, oldest first, over all its turns."""
    values: Mapping[str, Any] = found.checkpoint["channel_values"]
    if not isinstance(values.get(LEDGERS), dict):
        return []
    rings = _rings(values)
    counts: dict[tuple[str, str], _Count] = {}
    kept: list[tuple[dict[str, Any], Mapping[str, Any]]] = []
    by_node: dict[tuple[str, str, str], list[int]] = {}
    for entry in _entries(saver, found, values):
        for loop, visit in entry["visits"].items():
            name = scope_name(entry.get("scopes", {}).get(loop))
            key = loop, name
            count = counts.setdefault(key, _Count(rings.setdefault(loop, [])))
            count.add(entry["node"])
            by_node.setdefault((*key, entry["node"]), []).append(len(kept))
            place = {"loop": loop, "scope": scope_value(name), "n": count.visits, "cycle": count.cycle}
            kept.append(({**place, "node": entry["node"], "at": float(entry["at"])}, visit))
    said: dict[int, str | None] = {}
    for numbers in by_node.values():
        said |= zip(numbers, fingerprints([kept[number][1] for number in numbers]), strict=True)
    return [
        Visit(
            **place,
            seconds=float(visit.get("seconds") or 0.0),
            tokens=int(visit.get("tokens") or 0),
            usd=None if visit.get("usd") is None else float(visit["usd"]),
            fingerprint=said[number],
            measure=visit.get("measure"),
        )
        for number, (place, visit) in enumerate(kept)
    ]


class _Count:
    """Counts the visits and cycles of one loop and scope key, as the record of an escalation does."""

    def __init__(self, ring: list[str]) -> None:
        self._ring = ring
        self._last: int | None = None
        self.visits = self.cycle = 0

    def add(self, node: str) -> None:
        if node not in self._ring:
            self._ring.append(node)
        here = self._ring.index(node)
        if here == 0 or (self._last is not None and 0 < here <= self._last):
            self.cycle += 1
        self._last = here
        self.visits += 1


def _entries(saver: Saver, found: CheckpointTuple, values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    channel = HistoryChannel(append_blocks, list)
    if HISTORY in values:
        channel = channel.from_checkpoint(values[HISTORY])
    else:
        kept = saver.get_delta_channel_history(config=found.config, channels=[HISTORY])[HISTORY]
        channel = channel.from_checkpoint(kept.get("seed"))
        channel.replay_writes(kept["writes"])
    yield from flatten(channel.value)


def _rings(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """The nodes of each loop in order, as a record says; until there is one, the node whose edge begins the cycles.

    Where several edges were crossed equally often, the guard's own name tells: by default it is that of its nodes.
    """
    rings: dict[str, list[str]] = {}
    for loop, scopes in known_ledgers(values[LEDGERS]).items():
        for data in scopes.values():
            begins = [edge for edge, count in data.get("handoffs", {}).items() if count == data.get("cycles", 0)]
            first = [node for node in data.get("nodes", {}) if any(edge.startswith(node + EDGE) for edge in begins)]
            first.sort(key=lambda node: not loop.startswith(f"{node}-"))
            rings.setdefault(loop, first[:1])
    for record in (values.get(ESCALATIONS) or {}).values():
        rings[record["loop"]] = list(record["nodes"])
    return rings
