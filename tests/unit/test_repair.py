"""The repair: guarantees G1–G14 of api-rules.md on the shared cases, on every rule, and on their variations."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compaction.cli.main import main
from compaction.cli.repair import choices, target_of
from compaction.conversation import Conversation, open_session
from compaction.diagnosis import RepairPlan, plan_repair
from compaction.diagnosis.repair.fixes.kit import CUT_INPUT_TEXT, NO_RESULT_TEXT
from compaction.errors import UsageError
from compaction.request import assemble
from compaction.request.wire import WireRequest
from tests.support import case_folders, corpus_files, needs_shared
from tests.unit.request_samples import BROKEN, SOUND, answer, assistant, call, image, png, text, thought, user
from tests.unit.session_samples import Lines, conversation_of

Json = dict[str, Any]
CASES = case_folders()
GENERATIONS = ("1.0.128", "2.0.76", "2.1.332")


def repaired(source: Lines | bytes | Conversation, client: str = "", **accepted: str) -> tuple[RepairPlan, list[Json]]:
    """The plan and the records (or messages) of the new file, with what holds for every repair checked."""
    if isinstance(source, Conversation):
        conversation = source
    else:
        conversation = conversation_of(source.data() if isinstance(source, Lines) else source)
    plan = plan_repair(conversation, client, accepted)
    data = b"".join(plan.chunks())
    check_guarantees(plan, data)
    if conversation.transcript.format_name == "messages-api":
        messages: list[Json] = json.loads(data)["messages"]
        return plan, messages
    return plan, [json.loads(line) for line in data.splitlines() if line.strip()]


def check_guarantees(plan: RepairPlan, data: bytes) -> None:
    """G2 untouched records byte-identical, G4 no error left and stable, G8 the chain holds."""
    unmendable = {"compaction_thrash"}
    assert {f.code for f in plan.findings_after if f.severity == "error"} <= unmendable
    again = conversation_of(data, plan.original.name)
    second = plan_repair(again, plan.client)
    assert not second.changes_anything, [c.reason for c in second.changes]
    touched = {change.record for change in plan.changes}
    kept = {again.transcript.record_bytes(r) for r in range(len(again.transcript))}
    for record in range(len(plan.original)):
        if record not in touched and plan.original.kind[record] != 12:
            assert plan.original.record_bytes(record) in kept
    assert len(again.dangling) <= len(conversation_of(plan.original.raw(0, plan.original.size)).dangling)


def wire(records: list[Json], client: str = "2.1.332") -> list[tuple[str, list[str]]]:
    """What a client generation sends: role, and each block as its type and id or text."""
    data = b"".join(json.dumps(r).encode() + b"\n" for r in records)
    return shape(assemble(conversation_of(data), client, model="claude-opus-4-6"))


def shape(request: WireRequest) -> list[tuple[str, list[str]]]:
    found = []
    for message in request.messages:
        blocks = [
            b.get("text", "").strip() or b.get("id") or b.get("tool_use_id") or b["type"] for b in message.content
        ]
        found.append((message.role, [b for b in blocks if b != "No response requested."]))
    return [(role, blocks) for role, blocks in found if blocks]


def by_uuid(records: list[Json]) -> dict[str, Json]:
    return {r["uuid"]: r for r in records if "uuid" in r}


# --- the shared cases -------------------------------------------------------------------------------------------------


def case(number: str) -> Conversation:
    folder = next(c for c in CASES if c.name.startswith(number))
    return open_session(next(folder.glob("input.*"))).conversation


@needs_shared
@pytest.mark.parametrize("folder", CASES, ids=[c.name for c in CASES])
def test_every_shared_case_is_mended_and_stays_mended(folder: Path) -> None:
    repaired(open_session(next(folder.glob("input.*"))).conversation)


@needs_shared
def test_case_01_one_result_behind_the_others_and_before_the_text() -> None:
    plan, records = repaired(case("01"))
    new = next(r for r in records if r["uuid"] not in {"u1", "a1", "a2", "a3", "a4", "r1", "r2", "u2"})
    assert new["message"]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_01C", "is_error": True, "content": NO_RESULT_TEXT}
    ]
    assert new["parentUuid"] == "r2"
    assert by_uuid(records)["u2"]["parentUuid"] == new["uuid"]
    assert plan.counts() == {"unchanged_lines": 7, "changed_lines": 1, "added_lines": 1, "removed_lines": 0}
    assert "cancel" not in json.dumps(new)


@needs_shared
def test_case_02_the_call_comes_back_and_its_original_stays() -> None:
    plan, records = repaired(case("02"))
    copy = records[4]
    assert copy["message"]["content"][0]["id"] == "toolu_02B"
    assert (copy["parentUuid"], by_uuid(records)["r1"]["parentUuid"]) == ("s1", copy["uuid"])
    assert by_uuid(records)["a1"]["message"]["content"][0]["id"] == "toolu_02B"
    assert [c.action for c in plan.changes] == ["insert", "replace"]


@needs_shared
def test_case_02_as_text_on_request() -> None:
    _, records = repaired(case("02"), result_without_tool_use="result_to_text")
    assert by_uuid(records)["r1"]["message"]["content"] == [
        {"type": "text", "text": "[Result of an earlier Bash call] make: 0 errors"}
    ]


@needs_shared
def test_case_03_the_result_leads_the_message_behind_its_call() -> None:
    _, messages = repaired(case("03"))
    assert [b["type"] for b in messages[2]["content"]] == ["tool_result", "text"]
    assert messages[2]["content"][1]["text"] == "Summary so far: counting files."
    assert len(messages) == 5


@needs_shared
def test_case_07_blank_text_goes_and_the_empty_result_stays() -> None:
    _, records = repaired(case("07"))
    found = by_uuid(records)
    assert set(found) == {"u1", "a2", "r1", "u2", "u3"}
    assert (found["a2"]["parentUuid"], found["u2"]["parentUuid"]) == ("u1", "r1")
    assert found["u2"]["message"]["content"][0]["source"]["data"] == "PNGDATA"
    assert found["r1"]["message"]["content"][0]["content"] == ""


@needs_shared
def test_case_13_the_text_may_be_held_back_instead() -> None:
    _, messages = repaired(case("13"), server_use_without_result="hold_text_back")
    assert [b["type"] for b in messages[2]["content"]] == ["tool_result"]
    assert [b["type"] for b in messages[1]["content"]] == ["text", "server_tool_use", "tool_use"]


@needs_shared
def test_case_16_only_the_half_character_changes() -> None:
    conversation = case("16")
    before = conversation.transcript.record_bytes(2)
    plan, _ = repaired(conversation)
    assert plan.changes[0].after == before.replace(rb"\ud83d", rb"\ufffd")


@needs_shared
def test_case_18_seven_records_one_per_line_and_every_dropped_byte_reported() -> None:
    conversation = case("18")
    plan, records = repaired(conversation)
    assert [r["uuid"] for r in records] == ["u1", "a1", "u2", "a2", "u3", "a3", "u4"]
    left = [c.before for c in plan.changes if c.action == "leave_out"]
    assert [len(b) for b in left if b] == [300, 74, 170]
    assert plan.counts()["changed_lines"] == 0


@needs_shared
@pytest.mark.parametrize("number", ["11", "22", "24"])
def test_a_valid_file_is_not_changed(number: str) -> None:
    plan, _ = repaired(case(number))
    assert not plan.changes_anything


@needs_shared
def test_case_20_the_bridge_is_the_last_reply_and_no_sidechain() -> None:
    _, records = repaired(case("20"))
    assert by_uuid(records)["u2"]["parentUuid"] == "a2"


@needs_shared
def test_case_22_for_old_clients_the_results_are_chained() -> None:
    _, records = repaired(case("22"), "2.0.76")
    found = by_uuid(records)
    assert [found[u]["parentUuid"] for u in ("rA", "rB", "rC", "a4")] == ["a3", "rA", "rB", "rC"]


# --- documents: every rule --------------------------------------------------------------------------------------------


def document(request: WireRequest) -> bytes:
    value: Json = {"model": request.model}
    for name in ("system", "tools", "thinking"):
        if getattr(request, name) is not None:
            value[name] = getattr(request, name)
    value |= request.params
    value["messages"] = [{"role": m.role, "content": m.content} for m in request.messages]
    return json.dumps(value, indent=1).encode()


LARGE = ("R30", "R38")
MENDABLE = [(rule, code, sample) for rule, code, sample in BROKEN if rule not in LARGE]


@pytest.mark.parametrize(("rule", "code", "sample"), MENDABLE, ids=[f"{r}-{n}" for n, (r, _, _) in enumerate(MENDABLE)])
def test_a_document_that_breaks_a_rule_is_mended(rule: str, code: str, sample: WireRequest) -> None:
    plan, _ = repaired(document(sample))
    assert code in {f.code for f in plan.findings_before}
    fatal = any(f.severity == "error" for f in plan.findings_before)
    assert plan.changes_anything is fatal, "errors are mended, what is no error is left alone"


@pytest.mark.slow
def test_large_documents_are_mended_but_never_by_cutting_what_a_person_wrote() -> None:
    repaired(document(next(sample for rule, _, sample in BROKEN if rule == "R30")))
    exchange = [user("go"), assistant(call("a1")), user(answer("a1", "x" * (33 << 20)), "so")]
    _, messages = repaired(messages_of(*exchange))
    assert len(json.dumps(messages)) < 1_000
    plan = plan_repair(conversation_of(messages_of(user("x" * (33 << 20)))))
    assert not plan.changes_anything
    assert [f.code for f in plan.findings_after if f.severity == "error"] == ["request_too_large"]


@pytest.mark.parametrize(
    ("why", "sample"), [s for s in SOUND if s[1].client == "messages-api"], ids=[s[0] for s in SOUND[:-1]]
)
def test_a_sound_document_is_not_changed(why: str, sample: WireRequest) -> None:
    plan, _ = repaired(document(sample))
    assert not plan.changes_anything


def messages_of(*messages: Json, **more: Any) -> bytes:
    return json.dumps({"model": "claude-sonnet-4-5", **more, "messages": list(messages)}).encode()


def test_faults_of_several_kinds_at_once_in_a_document_on_one_line() -> None:
    data = messages_of(
        user("go", ""),
        assistant("", call("a1"), call("a2"), call("a1", "Read")),
        user("note", answer("a2"), answer("zz"), answer("a1")),
        assistant("  "),
        user(image(""), image(""), image(""), image(""), image(""), "end \ud83d"),
    )
    plan, messages = repaired(data)
    assert [b.get("id") for b in messages[1]["content"]] == ["a1", "a2", "a1_2"]
    assert [b.get("tool_use_id") for b in messages[2]["content"][:3]] == ["a2", "a1", "a1_2"]
    assert messages[-1]["content"][-1]["text"] == "end \ufffd"
    assert sum(b["type"] == "image" for b in messages[-1]["content"]) == 0
    assert plan.rounds <= 4


def test_results_of_exact_copies_go_with_them() -> None:
    data = messages_of(
        user("go"),
        assistant(call("a1"), call("a1"), call("a1", "Read")),
        user(answer("a1", "1"), answer("a1", "2"), answer("a1", "3")),
    )
    _, messages = repaired(data)
    assert [b["content"] for b in messages[2]["content"]] == ["1", "3"]
    assert [b["tool_use_id"] for b in messages[2]["content"]] == ["a1", "a1_2"]


def test_two_results_for_one_call_in_a_session() -> None:
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").result("r1", "x1", "[Request interrupted by user]")
    _, records = repaired(lines.result("r2", "x1", "real").say("a2", "m2"))
    assert set(by_uuid(records)) == {"u1", "a1", "r2", "a2"}
    assert by_uuid(records)["r2"]["parentUuid"] == "a1"


def test_the_real_result_is_kept_and_the_stand_in_goes() -> None:
    stand_in = answer("a1", "[Tool result missing due to internal error]", is_error=True)
    _, messages = repaired(messages_of(user("go"), assistant(call("a1")), user(stand_in, answer("a1", "real"))))
    assert [b["content"] for b in messages[2]["content"]] == ["real"]


def test_thinking_goes_as_a_whole_turn_and_other_turns_keep_theirs() -> None:
    """G9: one bad signature takes the turn's other thinking with it."""
    data = messages_of(
        user("one"),
        assistant(thought("first"), "x"),
        user("two"),
        assistant(thought("bad", ""), call("a1")),
        user(answer("a1")),
        assistant(thought("good"), "y"),
        user("three"),
    )
    _, messages = repaired(data)
    assert [[b["type"] for b in m["content"]] for m in messages if m["role"] == "assistant"] == [
        ["thinking", "text"],
        ["tool_use"],
        ["text"],
    ]


