"""Run by Alembic: migrates the connection that the queue hands over, in the transaction that it has begun."""

from alembic import context

from langgraph_loopguard.queue.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
