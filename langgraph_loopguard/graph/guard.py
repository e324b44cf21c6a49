"""`LoopGuard`: the settings of one guard, immutable, and its judgement outside a graph."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

import orjson
from langgraph.constants import END, START
from xxhash import xxh3_128_hexdigest

from langgraph_loopguard.core.conditions import (
    AnyOf,
    Condition,
    ConditionLike,
    MaxCycles,
    as_condition,
    at_least,
    broken,
)
from langgraph_loopguard.core.cost import Call, cost_of, read_usd
from langgraph_loopguard.core.defeat import defeating_key
from langgraph_loopguard.core.fingerprint import Fingerprinter
from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.core.ledger import Ledger, Ring, VisitData, fold
from langgraph_loopguard.core.presets import PRESETS
from langgraph_loopguard.core.presets import Preset as Preset
from langgraph_loopguard.core.reader import Reader, Selector
from langgraph_loopguard.core.text import html_table
from langgraph_loopguard.core.verdict import Reason, Verdict
from langgraph_loopguard.graph.channels import LEDGERS

logger = logging.getLogger("langgraph_loopguard")

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

    from langgraph_loopguard.graph.handover import EscalationSink

Mode = Literal["enforce", "observe"]
"""`enforce` keeps a tripped edge shut; `observe` only writes what it would have done."""

Per = Literal["thread", "turn"]
"""What renews a budget: `thread`, only a decision; `turn`, each new input of the thread as well."""

LARGEST = 2**63
"""Numbers from here on do not fit into a checkpoint."""

NO_KEY = "null"
"""Scope of a guard without a `key`."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class LoopGuard:
    """The guard of one loop: which nodes, how far, and what happens then. Immutable; all memory is in graph state.

    Most users call `guard_loop`, which makes one and puts it on a builder. See there for the parameters.

    Example:
        ```python
        from langgraph_loopguard import LoopGuard

        guard = LoopGuard("reviewer", "fixer", max_cycles=3)
        ledger = None
        for attempt in range(4):
            ledger, verdict = guard.observe(ledger, "reviewer", f"remark {attempt}")
        assert verdict.tripped and verdict.reason.condition == "MaxCycles"
        ```
    """

    nodes: tuple[str, ...]
    max_cycles: int = 3
    stop_when: Condition | None = None
    preset: Preset = "strict"
    key: Selector | None = None
    per: Per = "thread"
    artifact: Selector | None = None
    measure: Selector | None = None
    escalate_to: str | None = None
    ask_human: bool | None = None
    mode: Mode = "enforce"
    name: str = ""
    queue: EscalationSink | None = None
    fingerprinter: Fingerprinter = field(default_factory=Fingerprinter)
    condition: Condition = field(init=False)
    """Everything that stops the loop: the cap, the preset and `stop_when`, joined with `|`."""
    ring: Ring = field(init=False)
    stamp: dict[str, Any] = field(init=False, hash=False, compare=False)
    """What every event of this guard carries, so that the channel can fold it."""
    steps: int = field(init=False)
    """Below how many supersteps left the condition must know their number."""
    readers: tuple[Reader, ...] = field(init=False, hash=False, compare=False)
    """What looks into payloads for the condition."""
    measures: tuple[tuple[str, Selector], ...] = field(init=False, hash=False, compare=False)
    """The condition's own measures, by name."""
    by_emission: bool = field(init=False)
    """Without `artifact=`, what the second node writes stands for the work product that a condition looks at."""

    def __init__(
        self,
        *nodes: str,
        max_cycles: int | None = None,
        stop_when: ConditionLike | None = None,
        preset: Preset = "strict",
        key: Selector | None = None,
        per: Per = "thread",
        artifact: Selector | None = None,
        measure: Selector | None = None,
        escalate_to: str | None = None,
        ask_human: bool | None = None,
        mode: Mode = "enforce",
        name: str | None = None,
        queue: EscalationSink | None = None,
        fingerprinter: Fingerprinter | None = None,
    ) -> None:
        _check_nodes(nodes)
        _one_of("preset", preset, get_args(Preset))
        _one_of("per", per, get_args(Per))
        _one_of("mode", mode, get_args(Mode))
        rules = PRESETS[preset]
        if max_cycles is None:
            max_cycles = rules.max_cycles
        at_least("max_cycles", max_cycles, 1)
        if rules.observes:
            mode = "observe"
        for parameter, selector in (("key", key), ("artifact", artifact), ("measure", measure)):
            if selector is not None and not callable(selector) and (not isinstance(selector, str) or not selector):
                msg = f"{parameter} must be a state key or a function of the state, got {selector!r}"
                raise ValueError(msg)
        if ask_human not in (None, True, False):
            msg = f"ask_human must be True, False or None, got {ask_human!r}"
            raise ValueError(msg)
        if escalate_to is not None:
            if not isinstance(escalate_to, str) or not escalate_to or escalate_to in nodes:
                msg = f"escalate_to must name a node outside the loop, got {escalate_to!r}"
                raise ValueError(msg)
            if ask_human:
                msg = f"ask_human=True asks in the built-in escalation node, escalate_to={escalate_to!r} goes past it"
                raise ValueError(msg)
        _check_queue(queue, escalate_to, ask_human)
        if name is None:
            name = "-".join(nodes)
        if not isinstance(name, str) or not name or any(character in name for character in ":|"):
            msg = f"name must be a text without ':' and '|', got {name!r}"
            raise ValueError(msg)
        if fingerprinter is not None and not isinstance(fingerprinter, Fingerprinter):
            msg = f"fingerprinter must be a Fingerprinter, got {fingerprinter!r}"
            raise ValueError(msg)
        own = as_condition(stop_when) if stop_when is not None else None
        condition: Condition = AnyOf((MaxCycles(max_cycles), *rules.conditions))
        if own is not None:
            condition = condition | own
        values: dict[str, Any] = {
            "nodes": nodes,
            "max_cycles": max_cycles,
            "stop_when": own,
            "preset": preset,
            "key": key,
            "per": per,
            "artifact": artifact,
            "measure": measure,
            "escalate_to": escalate_to,
            "ask_human": ask_human,
            "mode": mode,
            "name": name,
            "queue": queue,
            "fingerprinter": fingerprinter or Fingerprinter(),
            "condition": condition,
            "ring": Ring(nodes, condition.memory),
        }
        values["steps"] = condition.steps
        values["readers"], values["measures"] = condition.readers, tuple(condition.measures.items())
        values["by_emission"] = artifact is None and condition.needs_artifact
        values["stamp"] = {"guard": name, "ring": list(nodes), "window": values["ring"].window}
        for attribute, value in values.items():
            object.__setattr__(self, attribute, value)

    def __repr__(self) -> str:
        shown = [repr(node) for node in self.nodes] + [f"max_cycles={self.max_cycles}"]
        defaults = {"stop_when": None, "preset": "strict", "key": None, "per": "thread", "artifact": None}
        defaults |= {"measure": None, "escalate_to": None, "ask_human": None, "mode": "enforce", "queue": None}
        shown += [f"{k}={getattr(self, k)!r}" for k, default in defaults.items() if getattr(self, k) != default]
        return f"LoopGuard({', '.join(shown)})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, Any]] = [("nodes", " → ".join([*self.nodes, self.nodes[0]])), ("cap", self.max_cycles)]
        rows += [("stops when", self.condition), ("mode", self.mode), ("budget per", self.per)]
        rows += [(name, getattr(self, name)) for name in ("key", "artifact", "measure", "escalate_to")]
        return html_table(f"LoopGuard {self.name}", rows)

    # -- outside a graph ------------------------------------------------------------------------------------------

    def observe(
        self,
        ledger: Mapping[str, Any] | None,
        node: str,
        payload: Any,
        *,
        artifact: Any = None,
        measure: Any = None,
        usage: Any = None,
        at: float | datetime | None = None,
    ) -> tuple[dict[str, Any], Verdict]:
        """Judge one emission and its handoff to the next node of the ring, without a graph.

        Args:
            ledger: What the guard remembers, as plain JSON; `None` begins one.
            node: The node that wrote; one of the guard's.
            payload: What it wrote. Of a dict, each top-level key has its own fingerprint.
            artifact: The work product after it (any value); `None` when unknown.
            measure: What is still open after it: a number, or a collection of ids.
            usage: Tokens: a whole number, or a mapping with `total_tokens` (or `input_tokens`, `output_tokens`) and
                perhaps `seconds`, and `usd` or the `model` (and `provider`) that a `CostBudget` finds the price by.
            at: When, in seconds since the epoch or as a `datetime`. Times between events count as active time.

        Returns:
            The new ledger (the one given is not changed) and the verdict. Once tripped, the verdict stays so until
            `decide`; with `mode="observe"` it is never tripped, and `verdict.warned` says that it would have been.

        Raises:
            ValueError: `node` is not in the loop, or `usage`, `measure` or `at` make no sense.
        """
        if node not in self.nodes:
            msg = f"node {node!r} is not in the loop {', '.join(self.nodes)}"
            raise ValueError(msg)
        before = dict(ledger) if ledger else {}
        moment = _seconds(at)
        reason: Reason | None = None
        try:
            visit = self.visit(
                node,
                payload,
                artifact=artifact,
                measure=measure,
                select=lambda selector: _select(payload, selector),
                earlier=lambda reader: notes_in((before,), reader),
            )
        except Exception as failure:
            visit, reason = VisitData(keys={}), broken(failure, f"the payload of {node!r}")
        tokens, seconds = read_usage(usage)
        if seconds is None and moment is not None and before.get("at") is not None:
            seconds = max(0.0, moment - before["at"])
        visit["tokens"], visit["seconds"] = tokens, seconds or 0.0
        if usage is not None and (self.condition.needs_cost or (isinstance(usage, Mapping) and "usd" in usage)):
            visit["usd"], visit["unpriced"] = read_cost(usage, tokens)
        step: dict[str, Any] = {"event": "step", "node": node, "visit": visit, "cross": [self.ring.after(node)]}
        # Only the next event shows that a handoff went back past the ring's first node without stopping there.
        last, here = before.get("last"), self.nodes.index(node)
        if last in self.nodes and 0 < here <= self.nodes.index(last):
            step["came_back"] = True
        after, verdict = self._judge(before, step, reason)
        if not verdict.tripped:
            self.tell_defeat(after, node, payload)
        if moment is not None:
            after["at"] = moment
        return after, verdict

    def _judge(
        self, before: dict[str, Any], step: dict[str, Any], reason: Reason | None
    ) -> tuple[dict[str, Any], Verdict]:
        shut = before.get("tripped")
        if shut is not None:
            return fold(before, [{**step, "cross": []}], self.ring), Verdict(
                True, False, Reason.from_json(shut["reason"])
            )
        after = fold(before, [step], self.ring)
        verdict = Verdict(tripped=True, reason=reason) if reason else self.check(Ledger(after))
        if not verdict.tripped or verdict.reason is None:
            return after, verdict
        if self.mode == "observe":
            would = {"reason": verdict.reason.to_json()}
            return fold(before, [{**step, "would_trip": would}], self.ring), Verdict(False, True, verdict.reason)
        trip = {"id": f"{self.name}-{before.get('trips', 0) + 1}", "source": step["node"], "to": step["cross"]}
        trip["reason"] = verdict.reason.to_json()
        return fold(before, [{**step, "cross": [], "came_back": False, "trip": trip}], self.ring), verdict

    def decide(
        self,
        ledger: Mapping[str, Any],
        action: str,
        *,
        extra_cycles: int = 0,
        extra_tokens: int = 0,
        extra_seconds: float = 0,
        extra_usd: Any = 0,
    ) -> dict[str, Any]:
        """Apply a person's decision to a ledger of `observe`.

        Args:
            ledger: A ledger that has tripped.
            action: `"accept"`, `"reject"`, `"edit"` or `"retry"`. Only `retry` opens the loop for more.
            extra_cycles: Cycles that a retry adds to the cap.
            extra_tokens: Tokens that a retry adds to the budget.
            extra_seconds: Seconds that a retry adds to the budget.
            extra_usd: US dollars that a retry adds to the budget.

        Returns:
            The new ledger; after a retry its windows are empty, and the handoff that was refused counts as made: go on
            with the node that it leads to.

        Raises:
            ValueError: The ledger has not tripped, or the action is unknown.
        """
        tripped = ledger.get("tripped")
        if tripped is None:
            msg = "ledger has no trip to decide about"
            raise ValueError(msg)
        _one_of("action", action, ("accept", "reject", "edit", "retry"))
        granted: dict[str, Any] = {"cycles": extra_cycles, "tokens": extra_tokens, "seconds": extra_seconds}
        if usd := read_usd("extra_usd", extra_usd):
            granted["usd"] = f"{usd:f}"
        event = {"event": "decision", "id": tripped["id"], "action": action}
        event["granted"] = {what: extra for what, extra in granted.items() if extra}
        after = fold(ledger, [event], self.ring)
        after.pop("at", None)  # the wait for a person is no active time
        return after

    # -- shared by both doors -------------------------------------------------------------------------------------

    def check(self, ledger: Ledger) -> Verdict:
        """Return the verdict on a ledger that already holds the handoff; a condition that raises trips as `broken`."""
        try:
            verdict = self.condition.check(ledger)
        except Exception as failure:
            return Verdict(tripped=True, reason=broken(failure, f"a condition of {self.condition!r}"))
        return verdict

    def tell_defeat(self, ledger: Mapping[str, Any], node: str, content: Any) -> None:
        """Log, once for each row of such visits, the key for which a condition cannot see that a node repeats itself.

        Args:
            ledger: The ledger with the visit in it.
            node: The node that was visited.
            content: What it wrote.
        """
        found = ledger.get("nodes", {}).get(node)
        if found is None or not isinstance(content, Mapping):
            return
        key = defeating_key(self.condition, node, found["window"], content)
        if key is not None and key not in (self.artifact, self.measure):
            logger.warning(
                "guard %s cannot see that %s repeats itself: %r is new at each visit and all else is equal. "
                "If it means nothing: fingerprinter=Fingerprinter(ignore={%r})",
                self.name,
                node,
                key,
                key,
            )

    def visit(
        self,
        node: str,
        payload: Any,
        *,
        unmoved: Collection[str] = (),
        artifact: Any = None,
        measure: Any = None,
        select: Callable[[Selector], Any] | None = None,
        earlier: Callable[[str], Iterable[Any]] | None = None,
    ) -> VisitData:
        """Return what the ledger keeps of one emission.

        Without `artifact=`, what the loop's second node writes stands for the work product.

        Args:
            node: The node that wrote.
            payload: What it wrote.
            unmoved: Keys of it whose value was in the state already.
            artifact: The work product after it.
            measure: What is still open after it.
            select: What the conditions' own measures are read with.
            earlier: The notes that stand in the ledger, by a reader's name.

        Raises:
            FingerprintError: The payload or the artifact has no canonical form.
            ValueError: `measure` is neither a number nor a collection.
        """
        keys = self._keys(payload)
        visit: VisitData = {"keys": keys}
        if unmoved:
            visit["unmoved"] = [key for key in keys if key in unmoved]
        if artifact is not None:
            visit["artifact"] = self.fingerprinter.fingerprint(artifact)
        elif self.by_emission and keys and node == self.nodes[1]:
            # The keys' values are fingerprints already: no canonical form needs to be made of them.
            joined = orjson.dumps(keys, option=orjson.OPT_SORT_KEYS)
            visit["artifact"], visit["stand_in"] = xxh3_128_hexdigest(joined), True
        if measure is not None:
            visit["measure"] = read_measure(measure)
        if self.readers and payload is not None:
            moved = {key: payload[key] for key in payload if key not in unmoved} if unmoved else payload
            notes = {}
            for reader in self.readers:
                if reader.skips_makers and "stand_in" in visit:
                    continue
                note = reader.read(node, moved, earlier(reader.name) if earlier is not None else ())
                if note is not None:
                    notes[reader.name] = note
            if notes:
                visit["notes"] = notes
        if self.measures and select is not None:
            found = {name: value for name, selector in self.measures if (value := select(selector)) is not None}
            visit["measures"] = {name: read_measure(value) for name, value in found.items()}
        return visit

    def _keys(self, payload: Any) -> dict[str, str | int]:
        """Return one fingerprint per key; whole numbers stand as themselves, so that a counter can be told."""
        if payload is None:
            return {}
        if type(payload) is str or not isinstance(payload, Mapping):
            return {"": self.fingerprinter.fingerprint(payload)}
        return self.fingerprinter.fingerprints(payload)

    # -- in a graph -----------------------------------------------------------------------------------------------

    def ledger(self, state: Any, key: Any = None) -> Ledger:
        """Return what the guard remembers in a graph's state, as a typed view.

        Args:
            state: The values of `graph.get_state(config)`, or the snapshot itself.
            key: The scope key, for guards that have one.
        """
        values = getattr(state, "values", state)
        if callable(values):  # a plain dict has a method of that name
            values = state
        ledgers = values.get(LEDGERS) if isinstance(values, Mapping) else getattr(values, LEDGERS, None)
        return Ledger((ledgers or {}).get(self.name, {}).get(scope_name(key)))

    def report(self, state: Any) -> dict[str, Ledger]:
        """Return the ledgers of all scope keys, by the key's JSON."""
        values = getattr(state, "values", state)
        if callable(values):
            values = state
        return {scope: Ledger(data) for scope, data in (values.get(LEDGERS) or {}).get(self.name, {}).items()}

    def node(self, name: str, action: Any) -> Any:
        """Return the recorder around a node, for `builder.add_node(name, guard.node(name, action))`.

        Args:
            name: The node's name; one of the guard's.
            action: A function (sync or async), a Runnable, or a compiled subgraph.

        Raises:
            ValueError: `name` is not in the loop.
        """
        from langgraph_loopguard.graph.wiring import record_node

        return record_node(self, name, action)

    def edge(
        self, source: str, path: str | Callable[..., Any], path_map: Mapping[Hashable, str] | list[str] | None = None
    ) -> tuple[Any, Any]:
        """Return `(path, path_map)` with the gate in it, for `builder.add_conditional_edges(source, *guard.edge(...))`.

        Args:
            source: The node that the edge leaves; one of the guard's.
            path: The router, or the name of the one node that the edge goes to.
            path_map: As in `add_conditional_edges`.

        Raises:
            ValueError: `source` is not in the loop.
        """
        from langgraph_loopguard.graph.wiring import gate_edge

        return gate_edge(self, source, path, path_map)

    def add_to(self, builder: StateGraph[Any, Any, Any, Any]) -> LoopGuard:
        """Add the escalation node and the guard's channels to a builder; call it last. Returns the guard.

        Raises:
            ValueError: The builder has a guard of this name already, or the guard does not fit the graph.
        """
        from langgraph_loopguard.graph.attach import add_guard

        add_guard(builder, self)
        return self