def test_bad_thinking_in_an_open_loop_switches_thinking_off_for_the_request() -> None:
    data = messages_of(
        user("go"), assistant(thought("x", ""), call("a1")), user(answer("a1")), thinking={"type": "enabled"}
    )
    plan, _ = repaired(data)
    assert json.loads(b"".join(plan.chunks()))["thinking"] == {"type": "disabled"}


def test_a_blank_first_message_stays_with_visible_words() -> None:
    """Without it the conversation would begin with the assistant (R16)."""
    _, records = repaired(Lines().user("u1", "").say("a1", "m1").user("u2", "On."))
    assert by_uuid(records)["u1"]["message"]["content"] == "(empty message)"
    _, messages = repaired(messages_of({"role": "user", "content": []}, assistant("x"), user("on")))
    assert messages[0]["content"] == [text("(empty message)")]


def test_a_call_that_was_cut_gets_an_empty_input_and_one_result_that_says_so() -> None:
    """R07: a whole object in a text is read, anything else was cut."""
    cut, whole = {**call("a1"), "input": '{"comm'}, {**call("a2"), "input": '{"command": "ls"}'}
    _, messages = repaired(messages_of(user("go"), assistant(cut, whole), user(answer("a2"), "on")))
    assert [b["input"] for b in messages[1]["content"]] == [{}, {"command": "ls"}]
    assert [b.get("content") for b in messages[2]["content"][:2]] == ["done", CUT_INPUT_TEXT]
    assert messages[2]["content"][1]["is_error"] is True


