"""Guards for LangGraph loops: two agents that will not agree stop, and a person gets the whole record."""

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
from langgraph_loopguard.core.errors import (
    EscalationError,
    FingerprintError,
    LoopGuardError,
    StaleDecisionError,
)
from langgraph_loopguard.core.explain import Explanation, explain
from langgraph_loopguard.core.fingerprint import Fingerprinter
from langgraph_loopguard.core.ledger import Ledger
from langgraph_loopguard.core.verdict import Reason, Verdict
from langgraph_loopguard.graph.api import guard_compiled, guard_loop
from langgraph_loopguard.graph.channels import GuardedState
from langgraph_loopguard.graph.guard import LoopGuard
from langgraph_loopguard.graph.models import Decision, Escalation
from langgraph_loopguard.graph.resume import aresume, resume

__all__ = [
    "Condition",
    "Decision",
    "Escalation",
    "EscalationError",
    "Explanation",
    "Fingerprinter",
    "FingerprintError",
    "GuardedState",
    "Ledger",
    "LoopGuard",
    "LoopGuardError",
    "MaxCycles",
    "Oscillation",
    "Reason",
    "RepeatedPayload",
    "RevisitedArtifact",
    "StaleDecisionError",
    "StepReserve",
    "TimeBudget",
    "TokenBudget",
    "UnchangedArtifact",
    "Verdict",
    "aresume",
    "explain",
    "guard_compiled",
    "guard_loop",
    "normalize",
    "resume",
]
