"""The rules on the records: chain, damage, compactions (transcript-format.md §2, §6, §7)."""

from __future__ import annotations

import pytest

from compaction.diagnosis import diagnose
from compaction.diagnosis.records import RECORD_RULES
from compaction.diagnosis.repair.registry import FIXES
from tests.unit.session_samples import Lines, conversation_of


def codes(lines: Lines | bytes, client: str = "") -> dict[str, str]:
    conversation = conversation_of(lines) if isinstance(lines, bytes) else lines.conversation()
    return {f.code: f.severity for f in diagnose(conversation, client).findings}


def talk() -> Lines:
    return Lines().user("u1", "Begin.").say("a1", "m1").user("u2", "Go on.").say("a2", "m2")


def test_a_sound_session_has_no_finding() -> None:
    assert codes(talk()) == {}


def test_a_parent_that_is_not_in_the_file_is_an_error_when_it_cuts_the_conversation_off() -> None:
    lines = talk().user("u3", "And?", parent="gone").say("a3", "m3")
    (found,) = diagnose(lines.conversation()).findings
    assert (found.code, found.severity, found.lines) == ("dangling_parent", "error", (5,))
    assert found.details["unreachable_before"] == ["u1", "a1", "u2", "a2"]
    assert found.details["parent"] == "gone"
    assert found.repairs[0].name == "bridge"
    assert "a2" in found.repairs[0].title


def test_a_conversation_that_is_broken_twice_has_two_errors() -> None:
    lines = talk().user("u3", "And?", parent="gone").say("a3", "m3").user("u4", "So?", parent="lost").say("a4", "m4")
    found = [f for f in diagnose(lines.conversation()).findings if f.code == "dangling_parent"]
    assert [(f.severity, f.lines, f.details["unreachable_before"]) for f in found] == [
        ("error", (5,), ["u1", "a1", "u2", "a2"]),
        ("error", (7,), ["u3", "a3"]),
    ]


def test_a_file_that_begins_with_a_lost_parent_loses_nothing_by_it() -> None:
    assert codes(Lines().user("u1", "Begin.", parent="elsewhere").say("a1", "m1")) == {"dangling_parent": "info"}


def test_a_lost_parent_before_a_compaction_is_no_error() -> None:
    lines = Lines().user("u0", "Old.").say("a0", "m0").user("u1", "x", parent="gone").say("a1", "m1")
    found = codes(lines.compaction("b", "s").user("u2", "On.").say("a2", "m2"))
    assert found == {"dangling_parent": "info"}


def test_a_sidechain_is_never_the_bridge() -> None:
    lines = talk().user("s1", "Sub task.", parent=None, isSidechain=True, agentId="x")
    lines.assistant("s2", "m9", {"type": "text", "text": "done"}, isSidechain=True, agentId="x")
    (found,) = diagnose(lines.user("u3", "And?", parent="gone").say("a3", "m3").conversation()).findings
    assert next(c["uuid"] for c in found.details["candidates"]) == "a2"
    assert not {"s1", "s2"} & {c["uuid"] for c in found.details["candidates"]}


def test_a_record_that_is_its_own_parent() -> None:
    assert codes(talk().user("u3", "And?", parent="u3").say("a3", "m3"))["self_parent"] == "error"


def test_parents_in_a_circle() -> None:
    lines = Lines().user("u1", "Begin.").say("a1", "m1").user("u2", "Go.", parent="a2").say("a2", "m2")
    assert codes(lines)["parent_cycle"] == "error"


def test_a_main_record_that_hangs_on_a_sidechain() -> None:
    lines = talk().user("s1", "Sub task.", parent=None, isSidechain=True)
    lines.user("u3", "And?", parent="s1").say("a3", "m3")
    assert codes(lines)["chain_enters_sidechain"] == "error"


def test_a_reply_without_a_parent_in_the_middle() -> None:
    assert codes(talk().say("a3", "m3", parent=None).user("u3", "So?"))["root_inside_conversation"] == "error"


def test_a_prompt_without_a_parent_is_a_new_beginning() -> None:
    assert codes(talk().user("u3", "Anew.", parent=None).say("a3", "m3")) == {}


def parallel() -> Lines:
    lines = Lines().user("u1", "Both.").call("a1", "m1", "x1").call("a2", "m1", "x2")
    return lines.result("r1", "x1", parent="a1").result("r2", "x2", parent="a2").say("a3", "m2")


@pytest.mark.parametrize(
    ("client", "severity"), [("", "info"), ("2.1.80", "info"), ("2.1.79", "error"), ("2.0.76", "error")]
)
def test_parallel_results_beside_the_chain_are_damage_for_clients_that_do_not_collect_them(
    client: str, severity: str
) -> None:
    """Normal in one version is damage in another (changelog 2.1.80)."""
    found = [f for f in diagnose(parallel().conversation(), client).findings if f.code == "sibling_results_off_chain"]
    assert [f.severity for f in found] == [severity]
    assert found[0].details["uuids"] == ["r1"]
    assert found[0].details["message_id"] == "m1"


