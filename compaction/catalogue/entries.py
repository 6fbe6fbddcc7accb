"""What the library tells, as plain data: no database is imported, so a view can use it before one is opened."""

from __future__ import annotations

from dataclasses import dataclass, field

DAY_MS = 86_400_000
LIVE_SECONDS = 90.0
"""A file written within this time counts as being written now; a long tool call leaves it silent for a while."""

BUCKETS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens")
"""Columns of the token buckets, in the order of every total."""


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions are meant; a field at its default does not restrict.

    Attributes:
        project: part of the project's path; model: part of a model's name; tool: a tool's name; case does not matter.
        owner: whose sessions, in a shared catalogue.
        since_ms, until_ms: the session was active in this time (UTC milliseconds, until excluded).
        minimum_cost, maximum_cost: USD; minimum_context, maximum_context: tokens.
        finding: error, warning, info or any: has a finding of that severity; or the code of a finding.
        compaction: has been compacted; error: has API errors or failed tool calls.
        words: all of them occur in title, first prompt, project, branch or session id.
    """

    project: str = ""
    model: str = ""
    tool: str = ""
    owner: str = ""
    since_ms: int | None = None
    until_ms: int | None = None
    minimum_cost: float | None = None
    maximum_cost: float | None = None
    minimum_context: int | None = None
    maximum_context: int | None = None
    finding: str = ""
    compaction: bool = False
    error: bool = False
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Totals:
    """Responses, tokens by bucket and USD; `unpriced` responses have no known price, `uncertain` no final output."""

    responses: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    uncertain: int = 0

    @property
    def tokens(self) -> int:
        """All billed tokens."""
        return sum(getattr(self, bucket) for bucket in BUCKETS)

    def __add__(self, other: Totals) -> Totals:
        return Totals(*(getattr(self, name) + getattr(other, name) for name in Totals.__slots__))


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """One session of the library.

    Attributes:
        own: totals of the session's file; total: with its subagents.
        context_tokens: the context now (recorded; with what was added since once diagnosed); None when not known.
        series: context sizes over the session, for a sparkline.
        findings: (errors, warnings, infos), None while the file was not diagnosed since it changed.
        times in UTC milliseconds, 0 unknown; `mtime_ns` of the file.
    """

    id: int
    owner: str
    session_id: str
    path: str
    kind: str
    title: str
    project: str
    branch: str
    models: tuple[str, ...]
    versions: tuple[str, ...]
    tools: tuple[str, ...]
    first_ms: int
    last_ms: int
    bytes: int
    mtime_ns: int
    lines: int
    records: int
    damaged: int
    own: Totals
    total: Totals
    subagents: int
    context_tokens: int | None
    series: tuple[int, ...]
    compactions: int
    api_errors: int
    tool_errors: int
    findings: tuple[int, int, int] | None
    finding_codes: tuple[str, ...]
    problem: str
    forked_from: str

    def is_live(self, now: float) -> bool:
        """Whether the file was written within `LIVE_SECONDS` of `now` (seconds since 1970)."""
        return 0 <= now - self.mtime_ns / 1e9 < LIVE_SECONDS

    @property
    def finding_count(self) -> int | None:
        """Findings of every severity; None while not known."""
        return None if self.findings is None else sum(self.findings)


@dataclass(frozen=True, slots=True)
class UsagePoint:
    """Usage of one group: a day (UTC, days since 1970), a project or a model; only the asked fields are set."""

    day: int
    project: str
    model: str
    totals: Totals = field(default_factory=Totals)
