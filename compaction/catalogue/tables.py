from __future__ import annotations

from typing import Any, cast

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, Integer, LargeBinary, Table, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

# SQLite counts rows by itself only in a column that is exactly INTEGER PRIMARY KEY; PostgreSQL needs 64 bits.
_ROW_ID = BigInteger().with_variant(Integer, "sqlite")


class Base(DeclarativeBase):
    """Declares the catalogue's tables; `migrations/` creates them, a test keeps both equal."""

    type_annotation_map = {int: BigInteger, str: Text, dict[str, Any]: JSON, list[str]: JSON}  # noqa: RUF012


class FolderRow(Base):
    """A folder that somebody indexes, so that a later run without arguments looks into it again."""

    __tablename__ = "folder"
    __table_args__ = (UniqueConstraint("owner", "path"),)

    id: Mapped[int] = mapped_column(_ROW_ID, primary_key=True)
    owner: Mapped[str]
    """Whose machine the path is on; "" in the local catalogue."""
    path: Mapped[str]


class TranscriptRow(Base):
    """One transcript file: a main session, or a subagent's file under its session (`parent_id`).

    Totals are of this file alone; a session's totals add its subagents when they are asked for.
    """

    __tablename__ = "transcript"
    __table_args__ = (
        UniqueConstraint("owner", "path"),
        Index("transcript_of_parent", "parent_id"),
        Index("transcript_of_folder", "folder_id"),
        Index("transcript_by_prefix", "prefix_hash"),
        Index("transcript_by_lineage", "lineage_key"),
        Index("transcript_by_time", "last_ms"),
    )

    id: Mapped[int] = mapped_column(_ROW_ID, primary_key=True)
    folder_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("folder.id", ondelete="CASCADE"))
    owner: Mapped[str]
    path: Mapped[str]
    kind: Mapped[str]
    """main, subagent, compaction_call (`agent-acompact-…`), workflow_agent, other (no prompt and no response)."""
    parent_id: Mapped[int | None] = mapped_column(BigInteger, ForeignKey("transcript.id", ondelete="SET NULL"))
    """The session a subagent's file belongs to; None for a main session or while the session is not found."""
    session_id: Mapped[str]
    agent_id: Mapped[str]

    title: Mapped[str]
    custom_title: Mapped[str]
    ai_title: Mapped[str]
    first_prompt: Mapped[str]
    project: Mapped[str]
    """`cwd` as the records have it; the folder's name is lossy and never decoded (transcript-format.md §1)."""
    branch: Mapped[str]
    versions: Mapped[list[str]]
    models: Mapped[list[str]]
    tools: Mapped[list[str]]

    first_ms: Mapped[int]
    last_ms: Mapped[int]
    lines: Mapped[int]
    records: Mapped[int]
    damaged: Mapped[int]

    responses: Mapped[int]
    input_tokens: Mapped[int]
    output_tokens: Mapped[int]
    cache_read_tokens: Mapped[int]
    cache_write_5m_tokens: Mapped[int]
    cache_write_1h_tokens: Mapped[int]
    cost_usd: Mapped[float]
    unpriced_responses: Mapped[int]
    uncertain_responses: Mapped[int]
    """Responses whose output_tokens is a placeholder (transcript-format.md §5)."""
    context_tokens: Mapped[int | None]
    """Tokens of the context now: of the last response as recorded until the session was examined (None without a
    response), then what `inspect` tells, with what was added since."""
    context_series: Mapped[bytes] = mapped_column(LargeBinary)
    """Sparkline: at most 48 little-endian uint32, each the maximum of an equal share of the responses."""

    compactions: Mapped[int]
    api_errors: Mapped[int]
    tool_errors: Mapped[int]
    findings_error: Mapped[int | None]
    findings_warning: Mapped[int | None]
    findings_info: Mapped[int | None]
    finding_codes: Mapped[list[str]]
    examined_bytes: Mapped[int]
    """Size of the file when it was last diagnosed; 0 never. Findings hold for that size."""
    examination_problem: Mapped[str]
    """Why the file could not be diagnosed, "" when it could."""

    bytes: Mapped[int]
    mtime_ns: Mapped[int]
    prefix_bytes: Mapped[int]
    prefix_hash: Mapped[int]
    """xxh3_64 (as a signed number) of the first `prefix_bytes`: recognises a renamed file."""
    lineage_key: Mapped[int]
    """xxh3_64 of the first chained record's uuid: resumed and forked copies share it (transcript-format.md §6)."""
    forked_from: Mapped[str]
    """Session id this one was forked or resumed from, "" for an original."""

    indexed_bytes: Mapped[int]
    """How far the file is in the catalogue; a grown file is read from here."""
    indexed_newlines: Mapped[int]
    """Line feeds before `indexed_bytes`: the next record's line number is one more."""
    tail_hash: Mapped[int]
    """xxh3_64 of the last bytes before `indexed_bytes`: tells an appended file from a rewritten one."""
    text_bytes: Mapped[int]
    """How far the file is in the full text; at most `indexed_bytes`."""
    text_newlines: Mapped[int]


class ResponseRow(Base):
    """One API response of one file, once however many records it has; the same message.id in another file is a copy."""

    __tablename__ = "response"
    # No index by message or time: queries read the responses of files, or all of them, and are quicker when they sort.
    __table_args__ = ({"sqlite_with_rowid": False},)

    transcript_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("transcript.id", ondelete="CASCADE"), primary_key=True
    )
    message_key: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """xxh3_64 of message.id, signed; without an id, of the place, so that it stands for itself."""
    line: Mapped[int]
    timestamp_ms: Mapped[int]
    model: Mapped[str]
    sidechain: Mapped[bool]
    input_tokens: Mapped[int]
    output_tokens: Mapped[int]
    cache_read_tokens: Mapped[int]
    cache_write_5m_tokens: Mapped[int]
    cache_write_1h_tokens: Mapped[int]
    context_tokens: Mapped[int]
    uncertain: Mapped[bool]
    cost_usd: Mapped[float | None]
    """None: no price is known for the model at that time."""


class PassageRow(Base):
    """A piece of searchable text with its place; secrets are masked before it is stored."""

    __tablename__ = "passage"
    __table_args__ = (Index("passage_of_transcript", "transcript_id", "line"), Index("passage_by_use", "use_key"))

    id: Mapped[int] = mapped_column(_ROW_ID, primary_key=True)
    transcript_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("transcript.id", ondelete="CASCADE"))
    line: Mapped[int]
    kind: Mapped[str]
    """prompt, answer, thinking, tool_use, tool_result, summary."""
    tool: Mapped[str]
    use_key: Mapped[int]
    """xxh3_64 of the tool_use id of a call or result, 0 otherwise: gives a result its tool's name."""
    timestamp_ms: Mapped[int]
    text: Mapped[str]


class FactRow(Base):
    """A fact about the catalogue itself, such as the price set its costs were computed with."""

    __tablename__ = "fact"

    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]


FOLDER = cast(Table, FolderRow.__table__)
TRANSCRIPT = cast(Table, TranscriptRow.__table__)
RESPONSE = cast(Table, ResponseRow.__table__)
PASSAGE = cast(Table, PassageRow.__table__)
FACT = cast(Table, FactRow.__table__)
"""The tables for statements over many rows: building an object for each would take ten times as long."""
