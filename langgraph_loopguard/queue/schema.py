"""The tables. A change here goes with a migration in `migrations/versions`, and a test holds the two together."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, MetaData, String, Table, Text

HEAD = "0001"
"""The migration that these tables are."""

VERSION_TABLE = "loopguard_schema"
"""Where Alembic notes the migration: a name of our own, for a database that has other tables too."""

metadata = MetaData()

escalations = Table(
    "loopguard_escalations",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("graph", Text, nullable=False),
    Column("thread_id", Text),
    Column("loop", Text, nullable=False),
    Column("edge", Text, nullable=False),
    Column("scope_key", Text),
    Column("outcome", Text, nullable=False),
    Column("condition", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("put_at", BigInteger, nullable=False),
    Column("state", String(12), nullable=False),
    Column("owner", Text),
    Column("claimed_until", BigInteger),
    Column("decision", Text),
    Column("decided_at", BigInteger),
    Column("tries", Integer, nullable=False),
    Column("next_try", BigInteger, nullable=False),
    Column("error", Text),
    Column("settled_at", BigInteger),
    Index("loopguard_escalations_by_state", "state", "created_at", "id"),
    Index("loopguard_escalations_by_claim", "state", "claimed_until"),
    Index("loopguard_escalations_by_age", "created_at", "id"),
    Index("loopguard_escalations_by_owner", "owner", "created_at", "id"),
    Index("loopguard_escalations_by_loop", "loop", "created_at", "id"),
    Index("loopguard_escalations_by_thread", "thread_id"),
)
"""One row per escalation: what lists and filters look at. Times are microseconds since the epoch."""

records = Table(
    "loopguard_records",
    metadata,
    Column("id", String(64), ForeignKey("loopguard_escalations.id"), primary_key=True),
    Column("record", Text, nullable=False),
)
"""The whole records, apart: they may be megabytes, and lists must not read past them."""

deliveries = Table(
    "loopguard_deliveries",
    metadata,
    Column("graph", Text, primary_key=True),
    Column("thread_id", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("until", BigInteger, nullable=False),
)
"""Who delivers to a thread at present: a thread has one writer. A lease, so that a killed one's work is taken over."""