def test_a_mixed_error_result_keeps_its_text_and_its_picture() -> None:
    data = messages_of(
        user("go"),
        assistant(call("a1"), call("a2")),
        user(answer("a1", [text("failed"), png()], is_error=True), answer("a2")),
    )
    _, messages = repaired(data)
    assert [b["type"] for b in messages[2]["content"]] == ["tool_result", "tool_result", "image"]
    assert messages[2]["content"][0]["content"] == [text("failed")]


def test_bytes_outside_the_changed_message_stay_as_they_are() -> None:
    """G2: number forms, spacing and key order of a document survive."""
    data = (
        b'{ "model":"claude-sonnet-4-5",\n "temperature": 1.0e0,   "messages" : ['
        b' {"content":"a\\u00e9","role":"user"},\n'
        b'  {"role":"assistant","content":[{"type":"text","text":""},{"type":"text","text":"b"}]} , '
        b'{"role":"user","content":"c"}\n ] }\n'
    )
    plan = plan_repair(conversation_of(data))
    assert b"".join(plan.chunks()) == data.replace(b'{"type":"text","text":""},', b"")


# --- sessions: variations of the shared kinds -------------------------------------------------------------------------


def test_several_orphans_across_one_compaction_come_back_in_order() -> None:
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").call("a2", "m1", "x2").call("a3", "m2", "x3")
    lines.compaction("b1", "s1")
    lines.result("r1", "x1").result("r2", "x2").result("r3", "x3").user("u2", "On.").say("a4", "m3")
    _, records = repaired(lines)
    for client in GENERATIONS:
        calls = [b for role, blocks in wire(records, client) for b in blocks if b in ("x1", "x2", "x3")]
        assert sorted(calls) == ["x1", "x1", "x2", "x2", "x3", "x3"], client


