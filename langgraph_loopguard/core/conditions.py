"""Conditions: small, stateless rules that read a ledger and say whether the loop may go on.

They combine with `|` (any one trips) and `&` (all must trip). A plain function of the `Ledger` is a condition too: it
may return a bool, a text (the reason; empty means go on), a `Verdict` or `None`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from inspect import iscoroutinefunction
from typing import Any, TypeVar, Union

from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.core.ledger import Ledger, alike, repeats
from langgraph_loopguard.core.reader import Reader, Selector
from langgraph_loopguard.core.verdict import PROCEED, Kind, Reason, Verdict, trip, warn

ConditionLike = Union["Condition", Callable[[Ledger], Any]]
"""A condition, or a function of the ledger that stands for one."""

NamedT = TypeVar("NamedT")

UNKNOWN_STRIDE = 3
"""Supersteps between two guarded crossings, as long as only one was seen."""

DEFAULT_WINDOW = 8
"""Emissions per node that a ledger keeps for a condition that does not say how far it looks back."""


class Condition:
    """Base of all conditions. A subclass is a frozen dataclass with a `check`."""

    def check(self, ledger: Ledger) -> Verdict:
        """Return what the condition says about a ledger that already holds the handoff in question."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """Name that stands in a reason."""
        return type(self).__name__

    @property
    def memory(self) -> int:
        """Emissions per node that the condition needs to look back on."""
        return 1

    @property
    def needs_artifact(self) -> bool:
        """Whether the condition looks at the work product."""
        return False

    @property
    def steps(self) -> int:
        """Below how many supersteps left the condition must know their number."""
        return 0

    @property
    def readers(self) -> tuple[Reader, ...]:
        """What must look into each payload and keep a note of it in the ledger, for `check` to judge by."""
        return ()

    @property
    def measures(self) -> Mapping[str, Selector]:
        """Measures of the condition's own, by name: what is still open, besides what the guard measures."""
        return {}

    @property
    def needs_cost(self) -> bool:
        """Whether the condition looks at US dollars."""
        return False

    def __or__(self, other: ConditionLike) -> Condition:
        return AnyOf(_parts(AnyOf, self) + _parts(AnyOf, as_condition(other)))

    def __ror__(self, other: ConditionLike) -> Condition:
        return as_condition(other) | self

    def __and__(self, other: ConditionLike) -> Condition:
        return AllOf(_parts(AllOf, self) + _parts(AllOf, as_condition(other)))

    def __rand__(self, other: ConditionLike) -> Condition:
        return as_condition(other) & self

    def __repr__(self) -> str:
        settings: tuple[Field[Any], ...] = fields(self) if is_dataclass(self) else ()
        shown = [
            f"{setting.name}={value!r}"
            for setting in settings
            if (value := getattr(self, setting.name)) != setting.default
        ]
        return f"{self.name}({', '.join(shown)})"


def _by_name(what: str, pairs: Sequence[tuple[str, NamedT]]) -> dict[str, NamedT]:
    found: dict[str, NamedT] = {}
    for name, one in pairs:
        if found.setdefault(name, one) != one:
            msg = f"stop_when has two {what} named {name!r}, which would overwrite each other: {found[name]!r}, {one!r}"
            raise ValueError(msg)
    return found


def _parts(kind: type[AnyOf] | type[AllOf], condition: Condition) -> tuple[Condition, ...]:
    return condition.conditions if isinstance(condition, kind) else (condition,)


def as_condition(thing: ConditionLike) -> Condition:
    """Return a condition for a condition or a plain function.

    Raises:
        TypeError: It is neither.
    """
    if isinstance(thing, Condition):
        return thing
    if isinstance(thing, type) and issubclass(thing, Condition):
        msg = f"stop_when must be a condition, got the class {thing.__name__}: write {thing.__name__}()"
        raise TypeError(msg)
    if iscoroutinefunction(thing):
        msg = f"stop_when must be no coroutine function (conditions do no I/O), got {thing!r}"
        raise TypeError(msg)
    if callable(thing):
        return FunctionCondition(thing)
    msg = f"stop_when must be a condition or a function of the ledger, got {thing!r}"
    raise TypeError(msg)


