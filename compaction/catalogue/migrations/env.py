"""Alembic's entry: runs the migrations on the connection that `catalogue.database` hands over."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from compaction.catalogue.tables import Base

_connection: Connection = context.config.attributes["connection"]
# The caller holds the transaction (and with it the lock), so two programs that start together migrate once.
context.configure(connection=_connection, target_metadata=Base.metadata, transactional_ddl=False)
context.run_migrations()
