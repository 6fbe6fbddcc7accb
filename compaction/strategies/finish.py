"""From the changes a strategy wants to the plan that the person sees: tokens, categories, rules, what is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from compaction.accounting.categories import CATEGORY_KEYS, Category
from compaction.accounting.estimate import compact_json
from compaction.accounting.figure import Method
from compaction.diagnosis.model import Violation
from compaction.request.assemble import assemble
from compaction.request.wire import Json, Origin, WireMessage, WireRequest
from compaction.strategies.apply import applied
from compaction.strategies.context import ContextView, structural_violations
from compaction.strategies.files import files_in
from compaction.strategies.parts import Part, Place, sum_by_category
from compaction.strategies.plan import Lost, Plan, StrategyInput, no_edits
from compaction.strategies.thinking import THINKING_TYPES
from compaction.transcript.edits import Edit
from compaction.transcript.kinds import CLEARED_MARKER


def does_not_apply(given: StrategyInput, strategy: str, title: str, settings: Any, reason: str) -> Plan:
    """The plan of a strategy that has nothing to do: the request stays as it is."""
    view = given.view
    categories = by_key(view.categories())
    return Plan(
        strategy=strategy,
        title=title,
        settings=settings,
        applies=False,
        reason=reason,
        request=view.wire,
        after=view.wire,
        sent=view.wire,
        tokens_before=view.tokens,
        tokens_after=view.tokens,
        method=view.total.method,
        before=categories,
        after_categories=categories,
        kept=len(view.parts),
        first_changed=len(view.wire.messages),
        trigger=trigger(given),
    )


def make_plan(
    given: StrategyInput,
    strategy: str,
    title: str,
    settings: Any,
    reason: str,
    after: WireRequest,
    *,
    summaries: Sequence[Json] = (),
    make_edits: Callable[[], tuple[Edit, ...]] = no_edits,
    exact: bool = False,
    structural: bool = True,
    **facts: Any,
) -> Plan:
    """A plan that applies: measures `after`, checks the rules on it, and says what the model loses.

    Args:
        after: the request as the model sees it afterwards; blocks that stay are the same objects as before.
        summaries: the new blocks of `after` that count as summary; other new ones count as attachments.
        make_edits: the changes to the transcript.
        structural: blocks come, go or move; False: only the content of results is replaced by text, which no rule
            of the API can object to.
        exact: what the client does with the edited records is not plain from `after`: ask the full rules.
        facts: further fields of `Plan`.
    """
    view = given.view
    if (exact or view.client_clears) and (edits := make_edits()):
        after = exactly(given, edits, after)
    tokens_after, categories = measure_after(view, after, summaries)
    left = surviving(view, after)
    plan = Plan(
        strategy=strategy,
        title=title,
        settings=settings,
        applies=True,
        reason=reason,
        request=view.wire,
        after=after,
        sent=facts.pop("sent", after),
        tokens_before=view.tokens,
        tokens_after=tokens_after,
        method=view.total.method.and_(Method.ESTIMATED),
        before=by_key(view.categories()),
        after_categories=by_key(categories),
        violations=new_violations(view, after) if structural else (),
        make_edits=make_edits,
        lost=what_is_lost(view, left),
        kept=sum(1 for part in view.parts if id(part.value) in left),
        first_changed=facts.pop("first_changed", first_difference(view.wire, after)),
        trigger=trigger(given),
        **facts,
    )
    if plan.tokens_after > plan.tokens_before:
        grows = f"it would grow the context from {plan.tokens_before:,} to {plan.tokens_after:,} tokens"
        return does_not_apply(given, strategy, title, settings, grows)
    return plan


def exactly(given: StrategyInput, edits: Sequence[Edit], expected: WireRequest) -> WireRequest:
    """The request after `edits` by the full rules of the client, where it clears results by itself on resume.

    Blocks that are equal to ones of `expected` or of the request before are those objects, with their origins.
    """
    request = assemble(applied(given.conversation.transcript, edits), given.wire.client, model=given.wire.model)
    known: dict[str, tuple[Json, Origin | None]] = {}
    for source in (given.wire, expected):
        for message in source.messages:
            for block, origin in zip(message.content, message.origins, strict=True):
                known[compact_json([message.role, block])] = (block, origin)
    messages = []
    for message in request.messages:
        found = [known.get(compact_json([message.role, block]), (block, None)) for block in message.content]
        messages.append(WireMessage(message.role, [block for block, _ in found], [origin for _, origin in found]))
    return replace(request, messages=messages)


def trigger(given: StrategyInput) -> str:
    """`auto` when the client would do it by itself, else `manual`."""
    return "auto" if given.automatic else "manual"


def by_key(categories: dict[Category, int]) -> dict[str, int]:
    """Tokens by category under the keys of cli.md, in its order."""
    return {key: categories[Category[key.upper()]] for key in CATEGORY_KEYS}


def measure_after(
    view: ContextView, after: WireRequest, summaries: Sequence[Json] = ()
) -> tuple[int, dict[Category, int]]:
    """Tokens of the request afterwards, in all and by category: kept blocks keep their share, new are estimated."""
    totals = sum_by_category(view.system_tokens if view.parts else view.tokens, ())
    for _place, category, tokens in measured_blocks(view, after, summaries):
        totals[category] += tokens
    return sum(totals.values()), totals


def measured_blocks(
    view: ContextView, after: WireRequest, summaries: Sequence[Json] = ()
) -> Iterator[tuple[Place, Category, int]]:
    """Place, category and tokens of every block afterwards: what a plan's total is made of, block by block."""
    known = view.derived("parts by identity", _by_identity)
    written = tuple(str(block["text"]) for block in summaries if block.get("type") == "text" and block.get("text"))
    summary_blocks = {id(block) for block in summaries}
    for m, message in enumerate(after.messages):
        for b, (block, origin) in enumerate(zip(message.content, message.origins, strict=True)):
            part = known.get(id(block))
            if part is not None:
                yield (m, b), part.category, part.tokens
                continue
            before = view.by_origin.get((origin.record, origin.block)) if origin is not None else None
            tokens = view.tokens_of_new(block)
            if before is not None:
                # The same block with less in it: an estimate of the rest never exceeds what the whole was given.
                yield (m, b), before.category, min(tokens, before.tokens)
            else:
                # A text joint behind it makes another block of it.
                summary = id(block) in summary_blocks or (
                    bool(written) and block.get("type") == "text" and str(block.get("text", "")).startswith(written)
                )
                yield (m, b), Category.SUMMARY if summary else Category.ATTACHMENTS, tokens