def at_least(name: str, value: Any, least: int) -> None:
    """Refuse a setting that is no whole number of at least `least`.

    Raises:
        ValueError: With the parameter's name and the value.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        msg = f"{name} must be a whole number of at least {least}, got {value!r}"
        raise ValueError(msg)


def warns_before(name: str, warn_at: Any, threshold: Any, least: Any = 1) -> None:
    """Refuse a warning that is no number from `least` on, or that would not come before the trip.

    Raises:
        ValueError: With the parameter's name and the value.
    """
    if warn_at is None:
        return
    number = isinstance(warn_at, (int, float)) and not isinstance(warn_at, bool)
    if not number or not least <= warn_at < threshold:
        msg = f"{name} must be a number from {least} to below {threshold}, where it trips, got {warn_at!r}"
        raise ValueError(msg)


def positive(name: str, value: Any) -> None:
    """Refuse a setting that is no finite number above 0.

    Raises:
        ValueError: With the parameter's name and the value.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        msg = f"{name} must be a positive number, got {value!r}"
        raise ValueError(msg)


@dataclass(frozen=True, repr=False)
class _Joined(Condition):
    """Several conditions as one: it needs what they need."""

    conditions: tuple[Condition, ...]

    @property
    def memory(self) -> int:
        """See `Condition.memory`."""
        return max(condition.memory for condition in self.conditions)

    @property
    def needs_artifact(self) -> bool:
        """See `Condition.needs_artifact`."""
        return any(condition.needs_artifact for condition in self.conditions)

    @property
    def steps(self) -> int:
        """See `Condition.steps`."""
        return max(condition.steps for condition in self.conditions)

    @property
    def readers(self) -> tuple[Reader, ...]:
        """See `Condition.readers`; one of a name is enough, so that no name may have two."""
        found = [(reader.name, reader) for part in self.conditions for reader in part.readers]
        return tuple(_by_name("readers", found).values())

    @property
    def measures(self) -> Mapping[str, Selector]:
        """See `Condition.measures`; no name may have two."""
        return _by_name("measures", [pair for part in self.conditions for pair in part.measures.items()])

    @property
    def needs_cost(self) -> bool:
        """See `Condition.needs_cost`."""
        return any(condition.needs_cost for condition in self.conditions)


@dataclass(frozen=True, repr=False)
class AnyOf(_Joined):
    """Trips when one of its conditions does; the first one's reason counts."""

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        warned = PROCEED
        for condition in self.conditions:
            verdict = condition.check(ledger)
            if verdict is PROCEED:
                continue
            if verdict.tripped:
                return verdict
            if verdict.warned and not warned.warned:
                warned = verdict
        return warned

    def __repr__(self) -> str:
        return " | ".join(f"({part!r})" if isinstance(part, AllOf) else repr(part) for part in self.conditions)


@dataclass(frozen=True, repr=False)
class AllOf(_Joined):
    """Trips when all of its conditions do, and warns when each of them trips or warns."""

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        reasons = []
        tripped = True
        for condition in self.conditions:
            verdict = condition.check(ledger)
            if not (verdict.tripped or verdict.warned) or verdict.reason is None:
                return PROCEED
            tripped = tripped and verdict.tripped
            reasons.append(verdict.reason)
        reason = Reason(
            " & ".join(reason.condition for reason in reasons),
            reasons[0].kind,
            threshold=[reason.threshold for reason in reasons],
            observed=[reason.observed for reason in reasons],
            message="; and ".join(reason.message for reason in reasons),
            evidence=tuple(item for reason in reasons for item in reason.evidence),
        )
        return Verdict(tripped=True, reason=reason) if tripped else warn(reason)

    def __repr__(self) -> str:
        return " & ".join(f"({part!r})" if isinstance(part, AnyOf) else repr(part) for part in self.conditions)


