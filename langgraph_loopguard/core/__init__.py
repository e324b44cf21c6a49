"""The guard's judgement, free of any framework: fingerprints, ledger, conditions, verdicts.

Everything here is pure: no I/O, no clock, no LangGraph. What goes in and comes out is plain JSON or a frozen record.
"""