def test_an_orphan_whose_call_is_two_compactions_back() -> None:
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").compaction("b1", "s1").user("u2", "On.").say("a2", "m2")
    lines.compaction("b2", "s2").result("r1", "x1").say("a3", "m3")
    _, records = repaired(lines)
    assert ("assistant", ["x1"]) in wire(records)


def test_an_orphan_whose_call_is_nowhere_keeps_its_content_as_text() -> None:
    lines = Lines().compaction("b1", "s1").result("r1", "x1", "12 files").user("u2", "On.")
    plan, records = repaired(lines)
    assert by_uuid(records)["r1"]["message"]["content"][0]["text"] == "[Result of an earlier tool call] 12 files"
    assert [c.action for c in plan.changes] == ["replace"]


def test_an_orphans_picture_stays() -> None:
    lines = Lines().compaction("b1", "s1").result("r1", "x1", [text("seen"), png()]).user("u2", "On.")
    _, records = repaired(lines)
    assert [b["type"] for b in by_uuid(records)["r1"]["message"]["content"]] == ["text", "image"]


def test_a_compaction_in_the_middle_of_a_response() -> None:
    """Blocks of one response on both sides of the boundary: the orphan on this side gets its call back."""
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").compaction("b1", "s1").result("r1", "x1")
    lines.call("a2", "m1", "x2").result("r2", "x2").user("u2", "On.")
    _, records = repaired(lines)
    assert wire(records, "1.0.128")[:3] == [
        ("user", ["Summary: the tables are half done."]),
        ("assistant", ["x1"]),
        ("user", ["x1"]),
    ]


