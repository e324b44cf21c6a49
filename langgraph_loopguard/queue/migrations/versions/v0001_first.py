"""The first tables: escalations, their records, and who delivers."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "loopguard_escalations",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("graph", sa.Text, nullable=False),
        sa.Column("thread_id", sa.Text),
        sa.Column("loop", sa.Text, nullable=False),
        sa.Column("edge", sa.Text, nullable=False),
        sa.Column("scope_key", sa.Text),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("condition", sa.Text, nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("put_at", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("owner", sa.Text),
        sa.Column("claimed_until", sa.BigInteger),
        sa.Column("decision", sa.Text),
        sa.Column("decided_at", sa.BigInteger),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("next_try", sa.BigInteger, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("settled_at", sa.BigInteger),
    )
    for name, columns in (
        ("state", ["state", "created_at", "id"]),
        ("claim", ["state", "claimed_until"]),
        ("age", ["created_at", "id"]),
        ("owner", ["owner", "created_at", "id"]),
        ("loop", ["loop", "created_at", "id"]),
        ("thread", ["thread_id"]),
    ):
        op.create_index(f"loopguard_escalations_by_{name}", "loopguard_escalations", columns)
    op.create_table(
        "loopguard_records",
        sa.Column("id", sa.String(64), sa.ForeignKey("loopguard_escalations.id"), primary_key=True),
        sa.Column("record", sa.Text, nullable=False),
    )
    op.create_table(
        "loopguard_deliveries",
        sa.Column("graph", sa.Text, primary_key=True),
        sa.Column("thread_id", sa.Text, primary_key=True),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("until", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    """Drop the tables, with all that is in them."""
    for table in ("loopguard_deliveries", "loopguard_records", "loopguard_escalations"):
        op.drop_table(table)
