"""A review that knows when it is finished: scope, evidence, named ends, and a person's decision.

`review_loop` is the ready graph; `loopguard review` runs it over a change of a git repository. The pieces stand for
themselves: `SourceState`, checks that give `Evidence`, findings that are carried and rechecked, and `judge`, the stop
rule.
"""

from typing import TYPE_CHECKING

from langgraph_loopguard.late import late

if TYPE_CHECKING:
    from langgraph_loopguard.review.agents import CommandAgent
    from langgraph_loopguard.review.answer import FixAnswer, ReviewAnswer, answer_schema
    from langgraph_loopguard.review.checks import Check, CheckResult, CommandCheck, FunctionCheck, ToolCheck
    from langgraph_loopguard.review.errors import ReportError, ReviewError, SourceError
    from langgraph_loopguard.review.loop import ReviewState, review_loop
    from langgraph_loopguard.review.models import (
        Attempt,
        Budget,
        Evidence,
        Finding,
        HandOff,
        Provenance,
        Report,
        Ruling,
        Scope,
    )
    from langgraph_loopguard.review.readers import read_report
    from langgraph_loopguard.review.sarif import write_sarif
    from langgraph_loopguard.review.source import SourceState
    from langgraph_loopguard.review.stop import Standing, judge
    from langgraph_loopguard.review.store import ReviewStore

__all__ = [
    "Attempt",
    "Budget",
    "Check",
    "CheckResult",
    "CommandAgent",
    "CommandCheck",
    "Evidence",
    "Finding",
    "FixAnswer",
    "FunctionCheck",
    "HandOff",
    "Provenance",
    "Report",
    "ReportError",
    "ReviewAnswer",
    "ReviewError",
    "ReviewState",
    "ReviewStore",
    "Ruling",
    "Scope",
    "SourceError",
    "SourceState",
    "Standing",
    "ToolCheck",
    "answer_schema",
    "judge",
    "read_report",
    "review_loop",
    "write_sarif",
]

MODULES = {
    "Attempt": "models",
    "Budget": "models",
    "Check": "checks",
    "CheckResult": "checks",
    "CommandAgent": "agents",
    "CommandCheck": "checks",
    "Evidence": "models",
    "Finding": "models",
    "FixAnswer": "answer",
    "FunctionCheck": "checks",
    "HandOff": "models",
    "Provenance": "models",
    "Report": "models",
    "ReportError": "errors",
    "ReviewAnswer": "answer",
    "ReviewError": "errors",
    "ReviewState": "loop",
    "ReviewStore": "store",
    "Ruling": "models",
    "Scope": "models",
    "SourceError": "errors",
    "SourceState": "source",
    "Standing": "stop",
    "ToolCheck": "checks",
    "answer_schema": "answer",
    "judge": "stop",
    "read_report": "readers",
    "review_loop": "loop",
    "write_sarif": "sarif",
}
"""Where each public name lives."""

__getattr__, __dir__ = late(__name__, MODULES)
