from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compaction.errors import Cancelled
from compaction.progress import Progress
from compaction.request.wire import WireMessage, WireRequest
from compaction.strategies.prompts import format_compact_summary
from compaction.summaries.failures import SummaryFailure, answer_failure, failure_of, gap_of, is_prompt_too_long
from compaction.summaries.summary_request import (
    MAXIMUM_RETRIES,
    RequestOptions,
    SummaryRequest,
    build_request,
    can_share_cache,
    truncate_head_for_retry,
)
from compaction.summaries.usage import CallUsage, usage_of

if TYPE_CHECKING:
    import anthropic

KEEP_ALIVE_SECONDS = 30.0
"""While a summary is written, a keep-alive with the status `compacting` goes out this often (compaction.md §6)."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call that was made.

    Attributes:
        shares_cache: it was built to read the session's prompt cache.
        dropped_groups: API rounds dropped from the head before it.
        failure: "" when it succeeded, else why it did not.
    """

    shares_cache: bool
    dropped_groups: int
    failure: str = ""


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """A summary that a model wrote.

    Attributes:
        text: formatted (`format_compact_summary`); `answer` is the model's text as it came.
        model: that answered.
        usage: tokens of every call that was made, as the API recorded them.
        attempts: every call in order; the last one succeeded.
        seconds: from the first call to the answer.
        request_ids: the API's ids of the answered calls.
    """

    text: str
    answer: str
    model: str
    usage: CallUsage
    attempts: tuple[Attempt, ...]
    seconds: float
    request_ids: tuple[str, ...]


@dataclass(slots=True)
class Listener:
    """What a run tells while it works; every call comes in the caller's thread.

    Attributes:
        text: a piece of the answer.
        status: a status line, at once and every 30 seconds (`compacting`).
    """

    text: Callable[[str], None] = lambda _piece: None
    status: Callable[[str], None] = lambda _line: None
    clock: Callable[[], float] = time.monotonic


@dataclass(slots=True)
class _State:
    usage: CallUsage = field(default_factory=CallUsage)
    attempts: list[Attempt] = field(default_factory=list)
    request_ids: list[str] = field(default_factory=list)


def summarise_conversation(
    client: anthropic.Anthropic,
    wire: WireRequest,
    messages: Sequence[WireMessage],
    prompt: str,
    options: RequestOptions,
    progress: Progress | None = None,
    listener: Listener | None = None,
) -> ModelSummary:
    """Ask a model for a summary of `messages` (compaction.md §6, `compact_conversation` steps 3 and 4).

    A request that shares the session's prompt cache is tried first where it can be built; any failure but a
    cancellation or a too-long prompt falls back to a plain one. A too-long prompt loses its oldest API rounds and is
    tried again, at most three times.

    Raises:
        SummaryFailure: no usable summary; what happened and what can be done. Nothing half-made is returned.
        Cancelled: `progress.cancel()` was called.
    """
    progress = progress or Progress()
    listener = listener or Listener()
    state = _State()
    started = listener.clock()
    share = can_share_cache(wire, options)
    rest = list(messages)
    dropped = retries = 0
    while True:
        request = build_request(wire, rest, prompt, options, share=share)
        try:
            answer = _call(client, request, state, progress, listener)
        except SummaryFailure as failure:
            state.attempts.append(Attempt(share, dropped, failure.cause))
            if failure.kind == "prompt_too_long":
                shorter = truncate_head_for_retry(rest, failure.gap_tokens) if retries < MAXIMUM_RETRIES else None
                if shorter is None:
                    raise
                retries += 1
                dropped += shorter.dropped_groups
                rest, share = shorter.messages, False
                listener.status(f"the prompt was too long: the {dropped} oldest API rounds were left out")
                continue
            if share:
                share = False
                listener.status("the cache-sharing call failed; trying a plain one")
                continue
            raise
        state.attempts.append(Attempt(share, dropped))
        seconds = listener.clock() - started
        model = request.body["model"]
        return ModelSummary(
            format_compact_summary(answer),
            answer,
            model,
            state.usage,
            tuple(state.attempts),
            seconds,
            tuple(state.request_ids),
        )


