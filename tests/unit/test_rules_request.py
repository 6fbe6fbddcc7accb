"""The API's message-validity rules R01–R40 on a wire request (api-rules.md part A)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.diagnosis.requests import REQUEST_RULES, check_request
from compaction.request.wire import WireRequest
from tests.support import SHARED, needs_shared
from tests.unit.request_samples import BROKEN, SOUND, request


@pytest.mark.parametrize(("rule", "code", "sample"), BROKEN, ids=[f"{r}-{c}-{n}" for n, (r, c, _) in enumerate(BROKEN)])
def test_each_rule_finds_its_fault(rule: str, code: str, sample: WireRequest) -> None:
    found = [v for v in check_request(sample) if v.code == code]
    assert [v.rule for v in found][:1] == [rule]
    assert found[0].message


@pytest.mark.parametrize(("rule", "code", "sample"), BROKEN, ids=[f"{r}-{c}-{n}" for n, (r, c, _) in enumerate(BROKEN)])
def test_a_single_fault_is_one_error_not_several(rule: str, code: str, sample: WireRequest) -> None:
    """A pairing fault must not be told twice, once at the call and once at the result."""
    errors = {v.code for v in check_request(sample) if v.severity == "error"}
    assert errors <= {code} | ALSO.get(code, set())


ALSO = {
    "server_result_without_use": {"server_use_without_result"},
    "tool_input_not_object": {"invalid_tool_use_id"},
    "cache_marker_on_wrong_block": {"empty_text_block"},
    "image_too_many_bytes": set(),
}
"""Samples that break a second rule for a reason of its own."""


@pytest.mark.parametrize(("why", "sample"), SOUND, ids=[why for why, _ in SOUND])
def test_what_is_allowed_is_no_violation(why: str, sample: WireRequest) -> None:
    assert [v for v in check_request(sample) if v.severity != "info"] == [], why


def test_every_rule_has_a_title_a_doc_and_a_test() -> None:
    tested = {rule for rule, _, _ in BROKEN}
    for rule in REQUEST_RULES:
        assert rule.title, rule.rule
        assert rule.doc.startswith(rule.rule), f"{rule.rule}: the doc names the rule first"
        assert rule.rule in tested, f"{rule.rule} has no sample"
    assert {f"R{n:02}" for n in range(1, 41)} - tested == {"R28"}, "R28 is no fault: it limits what is checked"


def test_the_sentence_names_the_call_and_both_indices_it_may_have() -> None:
    """api-rules.md, general fact 2: N is sometimes the call's message, sometimes the next."""
    sample = request(
        [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "x1", "name": "Bash", "input": {}},
                    {"type": "tool_use", "id": "x2", "name": "Bash", "input": {}},
                ],
            },
            {"role": "user", "content": "b"},
        ]
    )
    (found,) = check_request(sample)
    assert found.api_error == (
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: x1, x2. Each `tool_use` "
        "block must have a corresponding `tool_result` block in the next message."
    )
    assert found.path == "messages.1"
    assert found.details["api_index_may_be"] == [1, 2]


def _from_line(value: dict[str, Any]) -> WireRequest:
    """A line of api-rules.jsonl; three lines stand for something larger, which is put in here."""
    messages = value["messages"]
    more = {key: value[key] for key in ("model", "max_tokens", "thinking", "container") if key in value}
    if "tools" in value:
        more["tools"] = value["tools"] or []
    if value["rule"] == "R30":
        messages[0]["content"][0]["source"]["data"] = "iVBO" * 1_310_721
    if value["rule"] == "R32":
        messages[0]["content"] = [messages[0]["content"][0]] * 101 + messages[0]["content"][1:]
    if value["rule"] == "R37":
        messages[0]["content"] = "long " * 120_000
        more["model"] = "claude-sonnet-4-20250514"
    return request(messages, **more)


@needs_shared
def test_every_line_of_the_shared_rule_book_is_found() -> None:
    lines = (SHARED / "spec" / "api-rules.jsonl").read_text("utf-8").splitlines()
    missed = []
    for line in lines:
        value = json.loads(line)
        if value["rule"] not in {v.rule for v in check_request(_from_line(value))}:
            missed.append(value["rule"])
    assert len(lines) > 30
    assert missed == []
