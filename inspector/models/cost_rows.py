"""What the cost panel lists, as plain data: sections with lines, each figure with its method and source."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compaction.accounting.by_agent import cost_by_agent
from compaction.accounting.cost import ModelCost
from compaction.accounting.figure import Figure, Method
from compaction.accounting.prices import BUCKETS
from inspector.models.round_table import event_title

if TYPE_CHECKING:
    from compaction.accounting.accounts import SessionAccounts


@dataclass(frozen=True, slots=True)
class CostLine:
    """One line of the panel.

    Attributes:
        title: what it is.
        tokens, usd, calls: figures, None where they do not apply or are unknown; `usd_text` overrides the money.
        basis: method and source of the figures.
        explanation: what to know about it, shown below the list.
        record: where it happened, −1 nowhere; lines: what is below it.
    """

    title: str
    tokens: int | None = None
    usd: float | None = None
    calls: int | None = None
    basis: str = ""
    explanation: str = ""
    usd_text: str = ""
    record: int = -1
    lines: tuple[CostLine, ...] = field(default=())
    bold: bool = False


CLIENT_TOTAL = "The client's own total"
_COMPUTED = "computed from recorded tokens and dated prices"


def cost_lines(accounts: SessionAccounts) -> list[CostLine]:
    """Every section of the panel; a section without lines is left out."""
    sections = [
        _total(accounts),
        _buckets(accounts),
        _models(accounts),
        _agents(accounts),
        _compactions(accounts),
        _misses(accounts),
        _unrecorded(accounts),
        _placeholders(accounts),
        _reconciliation(accounts),
    ]
    return [section for section in sections if section is not None]


def _total(accounts: SessionAccounts) -> CostLine:
    cost = accounts.cost
    lines = [
        CostLine(f"API time: {_seconds(cost.api_time)}", basis=_basis(cost.api_time)),
        CostLine(f"First to last response: {_seconds(cost.duration)}", basis=_basis(cost.duration)),
    ]
    if cost.client_usd is not None:
        difference = cost.total_usd - cost.client_usd
        lines.append(
            CostLine(
                CLIENT_TOTAL,
                usd=cost.client_usd,
                basis="recorded (cost-state)",
                explanation=f"Ours differs by ${difference:+,.6f}. Prices the client knew then, or responses written "
                "after its last total, are the reasons there can be.",
            )
        )
    return CostLine(
        "Total",
        tokens=sum(cost.tokens),
        usd=cost.total_usd,
        calls=cost.responses,
        basis=f"{_COMPUTED}: {cost.prices.name}",
        explanation="Each response once, with its subagents. Models without a price are not in it: they are "
        "marked in the list of models.",
        lines=tuple(lines),
        bold=True,
    )


def _buckets(accounts: SessionAccounts) -> CostLine:
    cost = accounts.cost
    lines = [
        CostLine(title.replace("_", " ").capitalize(), tokens=tokens, usd=usd, basis=_COMPUTED)
        for title, tokens, usd in zip(BUCKETS, cost.tokens, cost.usd, strict=True)
    ]
    if cost.web_searches:
        lines.append(CostLine("Web search", calls=cost.web_searches, usd=cost.web_usd, basis=_COMPUTED))
    return CostLine(
        "Buckets",
        explanation="Never merged: reading from the cache costs a fraction of input, writing to it more than input.",
        lines=tuple(lines),
        bold=True,
    )


def _models(accounts: SessionAccounts) -> CostLine:
    return CostLine(
        "Models", lines=tuple(_model(m) for m in accounts.cost.models.values()), bold=True,
        explanation="By model, without vendor prefix, date and [1m].",
    )  # fmt: skip


def _model(model: ModelCost) -> CostLine:
    buckets = tuple(
        CostLine(title.replace("_", " ").capitalize(), tokens=tokens, usd=usd, basis="; ".join(model.sources))
        for title, tokens, usd in zip(BUCKETS, model.tokens, model.usd, strict=True)
        if tokens
    )
    lacking = bool(any(model.unpriced) or model.unpriced_responses)
    return CostLine(
        model.model,
        tokens=sum(model.tokens),
        usd=None if lacking and not model.sources else model.total_usd,
        usd_text="unpriced" if lacking and not model.sources else "",
        calls=model.responses,
        basis="; ".join(model.sources) or "no price in this set",
        explanation=f"Recorded as {', '.join(model.names)}."
        + (" No price is known for it: that is not the same as free. Add one to prices.json." if lacking else ""),
        lines=buckets,
    )


def _agents(accounts: SessionAccounts) -> CostLine | None:
    agents = cost_by_agent(accounts.responses, accounts.cost)
    if len(agents) < 2:
        return None
    lines = tuple(
        CostLine(a.title, tokens=a.tokens, usd=a.usd, calls=a.responses, basis=_COMPUTED) for a in agents
    )  # fmt: skip
    return CostLine("Main thread and subagents", lines=lines, bold=True)


def _compactions(accounts: SessionAccounts) -> CostLine | None:
    t = accounts.session.transcript
    lines = []
    for found in accounts.compactions:
        c = found.compaction
        below = (
            CostLine("Its own request", usd=found.call.value, usd_text=_money(found.call), basis=_basis(found.call)),
            CostLine(
                "Writing the new prefix", usd=found.rebuild.value, usd_text=_money(found.rebuild),
                basis=_basis(found.rebuild),
            ),
        )  # fmt: skip
        freed = c.context_before - c.context_after if c.context_before and c.context_after else None
        lines.append(
            CostLine(
                f"{event_title(c.kind).capitalize()}, line {int(t.line[c.record]):,}",
                tokens=freed,
                usd_text=_money(found.call + found.rebuild),
                basis="tokens freed, between the recorded contexts before and after",
                record=c.record,
                lines=below,
            )
        )
    if not lines:
        return None
    return CostLine(
        "Compactions",
        calls=len(lines),
        lines=tuple(lines),
        bold=True,
        explanation="A compaction pays for its own request, and the next request pays write price for the new prefix "
        "that it would have read from the cache.",
    )


def _misses(accounts: SessionAccounts) -> CostLine | None:
    if not accounts.misses:
        return None
    t = accounts.session.transcript
    grouped: dict[str, list[CostLine]] = defaultdict(list)
    for miss in accounts.misses:
        title = miss.reason.split(" of ")[0].split(":")[0]
        line = CostLine(
            f"Round {miss.round:,}, line {int(t.line[miss.record]):,}: {miss.reason}",
            tokens=miss.lost,
            usd=miss.usd,
            usd_text="" if miss.usd is not None else "unpriced",
            basis=f"tokens computed from recorded reads; reason {miss.method}",
            record=miss.record,
        )
        grouped[title].append(line)
    lines = [
        CostLine(
            title.capitalize(), tokens=sum(x.tokens or 0 for x in found), usd=sum(x.usd or 0 for x in found),
            calls=len(found), basis=_COMPUTED, lines=tuple(found),
        )
        for title, found in sorted(grouped.items(), key=lambda item: -sum(x.usd or 0 for x in item[1]))
    ]  # fmt: skip
    return CostLine(
        "Cache misses",
        tokens=sum(line.tokens or 0 for line in lines),
        usd=sum(line.usd or 0 for line in lines),
        calls=len(accounts.misses),
        basis=_COMPUTED,
        explanation="Rounds that read less from the cache than was cached before them, and what those tokens cost more "
        "than reading them would have. Part of the total, not on top of it.",
        lines=tuple(lines),
        bold=True,
    )


def _unrecorded(accounts: SessionAccounts) -> CostLine | None:
    found = accounts.cost.unrecorded
    if not found:
        return None
    lines = tuple(
        CostLine(
            f"{u.model}, before line {int(accounts.session.transcript.line[u.record]):,}" if u.file == 0 else u.model,
            tokens=sum(u.tokens),
            usd=u.total_usd if u.usd is not None else None,
            usd_text="" if u.usd is not None else "unpriced",
            basis=f"{u.method}: the client's total less the responses on record",
            record=u.record if u.file == 0 else -1,
        )
        for u in found
    )
    return CostLine(
        "Requests without a response on record",
        tokens=sum(sum(u.tokens) for u in found),
        usd=sum(u.total_usd for u in found),
        basis="computed from the client's own totals",
        explanation="The client counted them and wrote no response: a compaction's own request, titles, checks. They "
        "are part of the total; tools that only add up responses miss them.",
        lines=lines,
        bold=True,
    )


def _placeholders(accounts: SessionAccounts) -> CostLine | None:
    uncertain = accounts.cost.uncertain
    if not uncertain:
        return None
    recovered = accounts.recovered >= 0
    more = int((accounts.recovered[recovered] - accounts.series.usage.output[recovered]).sum())
    return CostLine(
        "Output recorded as a placeholder",
        tokens=more,
        usd=accounts.recovered_usd,
        calls=uncertain,
        basis=f"estimated from the growth of the context in {int(recovered.sum()):,} rounds; not in the total",
        explanation="These responses have no final output count: the client wrote down the figure of their first "
        "event. The total counts what is recorded; beside it stands what the next context says was missing.",
        bold=True,
    )


def _reconciliation(accounts: SessionAccounts) -> CostLine:
    cost = accounts.cost
    unrecorded = sum(sum(u.tokens) for u in cost.unrecorded)
    once = sum(cost.tokens) - unrecorded
    raw = sum(sum(f.raw_tokens) for f in cost.files)
    own = sum(sum(f.own_tokens) for f in cost.files)
    files = tuple(
        CostLine(
            f.name.rsplit("/", 1)[-1], tokens=sum(f.own_tokens), calls=f.responses,
            basis=f"{f.records:,} records with usage; their plain sum is {sum(f.raw_tokens):,}",
        )
        for f in cost.files
    )  # fmt: skip
    return CostLine(
        "Reconciliation",
        bold=True,
        explanation="Why another tool's total may differ: it may add up the usage of every record (a response is "
        "written as several), count copies in forks and subagents' files again, take cache writes of one hour for "
        "those of five minutes, price reads at a tenth of input for every model, miss requests that only the client's "
        "totals show, or count unknown models as free.",
        lines=(
            CostLine("Summed over every record", tokens=raw, basis="recorded; counts responses more than once"),
            CostLine("Each response once within its file", tokens=own, basis="computed", lines=files),
            CostLine("Each response once over all files", tokens=once, basis="computed"),
            CostLine("With the requests that only the client counted", tokens=sum(cost.tokens), basis="computed"),
        ),
    )


def _basis(figure: Figure) -> str:
    if figure.method is Method.UNKNOWN:
        return "unknown"
    return f"{figure.method}: {figure.source}" if figure.source else str(figure.method)


def _money(figure: Figure) -> str:
    if figure.value is None:
        return "unknown"
    mark = "≈ " if figure.method is Method.ESTIMATED else ""
    return f"{mark}${figure.value:,.4f}"


def _seconds(figure: Figure) -> str:
    if figure.value is None:
        return "unknown"
    seconds = round(figure.value / 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