def notes_in(ledgers: Iterable[Mapping[str, Any]], reader: str) -> Iterator[Any]:
    """Yield the notes of a reader that stand in ledgers."""
    for ledger in ledgers:
        for node in ledger.get("nodes", {}).values():
            for entry in node["window"]:
                if (note := entry.get("notes", {}).get(reader)) is not None:
                    yield note


def _select(payload: Any, selector: Selector) -> Any:
    if callable(selector):
        return selector(payload)
    return payload.get(selector) if isinstance(payload, Mapping) else None


def scope_name(key: Any) -> str:
    """Return the name under which a scope key's ledger stands: its JSON, so that `7` and `"7"` are two.

    Raises:
        FingerprintError: The key is an object without a form of its own, which would be a new budget at each handoff.
    """
    if key is None:
        return NO_KEY
    if type(key) is str:
        return orjson.dumps(to_jsonable(key)).decode()
    return _exact.canonical(key).decode()


_exact = Fingerprinter(scrub=False)


def read_measure(measure: Any) -> float:
    """Return how much is open: a number itself, or how many different ids a collection holds.

    Raises:
        ValueError: It is neither, or it is no finite number of at most 64 bits (a ledger is plain JSON).
    """
    if isinstance(measure, (int, float)) and not isinstance(measure, bool) and abs(measure) < LARGEST:
        return int(measure) if isinstance(measure, int) else float(measure)
    if isinstance(measure, Collection) and not isinstance(measure, (str, bytes)):
        try:
            return len(set(measure))
        except TypeError:  # findings without a hash: each counts
            return len(measure)
    msg = f"measure must be a finite number or a collection of ids, got {measure!r}"
    raise ValueError(msg)


