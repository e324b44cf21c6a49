"""A review that knows when it is finished."""

from langgraph_loopguard.review.source import SourceState

__all__ = ["SourceState"]
