"""The first catalogue: folders, transcripts, responses, searchable passages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None
branch_labels = None
depends_on = None

_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create every table and the full-text index of the database at hand."""
    _folder_and_fact()
    _transcript()
    _response()
    _passage()
    if op.get_context().dialect.name == "postgresql":
        _full_text_of_postgresql()
    else:
        _full_text_of_sqlite()


def downgrade() -> None:
    """Remove everything; the catalogue can always be made again from the transcripts."""
    if op.get_context().dialect.name != "postgresql":
        op.execute("DROP TABLE IF EXISTS passage_text")
    for table in ("passage", "response", "transcript", "folder", "fact"):
        op.drop_table(table)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _whole(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _folder_and_fact() -> None:
    op.create_table(
        "folder",
        sa.Column("id", _ROW_ID, primary_key=True),
        _text("owner"),
        _text("path"),
        sa.UniqueConstraint("owner", "path"),
    )
    op.create_table("fact", sa.Column("name", sa.Text, primary_key=True), _text("value"))


def _transcript() -> None:
    op.create_table(
        "transcript",
        sa.Column("id", _ROW_ID, primary_key=True),
        sa.Column("folder_id", sa.BigInteger, sa.ForeignKey("folder.id", ondelete="CASCADE"), nullable=False),
        _text("owner"),
        _text("path"),
        _text("kind"),
        sa.Column("parent_id", sa.BigInteger, sa.ForeignKey("transcript.id", ondelete="SET NULL"), nullable=True),
        *[_text(name) for name in ("session_id", "agent_id", "title", "custom_title", "ai_title", "first_prompt")],
        *[_text(name) for name in ("project", "branch")],
        *[sa.Column(name, sa.JSON, nullable=False) for name in ("versions", "models", "tools")],
        *[_whole(name) for name in ("first_ms", "last_ms", "lines", "records", "damaged", "responses")],
        *[_whole(name) for name in ("input_tokens", "output_tokens", "cache_read_tokens")],
        *[_whole(name) for name in ("cache_write_5m_tokens", "cache_write_1h_tokens")],
        sa.Column("cost_usd", sa.Double, nullable=False),
        *[_whole(name) for name in ("unpriced_responses", "uncertain_responses")],
        _whole("context_tokens", nullable=True),
        sa.Column("context_series", sa.LargeBinary, nullable=False),
        *[_whole(name) for name in ("compactions", "api_errors", "tool_errors")],
        *[_whole(name, nullable=True) for name in ("findings_error", "findings_warning", "findings_info")],
        sa.Column("finding_codes", sa.JSON, nullable=False),
        _whole("examined_bytes"),
        _text("examination_problem"),
        *[_whole(name) for name in ("bytes", "mtime_ns", "prefix_bytes", "prefix_hash", "lineage_key")],
        _text("forked_from"),
        *[_whole(name) for name in ("indexed_bytes", "indexed_newlines", "tail_hash", "text_bytes", "text_newlines")],
        sa.UniqueConstraint("owner", "path"),
    )
    op.create_index("transcript_of_parent", "transcript", ["parent_id"])
    op.create_index("transcript_of_folder", "transcript", ["folder_id"])
    op.create_index("transcript_by_prefix", "transcript", ["prefix_hash"])
    op.create_index("transcript_by_lineage", "transcript", ["lineage_key"])
    op.create_index("transcript_by_time", "transcript", ["last_ms"])


def _response() -> None:
    owner = sa.ForeignKey("transcript.id", ondelete="CASCADE")
    op.create_table(
        "response",
        sa.Column("transcript_id", sa.BigInteger, owner, primary_key=True),
        sa.Column("message_key", sa.BigInteger, primary_key=True, autoincrement=False),
        *[_whole(name) for name in ("line", "timestamp_ms")],
        _text("model"),
        sa.Column("sidechain", sa.Boolean, nullable=False),
        *[_whole(name) for name in ("input_tokens", "output_tokens", "cache_read_tokens")],
        *[_whole(name) for name in ("cache_write_5m_tokens", "cache_write_1h_tokens", "context_tokens")],
        sa.Column("uncertain", sa.Boolean, nullable=False),
        sa.Column("cost_usd", sa.Double, nullable=True),
    )
    op.create_index("response_by_message", "response", ["message_key"])
    op.create_index("response_by_time", "response", ["timestamp_ms"])


def _passage() -> None:
    op.create_table(
        "passage",
        sa.Column("id", _ROW_ID, primary_key=True),
        sa.Column("transcript_id", sa.BigInteger, sa.ForeignKey("transcript.id", ondelete="CASCADE"), nullable=False),
        _whole("line"),
        *[_text(name) for name in ("kind", "tool")],
        *[_whole(name) for name in ("use_key", "timestamp_ms")],
        _text("text"),
    )
    op.create_index("passage_of_transcript", "passage", ["transcript_id", "line"])
    op.create_index("passage_by_use", "passage", ["use_key"])


def _full_text_of_sqlite() -> None:
    """FTS5 over the passages' own text (external content: the text is stored once), kept in step by triggers."""
    op.execute(
        "CREATE VIRTUAL TABLE passage_text USING fts5(text, content='passage', content_rowid='id', "
        'tokenize="unicode61 remove_diacritics 2")'
    )
    op.execute(
        "CREATE TRIGGER passage_added AFTER INSERT ON passage BEGIN "
        "INSERT INTO passage_text(rowid, text) VALUES (new.id, new.text); END"
    )
    op.execute(
        "CREATE TRIGGER passage_removed AFTER DELETE ON passage BEGIN "
        "INSERT INTO passage_text(passage_text, rowid, text) VALUES ('delete', old.id, old.text); END"
    )


def _full_text_of_postgresql() -> None:
    """A generated tsvector: words as SQLite's tokenizer cuts them (the server's own parser would keep a path or an
    address whole), in the `simple` configuration, since sessions mix languages and code."""
    op.execute(
        "ALTER TABLE passage ADD COLUMN document tsvector GENERATED ALWAYS AS "
        "(to_tsvector('simple'::regconfig, regexp_replace(text, '[^[:alnum:]]+', ' ', 'g'))) STORED"
    )
    op.execute("CREATE INDEX passage_full_text ON passage USING gin (document)")
