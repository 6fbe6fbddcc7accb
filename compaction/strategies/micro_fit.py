from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.accounting.estimate import rough_tokens_of_block
from compaction.conversation import Conversation
from compaction.strategies.microcompact import COMPACTABLE_TOOLS
from compaction.transcript.kinds import BlockType

_TARGETS = (20_000, 30_000, 40_000, 50_000, 60_000)
"""Token targets that are tried, besides counts of results to keep."""


@dataclass(frozen=True, slots=True)
class Cleared:
    """One tool result before a recorded microcompaction: its id, tool, rough tokens, whether it was cleared."""

    id: str
    tool: str
    tokens: int
    cleared: bool


@dataclass(frozen=True, slots=True)
class MicroFit:
    """The settings that reproduce a recorded microcompaction best.

    Attributes:
        record, line: of the boundary.
        rule: "keep_recent" (that many newest results stay) or "keep_tokens" (the oldest go until that is left).
        value: the rule's figure: results, or tokens (characters / 4).
        recorded: ids that the boundary names; `visible` of them are results in the file.
        agreed, results: results in the file whose fate the rule gets right, of how many.
        tokens_left: recorded estimate of what was left (preTokens − tokensSaved), None when not recorded.
    """

    record: int
    line: int
    rule: str
    value: int
    recorded: int
    visible: int
    agreed: int
    results: int
    tokens_left: int | None

    @property
    def fit(self) -> float | None:
        """The share of results whose fate is right, 0 to 1; None when the file holds none of them."""
        return self.agreed / self.results if self.results else None


def fit_microcompactions(conversation: Conversation, tools: Sequence[str] = COMPACTABLE_TOOLS) -> tuple[MicroFit, ...]:
    """For every recorded microcompaction the keep rule that reproduces its cleared ids best (issue 5).

    Of equally good rules the token target that the recorded remainder supports wins, then the smaller figure.
    """
    boundaries = [b for b in conversation.transcript.boundaries if b.micro]
    earlier: set[str] = set()
    fits = []
    for boundary in boundaries:
        details = conversation.transcript.payload(boundary.record).get("microcompactMetadata")
        details = details if isinstance(details, dict) else {}
        named = details.get("compactedToolIds")
        ids = {i for i in named if isinstance(i, str)} if isinstance(named, list) else set()
        fits.append(_fit(conversation, boundary.record, ids, earlier, details, tools))
        earlier |= ids
    return tuple(fits)


def _fit(
    conversation: Conversation,
    record: int,
    ids: set[str],
    earlier: set[str],
    details: dict[str, object],
    tools: Sequence[str],
) -> MicroFit:
    results = results_before(conversation, record, ids, tools)
    results = [r for r in results if r.id not in earlier]
    before, saved = details.get("preTokens"), details.get("tokensSaved")
    left = before - saved if isinstance(before, int) and isinstance(saved, int) else None
    candidates = [("keep_recent", n) for n in range(1, len(results) + 1)] + [("keep_tokens", n) for n in _TARGETS]
    supported = next((n for n in _TARGETS if left is not None and left <= n), 0)

    def quality(candidate: tuple[str, int]) -> tuple[int, bool, int]:
        agreed = sum(1 for r, c in zip(results, cleared_by(results, *candidate), strict=True) if r.cleared == c)
        return agreed, candidate == ("keep_tokens", supported), -candidate[1]

    rule, value = max(candidates, key=quality)
    agreed = quality((rule, value))[0]
    visible = sum(1 for r in results if r.cleared)
    line = int(conversation.transcript.line[record])
    return MicroFit(record, line, rule, value, len(ids), visible, agreed, len(results), left)


def cleared_by(results: Sequence[Cleared], rule: str, value: int) -> list[bool]:
    """Which of the results (oldest first) a keep rule clears."""
    if rule == "keep_recent":
        return [n < len(results) - value for n in range(len(results))]
    left = sum(r.tokens for r in results)
    fate = []
    for result in results:
        goes = left > value
        left -= result.tokens if goes else 0
        fate.append(goes)
    return fate


def results_before(conversation: Conversation, record: int, ids: set[str], tools: Sequence[str]) -> list[Cleared]:
    """The main thread's results of compactable tools in the boundary's stretch before it, oldest first."""
    t = conversation.transcript
    epoch = conversation.epoch_of[record]
    found = []
    for block in range(int(t.first_block[record]) if record < len(t) else len(t.block_record)):
        owner = int(t.block_record[block])
        if t.block_type[block] != BlockType.TOOL_RESULT or conversation.epoch_of[owner] != epoch:
            continue
        use = int(conversation.pair[block])
        tool = t.block_tool(use) if use >= 0 else ""
        if tool in tools and conversation.main[owner]:
            value = t.block(block)
            name = str(value.get("tool_use_id"))
            found.append(Cleared(name, tool, rough_tokens_of_block(value), name in ids))
    return found
