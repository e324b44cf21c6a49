"""What may be answered to an escalation, and which budget an answer renews."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_UP, Decimal
from typing import Any

from langgraph_loopguard.core.cost import read_usd
from langgraph_loopguard.core.ledger import Ledger
from langgraph_loopguard.graph.guard import LoopGuard

BUDGETS = {
    "MaxCycles": "extra_cycles",
    "TokenBudget": "extra_tokens",
    "TimeBudget": "extra_seconds",
    "CostBudget": "extra_usd",
}
"""Field of a decision that renews what a condition limits."""


def options_of(guard: LoopGuard, ledger: Ledger, reason: Mapping[str, Any], attempts: int) -> list[dict[str, Any]]:
    """What may be answered: each action with the fields that go with it, and what it does."""
    settable = isinstance(guard.artifact, str)  # only a state key can take an earlier attempt, or a person's own work
    accept: dict[str, Any] = {"action": "accept", "fields": [], "description": "End the loop with the work as it is."}
    if settable and attempts:
        text = "End the loop with the work as it is, or with the attempt named in `fix`."
        accept = {"action": "accept", "fields": ["fix"], "description": text}
    options = [
        accept,
        {"action": "reject", "fields": [], "description": "End the loop without accepting the work."},
    ]
    if settable:
        text = f"End the loop with your own `artifact` in {guard.artifact!r}."
        options.append({"action": "edit", "fields": ["artifact"], "description": text})
    budget, default = needed_budget(reason), more_budget(ledger, reason)
    extras = dict.fromkeys([*default, *([budget] if budget else ["extra_cycles"])])
    naming = f"; name `{budget}`, which is spent" if budget else ""
    text = f"Let the loop go on with `guidance` and {' and '.join(f'`{name}`' for name in extras)}{naming}."
    if default:
        given = " and ".join(f"{name}={extra:g}" for name, extra in default.items())
        text += f" A `respond` is a retry with {given}."
    options.append({"action": "retry", "fields": ["guidance", *extras], "respond_with": default, "description": text})
    return options


def more_budget(ledger: Ledger, reason: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an answer in words only (`respond`) adds to the budgets that are spent: about one more cycle.

    Args:
        ledger: The ledger that tripped.
        reason: Why. Several budgets may be spent at once, where conditions are joined with `&`.
    """
    if reason["kind"] != "exhausted":
        return {}
    names = str(reason["condition"]).split(" & ")
    limits = reason["threshold"] if len(names) > 1 and isinstance(reason["threshold"], list) else [reason["threshold"]]
    out: dict[str, Any] = {}
    for name, limit in zip(names, limits, strict=False):
        if (field := BUDGETS.get(name)) is None:
            continue
        if field == "extra_cycles":
            out[field] = 1
            continue
        if field == "extra_usd":
            out[field] = _more_usd(ledger, limit)
            continue
        if not isinstance(limit, (int, float)):
            continue
        spent = ledger.tokens if field == "extra_tokens" else ledger.seconds
        more = max(0.0, spent - limit) + spent / max(1, ledger.cycles)
        out[field] = math.ceil(more) if field == "extra_tokens" else math.ceil(more * 1000) / 1000
    return out


def _more_usd(ledger: Ledger, limit: Any) -> Decimal:
    """About one more cycle, rounded up to a hundredth of a cent."""
    over = max(Decimal(0), ledger.usd - read_usd("threshold", limit))
    return (over + ledger.usd / max(1, ledger.cycles)).quantize(Decimal("0.0001"), ROUND_UP)


def needed_budget(reason: Mapping[str, Any]) -> str | None:
    """Name of the field that a retry must fill because that budget is spent; `None` when a retry needs none."""
    return BUDGETS.get(reason["condition"]) if reason["kind"] == "exhausted" else None