def read_usage(usage: Any) -> tuple[int, float | None]:
    """Return tokens and seconds of a usage.

    Raises:
        ValueError: It is neither a whole number nor a mapping.
    """
    if usage is None:
        return 0, None
    if isinstance(usage, int) and not isinstance(usage, bool) and usage >= 0:
        return usage, None
    if isinstance(usage, Mapping):
        total = usage.get("total_tokens")
        if total is None:
            total = (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0)
        seconds = usage.get("seconds")
        return int(total), None if seconds is None else float(seconds)
    msg = f"usage must be a number of tokens or a mapping with total_tokens, got {usage!r}"
    raise ValueError(msg)


def read_cost(usage: Any, tokens: int) -> tuple[str, int]:
    """Return US dollars (an exact decimal) and the tokens without a known price of a usage.

    Raises:
        ValueError: Its `usd` is no amount.
    """
    if not isinstance(usage, Mapping):
        return "0", tokens
    if usage.get("usd") is not None:
        return f"{read_usd('usage[usd]', usage['usd']):f}", 0
    return cost_of([Call(usage, usage.get("model"), usage.get("provider"))])


def _seconds(at: float | datetime | None) -> float | None:
    if at is None or (isinstance(at, (int, float)) and not isinstance(at, bool) and at == at):
        return at
    if isinstance(at, datetime):
        return at.timestamp()
    msg = f"at must be seconds since the epoch or a datetime, got {at!r}"
    raise ValueError(msg)


