"""The node that asks a person about a review that is blocked or escalated, and does what they say.

It is the question of the guard's own escalations: the same interrupt, the same answers. A retry goes on with the
review; where a budget is spent or a finding recurs, it must grant attempts, and whoever grants them gives their name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.constants import END
from langgraph.types import Command, interrupt

from langgraph_loopguard.core.errors import EscalationError
from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.decision import answer_schema, hitl_request
from langgraph_loopguard.graph.models import Decision
from langgraph_loopguard.review.settings import Settings

SPENT = ("StopRule:bound", "StopRule:recurring")
"""Reasons after which a retry must grant attempts."""

REPAIRABLE = (*SPENT, "StopRule:unchanged")
"""Reasons after which the fixer goes on, told what the person says: another review of the same would say the same."""


def make_ask(settings: Settings) -> Callable[..., Any]:
    """Return the asking node."""

    def ask(state: dict[str, Any], config: RunnableConfig) -> Command[Any]:
        record: dict[str, Any] = state["escalation"]
        decision: Decision = interrupt(hitl_request(record), response_schema=answer_schema(record, _check(record)))
        decided = {**record, "decision": to_jsonable(decision.model_dump())}
        update = {"escalation": decided, "escalations": {decided["id"]: decided}}
        if decision.action != "retry":
            return Command(update=update, goto=END)
        _grant(settings, decision)
        repairable = record["outcome"] == "escalated" and record["reason"]["condition"] in REPAIRABLE
        to_fixer = settings.fixer is not None and repairable and bool(state.get("open"))
        return Command(update=update, goto="fix" if to_fixer else "load")

    return ask


def asks(state: Mapping[str, Any], config: RunnableConfig, ask_human: bool | None) -> bool:
    """Return whether a person is asked at the end of a pass.

    Raises:
        EscalationError: A person must be asked, and there is no checkpointer to wait with.
    """
    if state["ruling"]["outcome"] not in ("blocked", "escalated") or ask_human is False:
        return False
    waits = _pregel.has_checkpointer(config)
    if ask_human and not waits:
        msg = "ask_human=True needs a checkpointer: review_loop(checkpointer=...); the record is in error.escalation"
        raise EscalationError(f"{state['ruling']['message']}. {msg}", state["escalation"])
    return waits


def _check(record: Mapping[str, Any]) -> Callable[[Decision], None]:
    """Return what raises `ValueError` for a retry that does not grant what it needs, or grants it without a name."""

    def check(decision: Decision) -> None:
        if decision.action != "retry":
            return
        if record["reason"]["condition"] in SPENT and not decision.extra_cycles:
            msg = "extra_cycles must be positive: a retry grants further attempts here"
            raise ValueError(msg)
        if decision.extra_cycles and not decision.decided_by:
            msg = f"decided_by must name a person: extra_cycles={decision.extra_cycles} extends the budget"
            raise ValueError(msg)

    return check


def _grant(settings: Settings, decision: Decision) -> None:
    """Write down what a retry grants: attempts by name, and guidance for the agents."""
    memory = settings.store.load()
    facts: dict[str, Any] = {}
    if decision.extra_cycles:
        extra = (memory.facts.get("grant") or {}).get("extra", 0) + decision.extra_cycles
        facts["grant"] = {"extra": extra, "by": decision.decided_by, "at": len(memory.attempts)}
    if decision.guidance:
        facts["guidance"] = [*memory.facts.get("guidance", ()), decision.guidance]
    settings.store.note(**facts)