def _call(
    client: anthropic.Anthropic, request: SummaryRequest, state: _State, progress: Progress, listener: Listener
) -> str:
    """One streamed call (beta endpoint: only its usage has `iterations`): the text of an answer that is usable."""

    def stream(events: _Events) -> Any:
        with client.beta.messages.stream(**request.body) as opened:
            events.opened(opened)
            for piece in opened.text_stream:
                events.put(piece)
            return opened.get_final_message()

    message = run_cancellable(stream, progress, listener)
    state.usage = state.usage + usage_of(message.usage)
    if getattr(message, "_request_id", None):
        state.request_ids.append(str(message._request_id))
    return checked_answer(message)


def checked_answer(message: Any) -> str:
    """The text of an answer that can be used as a summary.

    Raises:
        SummaryFailure: refusal, cut at max_tokens, a tool call, empty, the too-long error as text, or no summary in it.
    """
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [block.name for block in message.content if block.type == "tool_use"]
    stop = message.stop_reason
    if is_prompt_too_long(text):
        failure = answer_failure("prompt_too_long", "the model answered that the prompt is too long", "")
        failure.gap_tokens = gap_of(text)
        raise failure
    if stop is None:
        # A stream that breaks off between two events looks like a message that never got its stop reason.
        raise answer_failure("connection", "the stream broke off before the answer was whole", "try again")
    if stop == "refusal":
        raise answer_failure("refusal", "the model refused to summarise", "try another model, or a part of the session")
    if calls or stop == "tool_use":
        names = ", ".join(calls) or "a tool"
        raise answer_failure("tool_call", f"the model called {names} instead of answering", "try again")
    if stop in ("max_tokens", "model_context_window_exceeded"):
        raise answer_failure("cut", f"the answer was cut ({stop})", "raise the output limit, or summarise a part")
    if not text.strip():
        raise answer_failure("empty", "the answer is empty", "try again, or another model")
    if "<summary>" not in text or "</summary>" not in text:
        raise answer_failure("malformed", "the answer holds no <summary> block", "try again, or another model")
    if not format_compact_summary(text).removeprefix("Summary:").strip():
        raise answer_failure("malformed", "the summary in the answer is empty", "try again, or another model")
    return text


class _Events:
    """What the calling thread and the thread of the call share."""

    def __init__(self) -> None:
        self.queue: queue.Queue[tuple[str, Any]] = queue.Queue()
        self.stream: Any = None

    def opened(self, stream: Any) -> None:
        self.stream = stream

    def put(self, piece: str) -> None:
        self.queue.put(("text", piece))


def run_cancellable(work: Callable[[_Events], Any], progress: Progress, listener: Listener) -> Any:
    """Run a blocking SDK call in a thread of its own, so that cancelling takes effect at once even while the network
    is silent; errors of the SDK come out as `SummaryFailure`.

    Raises:
        SummaryFailure, Cancelled
    """
    events = _Events()

    def body() -> None:
        try:
            events.queue.put(("done", work(events)))
        except BaseException as error:  # noqa: BLE001 - handed over to the calling thread, which raises it
            events.queue.put(("failed", error))

    threading.Thread(target=body, name="summary-call", daemon=True).start()
    listener.status("compacting")
    next_status = listener.clock() + KEEP_ALIVE_SECONDS
    while True:
        if progress.cancelled:
            _close(events.stream)
            raise Cancelled
        if listener.clock() >= next_status:
            listener.status("compacting")
            next_status = listener.clock() + KEEP_ALIVE_SECONDS
        try:
            kind, value = events.queue.get(timeout=0.1)
        except queue.Empty:
            continue
        if kind == "text":
            progress.done += len(value)
            listener.text(value)
        elif kind == "done":
            return value
        else:
            raise _translated(value) from value


def _translated(error: BaseException) -> BaseException:
    if isinstance(error, Exception):
        found = failure_of(error)
        if found is not None:
            return found
        import httpx2

        if isinstance(error, httpx2.TimeoutException):
            return SummaryFailure("the API fell silent", "try again, or raise the timeout", kind="timeout")
        if isinstance(error, httpx2.HTTPError):
            return SummaryFailure(f"the connection broke: {error}", "check the network", kind="connection")
    return error


def _close(stream: Any) -> None:
    if stream is not None:
        with contextlib.suppress(Exception):  # the connection goes away with the thread whatever closing says
            stream.close()
