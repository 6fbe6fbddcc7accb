from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from compaction.transcript import RecordKind, Transcript


@dataclass(frozen=True, slots=True)
class ModelTotals:
    """What the client counted for one model since the session began: tokens by bucket, searches, USD."""

    tokens: tuple[int, int, int, int, int]
    web_searches: int
    usd: float


@dataclass(frozen=True, slots=True)
class ClientTotals:
    """One `cost-state` record: the client's own totals at that moment (clients.md).

    Attributes:
        file, record, session: where it stands.
        start_ms: when the client began to count; time_ms: of the newest record before it (0 unknown).
        usd, api_ms, wall_ms: total cost, API time and wall time in milliseconds.
        models: by the client's model id.
        unknown_cost: the client itself met a model without a price.
    """

    file: int
    record: int
    session: str
    start_ms: int
    time_ms: int
    usd: float
    api_ms: float
    wall_ms: float
    models: dict[str, ModelTotals]
    unknown_cost: bool


def client_totals_of(transcript: Transcript, file: int) -> list[ClientTotals]:
    """Every cost-state record of a transcript, in file order; odd fields count as 0."""
    t = transcript
    found = []
    for record in np.flatnonzero(t.kind == RecordKind.COST_STATE):
        value = t.payload(int(record))
        usage = value.get("modelUsage")
        models = {str(k): _model(v) for k, v in usage.items()} if isinstance(usage, dict) else {}
        before = t.timestamp_ms[: int(record)]
        found.append(
            ClientTotals(
                file=file,
                record=int(record),
                session=t.session(int(record)),
                start_ms=int(_number(value, "startTime")),
                time_ms=int(before.max()) if len(before) else 0,
                usd=_number(value, "totalCostUSD"),
                api_ms=_number(value, "totalAPIDuration"),
                wall_ms=_number(value, "totalDuration"),
                models=models,
                unknown_cost=value.get("hasUnknownModelCost") is True,
            )
        )
    return found


def _model(value: Any) -> ModelTotals:
    if not isinstance(value, dict):
        return ModelTotals((0, 0, 0, 0, 0), 0, 0.0)
    written = int(_number(value, "cacheCreationInputTokens"))
    hour = min(written, int(_number(value, "cacheCreationEphemeral1hInputTokens")))
    tokens = (int(_number(value, "inputTokens")), int(_number(value, "outputTokens")),
              int(_number(value, "cacheReadInputTokens")), written - hour, hour)  # fmt: skip
    return ModelTotals(tokens, int(_number(value, "webSearchRequests")), _number(value, "costUSD"))


def _number(value: dict[str, Any], name: str) -> float:
    found = value.get(name)
    return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else 0.0
