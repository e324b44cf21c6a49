"""Guards for LangGraph loops: two agents that will not agree stop, and a person gets the whole record."""

from typing import TYPE_CHECKING

from langgraph_loopguard.late import late

if TYPE_CHECKING:
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
    from langgraph_loopguard.core.errors import EscalationError, FingerprintError, LoopGuardError, StaleDecisionError
    from langgraph_loopguard.core.explain import Explanation, explain
    from langgraph_loopguard.core.fingerprint import Fingerprinter
    from langgraph_loopguard.core.ledger import Ledger
    from langgraph_loopguard.core.progress import NoProgress
    from langgraph_loopguard.core.restated import RestatedPayload
    from langgraph_loopguard.core.schema import InvalidPayload
    from langgraph_loopguard.core.verdict import Reason, Verdict
    from langgraph_loopguard.graph.api import guard_compiled, guard_loop
    from langgraph_loopguard.graph.audit.api import assert_guarded, audit
    from langgraph_loopguard.graph.audit.report import AuditReport
    from langgraph_loopguard.graph.channels import GuardedState
    from langgraph_loopguard.graph.guard import LoopGuard
    from langgraph_loopguard.graph.models import Decision, Escalation
    from langgraph_loopguard.graph.resume import aresume, resume

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

MODULES = {
    "AuditReport": "graph.audit.report",
    "Condition": "core.conditions",
    "CostBudget": "core.cost",
    "Decision": "graph.models",
    "Escalation": "graph.models",
    "EscalationError": "core.errors",
    "Explanation": "core.explain",
    "Fingerprinter": "core.fingerprint",
    "FingerprintError": "core.errors",
    "GuardedState": "graph.channels",
    "InvalidPayload": "core.schema",
    "Ledger": "core.ledger",
    "LoopGuard": "graph.guard",
    "LoopGuardError": "core.errors",
    "MaxCycles": "core.conditions",
    "NoProgress": "core.progress",
    "Oscillation": "core.conditions",
    "Reason": "core.verdict",
    "RepeatedPayload": "core.conditions",
    "RestatedPayload": "core.restated",
    "RevisitedArtifact": "core.conditions",
    "StaleDecisionError": "core.errors",
    "StepReserve": "core.conditions",
    "TimeBudget": "core.conditions",
    "TokenBudget": "core.conditions",
    "UnchangedArtifact": "core.conditions",
    "Verdict": "core.verdict",
    "aresume": "graph.resume",
    "assert_guarded": "graph.audit.api",
    "audit": "graph.audit.api",
    "explain": "core.explain",
    "guard_compiled": "graph.api",
    "guard_loop": "graph.api",
    "normalize": "core",
    "resume": "graph.resume",
}
"""Where each public name lives."""


__getattr__, __dir__ = late(__name__, MODULES)
