"""An escalation as a person reads it: one model, safe renderings of it, and what is masked before it is stored."""

from langgraph_loopguard.people.markdown import to_markdown
from langgraph_loopguard.people.page import to_html
from langgraph_loopguard.people.redact import redact_credentials
from langgraph_loopguard.people.text import visible
from langgraph_loopguard.people.view import EscalationView

__all__ = ["EscalationView", "redact_credentials", "to_html", "to_markdown", "visible"]
