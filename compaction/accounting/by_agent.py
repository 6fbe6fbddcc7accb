from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compaction.accounting.cost import CostState
from compaction.accounting.usage import Responses


@dataclass(frozen=True, slots=True)
class AgentCost:
    """What the main thread or one subagent cost.

    Attributes:
        agent_id: "" for the main thread and for inline sidechains without an id.
        title: for people.
        responses, tokens, usd: of its responses on record.
    """

    agent_id: str
    title: str
    responses: int
    tokens: int
    usd: float


def cost_by_agent(responses: Responses, state: CostState) -> list[AgentCost]:
    """Main thread first, then inline sidechains, then subagents from the dearest down."""
    if not responses.count:
        return []
    rows = responses.rows[responses.best]
    names = responses.names.agents.names
    own_file = np.array([f.subagent for f in responses.files], bool)[rows["file"]]
    inside = rows["sidechain"] | own_file | (rows["agent"] > 0)
    tokens = responses.tokens.sum(axis=1)
    found: list[AgentCost] = []

    def add(agent: str, title: str, mine: np.ndarray) -> None:
        if mine.any():
            usd = float(state.usd_by_response[mine].sum())
            found.append(AgentCost(agent, title, int(mine.sum()), int(tokens[mine].sum()), usd))

    add("", "Main thread", ~inside)
    add("", "Inline sidechains", inside & (rows["agent"] == 0))
    agents = found
    found = []
    for number in np.unique(rows["agent"][inside & (rows["agent"] > 0)]).tolist():
        add(names[number], f"Subagent {names[number]}", inside & (rows["agent"] == number))
    return agents + sorted(found, key=lambda a: -a.usd)