@dataclass(frozen=True, repr=False)
class FunctionCondition(Condition):
    """A plain function of the ledger. It must be pure: it is asked again at each handoff."""

    function: Callable[[Ledger], Any]

    @property
    def name(self) -> str:
        """The function's own name."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def memory(self) -> int:
        """See `Condition.memory`."""
        return DEFAULT_WINDOW

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        answer = self.function(ledger)
        if isinstance(answer, Verdict):
            return answer
        if not answer:
            return PROCEED
        message = answer if isinstance(answer, str) else f"{self.name} says stop"
        return trip(self.name, "stalled", threshold=None, observed=None, message=message)

    def __repr__(self) -> str:
        return self.name  # a function's own repr holds its address, which differs in each process


@dataclass(frozen=True, repr=False)
class MaxCycles(Condition):
    """At most `n` cycles: with `n=3` the fourth crossing of the loop's first edge is refused.

    A cap bounds the cost, it does not detect a loop: it also stops work that needed one cycle more.

    Args:
        n: Cycles that are allowed.
        warn_at: Cycles from which on the verdict warns; fewer than `n`, or `n` for "this is the last one".
    """

    n: int = 3
    warn_at: int | None = None

    def __post_init__(self) -> None:
        at_least("MaxCycles(n)", self.n, 1)
        warns_before("MaxCycles(warn_at)", self.warn_at, self.n + 1)

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        more = int(ledger.granted("cycles"))
        limit, cycles = self.n + more, ledger.cycles
        if cycles <= limit and (self.warn_at is None or cycles < self.warn_at + more):
            return PROCEED
        over = cycles > limit
        asked = f"cycle {cycles} was asked for" if over else f"this is cycle {cycles}"
        message = f"{asked}, the cap is {limit}"
        return graded(over, self.name, "exhausted", limit, cycles, message, {"visits": ledger.visits})


@dataclass(frozen=True, repr=False)
class RepeatedPayload(Condition):
    """A node has written the same `times` times within its last `window` emissions.

    Args:
        times: Equal emissions, the present one included; at least 2.
        node: The only node to look at; `None` looks at each.
        window: Emissions of the node to look back on; it must hold `times`. `None`: twice `times`, at least 8.
        warn_at: Equal emissions from which on the verdict warns.
    """

    times: int = 3
    node: str | None = None
    window: int | None = None
    warn_at: int | None = None

    def __post_init__(self) -> None:
        holds("RepeatedPayload", self.times, self.node, self.window, self.warn_at)

    @property
    def memory(self) -> int:
        """See `Condition.memory`."""
        return self.window or max(2 * self.times, DEFAULT_WINDOW)

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        node = ledger.last
        if node is None or (self.node is not None and node != self.node):
            return PROCEED
        same = repeats(ledger.window(node)[-self.memory :])
        count = len(same)
        if count < (self.warn_at or self.times):
            return PROCEED
        message = f"{node} has written the same {count} times"
        return graded(count >= self.times, self.name, "stalled", self.times, count, message, _evidence(node, same))


@dataclass(frozen=True, repr=False)
class Oscillation(Condition):
    """A node's emissions go round in a short cycle: A-A, A-B-A-B, A-B-C-A-B-C.

    Args:
        max_period: Longest cycle to look for, in emissions of one node.
        laps: How often the cycle must have been run through; at least 2.
    """

    max_period: int = 3
    laps: int = 2

    def __post_init__(self) -> None:
        at_least("Oscillation(max_period)", self.max_period, 1)
        at_least("Oscillation(laps)", self.laps, 2)

    @property
    def memory(self) -> int:
        """See `Condition.memory`."""
        return self.max_period * self.laps

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        node = ledger.last
        window = ledger.window(node) if node is not None else []
        for period in range(1, self.max_period + 1):
            tail = window[-period * self.laps :]
            if len(tail) < period * self.laps:
                break
            if all(alike(tail[i - period], tail[i]) for i in range(period, len(tail))):
                return trip(
                    self.name,
                    "stalled",
                    threshold={"max_period": self.max_period, "laps": self.laps},
                    observed={"period": period, "laps": self.laps},
                    message=f"{node} repeats a cycle of {period} emission{'s' * (period > 1)}, {self.laps} times over",
                    evidence=(_evidence(str(node), tail),),
                )
        return PROCEED


@dataclass(frozen=True, repr=False)
class UnchangedArtifact(Condition):
    """The work product is as it was after `times` attempts in a row: the fixes change nothing.

    Args:
        times: Attempts in a row that left it as it was.
        warn_at: Such attempts from which on the verdict warns.
        stand_in: Without an artifact, what the loop's second node writes may stand for it.
    """

    times: int = 2
    warn_at: int | None = None
    stand_in: bool = True

    def __post_init__(self) -> None:
        at_least("UnchangedArtifact(times)", self.times, 1)
        warns_before("UnchangedArtifact(warn_at)", self.warn_at, self.times)

    @property
    def needs_artifact(self) -> bool:
        """See `Condition.needs_artifact`."""
        return True

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        count = ledger.unchanged
        if count < (self.warn_at or self.times) or (not self.stand_in and ledger.data["artifact"].get("stand_in")):
            return PROCEED
        message = f"the last {count} attempt{'s' * (count > 1)} changed nothing"
        evidence = {"artifact": ledger.data["artifact"]["seen"][-1], "unchanged": count}
        return graded(count >= self.times, self.name, "stalled", self.times, count, message, evidence)


@dataclass(frozen=True, repr=False)
class RevisitedArtifact(Condition):
    """Work that was already replaced comes back: the attempt undoes an earlier one."""

    @property
    def needs_artifact(self) -> bool:
        """See `Condition.needs_artifact`."""
        return True

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        ago = ledger.revisited
        if ago is None:
            return PROCEED
        return trip(
            self.name,
            "stalled",
            threshold=0,
            observed=1,
            message=f"the attempt brings back the work product of {ago + 1} versions ago",
            evidence=({"artifacts": list(ledger.data["artifact"]["seen"][-(ago + 2) :])},),
        )


@dataclass(frozen=True, repr=False)
class TokenBudget(Condition):
    """At most `n` tokens (in and out) in the loop's nodes. Judged at handoffs: the visit that overruns is the last.

    Args:
        n: Tokens that are allowed.
        warn_at: Tokens from which on the verdict warns.
    """

    n: int
    warn_at: int | None = None

    def __post_init__(self) -> None:
        at_least("TokenBudget(n)", self.n, 1)
        warns_before("TokenBudget(warn_at)", self.warn_at, self.n)

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        more, spent = int(ledger.granted("tokens")), ledger.tokens
        limit = self.n + more
        if spent < (limit if self.warn_at is None else self.warn_at + more):
            return PROCEED
        message = f"{spent} tokens are spent, the budget is {limit}"
        return graded(spent >= limit, self.name, "exhausted", limit, spent, message, {"visits": ledger.visits})


@dataclass(frozen=True, repr=False)
class TimeBudget(Condition):
    """At most `seconds` of active time in the loop's nodes. A wait for a person does not count.

    Args:
        seconds: Seconds that are allowed.
        warn_at: Seconds from which on the verdict warns.
    """

    seconds: float
    warn_at: float | None = None

    def __post_init__(self) -> None:
        positive("TimeBudget(seconds)", self.seconds)
        warns_before("TimeBudget(warn_at)", self.warn_at, self.seconds, 0)

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        more, spent = ledger.granted("seconds"), ledger.seconds
        limit = self.seconds + more
        if spent < (limit if self.warn_at is None else self.warn_at + more):
            return PROCEED
        message = f"{spent:.1f} seconds are spent, the budget is {limit:g}"
        evidence = {"visits": ledger.visits}
        return graded(spent >= limit, self.name, "exhausted", limit, round(spent, 3), message, evidence)


@dataclass(frozen=True, repr=False)
class StepReserve(Condition):
    """LangGraph's recursion limit is about to strike: escalate while there are supersteps left to do it in.

    Trips when fewer than `n` supersteps would be left at the next guarded crossing, judged by the most that lay between
    two of them so far; a way that grew is taken to grow as much again. Two are what a trip needs: the record and the
    question. The limit itself ends in an exception and hands nothing over. Rounds that grow faster and faster can still
    meet it.
    """

    n: int = 2

    def __post_init__(self) -> None:
        at_least("StepReserve(n)", self.n, 1)

    @property
    def steps(self) -> int:
        """Enough rounds before the end to learn how long one is."""
        return self.n + 200

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        left = ledger.steps_left
        if left is None or left - (ledger.stride or UNKNOWN_STRIDE) - ledger.growth >= self.n:
            return PROCEED
        return trip(
            self.name,
            "exhausted",
            threshold=self.n,
            observed=left,
            message=f"LangGraph's recursion limit leaves {left} supersteps, too few for another round and a handover",
            evidence=({"cycles": ledger.cycles, "stride": ledger.stride, "growth": ledger.growth},),
        )


def holds(name: str, times: Any, node: Any, window: Any, warn_at: Any) -> None:
    """Refuse settings of a condition about emissions of a node that make no sense together.

    Raises:
        ValueError: With the parameter's name and the value.
    """
    at_least(f"{name}(times)", times, 2)
    if node is not None and (not isinstance(node, str) or not node):
        msg = f"{name}(node) must be the name of a node, got {node!r}"
        raise ValueError(msg)
    if window is not None:
        at_least(f"{name}(window)", window, 1)
        if window < times:
            msg = f"{name}(window={window}) can never hold times={times} emissions"
            raise ValueError(msg)
    warns_before(f"{name}(warn_at)", warn_at, times, 2)


def graded(
    tripped: bool, name: str, kind: Kind, threshold: Any, observed: Any, message: str, *evidence: dict[str, Any]
) -> Verdict:
    """Return a trip, or a warning of one, with its reason."""
    reason = Reason(name, kind, threshold, observed, message, evidence)
    return Verdict(tripped=True, reason=reason) if tripped else warn(reason)


def _evidence(node: str, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "node": node,
        "emissions": [{"visit": entry["n"], "cycle": entry["cycle"], "keys": entry["keys"]} for entry in entries],
    }


def broken(error: BaseException, where: str) -> Reason:
    """Return the reason for a guard that failed: the run's work is kept and a person sees the error."""
    shown = to_jsonable(error)  # an error may not even be able to say what it is
    text = shown["message"] if isinstance(shown, dict) else shown
    return Reason(
        "Guard",
        "broken",
        None,
        type(error).__name__,
        f"the guard failed in {where}: {type(error).__name__}: {text}",
        ({"error": type(error).__name__, "text": text, "where": where},),
    )
