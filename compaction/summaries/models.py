from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.progress import Progress
from compaction.summaries.run import Listener, run_cancellable

if TYPE_CHECKING:
    import anthropic


@dataclass(frozen=True, slots=True)
class ApiModel:
    """A model that the API offers this key (api.md §1.9).

    Attributes:
        id: the name to ask for; title for people.
        window, max_output: tokens; None where the API does not say.
    """

    id: str
    title: str
    window: int | None
    max_output: int | None


def list_models(client: anthropic.Anthropic, progress: Progress | None = None) -> list[ApiModel]:
    """The models of the Models API, newest first as it lists them; it has no prices.

    Raises:
        SummaryFailure: the API could not be reached or refused.
        Cancelled
    """

    def ask(_events: object) -> list[ApiModel]:
        return [
            ApiModel(m.id, m.display_name, getattr(m, "max_input_tokens", None), getattr(m, "max_tokens", None))
            for m in client.models.list(limit=100)
        ]

    found: list[ApiModel] = run_cancellable(ask, progress or Progress(), Listener())
    return found
