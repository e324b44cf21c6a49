"""What a guard remembers of one loop and one scope key: a pure fold of events, as plain JSON.

The ledger has a fixed size: counts, sums, and a window of fingerprints per node. Contents are kept elsewhere (the
history channel of a graph), so that neither the cost of an event nor the bytes of a checkpoint grow with the cycles.

A ledger is a `dict` (see `LedgerData`); `Ledger` is the typed view that conditions read. Events are dicts too:

- a *step* says what one visit of a node wrote (`visit`) and which guarded edges it crosses or trips;
- *recorded* names the escalation that a trip became;
- a *decision* is what a person said about it;
- a *turn* is a new input, for guards whose budget is per turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, TypedDict

from langgraph_loopguard.core.text import html_table
from langgraph_loopguard.core.verdict import Reason

VERSION = 1
"""Version of the ledger's shape."""

ARTIFACT_MEMORY = 32
"""Fingerprints of earlier work products that a ledger keeps."""

MOVED_MEMORY = 256
"""Names of keys that a ledger keeps per node, of those that the node has moved."""

MONEY = Context(prec=50)
"""Sums of money are exact here, whatever the caller's own decimal context is."""

EDGE = "->"

_COSTS = ("seconds", "tokens", "usd")
"""What a ledger sums up, as far as it knows it."""

POSITIONS = frozenset({"page", "offset", "cursor", "index", "position", "line", "start", "end", "chunk", "part"})
"""Keys whose number says where in the work the node is. They move because the work does, so they are no counters."""


class VisitData(TypedDict, total=False):
    """What one visit of a node wrote, without its content."""

    keys: dict[str, str | int]
    """Per written key the fingerprint of its value; whole numbers stand as themselves."""
    unmoved: list[str]
    """Written keys whose value was in the state already."""
    seconds: float
    tokens: int
    usd: str
    """US dollars, as an exact decimal."""
    unpriced: int
    """Tokens of models without a known price."""
    notes: dict[str, Any]
    """What conditions that look into the payload keep of it (see `Reader`), by the reader's name."""
    artifact: str | None
    """Fingerprint of the work product after the visit."""
    wrote_artifact: bool
    stand_in: bool
    """There is no work product: what the loop's second node wrote stands for it."""
    measure: float | None
    """What is still open after the visit."""
    measures: dict[str, float]
    """The same for conditions that have a measure of their own, by its name."""


class StepData(TypedDict, total=False):
    """One visit of a node in the loop, with the guarded edges that it crosses."""

    event: str
    node: str
    visit: VisitData | None
    cross: list[str]
    """Nodes entered over guarded edges."""
    edit: bool
    """A person changed the state as this node: a handoff that waits to be taken up is not a new one."""
    came_back: bool
    """Outside a graph: the handoff before this one passed over the ring's first node (see `Ring`)."""
    trip: dict[str, Any] | None
    """The trip, when the guard kept one of the edges shut."""
    would_trip: dict[str, Any] | None
    """The reason, when a guard that only observes would have kept the edge shut."""
    steps_left: int | None
    """Supersteps that LangGraph's recursion limit still allows; `None` while there are plenty."""
    at: float | None
    """Seconds since the epoch."""


class LedgerData(TypedDict, total=False):
    """A ledger as it stands in state. Absent keys mean "nothing yet"."""

    v: int
    cycles: int
    handoffs: dict[str, int]
    waiting: list[str]
    nodes: dict[str, dict[str, Any]]
    last: str
    artifact: dict[str, Any]
    measure: dict[str, Any]
    measures: dict[str, dict[str, Any]]
    seconds: float
    tokens: int
    usd: str
    unpriced: int
    granted: dict[str, float | str]
    tripped: dict[str, Any] | None
    trips: int
    trips_before: int
    """Trips of earlier turns."""
    would_trip: dict[str, Any]
    """`reason`, `cycles` and `spent` when a guard that observes would have tripped first; `count`, how often since."""
    decisions: int
    turns: int
    history_from: int
    steps_left: int | None
    stride: int
    growth: int
    at: float | None


