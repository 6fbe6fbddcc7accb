from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from compaction.progress import Progress
from compaction.strategies.prompts import summary_prompt
from compaction.strategies.summariser import Summary, SummaryTask
from compaction.summaries.api_client import ApiSettings, build_client
from compaction.summaries.consent import messages_of
from compaction.summaries.failures import SummaryFailure, answer_failure
from compaction.summaries.run import Listener, ModelSummary, summarise_conversation
from compaction.summaries.summary_request import RequestOptions

if TYPE_CHECKING:
    import anthropic

MAXIMUM_FAILURES = 3
"""`MAX_CONSECUTIVE_AUTOCOMPACT_FAILURES` (compaction.md §1): after these the breaker is open."""


class AnthropicSummariser:
    """Asks a model through the Anthropic SDK. Make one only after the person agreed to what it sends.

    A task is sent once: the same task again (a preview, then its application) gets the same summary. After three
    failures in a row the circuit breaker refuses further calls until `reset`.

    Attributes:
        last: the newest run in full (usage, attempts, seconds), None before the first.
    """

    name = "anthropic"
    title = "Model (Anthropic API)"
    offline = False

    def __init__(
        self,
        options: RequestOptions,
        api: ApiSettings,
        *,
        prompt: str = "",
        progress: Progress | None = None,
        listener: Listener | None = None,
        make_client: Callable[[ApiSettings], anthropic.Anthropic] = build_client,
    ) -> None:
        self.options = options
        self.api = api
        self.prompt = prompt
        self.progress = progress
        self.listener = listener
        self.last: ModelSummary | None = None
        self.failures = 0
        self._make_client = make_client
        self._done: dict[tuple[object, ...], ModelSummary] = {}

    def reset(self) -> None:
        """Close the circuit breaker."""
        self.failures = 0

    def summarise(self, task: SummaryTask) -> Summary:
        """A model's summary of the task.

        Raises:
            SummaryFailure: no usable summary, or the breaker is open.
            Cancelled: the run's progress was cancelled.
        """
        key = (task.kind, task.custom_instructions, tuple(part.place for part in task.parts))
        found = self._done.get(key)
        if found is None:
            if self.failures >= MAXIMUM_FAILURES:
                raise answer_failure(
                    "breaker", f"{self.failures} summaries failed in a row; no further call is made", "mend the cause"
                )
            found = self._run(task)
            self._done[key] = found
        self.last = found
        u = found.usage
        label = f"written by {found.model}"
        return Summary(found.text, label, (u.input, u.output, u.cache_read, u.cache_creation))

    def _run(self, task: SummaryTask) -> ModelSummary:
        prompt = self.prompt or summary_prompt(task.kind, task.custom_instructions)
        client = self._make_client(self.api)
        try:
            run = summarise_conversation(
                client, task.view.wire, messages_of(task), prompt, self.options, self.progress, self.listener
            )
        except SummaryFailure:
            self.failures += 1
            raise
        finally:
            client.close()
        self.failures = 0
        return run