def test_all_results_of_a_parallel_batch_are_lost() -> None:
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").call("a2", "m1", "x2").call("a3", "m1", "x3")
    _, records = repaired(lines.user("u2", "Well?").say("a4", "m2"))
    for client in GENERATIONS:
        assert wire(records, client)[1:3] == [
            ("assistant", ["x1", "x2", "x3"]),
            ("user", ["x1", "x2", "x3", "Well?"]),
        ], client


def test_a_lost_result_in_the_middle_of_a_long_tool_loop() -> None:
    lines = Lines().user("u1", "Go.")
    for number in range(1, 5):
        lines.call(f"a{number}", f"m{number}", f"x{number}")
        if number != 2:
            lines.result(f"r{number}", f"x{number}")
    _, records = repaired(lines.user("u2", "On."))
    for client in GENERATIONS:
        assert [b for _, bs in wire(records, client) for b in bs if b == "x2"] == ["x2", "x2"], client


def test_a_result_on_another_branch_is_used_instead_of_a_stand_in() -> None:
    """G6: data that is in the file comes first."""
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").user("u2", "Wait.").say("a2", "m2")
    lines.user("side", "Left.", parent="u1").result("r1", "x1", "real", parent="side").user("u3", "On.", parent="a2")
    conversation = lines.conversation()
    plan, records = repaired(conversation, "2.1.332")
    if plan.changes_anything:
        results = [b for r in records for b in _blocks(r) if b.get("type") == "tool_result"]
        assert {b["content"] for b in results} == {"real"}


def _blocks(record: Json) -> Iterator[Json]:
    content = record.get("message", {}).get("content")
    if isinstance(content, list):
        yield from content