@dataclass(frozen=True, slots=True)
class Ring:
    """The nodes of a loop in order, and how crossings among them count.

    The first node's handoff begins a cycle. A handoff that passes over that place without stopping there (from a later
    node back to one in between) makes a cycle as well, so any walk among the nodes is counted, in any direction.
    """

    nodes: tuple[str, ...]
    window: int

    def laps(self, source: str, target: str) -> bool:
        """Whether the crossing `source -> target` begins or completes a cycle."""
        first = self.nodes[0]
        if source == first or target == first:
            return source == first
        return self.nodes.index(target) <= self.nodes.index(source)

    def after(self, node: str) -> str:
        """The next node of the ring."""
        return self.nodes[(self.nodes.index(node) + 1) % len(self.nodes)]


class Ledger:
    """Typed, read-only view of a ledger's JSON. Conditions are functions of it.

    Attributes:
        data: The JSON itself (never changed by the library once it stands in state).
    """

    __slots__ = ("data",)

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        self.data: Mapping[str, Any] = data if data is not None else {"v": VERSION}

    def __repr__(self) -> str:
        return f"Ledger(cycles={self.cycles}, handoffs={self.handoffs}, tripped={self.tripped})"

    def _repr_html_(self) -> str:
        reason = self.reason or self.would_trip
        state = "shut, waits for a decision" if self.tripped else "would have tripped" if self.would_trip else "open"
        return html_table(
            "Ledger",
            [
                ("state", state),
                ("reason", f"{reason.condition}: {reason.message}" if reason else None),
                ("cycles", self.cycles),
                ("handoffs", ", ".join(f"{edge}: {count}" for edge, count in self.handoffs.items())),
                ("tokens", self.tokens or None),
                ("seconds", round(self.seconds, 3)),
                ("decisions", self.decisions or None),
            ],
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self.data == other.data

    __hash__ = None  # type: ignore[assignment]  # a view of mutable JSON

    @property
    def cycles(self) -> int:
        """Crossings of the loop's first edge."""
        found: int = self.data.get("cycles", 0)
        return found

    @property
    def handoffs(self) -> dict[str, int]:
        """Crossings per guarded edge, by `"source->target"`."""
        return dict(self.data.get("handoffs", {}))

    @property
    def tripped(self) -> bool:
        """The loop is shut and waits for a decision."""
        return self.data.get("tripped") is not None

    @property
    def reason(self) -> Reason | None:
        """Why the loop is shut; `None` when it is open."""
        found = self.data.get("tripped")
        return Reason.from_json(found["reason"]) if found else None

    @property
    def would_trip(self) -> Reason | None:
        """The first reason for which a guard in `mode="observe"` would have tripped."""
        found = self.data.get("would_trip")
        return Reason.from_json(found["reason"]) if found else None

    @property
    def seconds(self) -> float:
        """Active time of the loop's nodes, in seconds. A wait for a person does not count."""
        return float(self.data.get("seconds", 0.0))

    @property
    def tokens(self) -> int:
        """Tokens that the loop's nodes used, in and out."""
        return int(self.data.get("tokens", 0))

    @property
    def steps_left(self) -> int | None:
        """Supersteps that LangGraph still allows after this one; `None` outside a graph, and while there are plenty."""
        return self.data.get("steps_left")

    @property
    def stride(self) -> int | None:
        """Most supersteps from one guarded crossing to the next; `None` while there was only one."""
        return self.data.get("stride")

    @property
    def growth(self) -> int:
        """By how many supersteps such ways grew when they last did, after the first lap."""
        return int(self.data.get("growth", 0))

    @property
    def last(self) -> str | None:
        """The node that was visited last."""
        return self.data.get("last")

    @property
    def visits(self) -> dict[str, int]:
        """Visits per node."""
        return {name: node["visits"] for name, node in self.data.get("nodes", {}).items()}

    @property
    def decisions(self) -> int:
        """How often a person has decided about this loop."""
        return int(self.data.get("decisions", 0))

    @property
    def turns(self) -> int:
        """New inputs that renewed the budget (`per="turn"`)."""
        return int(self.data.get("turns", 0))

    @property
    def unchanged(self) -> int:
        """Attempts in a row that left the work product as it was."""
        return int(self.data.get("artifact", {}).get("unchanged", 0))

    @property
    def revisited(self) -> int | None:
        """When the latest attempt brought back an earlier work product: how many versions ago that one was."""
        found: int | None = self.data.get("artifact", {}).get("revisited")
        return found

    @property
    def measure(self) -> dict[str, Any]:
        """`last`, `best` (the lowest) and `cycle` (when the lowest was reached); empty when nothing is measured."""
        return dict(self.data.get("measure", {}))

    def measured(self, name: str | None = None) -> dict[str, Any]:
        """The same as `measure` for a condition's own measure, by its name; `None` is the guard's."""
        if name is None:
            return self.measure
        return dict(self.data.get("measures", {}).get(name, {}))

    @property
    def usd(self) -> Decimal:
        """US dollars spent in the loop's nodes, where a price is known."""
        return Decimal(self.data.get("usd", "0"))

    @property
    def unpriced(self) -> int:
        """Tokens whose price is not known."""
        return int(self.data.get("unpriced", 0))

    @property
    def makers(self) -> tuple[str, ...]:
        """The nodes that make the work product: that have changed it, or until one has, that have written it."""
        artifact = self.data.get("artifact", {})
        return tuple(artifact.get("by") or artifact.get("wrote") or ())

    @property
    def granted_usd(self) -> Decimal:
        """US dollars that decisions have added to the budget."""
        return Decimal(str((self.data.get("granted") or {}).get("usd", "0")))

    def granted(self, what: str) -> float:
        """What decisions have added to a budget: `"cycles"`, `"tokens"` or `"seconds"`."""
        granted = self.data.get("granted")
        return float(granted.get(what, 0)) if granted else 0

    def window(self, node: str) -> list[dict[str, Any]]:
        """The last emissions of a node, oldest first: `n` (its visit), `cycle`, `keys` (fingerprints), `notes`."""
        return list(self.data.get("nodes", {}).get(node, {}).get("window", ()))

    def to_json(self) -> dict[str, Any]:
        """Return the ledger as plain JSON."""
        return dict(self.data)


def fold(data: Mapping[str, Any] | None, events: Iterable[Mapping[str, Any]], ring: Ring) -> dict[str, Any]:
    """Return the ledger after one superstep's events. Pure: `data` is not changed.

    However many tasks of the superstep cross one edge, it is one handoff, and the superstep begins one cycle at most.
    """
    ledger: dict[str, Any] = dict(data) if data else {"v": VERSION}
    crossed: set[str] = set()
    for event in events:
        kind = event["event"]
        if kind == "step":
            _fold_step(ledger, event, ring, crossed)
        elif kind == "decision":
            _fold_decision(ledger, event, ring, crossed)
        elif kind == "recorded":
            if ledger.get("tripped") is not None:
                ledger["tripped"] = {**ledger["tripped"], "id": event["id"]}
        elif kind == "input":
            ledger["waiting"] = []  # a new input gives up the handoffs that nobody has taken up
        elif kind == "turn":
            ledger = {
                "v": VERSION,
                "turns": ledger.get("turns", 0) + 1,
                "trips": ledger.get("trips", 0),
                "trips_before": ledger.get("trips", 0),
                "decisions": ledger.get("decisions", 0),
                "history_from": event.get("history_from", 0),
            }
            crossed = set()
    return ledger


def _fold_step(ledger: dict[str, Any], event: Mapping[str, Any], ring: Ring, crossed: set[str]) -> None:
    node, cross, trip = event["node"], event.get("cross"), event.get("trip")
    if (visit := event.get("visit")) is not None:
        _fold_visit(ledger, node, visit, ring)
    if (cross or trip) and "steps_left" in event:
        _fold_steps(ledger, event["steps_left"])
    begun = ledger.get("cycles", 0)
    if event.get("came_back"):
        ledger["cycles"] = begun + 1
    if cross:
        if event.get("edit") and (waiting := ledger.get("waiting")):
            cross = [target for target in cross if node + EDGE + target not in waiting]
        _cross(ledger, node, cross, ring, crossed)
    if (reason := event.get("would_trip")) is not None:
        before = ledger.get("would_trip") or {
            **reason,
            "cycles": ledger.get("cycles", 0),
            "count": 0,
            "spent": {"cycles": begun, **{what: ledger[what] for what in _COSTS if what in ledger}},
        }
        ledger["would_trip"] = {**before, "count": before["count"] + 1}
    if trip is not None:
        if (shut := ledger.get("tripped")) is None:
            ledger["trips"] = ledger.get("trips", 0) + 1
            ledger["tripped"] = {**trip, "n": ledger["trips"]}
        else:  # several tasks of one superstep found the loop at its end: one trip, which holds back all that they do
            ledger["tripped"] = {**shut, "to": [*shut["to"], *(t for t in trip["to"] if t not in shut["to"])]}
            if "beside" in trip:
                ledger["tripped"]["beside"] = [*shut.get("beside", ()), *trip["beside"]]


def _fold_steps(ledger: dict[str, Any], left: int | None) -> None:
    before = ledger.get("steps_left")
    if left is not None and before is not None and before > left:  # a rise is a new run: the limit begins anew
        stride, longest = before - left, ledger.get("stride", 0)
        if stride > longest:
            ledger["stride"] = stride
            if ledger.get("cycles", 0) > 1:  # in the first lap each edge is new, and a longer way is no growth
                ledger["growth"] = stride - longest
    ledger["steps_left"] = left


def _cross(ledger: dict[str, Any], source: str, targets: Collection[str], ring: Ring, crossed: set[str]) -> None:
    handoffs, waiting = dict(ledger.get("handoffs", ())), ledger.get("waiting") or []
    cycles, first = ledger.get("cycles", 0), ring.nodes[0]
    stops = source != first and first in targets  # then nobody passes over the first node
    for target in targets:
        edge = source + EDGE + target
        if edge in crossed:
            continue
        crossed.add(edge)
        if edge not in waiting:
            waiting = [*waiting, edge]
        count = handoffs[edge] = handoffs.get(edge, 0) + 1
        if not stops and "" not in crossed and ring.laps(source, target):
            crossed.add("")
            cycles += 1
        # A walk may come round to an edge by ways that no guard sees; the edge itself has seen it.
        if count - 1 > cycles:
            crossed.add("")
            cycles = count - 1
    ledger["handoffs"], ledger["cycles"], ledger["waiting"] = handoffs, cycles, waiting


def _fold_visit(ledger: dict[str, Any], name: str, visit: Mapping[str, Any], ring: Ring) -> None:
    _fold_measures(ledger, visit)
    nodes = dict(ledger.get("nodes", ()))
    node = nodes.get(name)
    count, moved, window = (1, [], []) if node is None else (node["visits"] + 1, node["moved"], node["window"])
    keys: Mapping[str, Any] = visit["keys"]
    unmoved = visit.get("unmoved", ())
    # A node that returns the whole state wrote only what it moves: what it never moved is somebody else's.
    if fresh := [key for key in keys if key not in moved and key not in unmoved]:
        moved = [*moved, *sorted(fresh)][-MOVED_MEMORY:]
    if unmoved:
        keys = {key: value for key, value in keys.items() if key not in unmoved or key in moved} or keys
    entry: dict[str, Any] = {"n": count, "cycle": ledger.get("cycles", 0), "keys": keys}
    if notes := visit.get("notes"):
        entry["notes"] = notes
    window = [*window[1 - ring.window :], entry] if ring.window > 1 else [entry]
    nodes[name] = {"visits": count, "moved": moved, "window": window}
    ledger["nodes"] = nodes
    ledger["last"] = name
    if waiting := ledger.get("waiting"):
        arrived = EDGE + name
        ledger["waiting"] = [edge for edge in waiting if not edge.endswith(arrived)]
    if seconds := visit.get("seconds"):
        ledger["seconds"] = round(ledger.get("seconds", 0.0) + seconds, 6)
    if tokens := visit.get("tokens"):
        ledger["tokens"] = ledger.get("tokens", 0) + tokens
    if (artifact := visit.get("artifact")) is not None:
        ledger["artifact"] = _fold_artifact(
            ledger.get("artifact"), name, artifact, bool(visit.get("wrote_artifact")), ring
        )
        if visit.get("stand_in"):
            ledger["artifact"]["stand_in"] = True
    if usd := visit.get("usd"):
        ledger["usd"] = add_usd(ledger.get("usd", "0"), usd)
    if unpriced := visit.get("unpriced"):
        ledger["unpriced"] = ledger.get("unpriced", 0) + unpriced


def add_usd(one: Any, other: Any) -> str:
    """Return the exact sum of two amounts, as a decimal without an exponent."""
    return f"{MONEY.add(Decimal(str(one)), Decimal(str(other))):f}"


def _fold_measures(ledger: dict[str, Any], visit: Mapping[str, Any]) -> None:
    """Note what is open. A new low is progress, and progress ends every repeat that was under way.

    It comes before the rest of the visit, so that the emission which brought the new low is the first of a new window.
    """
    if (measure := visit.get("measure")) is not None:
        ledger["measure"] = _lowest(ledger, ledger.get("measure"), measure)
    if own := visit.get("measures"):
        measures = dict(ledger.get("measures", ()))
        for name, value in own.items():
            measures[name] = _lowest(ledger, measures.get(name), value)
        ledger["measures"] = measures


def _lowest(ledger: dict[str, Any], before: Mapping[str, Any] | None, measure: float) -> dict[str, Any]:
    if before is None or measure < before["best"]:
        if before is not None:
            _clear_repeats(ledger)
        before = {"best": measure, "cycle": ledger.get("cycles", 0)}
    return {**before, "last": measure}


def _fold_artifact(
    before: Mapping[str, Any] | None, node: str, artifact: str, wrote: bool, ring: Ring
) -> dict[str, Any]:
    if before is None:
        return {"seen": [artifact], "unchanged": 0, "revisited": None, "by": [], "wrote": [node] if wrote else []}
    seen: list[str] = before["seen"]
    changed = artifact != seen[-1]
    by, writers = before["by"], before["wrote"]
    if wrote and node not in writers:
        writers = sorted([*writers, node])
    if changed and node not in by:
        by = sorted([*by, node])
    if not changed:
        # An attempt is a visit of a node that makes the work product: one that has changed it; until then one that has
        # written it; until then any but the first.
        makers = by or writers
        attempt = node in makers if makers else node != ring.nodes[0]
        return {**before, "by": by, "wrote": writers, "unchanged": before["unchanged"] + attempt}
    revisited = None
    if artifact in seen:
        revisited = len(seen) - 1 - max(i for i, one in enumerate(seen) if one == artifact)
    return {
        "seen": [*seen[-(ARTIFACT_MEMORY - 1) :], artifact],
        "unchanged": 0,
        "revisited": revisited,
        "by": by,
        "wrote": writers,
    }


def _fold_decision(ledger: dict[str, Any], event: Mapping[str, Any], ring: Ring, crossed: set[str]) -> None:
    tripped = ledger.get("tripped")
    if tripped is None or tripped.get("id") != event["id"]:
        return  # decided already: a decision is applied once
    ledger["tripped"] = None
    ledger["decisions"] = ledger.get("decisions", 0) + 1
    if event["action"] != "retry":
        return
    granted = dict(ledger.get("granted", {}))
    for what, extra in event.get("granted", {}).items():
        granted[what] = add_usd(granted.get(what, 0), extra) if what == "usd" else granted.get(what, 0) + extra
    ledger["granted"] = granted
    clear_windows(ledger)
    if event.get("reenter", True):
        _cross(ledger, tripped["source"], tripped["to"], ring, crossed)


def clear_windows(ledger: dict[str, Any]) -> None:
    """Forget what was repeated (not what was counted): the loop begins anew after a person has spoken."""
    _clear_repeats(ledger)
    cycle = ledger.get("cycles", 0)
    if "measure" in ledger:
        ledger["measure"] = {**ledger["measure"], "cycle": cycle}
    if "measures" in ledger:
        ledger["measures"] = {name: {**kept, "cycle": cycle} for name, kept in ledger["measures"].items()}


def _clear_repeats(ledger: dict[str, Any]) -> None:
    if "nodes" in ledger:
        ledger["nodes"] = {name: {**node, "window": []} for name, node in ledger["nodes"].items()}
    if "artifact" in ledger:
        kept = ledger["artifact"]
        ledger["artifact"] = {**kept, "seen": kept["seen"][-1:], "unchanged": 0, "revisited": None}


def alike(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> bool:
    """Whether two emissions of one node say the same.

    Every key must be equal; a whole number that grew by one per visit is a counter, and a counter hides no repeat.
    """
    first, second = earlier["keys"], later["keys"]
    if first == second:
        return bool(second)
    if not second or first.keys() != second.keys():
        return False
    visits = later["n"] - earlier["n"]
    counters = 0
    for key, value in second.items():
        before = first[key]
        if value == before and type(value) is type(before):
            continue
        if not (type(value) is int and type(before) is int and value - before == visits):
            return False
        if key.lower() in POSITIONS:
            return False
        counters += 1
    return counters < len(second)


def repeats(window: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the entries of a window that are alike to its last one, oldest first, the last one included."""
    if not window:
        return []
    last = window[-1]
    keys = last["keys"]
    if keys and int not in map(type, keys.values()):  # without a number there is no counter: the same is equal
        return [entry for entry in window[:-1] if entry["keys"] == keys] + [last]
    return [entry for entry in window[:-1] if alike(entry, last)] + [last]
