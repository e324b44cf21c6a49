"""One loop of one run, as a row: what it did, what it cost, how it ended."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langgraph.checkpoint.base import CheckpointTuple

from langgraph_loopguard.core.text import html_table
from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import ESCALATIONS, LEDGERS, known_ledgers
from langgraph_loopguard.graph.escalation import ASK
from langgraph_loopguard.graph.gate import ESCALATE
from langgraph_loopguard.graph.guard import scope_name

End = Literal["complete", "escalated", "blocked", "open"]
"""How a loop ended.

- `complete`: by itself; no guard kept it shut.
- `escalated`: a guard stopped it, and a person was asked; what they said is the row's `decision`.
- `blocked`: a guard stopped it because something failed.
- `open`: not yet: it runs, it waits for something else, or its process died.
"""

ENDS: tuple[End, ...] = ("complete", "escalated", "blocked", "open")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a loop has used.

    Attributes:
        cycles: Crossings of the loop's first edge.
        seconds: Active time of the loop's nodes.
        tokens: Tokens, in and out.
        usd: US dollars; `None` where no price is known.
    """

    cycles: int = 0
    seconds: float = 0.0
    tokens: int = 0
    usd: float | None = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Cost:
        """Return the cost that a ledger, or a part of one, sums up."""
        usd = data.get("usd")
        return cls(
            cycles=int(data.get("cycles", 0)),
            seconds=float(data.get("seconds", 0.0)),
            tokens=int(data.get("tokens", 0)),
            usd=None if usd is None else float(usd),
        )

    def minus(self, other: Cost) -> Cost:
        """Return what came on top of `other`, never less than nothing."""
        usd = None if self.usd is None else max(0.0, self.usd - (other.usd or 0.0))
        return Cost(
            cycles=max(0, self.cycles - other.cycles),
            seconds=round(max(0.0, self.seconds - other.seconds), 6),
            tokens=max(0, self.tokens - other.tokens),
            usd=usd,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRun:
    """What one guard remembers of one scope key in one thread.

    With `per="turn"` it is the latest input's loop: earlier turns live on in their escalations alone.

    Attributes:
        thread: The thread's id.
        namespace: `""` for the graph itself, else the subgraph that the loop is in.
        loop: The guard's name.
        scope: The scope key (plain JSON); `None` for a guard without one.
        outcome: How it ended (see `End`).
        handoffs: Crossings of all guarded edges together.
        spent: What it has cost so far.
        stopped: What it had cost when a guard stopped it first, or would have; `None` when none did.
        observed: The guard only watched (`mode="observe"`): `stopped` and the reason say what it would have done.
        condition: Name of the condition that stopped it, or would have.
        kind: What sort of stop that was (see `Kind`).
        reason: The same in one sentence.
        decision: What a person said last; `None` when nobody has.
        decisions: How often a person has decided.
        at: When its thread was last written, ISO 8601.
    """

    thread: str
    namespace: str
    loop: str
    scope: Any
    outcome: End
    handoffs: int
    spent: Cost
    stopped: Cost | None = None
    observed: bool = False
    condition: str | None = None
    kind: str | None = None
    reason: str | None = None
    decision: str | None = None
    decisions: int = 0
    at: str | None = None

    @property
    def after(self) -> Cost:
        """What it cost after the first stop: granted by a person, or for a watched loop what a guard had saved."""
        return Cost() if self.stopped is None else self.spent.minus(self.stopped)

    @property
    def before(self) -> Cost:
        """What it cost until the first stop; all of it when there was none."""
        return self.spent if self.stopped is None else self.stopped

    def beyond(self, threshold: int) -> bool:
        """Whether it passed so many cycles, and had neither ended nor been escalated by then."""
        enforced = self.stopped is not None and not self.observed
        return self.spent.cycles > threshold and not (enforced and self.before.cycles <= threshold)

    def to_json(self) -> dict[str, Any]:
        """Return the row as flat, plain JSON: one column per key."""
        row: dict[str, Any] = {name: getattr(self, name) for name in ("thread", "namespace", "loop", "scope")}
        row |= {"outcome": self.outcome, "cycles": self.spent.cycles, "handoffs": self.handoffs}
        row |= {"seconds": self.spent.seconds, "tokens": self.spent.tokens, "usd": self.spent.usd}
        row |= {name: getattr(self, name) for name in ("condition", "kind", "reason", "observed")}
        row |= {"decision": self.decision, "decisions": self.decisions}
        after, stopped = self.after, self.stopped is not None
        row |= {"stopped_cycles": self.before.cycles if stopped else None}
        row |= {"seconds_after": after.seconds, "tokens_after": after.tokens}
        row |= {"usd_after": after.usd if stopped else None if self.spent.usd is None else 0.0, "at": self.at}
        return row

    def _repr_html_(self) -> str:
        return html_table("Loop", self.to_json().items())


def loops_of(found: CheckpointTuple) -> Iterator[LoopRun]:
    """Return the rows of one checkpoint: one per guard and scope key."""
    values: Mapping[str, Any] = found.checkpoint["channel_values"]
    ledgers = values.get(LEDGERS)
    if not isinstance(ledgers, dict):
        return
    keys = found.config["configurable"]
    # The guard's own nodes wait for a person: that is an end of the automatic part.
    running = bool(_pregel.pending(values) - {ESCALATE, ASK})
    records = values.get(ESCALATIONS)
    for loop, scopes in known_ledgers(ledgers).items():
        own = [r for r in records.values() if r.get("loop") == loop] if isinstance(records, dict) else []
        for scope, data in scopes.items():
            mine = sorted((r for r in own if _scope_of(r) == scope), key=lambda record: str(record.get("created_at")))
            now = mine[data.get("trips_before", 0) :]
            yield LoopRun(
                thread=str(keys["thread_id"]),
                namespace=str(keys.get("checkpoint_ns", "")),
                loop=loop,
                scope=scope_value(scope),
                handoffs=sum(data.get("handoffs", {}).values()),
                spent=Cost.of(data),
                decisions=data.get("decisions", 0),
                at=found.checkpoint.get("ts"),
                **_end(data, now, running),
            )


def _end(data: Mapping[str, Any], records: Sequence[Mapping[str, Any]], running: bool) -> dict[str, Any]:
    """Return how a loop ended, from its ledger, its records of this turn (oldest first) and whether its graph runs."""
    tripped = data.get("tripped")
    decisions = [record["decision"]["action"] for record in records if record.get("decision")]
    end: dict[str, Any] = {"decision": decisions[-1] if decisions else None}
    outcome: End = "open" if running or data.get("waiting") else "complete"
    if records:
        first = records[0]
        spent = {**(first.get("spent") or {}), "cycles": first.get("cycles", 0)}
        return {**end, "outcome": first["outcome"], "stopped": Cost.of(spent), **_why(first["reason"])}
    if tripped is not None:  # its record is not written yet
        outcome = "blocked" if tripped["reason"]["kind"] == "broken" else "escalated"
        return {**end, "outcome": outcome, "stopped": Cost.of(data), **_why(tripped["reason"])}
    if (would := data.get("would_trip")) is not None:
        spent = would.get("spent") or {"cycles": max(0, would["cycles"] - 1)}
        return {**end, "outcome": outcome, "stopped": Cost.of(spent), "observed": True, **_why(would["reason"])}
    return {**end, "outcome": outcome}


def _why(reason: Mapping[str, Any]) -> dict[str, Any]:
    return {"condition": reason.get("condition"), "kind": reason.get("kind"), "reason": reason.get("message")}


def _scope_of(record: Mapping[str, Any]) -> str:
    return scope_name(record.get("scope_key"))


def scope_value(scope: str) -> Any:
    """Return the scope key whose ledger stands under a name (see `scope_name`), as plain JSON."""
    try:
        return json.loads(scope)
    except ValueError:
        return scope
