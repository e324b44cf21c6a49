"""A review that knows when it is finished: scope, evidence, named ends, and a person's decision.

`review_loop` is the ready graph; `loopguard review` runs it over a change of a git repository. The pieces stand for
themselves: `SourceState`, checks that give `Evidence`, findings that are carried and rechecked, and `judge`, the stop
rule.
"""

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
