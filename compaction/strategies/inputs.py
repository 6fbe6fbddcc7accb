from __future__ import annotations

from compaction.accounting.prices import PriceSet, bundled_prices
from compaction.accounting.profiles import profile_for
from compaction.accounting.settings import WindowSettings
from compaction.accounting.thresholds import thresholds_for
from compaction.conversation import Conversation
from compaction.request.assemble import assemble, default_client
from compaction.strategies.plan import MAIN_THREAD, StrategyInput
from compaction.strategies.summariser import OfflineSummariser, Summariser


def strategy_input(
    conversation: Conversation,
    *,
    now_ms: int,
    client: str = "",
    model: str = "",
    window: WindowSettings | None = None,
    prices: PriceSet | None = None,
    summariser: Summariser | None = None,
    session_memory: str | None = None,
    last_summarised_uuid: str = "",
    query_source: str | None = MAIN_THREAD,
    automatic: bool = False,
) -> StrategyInput:
    """What strategies are given for the next request of a session.

    Args:
        now_ms: the time, milliseconds since the epoch.
        client: client version whose profile and request generation count ("" = the newest recorded in the session).
        model: the model it is sent to ("" = the session's last one): clients leave out thinking of other models.
        window: overrides of the window and its thresholds.
        prices: the price set (default: the bundled default set).
        summariser: writes summaries (default: the offline one).
    """
    version = client or default_client(conversation)
    wire = assemble(conversation, version, model=model)
    contexts = conversation.response_context
    largest = int(contexts.max()) if len(contexts) else 0
    return StrategyInput(
        conversation=conversation,
        wire=wire,
        thresholds=thresholds_for(profile_for(version), wire.model, window, largest),
        prices=prices if prices is not None else bundled_prices().set(),
        now_ms=now_ms,
        summariser=summariser if summariser is not None else OfflineSummariser(),
        query_source=query_source,
        session_memory=session_memory,
        last_summarised_uuid=last_summarised_uuid,
        automatic=automatic,
    )