def test_an_answer_in_a_subagents_file_is_used_instead_of_a_stand_in(tmp_path: Path) -> None:
    """G6: sub-agent files are looked at as well."""
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1")
    lines.add("progress", "p1", "a1", data={"type": "agent_progress", "agentId": "abc1234"}, parentToolUseID="x1")
    (tmp_path / "s.jsonl").write_bytes(lines.user("u2", "Well?", parent="a1").data())
    inside = Lines().user("i1", "Sub task.", isSidechain=True).say("i2", "n1", "Nine tables found.")
    folder = tmp_path / "s" / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-abc1234.jsonl").write_bytes(inside.data())
    plan = plan_repair(open_session(tmp_path / "s.jsonl"))
    (made,) = plan.made
    assert made.repair == "use_subagent_answer"
    assert made.finding.why == "The answer is in the file of the sub-agent that the call started."
    new = next(c.after for c in plan.changes if c.action == "insert")
    assert new is not None
    assert b"Nine tables found." in new


def test_the_first_file_with_two_faults_needs_both_mended() -> None:
    """General fact 5: a second error appears after the first was fixed."""
    lines = Lines().user("u1", "Go.").say("a0", "m0").user("u2", "Both.", parent="lost").call("a1", "m1", "x1")
    _, records = repaired(
        lines.user("u3", "Well?").result("r9", "zz").assistant("a2", "m2", text(" ")).user("u4", "On.")
    )
    assert by_uuid(records)["u2"]["parentUuid"] == "a0"
    assert "a2" not in by_uuid(records)


def test_a_late_result_at_the_end_does_not_become_the_end_of_the_conversation() -> None:
    """Old clients continue from the newest record, so a moved one must not be it."""
    lines = Lines("1.0.90").user("u1", "Go.").call("a1", "m1", "x1").user("u2", "Meanwhile.").result("r1", "x1")
    _, records = repaired(lines, "1.0.128")
    assert wire(records, "1.0.128") == [
        ("user", ["Go."]),
        ("assistant", ["x1"]),
        ("user", ["x1", "Meanwhile."]),
    ]


def test_a_response_beside_the_chain_is_put_into_it_for_old_clients() -> None:
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").call("a2", "m1", "x2").call("a3", "m1", "x3")
    lines.result("r1", "x1", parent="a1").result("r3", "x3", parent="a3").result("r2", "x2", parent="a2")
    _, records = repaired(lines.say("a4", "m2").user("u2", "So?"), "2.0.76")
    for client in GENERATIONS:
        calls = next(blocks for role, blocks in wire(records, client) if role == "assistant")
        assert calls == ["x1", "x2", "x3"], client


def test_progress_records_stay_and_old_clients_find_the_way_past_them() -> None:
    lines = Lines("2.1.29").user("u1", "Go.").say("a1", "m1")
    lines.add("progress", "p1", "a1", data={"type": "hook_progress"}).add("progress", "p2", data={"type": "x"})
    _, records = repaired(lines.user("u2", "On.").say("a2", "m2"), "2.0.76")
    assert by_uuid(records)["u2"]["parentUuid"] == "a1"
    assert set(by_uuid(records)) == {"u1", "a1", "p1", "p2", "u2", "a2"}


def test_parents_in_a_circle_are_opened_where_the_conversation_began() -> None:
    lines = Lines().user("u1", "Begin.", parent="a2").say("a1", "m1").user("u2", "Go.").say("a2", "m2")
    _, records = repaired(lines)
    assert by_uuid(records)["u1"]["parentUuid"] is None
    assert len(wire(records)) == 4


def test_a_broken_escape_is_mended_in_place() -> None:
    data = Lines().user("u1", "Begin.").say("a1", "m1").data().replace(b"Begin.", b"Be \\q gin.")
    _, records = repaired(data)
    assert by_uuid(records)["u1"]["message"]["content"] == "Be \\q gin."


def test_a_second_candidate_can_be_chosen() -> None:
    lines = (
        Lines().user("u1", "Go.").say("a1", "m1").user("u2", "More.").user("u3", "And?", parent="lost").say("a3", "m3")
    )
    _, first = repaired(lines)
    _, second = repaired(lines, dangling_parent="bridge_2")
    assert by_uuid(first)["u3"]["parentUuid"] == "u2"
    assert by_uuid(second)["u3"]["parentUuid"] == "a1"


