"""What a condition says: go on, take care, or stop, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from langgraph_loopguard.core.jsonable import to_jsonable

Kind = Literal["exhausted", "stalled", "invalid", "broken"]
"""What sort of stop a reason is.

- `exhausted`: a cap or a budget is spent (says nothing about a loop).
- `stalled`: the loop repeats itself or makes no progress.
- `invalid`: a handoff does not have the shape that it must have.
- `broken`: the guard itself failed (a selector raised, a payload could not be hashed).
"""


def _words(value: Any) -> str:
    shown = to_jsonable(value)
    return shown if isinstance(shown, str) else str(shown)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a condition tripped, in one piece that a person and a program can read.

    Attributes:
        condition: Name of the condition, for example `"MaxCycles"`.
        kind: What sort of stop it is (see `Kind`).
        threshold: The limit that was set.
        observed: What was seen against it.
        message: One sentence for a person.
        evidence: The cheapest facts that let a person believe it, as plain JSON objects.
    """

    condition: str
    kind: Kind
    threshold: Any
    observed: Any
    message: str
    evidence: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the reason as plain JSON, whatever a condition of the user's own has put into it."""
        return {
            "condition": _words(self.condition),
            "kind": _words(self.kind),
            "threshold": to_jsonable(self.threshold),
            "observed": to_jsonable(self.observed),
            "message": _words(self.message),
            "evidence": [to_jsonable(item) for item in self.evidence or ()],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Reason:
        """Rebuild a reason from `to_json`."""
        return cls(**{**data, "evidence": tuple(data.get("evidence", ()))})


@dataclass(frozen=True, slots=True)
class Verdict:
    """A condition's answer for one ledger.

    Attributes:
        tripped: The edge must not be crossed.
        warned: The edge may be crossed, but a threshold is near.
        reason: Why, or `None` when there is nothing to say.
    """

    tripped: bool = False
    warned: bool = False
    reason: Reason | None = field(default=None)

    def __post_init__(self) -> None:
        if self.tripped and self.reason is None:
            msg = "Verdict(tripped=True) needs a reason"
            raise ValueError(msg)


PROCEED = Verdict()
"""Nothing to object."""


def trip(
    condition: str,
    kind: Kind,
    *,
    threshold: Any,
    observed: Any,
    message: str,
    evidence: tuple[dict[str, Any], ...] = (),
) -> Verdict:
    """Return a tripped verdict with its reason."""
    return Verdict(tripped=True, reason=Reason(condition, kind, threshold, observed, message, evidence))


def warn(reason: Reason) -> Verdict:
    """Return a verdict that lets the edge be crossed, and says what is near."""
    return Verdict(warned=True, reason=reason)
