"""What the loops did: rows, sums, frames and pictures, and a cap from one's own history."""

from typing import TYPE_CHECKING

from langgraph_loopguard.late import late

if TYPE_CHECKING:
    from langgraph_loopguard.report.api import Report, read_loops, report
    from langgraph_loopguard.report.errors import MissingExtraError, ReportError
    from langgraph_loopguard.report.history import Visit
    from langgraph_loopguard.report.plots import plot_cost, plot_cycles, plot_timeline
    from langgraph_loopguard.report.recommend import tune
    from langgraph_loopguard.report.rows import Cost, LoopRun
    from langgraph_loopguard.report.summary import Summary, summarise
    from langgraph_loopguard.report.survival import CycleStep, Interval
    from langgraph_loopguard.report.tune_plot import plot_tuning
    from langgraph_loopguard.report.tuning import Cap, Tuning

__all__ = [
    "Cap",
    "Cost",
    "CycleStep",
    "Interval",
    "LoopRun",
    "MissingExtraError",
    "Report",
    "ReportError",
    "Summary",
    "Tuning",
    "Visit",
    "plot_cost",
    "plot_cycles",
    "plot_timeline",
    "plot_tuning",
    "read_loops",
    "report",
    "summarise",
    "tune",
]

MODULES = {
    "Cap": "tuning",
    "Cost": "rows",
    "CycleStep": "survival",
    "Interval": "survival",
    "LoopRun": "rows",
    "MissingExtraError": "errors",
    "Report": "api",
    "ReportError": "errors",
    "Summary": "summary",
    "Tuning": "tuning",
    "Visit": "history",
    "plot_cost": "plots",
    "plot_cycles": "plots",
    "plot_timeline": "plots",
    "plot_tuning": "tune_plot",
    "read_loops": "api",
    "report": "api",
    "summarise": "summary",
    "tune": "recommend",
}
"""Where each public name lives."""

__getattr__, __dir__ = late(__name__, MODULES)
