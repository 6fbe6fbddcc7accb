"""Responses lie in the order of their files, and without indexes that no query used.

Every query reads the responses of some files; one by message or by time goes over all of them, where an index only
cost its upkeep: half the time of a first indexing in the database.
"""

from __future__ import annotations

from alembic import op

revision = "r0002"
down_revision = "r0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop the two indexes; SQLite's table becomes one B-tree by file and message instead of a table with an index."""
    _without_indexes()
    if op.get_context().dialect.name == "sqlite":
        _made_anew("WITHOUT ROWID")


def downgrade() -> None:
    """The table and indexes of the first catalogue."""
    if op.get_context().dialect.name == "sqlite":
        _made_anew("")
    op.create_index("response_by_message", "response", ["message_key"])
    op.create_index("response_by_time", "response", ["timestamp_ms"])


def _without_indexes() -> None:
    op.drop_index("response_by_message", "response")
    op.drop_index("response_by_time", "response")


def _made_anew(option: str) -> None:
    """Copy the table into one with other storage; nothing refers to it."""
    numbers = "input_tokens output_tokens cache_read_tokens cache_write_5m_tokens cache_write_1h_tokens context_tokens"
    wide = ", ".join(f"{name} BIGINT NOT NULL" for name in ("line", "timestamp_ms"))
    tokens = ", ".join(f"{name} BIGINT NOT NULL" for name in numbers.split())
    op.execute(
        "CREATE TABLE response_anew (transcript_id BIGINT NOT NULL, message_key BIGINT NOT NULL, "
        f"{wide}, model TEXT NOT NULL, sidechain BOOLEAN NOT NULL, {tokens}, uncertain BOOLEAN NOT NULL, "
        "cost_usd DOUBLE, PRIMARY KEY (transcript_id, message_key), "
        f"FOREIGN KEY(transcript_id) REFERENCES transcript (id) ON DELETE CASCADE) {option}"
    )
    op.execute("INSERT INTO response_anew SELECT * FROM response ORDER BY transcript_id, message_key")
    op.execute("DROP TABLE response")
    op.execute("ALTER TABLE response_anew RENAME TO response")
