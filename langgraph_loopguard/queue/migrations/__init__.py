"""Alembic's scripts for the queue's tables, run by `EscalationQueue` itself."""
