from __future__ import annotations

import re
from dataclasses import dataclass

from compaction.errors import CompactoscopeError

_GAP = re.compile(r"(\d[\d,]*)\s*tokens?\s*>\s*(\d[\d,]*)")
_TOO_LONG = ("prompt is too long", "input is too long", "exceed context limit")


@dataclass
class SummaryFailure(CompactoscopeError):
    """A call to the API gave no usable summary.

    Attributes:
        kind: authentication, payment, permission, not_found, too_large, prompt_too_long, rate_limit, overloaded,
            server, timeout, connection, bad_request, no_credentials; of an answer: refusal, cut, empty, tool_call,
            malformed; and breaker.
        retry_after: seconds the API asked to wait, None when it did not say.
        gap_tokens: tokens by which the prompt was too long, None when the error does not state it.
    """

    kind: str = ""
    retry_after: float | None = None
    gap_tokens: int | None = None


_HINTS = {
    "authentication": "check the API key in the environment, the SDK profile or the keyring",
    "payment": "the account has no credit left: add credit, or choose another account",
    "permission": "the key may not use this model: choose another model or key",
    "not_found": "the API does not know this model: choose another one",
    "too_large": "the request is over the API's size limit: strip images or summarise a part",
    "prompt_too_long": "choose a model with a larger window, or a partial compaction",
    "rate_limit": "wait as long as the API says, then try again",
    "overloaded": "the API is overloaded: try again in some minutes, or use another model",
    "server": "the API failed on its side: try again",
    "timeout": "the API did not answer in time: try again, or raise the timeout",
    "connection": "check the network and the base URL",
    "bad_request": "the doctor may tell which part of the request the API refuses",
    "no_credentials": "set ANTHROPIC_API_KEY, an SDK profile, or store a key in the keyring",
}


_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The API's error types and the status each has outside a stream (api.md §1.8)."""


def failure_of(error: Exception) -> SummaryFailure | None:
    """What an error of the SDK means for the person; None when it is none of the SDK's errors (api.md §1.8)."""
    import anthropic

    if isinstance(error, anthropic.APITimeoutError):
        return _failure("timeout", "the API did not answer in time")
    if isinstance(error, anthropic.APIConnectionError):
        return _failure("connection", f"the API could not be reached: {_reason(error)}")
    if isinstance(error, anthropic.APIStatusError) and error.status_code >= 400:
        return _status_failure(error.status_code, str(error.message), error.response.headers.get("retry-after"))
    if isinstance(error, anthropic.APIError):
        # An error event inside a stream that began well (status 200): its type stands for the status.
        return _status_failure(_STATUS_OF_TYPE.get(str(getattr(error, "type", "")), 500), str(error.message), None)
    if isinstance(error, anthropic.AnthropicError):
        return _failure("no_credentials", str(error))
    if isinstance(error, TypeError) and "authentication" in str(error).lower():
        # The SDK raises TypeError when it finds no credentials (api.md §1.2).
        return _failure("no_credentials", "no API key was found")
    return None


def _reason(error: Exception) -> str:
    return str(error.__cause__ or error) or type(error).__name__


def _status_failure(status: int, message: str, retry_after: str | None) -> SummaryFailure:
    text = " ".join(message.split())[:500]
    kind = {
        401: "authentication",
        402: "payment",
        403: "permission",
        404: "not_found",
        408: "timeout",
        413: "too_large",
        429: "rate_limit",
        504: "timeout",
        529: "overloaded",
    }.get(status, "server" if status >= 500 else "bad_request")
    if is_prompt_too_long(message):
        kind = "prompt_too_long"
    failure = _failure(kind, f"the API answered {status}: {text}")
    failure.retry_after = _seconds(retry_after)
    failure.gap_tokens = gap_of(message)
    return failure


def is_prompt_too_long(message: str) -> bool:
    """Whether an error text, or an answer's beginning, is the prompt-too-long error (compaction.md §6 step 4)."""
    return message.lower().lstrip(" {\"'").startswith(_TOO_LONG) or _TOO_LONG[0] in message.lower()[:400]


def gap_of(message: str) -> int | None:
    """The tokens by which the prompt is too long, from `… 210000 tokens > 200000 maximum`; None when not stated."""
    found = _GAP.search(message)
    if found is None:
        return None
    have, limit = (int(part.replace(",", "")) for part in found.groups())
    return have - limit if have > limit else None


def _seconds(value: str | None) -> float | None:
    try:
        return float(value) if value else None
    except ValueError:
        return None  # an HTTP date: shown by the API's own message, not counted down


def _failure(kind: str, cause: str) -> SummaryFailure:
    return SummaryFailure(cause, _HINTS.get(kind, ""), kind=kind)


def answer_failure(kind: str, cause: str, hint: str) -> SummaryFailure:
    """An answer came, but it cannot be used."""
    return SummaryFailure(cause, hint, kind=kind)
