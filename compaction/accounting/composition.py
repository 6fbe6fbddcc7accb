from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compaction.accounting.categories import CATEGORY_COUNT, Category, split_exactly

Tokens = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]

_CLEARED_FIRST = (
    Category.TOOL_RESULT,
    Category.IMAGES,
    Category.SYSTEM_AND_TOOLS,
    Category.ATTACHMENTS,
    Category.THINKING,
    Category.TOOL_USE,
    Category.ASSISTANT_TEXT,
    Category.USER_TEXT,
    Category.SUMMARY,
)
"""What shrinks first when the client cleared content: old tool results (compaction.md 4), then what is not on record (a
file may begin in the middle of a session, with its results unseen)."""
_UNSEEN_FIRST = (
    Category.ATTACHMENTS, Category.THINKING, Category.SYSTEM_AND_TOOLS, Category.TOOL_RESULT, Category.IMAGES,
    Category.TOOL_USE, Category.ASSISTANT_TEXT, Category.USER_TEXT, Category.SUMMARY,
)  # fmt: skip
"""What shrinks first on a small fall that no record explains: reminders that are sent once, then thinking."""
_TOLERANCE = 3.0
"""Growth beyond this many times the estimate (plus `_SLACK`) is content that the transcript does not hold."""
_SLACK = 1_500


@dataclass(frozen=True, slots=True)
class Added:
    """What the records of one round add to the next context, in estimated tokens by category.

    Attributes:
        assistant: of the response; user: of everything after it (results, prompts, attachments).
        hidden: the response thought without showing it.
        output: its recorded output tokens, None when it is a placeholder or not recorded.
        thinking: tokens of these that were thinking, where the API recorded it (from 2.1.229 on), else None.
    """

    assistant: Weights
    user: Weights
    hidden: bool
    output: int | None
    thinking: int | None = None


@dataclass(frozen=True, slots=True)
class Composition:
    """A context divided into categories that add up to it exactly.

    Attributes:
        tokens: by `Category`.
        hidden_thinking: the part of `tokens[THINKING]` that has no text, a residual of recorded output or growth.
    """

    tokens: Tokens
    hidden_thinking: int

    @property
    def total(self) -> int:
        """All of it."""
        return int(self.tokens.sum())


def first_composition(total: int, visible: Weights, known_system: int | None) -> Composition:
    """Divide a context that has no earlier one to grow from: what is not visible is system and tools.

    Args:
        total: recorded context, tokens.
        visible: calibrated estimates of everything on record that is in it.
        known_system: system and tools of the epoch before; what a compaction re-attached beyond the records goes to
            the attachments instead (transcript-format.md 7).
    """
    tokens = np.zeros(CATEGORY_COUNT, np.int64)
    estimate = float(visible.sum())
    shown = min(total, round(estimate))
    if known_system is not None and total - shown < known_system:
        shown = max(0, total - known_system) if estimate > 0 else 0
    if shown > 0:
        tokens += split_exactly(shown, visible)
    rest = total - shown
    if known_system is not None and rest > known_system:
        tokens[Category.ATTACHMENTS] += rest - known_system
        rest = known_system
    tokens[Category.SYSTEM_AND_TOOLS] += rest
    return Composition(tokens, 0)


def next_composition(base: Composition, total: int, added: Added, cleared: bool, stripped: bool) -> Composition:
    """Divide a context that grew from `base`: the growth is exact, the estimates only divide it.

    Args:
        total: recorded context, tokens.
        added: calibrated estimates of what came between.
        cleared: a microcompaction or silent drop lies between.
        stripped: the API dropped the thinking of earlier turns (old models, at a new prompt).
    """
    tokens, hidden = base.tokens.copy(), base.hidden_thinking
    assistant, hides, output = added.assistant.copy(), added.hidden, added.output
    if stripped:
        tokens[Category.THINKING] = hidden = 0
        assistant[Category.THINKING] = 0.0
        hides, output = False, None
    growth = total - int(tokens.sum())
    expected = float(assistant.sum() + added.user.sum())
    if growth < 0 or cleared:
        return _shrunk(tokens, hidden, total, assistant + added.user, _CLEARED_FIRST if cleared else _UNSEEN_FIRST)
    if output is not None and output <= growth:
        if added.thinking is not None and added.thinking <= output:
            tokens, hidden = _add_thinking(tokens, hidden, added.thinking, assistant, hides)
            assistant[Category.THINKING], hides = 0.0, False
            output -= added.thinking
            growth -= added.thinking
        tokens, hidden = _add_response(tokens, hidden, output, assistant, hides)
        _add(tokens, growth - output, added.user)
    elif hides and growth > expected:
        tokens, hidden = _add_response(tokens, hidden, growth - round(float(added.user.sum())), assistant, True)
        _add(tokens, total - int(tokens.sum()), added.user)
    else:
        _add(tokens, growth, assistant + added.user)
    return Composition(tokens, hidden)


def _add_thinking(tokens: Tokens, hidden: int, thinking: int, assistant: Weights, hides: bool) -> tuple[Tokens, int]:
    """Add recorded thinking; without its text it is hidden as far as visible thinking does not explain it."""
    tokens[Category.THINKING] += thinking
    unseen = max(0, thinking - round(float(assistant[Category.THINKING]))) if hides else 0
    return tokens, hidden + unseen


def _add_response(tokens: Tokens, hidden: int, output: int, assistant: Weights, hides: bool) -> tuple[Tokens, int]:
    """Add a response of known size; what its visible blocks do not explain is hidden thinking, if it thought."""
    visible = float(assistant.sum())
    unseen = max(0, output - round(visible)) if hides else 0
    if visible <= 0:
        unseen = output
    if output - unseen > 0:
        tokens += split_exactly(output - unseen, assistant)
    tokens[Category.THINKING] += unseen
    return tokens, hidden + unseen


def _add(tokens: Tokens, growth: int, weights: Weights) -> None:
    """Add growth by weights; far more than they explain is content that the transcript does not hold."""
    expected = float(weights.sum())
    explained = growth
    if growth > _TOLERANCE * expected + _SLACK or expected <= 0:
        explained = min(growth, round(expected))
    if explained > 0:
        tokens += split_exactly(explained, weights)
    tokens[Category.SYSTEM_AND_TOOLS] += growth - explained


def _shrunk(tokens: Tokens, hidden: int, total: int, weights: Weights, order: tuple[Category, ...]) -> Composition:
    """Add what came, then take the surplus from the categories in order; the rest of the recorded total is added."""
    added = min(round(float(weights.sum())), total)
    if added > 0:
        tokens = tokens + split_exactly(added, weights)
    surplus = int(tokens.sum()) - total
    if surplus < 0:
        _add(tokens, -surplus, weights)
        return Composition(tokens, hidden)
    for category in order:
        taken = min(surplus, int(tokens[category]))
        tokens[category] -= taken
        surplus -= taken
        if category is Category.THINKING:
            hidden = min(hidden, int(tokens[category]))
    return Composition(tokens, hidden)
