"""What the loops did: rows, sums, frames and pictures, and a cap from one's own history."""

from langgraph_loopguard.report.api import Report, read_loops, report
from langgraph_loopguard.report.errors import MissingExtraError, ReportError
from langgraph_loopguard.report.history import Visit
from langgraph_loopguard.report.rows import Cost, LoopRun
from langgraph_loopguard.report.summary import Summary, summarise

__all__ = [
    "Cost",
    "LoopRun",
    "MissingExtraError",
    "Report",
    "ReportError",
    "Summary",
    "Visit",
    "read_loops",
    "report",
    "summarise",
]
