"""Conditions: small, stateless rules that read a ledger and say whether the loop may go on.

They combine with `|` (any one trips) and `&` (all must trip). A plain function of the `Ledger` is a condition too: it
may return a bool, a text (the reason; empty means go on), a `Verdict` or `None`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from inspect import iscoroutinefunction
from typing import Any, Union

from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.core.ledger import Ledger, alike, repeats
from langgraph_loopguard.core.verdict import PROCEED, Reason, Verdict, trip

ConditionLike = Union["Condition", Callable[[Ledger], Any]]
"""A condition, or a function of the ledger that stands for one."""

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


def _positive(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        msg = f"{name} must be a positive number, got {value!r}"
        raise ValueError(msg)


@dataclass(frozen=True, repr=False)
class AnyOf(Condition):
    """Trips when one of its conditions does; the first one's reason counts."""

    conditions: tuple[Condition, ...]

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

    def __repr__(self) -> str:
        return " | ".join(f"({part!r})" if isinstance(part, AllOf) else repr(part) for part in self.conditions)


@dataclass(frozen=True, repr=False)
class AllOf(Condition):
    """Trips when all of its conditions do."""

    conditions: tuple[Condition, ...]

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        reasons = []
        for condition in self.conditions:
            verdict = condition.check(ledger)
            if not verdict.tripped or verdict.reason is None:
                return PROCEED
            reasons.append(verdict.reason)
        return trip(
            " & ".join(reason.condition for reason in reasons),
            reasons[0].kind,
            threshold=[reason.threshold for reason in reasons],
            observed=[reason.observed for reason in reasons],
            message="; and ".join(reason.message for reason in reasons),
            evidence=tuple(item for reason in reasons for item in reason.evidence),
        )

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
    """

    n: int = 3

    def __post_init__(self) -> None:
        at_least("MaxCycles(n)", self.n, 1)

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        limit, cycles = self.n + int(ledger.granted("cycles")), ledger.cycles
        if cycles <= limit:
            return PROCEED
        return trip(
            self.name,
            "exhausted",
            threshold=limit,
            observed=cycles,
            message=f"cycle {cycles} was asked for, the cap is {limit}",
            evidence=({"visits": ledger.visits},),
        )


@dataclass(frozen=True, repr=False)
class RepeatedPayload(Condition):
    """A node has written the same `times` times within its last `window` emissions.

    Args:
        times: Equal emissions, the present one included; at least 2.
        node: The only node to look at; `None` looks at each.
        window: Emissions of the node to look back on; it must hold `times`. `None`: twice `times`, at least 8.
    """

    times: int = 3
    node: str | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        at_least("RepeatedPayload(times)", self.times, 2)
        if self.node is not None and (not isinstance(self.node, str) or not self.node):
            msg = f"RepeatedPayload(node) must be the name of a node, got {self.node!r}"
            raise ValueError(msg)
        if self.window is not None:
            at_least("RepeatedPayload(window)", self.window, 1)
            if self.window < self.times:
                msg = f"RepeatedPayload(window={self.window}) can never hold times={self.times} emissions"
                raise ValueError(msg)

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
        if len(same) < self.times:
            return PROCEED
        return trip(
            self.name,
            "stalled",
            threshold=self.times,
            observed=len(same),
            message=f"{node} has written the same {len(same)} times",
            evidence=(_evidence(node, same),),
        )


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
    """The work product is as it was after `times` attempts in a row: the fixes change nothing."""

    times: int = 2

    def __post_init__(self) -> None:
        at_least("UnchangedArtifact(times)", self.times, 1)

    @property
    def needs_artifact(self) -> bool:
        """See `Condition.needs_artifact`."""
        return True

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        if ledger.unchanged < self.times:
            return PROCEED
        return trip(
            self.name,
            "stalled",
            threshold=self.times,
            observed=ledger.unchanged,
            message=f"the last {ledger.unchanged} attempt{'s' * (ledger.unchanged > 1)} changed nothing",
            evidence=({"artifact": ledger.data["artifact"]["seen"][-1], "unchanged": ledger.unchanged},),
        )


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
    """At most `n` tokens (in and out) in the loop's nodes. Judged at handoffs: the visit that overruns is the last."""

    n: int

    def __post_init__(self) -> None:
        at_least("TokenBudget(n)", self.n, 1)

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        limit = self.n + int(ledger.granted("tokens"))
        if ledger.tokens < limit:
            return PROCEED
        return trip(
            self.name,
            "exhausted",
            threshold=limit,
            observed=ledger.tokens,
            message=f"{ledger.tokens} tokens are spent, the budget is {limit}",
            evidence=({"visits": ledger.visits},),
        )


@dataclass(frozen=True, repr=False)
class TimeBudget(Condition):
    """At most `seconds` of active time in the loop's nodes. A wait for a person does not count."""

    seconds: float

    def __post_init__(self) -> None:
        _positive("TimeBudget(seconds)", self.seconds)

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        limit = self.seconds + ledger.granted("seconds")
        if ledger.seconds < limit:
            return PROCEED
        return trip(
            self.name,
            "exhausted",
            threshold=limit,
            observed=round(ledger.seconds, 3),
            message=f"{ledger.seconds:.1f} seconds are spent, the budget is {limit:g}",
            evidence=({"visits": ledger.visits},),
        )


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
