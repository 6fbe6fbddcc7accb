"""The rules on a wire request: one registration line each, and `check_request`, which runs them all."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from compaction.diagnosis.model import Violation
from compaction.diagnosis.rules import caching, encoding, media, pairing, server_tools, size, text, thinking
from compaction.diagnosis.view import RequestView
from compaction.request.wire import WireRequest

Check = Callable[[RequestView], Iterable[Violation]]


@dataclass(frozen=True, slots=True)
class RequestRule:
    """One rule of api-rules.md: its number, a title for people, and the function that finds its violations."""

    rule: str
    title: str
    check: Check

    @property
    def doc(self) -> str:
        """What the rule says: the docstring of its function."""
        return inspect.getdoc(self.check) or ""


REQUEST_RULES: tuple[RequestRule, ...] = (
    RequestRule("R01", "Call without result", pairing.call_without_result),
    RequestRule("R02", "Result without call", pairing.result_without_call),
    RequestRule("R03", "Result not right after its call", pairing.pair_not_adjacent),
    RequestRule("R04", "Results not first in their message", pairing.results_not_first),
    RequestRule("R05", "Two results for one call", pairing.duplicate_results),
    RequestRule("R06", "Duplicate call ids", pairing.duplicate_calls),
    RequestRule("R07", "Malformed call", pairing.call_shape),
    RequestRule("R08", "Tool block in the wrong role", pairing.wrong_role),
    RequestRule("R09", "Tools not defined", pairing.tools_defined),
    RequestRule("R10", "Error result with other content than text", pairing.error_results_are_text),
    RequestRule("R11", "Empty text", text.empty_text),
    RequestRule("R12", "Text of white space only", text.whitespace_text),
    RequestRule("R13", "Empty message", text.empty_message),
    RequestRule("R14", "Final text ends with white space", text.trailing_whitespace),
    RequestRule("R15", "Prefill that the model does not take", text.no_prefill),
    RequestRule("R16", "First message not the user's", text.first_role),
    RequestRule("R17", "Messages of one role in a row", text.alternation),
    RequestRule("R18", "Thinking out of order", thinking.thinking_order),
    RequestRule("R18", "Thinking without text", thinking.empty_signed_thinking),
    RequestRule("R19", "Invalid thinking signature", thinking.bad_signature),
    RequestRule("R20", "Thinking field missing", thinking.thinking_field),
    RequestRule("R21", "Open tool loop without thinking", thinking.open_loop_lacks_thinking),
    RequestRule("R22", "Thinking not first, or not allowed", thinking.thinking_first),
    RequestRule("R23", "Server result without call", server_tools.server_result_without_use),
    RequestRule("R24", "Server call without result", server_tools.server_use_without_result),
    RequestRule("R25", "MCP call and result not paired", server_tools.mcp_pairs),
    RequestRule("R26", "Reference to an absent tool", server_tools.tool_references),
    RequestRule("R27", "Container missing", server_tools.container),
    RequestRule("R29", "Image dimensions", media.image_dimensions),
    RequestRule("R30", "Image bytes", media.image_bytes),
    RequestRule("R31", "Unusable image", media.image_usable),
    RequestRule("R32", "Too many images and documents", media.media_count),
    RequestRule("R33", "Too many cache markers", caching.marker_count),
    RequestRule("R34", "Cache marker on a block that takes none", caching.marker_target),
    RequestRule("R35", "Cache lifetimes out of order", caching.marker_order),
    RequestRule("R36", "Prompt too long", size.prompt_too_long),
    RequestRule("R37", "Input and output too long", size.input_and_output_too_long),
    RequestRule("R38", "Request body too large", size.body_too_large),
    RequestRule("R39", "Lone surrogate", encoding.lone_surrogate),
    RequestRule("R40", "NUL character", encoding.nul_character),
)
"""Every rule that a request can be checked for. R28 is no fault: blocks before a `compaction` block are ignored."""


def check_request(request: WireRequest) -> list[Violation]:
    """All violations of the API's rules in a request, in the order of the rules and then of the places.

    The tail of a client's next request (`at` None) is pending: the person's prompt is still to come.
    """
    view = RequestView(request)
    return [violation for rule in REQUEST_RULES for violation in rule.check(view)]