def test_a_branch_that_the_person_left_is_no_finding() -> None:
    """A rewind forks at a prompt (G10)."""
    lines = talk().user("u3", "Left.").call("a3", "m3", "x1").result("r3", "x1")
    assert codes(lines.user("u4", "Instead.", parent="a2").say("a4", "m4")) == {}


def test_a_replayed_record_is_no_finding() -> None:
    """The same uuid twice is what a resume writes (G10)."""
    data = talk().data()
    second = data.split(b"\n")[1] + b"\n"
    assert codes(data + second) == {}


def test_a_pending_tail_is_no_finding() -> None:
    lines = Lines().user("u1", "Both.").call("a1", "m1", "x1").call("a2", "m1", "x2")
    assert codes(lines) == {}
    assert codes(lines.result("r1", "x1")) == {}


def test_progress_records_may_be_roots() -> None:
    lines = talk()
    lines.add("progress", "p1", None, data={"type": "hook_progress"})
    lines.user("u3", "And?", parent="a2").say("a3", "m3")
    assert codes(lines) == {}


DAMAGED = {
    "nul_padding": lambda good: b"\0" * 40 + good,
    "spliced_record": lambda good: b'{"type":"summary","summ' + good,
    "two_records_one_line": lambda good: good[:-1] + b'{"type":"summary","summary":"t","leafUuid":"a1"}\n',
    "invalid_escape": lambda good: good.replace(b"Go on.", b"Go \\q on."),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_line_that_holds_a_message_is_an_error(kind: str) -> None:
    lines = talk().data().splitlines(keepends=True)
    lines[2] = DAMAGED[kind](lines[2])
    (found,) = diagnose(conversation_of(b"".join(lines))).findings
    assert (found.code, found.severity, found.lines) == (kind, "error", (3,))
    assert found.details["recovered"] >= 1


def test_lines_without_a_message_are_no_error() -> None:
    data = talk().data()
    assert codes(data + b"\n") == {"blank_line": "info"}
    assert codes(data + b'{"type":"user","uu') == {"truncated_last_line": "warning"}
    assert codes(b"no json at all\n" + data) == {"invalid_json": "warning"}
    assert codes(b"[1, 2]\n" + data) == {"not_an_object": "warning"}


def test_a_byte_order_mark_costs_the_oldest_clients_the_first_record() -> None:
    (found,) = diagnose(conversation_of(b"\xef\xbb\xbf" + talk().data())).findings
    assert (found.code, found.severity) == ("byte_order_mark", "error")
    assert found.clients["1.0.128"] != found.clients["2.0.76"]


def test_deep_nesting_is_read_by_every_client() -> None:
    lines = talk().data().splitlines(keepends=True)
    lines[1] = lines[1].rstrip()[:-1] + b',"n":' + b"[" * 20_000 + b"]" * 20_000 + b"}\n"
    assert codes(b"".join(lines)) == {"nested_too_deeply": "info"}


def test_bytes_that_are_no_utf8_are_a_warning_and_no_lone_surrogate() -> None:
    """Clients read them as U+FFFD."""
    assert codes(talk().data().replace(b"Go on.", b"Go \xff on.")) == {"invalid_utf8": "warning"}


def cycle(lines: Lines, number: int, rule: str, output: str) -> None:
    lines.user(f"u{number}", f"Step {number}.")
    lines.add(
        "attachment", f"m{number}", attachment={"type": "nested_memory", "path": "/sea/RULES.md", "content": rule}
    )
    lines.call(f"a{number}", f"g{number}", f"x{number}").result(f"r{number}", f"x{number}", output)


def thrashing(rule: str, output: str) -> Lines:
    lines = Lines()
    for number in range(1, 5):
        cycle(lines, number, rule, output)
        if number < 4:
            lines.compaction(f"b{number}", f"s{number}", preTokens=170_000, postTokens=50_000)
    return lines


def test_three_compactions_in_a_row_are_a_thrash_and_the_source_is_named_by_its_bytes() -> None:
    found = {f.code: f for f in diagnose(thrashing("r" * 900, "o" * 20).conversation()).findings}
    assert found["compaction_thrash"].details["boundaries"] == ["b1", "b2", "b3"]
    assert found["compaction_thrash"].details["turns_between"] == [1, 1]
    assert found["compaction_thrash"].severity == "error"
    assert found["refill_source"].details["top"] == "attachment:nested_memory /sea/RULES.md"
    assert found["refill_source"].details["chars_per_cycle"] == 900
    assert found["refill_source"].details["tool_result_chars_per_cycle"] == 20
    assert not any(r.changes_file for r in found["compaction_thrash"].repairs)


def test_a_tool_can_be_the_source_too() -> None:
    found = {f.code: f for f in diagnose(thrashing("r" * 20, "o" * 5_000).conversation()).findings}
    assert found["refill_source"].details["top"] == "tool_result:Bash"


def test_the_clients_own_error_record_is_no_round_trip() -> None:
    lines = thrashing("r" * 900, "o")
    error = {"type": "text", "text": "Autocompact is thrashing"}
    lines.assistant("e1", "e1", error, model="<synthetic>", isApiErrorMessage=True)
    found = {f.code: f for f in diagnose(lines.conversation()).findings}
    assert found["compaction_thrash"].details["turns_between"] == [1, 1]


def test_two_compactions_are_a_chain_of_summaries_and_no_thrash() -> None:
    lines = talk().compaction("b1", "s1").user("u3", "On.").say("a3", "m3")
    assert codes(lines.compaction("b2", "s2").user("u4", "On.").say("a4", "m4")) == {"recompaction_chain": "info"}


def test_an_automatic_compaction_far_below_the_threshold() -> None:
    lines = talk().compaction("b1", "s1", preTokens=90_000).user("u3", "On.")
    assert codes(lines)["auto_compact_below_window"] == "warning"
    assert codes(talk().compaction("b1", "s1", preTokens=90_000, trigger="manual").user("u3", "On.")) == {}


def test_preserved_messages_that_are_not_in_the_file() -> None:
    kept = {"anchorUuid": "s1", "uuids": ["a2", "gone"], "allUuids": ["a2", "gone"]}
    found = {f.code: f for f in diagnose(talk().compaction("b1", "s1", preservedMessages=kept).conversation()).findings}
    assert found["preserved_messages_missing"].details["missing"] == ["gone"]


def test_preserved_messages_are_not_sent_by_older_clients() -> None:
    kept = {"anchorUuid": "s1", "uuids": ["a2"], "allUuids": ["a2"]}
    lines = talk().compaction("b1", "s1", preservedMessages=kept).user("u3", "On.")
    assert codes(lines, "2.1.332") == {}
    assert codes(lines, "2.0.76")["preserved_messages_not_sent"] == "warning"


def test_progress_in_the_chain_is_normal_for_newer_clients_and_the_end_for_older_ones() -> None:
    lines = talk().add("progress", "p1", "a2", data={"type": "hook_progress"}).user("u3", "And?").say("a3", "m3")
    assert codes(lines, "2.1.29") == {}
    assert codes(lines, "2.0.76") == {"chain_through_progress": "error"}


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "b3RoZXI="}