def _by_identity(view: ContextView) -> dict[int, Part]:
    return {id(part.value): part for part in view.parts}


def new_violations(view: ContextView, after: WireRequest) -> tuple[Violation, ...]:
    """The rules that `after` breaks and `before` did not, or not at as many places: those are the plan's doing."""
    broken = structural_violations(after)
    if not broken:
        return ()
    there: dict[tuple[str, tuple[str, ...]], int] = {}
    for violation in view.violations:
        key = (violation.rule, violation.ids)
        there[key] = there.get(key, 0) + max(1, len(violation.places))
    fresh = []
    for violation in broken:
        key = (violation.rule, violation.ids)
        there[key] = there.get(key, 0) - max(1, len(violation.places))
        if there[key] < 0:
            fresh.append(violation)
    return tuple(fresh)


def surviving(view: ContextView, after: WireRequest) -> set[int]:
    """`id` of every block of the request that is in `after`, as it was or with a text joint behind it."""
    left: set[int] = set()
    for message in after.messages:
        for block, origin in zip(message.content, message.origins, strict=True):
            left.add(id(block))
            part = view.by_origin.get((origin.record, origin.block)) if origin is not None else None
            if part is not None and part.type == "text" and str(block.get("text", "")).startswith(part.text):
                left.add(id(part.value))
    return left


def first_difference(before: WireRequest, after: WireRequest) -> int:
    """The number of the first message that differs; the message count of `before` when it is a prefix of `after`."""
    for number, (one, other) in enumerate(zip(before.messages, after.messages, strict=False)):
        if one is not other and (one.role != other.role or one.content != other.content):
            return number
    return min(len(before.messages), len(after.messages))


def what_is_lost(view: ContextView, left: set[int]) -> Lost:
    """What the model cannot see any more: gone prompts, results, thinking turns, and files whose content is gone.

    Args:
        left: `surviving` blocks.
    """
    gone = [part for part in view.parts if id(part.value) not in left]
    prompts = {part.place[0] for part in gone if view.is_prompt(part) and part.type == "text"}
    results = sum(1 for part in gone if part.type == "tool_result" and part.value.get("content") != CLEARED_MARKER)
    thinking = {part.place[0] for part in gone if part.type in THINKING_TYPES}
    before = files_in(view, (pair for pair in view.pairs if id(pair.result.value) not in left))
    after = files_in(view, (pair for pair in view.pairs if id(pair.result.value) in left))
    files = tuple(path for path in before if path not in after)
    return Lost(len(prompts), files, results, len(thinking))


def with_notes(plan: Plan, notes: Iterable[str]) -> Plan:
    """The plan with further notes."""
    return replace(plan, notes=(*plan.notes, *notes))