def _one_of(parameter: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        msg = f"{parameter} must be one of {', '.join(map(repr, allowed))}, got {value!r}"
        raise ValueError(msg)


def _check_queue(queue: Any, escalate_to: str | None, ask_human: bool | None) -> None:
    if queue is None:
        return
    if not callable(getattr(queue, "put", None)) or not callable(getattr(queue, "aput", None)):
        msg = f"queue must be an EscalationQueue, or have its methods put and aput, got {queue!r}"
        raise ValueError(msg)
    if escalate_to is not None or ask_human is False:
        other = f"escalate_to={escalate_to!r}" if escalate_to is not None else "ask_human=False"
        msg = f"queue={queue!r} holds what waits for a person's answer, and with {other} nothing waits"
        raise ValueError(msg)


def _check_nodes(nodes: tuple[Any, ...]) -> None:
    for node in nodes:
        if not isinstance(node, str) or not node or node in (START, END):
            msg = f"nodes must be names of nodes, got {node!r}"
            raise ValueError(msg)
        if any(character in node for character in ":|"):
            msg = f"nodes must be names without ':' and '|', got {node!r}"
            raise ValueError(msg)
    if len(nodes) < 2:
        msg = f"nodes must name at least two nodes of a loop, got {nodes!r}"
        raise ValueError(msg)
    if len(set(nodes)) < len(nodes):
        msg = f"nodes must be different nodes, got {nodes!r}"
        raise ValueError(msg)