def test_thinking_of_another_provider_in_a_session_that_goes_on_with_claude() -> None:
    lines = Lines().user("u1", "Go.").assistant("t1", "m1", THOUGHT, model="glm-4.6").user("u2", "On.")
    assert codes(lines) == {}
    assert codes(lines.say("a2", "m2"))["foreign_thinking"] == "error"


def test_thinking_of_another_claude_model_is_no_finding() -> None:
    lines = Lines().user("u1", "Go.").assistant("t1", "m1", THOUGHT, model="us.anthropic.claude-opus-4-5-20251101-v1:0")
    assert codes(lines.user("u2", "On.").say("a2", "m2")) == {}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("API Error: 400 due to tool use concurrency issues. Run /rewind to recover.", "R01"),
        ("API Error: 400 messages: text content blocks must be non-empty", "R11"),
        ("Conversation too long. Press esc twice to go up a few messages", "R36"),
        ("An image in the conversation exceeds the dimension limit for many-image requests", "R29"),
    ],
)
def test_refusals_that_the_client_wrote_down_name_their_rule(text: str, rule: str) -> None:
    """api-rules.md, general fact 4: clients replace some of the API's texts by their own."""
    block = {"type": "text", "text": text}
    lines = talk().assistant("e1", "e1", block, model="<synthetic>", isApiErrorMessage=True)
    found = [f for f in diagnose(lines.conversation()).findings if f.code == "api_refusal_recorded"]
    assert [(f.rule, f.severity, f.lines) for f in found] == [(rule, "info", (5,))]


def test_the_marked_end_that_is_not_in_the_file() -> None:
    assert codes(talk().data() + b'{"type":"last-prompt","lastPrompt":"x","leafUuid":"gone"}\n') == {
        "leaf_not_found": "info"
    }


def test_every_rule_on_records_has_a_title_a_doc_and_a_test() -> None:
    with open(__file__, encoding="utf-8") as file:
        tested = file.read()
    for rule in RECORD_RULES:
        assert rule.title, rule.codes
        assert rule.doc, rule.codes
    for code in (code for rule in RECORD_RULES for code in rule.codes):
        assert code in tested, f"{code} has no test"


def test_every_fix_has_a_name_a_title_and_a_reason() -> None:
    for code, fixes in FIXES.items():
        assert len({f.name for f in fixes}) == len(fixes), code
        assert all(f.title and f.reason and f.apply.__doc__ for f in fixes), code