def test_a_finding_can_be_left_as_it_is() -> None:
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").user("u2", "Well?")
    plan = plan_repair(lines.conversation(), "", {"tool_use_without_result:x1": "none"})
    assert not plan.changes_anything
    assert [f.code for f in plan.findings_after] == ["tool_use_without_result"]


def test_a_choice_that_names_nothing_is_refused_with_what_there_is() -> None:
    conversation = Lines().user("u1", "Go.").call("a1", "m1", "x1").user("u2", "Well?").conversation()
    with pytest.raises(UsageError, match="no finding nonsense"):
        plan_repair(conversation, "", {"nonsense": "x"})
    with pytest.raises(UsageError, match="no repair wrong"):
        plan_repair(conversation, "", {"tool_use_without_result": "wrong"})


def bound_lines(model: str) -> Lines:
    think = {"type": "thinking", "thinking": "hm", "signature": "SigA"}
    lines = Lines("2.1.332").user("u1", "Go.").assistant("t1", "m0", think, model=model).say("a0", "m0", "Yes.")
    lines.user("u2", "Do it.").call("a1", "m1", "x1").user("u3", "Well?")
    lines.assistant("t2", "m2", think, model=model)
    return lines.assistant("a2", "m2", text("Done."), model=model).user("u4", "On.")


def test_thinking_that_is_bound_to_its_prefix_goes_for_whole_turns_behind_the_change() -> None:
    """api.md 2.4: the turn before the change keeps its thinking, those behind it cannot."""
    plan, records = repaired(bound_lines("claude-opus-5-5"))
    assert "t1" in by_uuid(records)
    assert "t2" not in by_uuid(records)
    assert any("Thinking was removed" in risk for risk in plan.risks)


def test_thinking_of_models_that_do_not_bind_it_stays() -> None:
    _, records = repaired(bound_lines("claude-opus-4-6"))
    assert {"t1", "t2"} <= set(by_uuid(records))


def test_a_bridge_restores_a_prefix_and_takes_no_thinking() -> None:
    think = {"type": "thinking", "thinking": "hm", "signature": "SigA"}
    lines = Lines("2.1.332").user("u1", "Go.").say("a1", "m1").user("u2", "More.", parent="lost")
    lines.assistant("t2", "m2", think, model="claude-opus-5-5").say("a2", "m2").user("u3", "On.")
    _, records = repaired(lines)
    assert "t2" in by_uuid(records)


def test_token_totals_stay_the_same() -> None:
    """G14: a call that came back is not counted twice."""
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").compaction("b1", "s1").result("r1", "x1").user("u2", "On.")
    before = _usage(lines.records)
    _, records = repaired(lines)
    assert _usage(records) == before


def _usage(records: list[Json]) -> int:
    by_message = {r["message"]["id"]: r["message"]["usage"] for r in records if r["type"] == "assistant"}
    return sum(sum(usage.values()) for usage in by_message.values())


@needs_shared
def test_real_transcripts_with_errors_are_mended_and_the_others_left_alone() -> None:
    small = [path for path in corpus_files() if path.stat().st_size < 600_000]
    changed = set()
    for path in small:
        plan, _ = repaired(open_session(path).conversation)
        fatal = any(f.severity == "error" for f in plan.findings_before)
        damaged = any(f.default_repair for f in plan.findings_before)
        assert plan.changes_anything is (fatal or damaged), path.name
        if plan.changes_anything:
            changed.add(path.name[:2])
    assert changed == {"06", "10", "14", "18", "19", "22", "27", "32", "43", "50", "56", "62"}


# --- the command line -------------------------------------------------------------------------------------------------


def broken_file(folder: Path) -> Path:
    file = folder / "s.jsonl"
    file.write_bytes(Lines().user("u1", "Go.").call("a1", "m1", "x1").user("u2", "Well?").data())
    return file


