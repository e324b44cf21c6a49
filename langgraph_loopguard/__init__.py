"""Guards for LangGraph loops: two agents that will not agree stop, and a person gets the whole record."""

from typing import TYPE_CHECKING, Any

from langgraph_loopguard.core import normalize
from langgraph_loopguard.core.conditions import (
    Condition,
    MaxCycles,
    Oscillation,
    RepeatedPayload,
    RevisitedArtifact,
    StepReserve,
    TimeBudget,
    TokenBudget,
    UnchangedArtifact,
)
from langgraph_loopguard.core.cost import CostBudget
from langgraph_loopguard.core.errors import (
    EscalationError,
    FingerprintError,
    LoopGuardError,
    StaleDecisionError,
)
from langgraph_loopguard.core.explain import Explanation, explain
from langgraph_loopguard.core.fingerprint import Fingerprinter
from langgraph_loopguard.core.ledger import Ledger
from langgraph_loopguard.core.progress import NoProgress
from langgraph_loopguard.core.restated import RestatedPayload
from langgraph_loopguard.core.schema import InvalidPayload
from langgraph_loopguard.core.verdict import Reason, Verdict
from langgraph_loopguard.graph.api import guard_compiled, guard_loop
from langgraph_loopguard.graph.channels import GuardedState
from langgraph_loopguard.graph.guard import LoopGuard
from langgraph_loopguard.graph.models import Decision, Escalation
from langgraph_loopguard.graph.resume import aresume, resume

if TYPE_CHECKING:
    from langgraph_loopguard.graph.audit.api import assert_guarded, audit
    from langgraph_loopguard.graph.audit.report import AuditReport

LATE = {
    "AuditReport": "langgraph_loopguard.graph.audit.report",
    "assert_guarded": "langgraph_loopguard.graph.audit.api",
    "audit": "langgraph_loopguard.graph.audit.api",
}
"""Names that a graph at work does not need, and their modules: they are imported when they are asked for."""


def __getattr__(name: str) -> Any:
    if name not in LATE:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    found = globals()[name] = getattr(import_module(LATE[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *LATE})


__all__ = [
    "AuditReport",
    "Condition",
    "CostBudget",
    "Decision",
    "Escalation",
    "EscalationError",
    "Explanation",
    "Fingerprinter",
    "FingerprintError",
    "GuardedState",
    "InvalidPayload",
    "Ledger",
    "LoopGuard",
    "LoopGuardError",
    "MaxCycles",
    "NoProgress",
    "Oscillation",
    "Reason",
    "RepeatedPayload",
    "RestatedPayload",
    "RevisitedArtifact",
    "StaleDecisionError",
    "StepReserve",
    "TimeBudget",
    "TokenBudget",
    "UnchangedArtifact",
    "Verdict",
    "aresume",
    "assert_guarded",
    "audit",
    "explain",
    "guard_compiled",
    "guard_loop",
    "normalize",
    "resume",
]
