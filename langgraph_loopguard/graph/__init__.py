"""The LangGraph plugin: recorder, gate, conditional-edge factory, escalation, and how they get onto a graph."""