def test_repair_writes_a_new_file_and_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = broken_file(tmp_path)
    before = file.read_bytes()
    out = tmp_path / "mended.jsonl"
    assert main(["repair", str(file), "-o", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["written"] == str(out)
    assert (document["findings_before"], document["findings_after"]) == (1, 0)
    assert [(c["finding"], c["action"], c["line"]) for c in document["changes"]] == [
        ("tool_use_without_result", "insert", 2),
        ("tool_use_without_result", "replace", 3),
    ]
    assert all(c["uuid"] for c in document["changes"])
    lines = ("unchanged_lines", "changed_lines", "added_lines", "removed_lines")
    assert [document[name] for name in lines] == [2, 1, 1, 0]
    assert file.read_bytes() == before
    assert main(["doctor", str(out)]) == 0


def test_repair_of_a_sound_file_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(Lines().user("u1", "Go.").say("a1", "m1").data())
    assert main(["repair", str(file), "-o", str(tmp_path / "out.jsonl"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["written"] is None
    assert not (tmp_path / "out.jsonl").exists()


def test_repair_never_writes_over_the_original_or_another_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = broken_file(tmp_path)
    before = file.read_bytes()
    other = tmp_path / "other.jsonl"
    other.write_text("mine")
    assert main(["repair", str(file), "-o", str(file), "--overwrite"]) == 2
    assert main(["repair", str(file), "-o", str(other)]) == 1
    assert (file.read_bytes(), other.read_text()) == (before, "mine")


def test_repair_takes_choices_and_refuses_what_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = broken_file(tmp_path)
    out = tmp_path / "out.jsonl"
    accept = "tool_use_without_result:x1=remove_call"
    assert main(["repair", str(file), "-o", str(out), "--accept", accept]) == 0
    assert b"x1" not in out.read_bytes()
    assert main(["repair", str(file), "-o", str(tmp_path / "o2"), "--accept", "nonsense"]) == 2
    assert main(["repair", str(file), "-o", str(tmp_path / "o2"), "--accept", "a=b"]) == 2


def test_a_dry_run_shows_the_changes_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = broken_file(tmp_path)
    assert main(["repair", str(file), "-o", str(tmp_path / "out.jsonl"), "--dry-run"]) == 0
    assert "insert line 2" in capsys.readouterr().out
    assert [p.name for p in tmp_path.iterdir()] == ["s.jsonl"]


def test_a_session_that_may_be_in_use_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """G1: a file that was written a moment ago may go on growing."""
    file = broken_file(tmp_path)
    assert main(["repair", str(file), "-o", str(tmp_path / "one.jsonl")]) == 0
    assert "may be in use" in capsys.readouterr().err
    os.utime(file, (1, 1))
    assert main(["repair", str(file), "-o", str(tmp_path / "two.jsonl")]) == 0
    assert "may be in use" not in capsys.readouterr().err


def test_bytes_that_are_left_out_are_written_beside_the_new_file(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    lines = Lines().user("u1", "Go.").say("a1", "m1").data().splitlines(keepends=True)
    file.write_bytes(lines[0] + b"\0" * 7 + lines[1])
    assert main(["repair", str(file), "-o", str(tmp_path / "out.jsonl")]) == 0
    report = json.loads((tmp_path / "out.jsonl.left-out.json").read_text())
    assert report == [{"line": 2, "kind": "nul_padding", "bytes": 7, "base64": "AAAAAAAAAA=="}]
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(lines)


def test_a_folder_as_output_makes_up_a_session_id_or_keeps_the_name(tmp_path: Path) -> None:
    made = target_of(str(tmp_path), "old/s.jsonl", same_id=False)
    assert made.parent == tmp_path
    assert len(made.stem) == 36
    assert made.suffix == ".jsonl"
    assert target_of(str(tmp_path), "old/s.jsonl", same_id=True) == tmp_path / "s.jsonl"
    assert target_of(str(tmp_path / "x.jsonl"), "s.jsonl", same_id=True) == tmp_path / "x.jsonl"


def test_choices_are_split_at_the_last_sign() -> None:
    assert choices(["a:b=c=d"]) == {"a:b=c": "d"}
