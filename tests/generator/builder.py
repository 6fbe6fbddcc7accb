from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.generator.encode import encode
from tests.generator.identifiers import Identifiers, iso_timestamp
from tests.generator.ledger import BLOCK_OVERHEAD, IMAGE_TOKENS, Ledger, tokens_of_text, usage_object
from tests.generator.version import parse

Content = str | list[dict[str, Any]]

SUMMARY_OPENING = (
    "This session is being continued from a previous conversation that ran out of context. "
    "The summary below covers the earlier portion of the conversation.\n\n"
)


@dataclass(frozen=True, slots=True)
class Tool:
    """A call that the model makes; an empty id gets a new one."""

    name: str
    input: dict[str, Any] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool gave back.

    Attributes:
        content: the text or the blocks that are sent to the model.
        is_error: the tool failed; None leaves the field away.
        shown: `toolUseResult`, the copy for the client's own screen (never sent).
    """

    content: Content
    is_error: bool | None = None
    shown: Any = None


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A place in the conversation that can be gone back to."""

    leaf: str
    ledger: Ledger


@dataclass(frozen=True, slots=True)
class Response:
    """The records of one API response: their uuids in order, and the ids of its tool calls."""

    message_id: str
    request_id: str
    uuids: list[str]
    tools: list[str]
    usage: dict[str, Any]


class SessionBuilder:
    """Writes one session, record after record, as a given client version would.

    Each method appends records and moves `leaf`, the record that the next one hangs on. Times advance by themselves
    (`advance` for pauses) and `ledger` follows the context, so that usage, cache split and preTokens agree.

    Attributes:
        lines: the main file so far, without line endings; a driver that streams may drain it.
        other_files: everything beside the main file, by path relative to its folder.
        leaf: the uuid of the newest chained record ("" at the start).
    """

    def __init__(
        self,
        version: str = "2.1.217",
        *,
        seed: int = 0,
        model: str = "",
        cwd: str = "/Users/ada/tide-tables",
        branch: str = "main",
        start: int = 1_780_000_000_000,
        system_tokens: int = 18_000,
        hour_share: float = 1.0,
        name: str = "session",
    ) -> None:
        self.version = parse(version)
        self.rng = random.Random(f"builder-{seed}")
        self.ids = Identifiers(self.rng)
        self.model = model or self.version.model
        self.cwd = cwd
        self.branch = branch
        self.name = name
        self.session_id = self.ids.uuid()
        self.slug = "quiet-harbour-lantern"
        self.now = start
        self.hour_share = hour_share
        self.ledger = Ledger(system=system_tokens, context=system_tokens)
        self.lines: list[bytes] = []
        self.other_files: dict[str, bytes] = {}
        self.leaf = ""
        self.agent_id = ""
        self.sidechain = False
        self.prompt_id = ""
        self.call_record: dict[str, str] = {}
        self.call_name: dict[str, str] = {}
        self.last_usage: dict[str, Any] = {}
        self._openings: set[str] = set()

    # --- time and raw records -------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Let time pass before the next record; an hour or more also lets the prompt cache run out."""
        self.now += round(seconds * 1000)
        if seconds >= 3600:
            self.ledger.forget_cache()

    def line(self, data: bytes) -> None:
        """Append a line exactly as given (without its line ending)."""
        self.lines.append(data)

    def record(self, value: Mapping[str, Any]) -> None:
        """Append a record exactly as given; it does not join the chain."""
        self.lines.append(encode(value))

    def chained(self, body: dict[str, Any], *, parent: str | None = None, uuid: str = "", **late: Any) -> str:
        """Append a record that joins the chain: `body` inside the envelope of this version; returns its uuid.

        Args:
            body: the fields between the envelope's halves (`type`, `message` …).
            parent: the parent's uuid; None takes `leaf`, "" writes null.
            uuid: a given uuid instead of a new one.
            late: fields after `uuid` and `timestamp`.
        """
        self.now += self.rng.randrange(40, 900)
        uuid = uuid or self.ids.uuid()
        parent = self.leaf if parent is None else parent
        modern = self.version.since("2.1.81")
        place = self._place()
        record: dict[str, Any] = {"parentUuid": parent or None}
        if "logicalParentUuid" in body:
            record["logicalParentUuid"] = body["logicalParentUuid"]
        record["isSidechain"] = self.sidechain
        if modern:
            if body.get("type") == "user" and self.prompt_id:
                record["promptId"] = self.prompt_id
            if self.agent_id:
                record["agentId"] = self.agent_id
            record |= body
            record["uuid"] = uuid
            record["timestamp"] = iso_timestamp(self.now)
            record |= late
            record |= place
        else:
            record |= place
            record |= body
            record["uuid"] = uuid
            record["timestamp"] = iso_timestamp(self.now)
            record |= late
        self.lines.append(encode(record))
        self.leaf = uuid
        return uuid

    def _place(self) -> dict[str, Any]:
        place: dict[str, Any] = {"userType": "external"}
        if self.version.since("2.1.81"):
            place["entrypoint"] = "cli"
        place |= {"cwd": self.cwd, "sessionId": self.session_id, "version": self.version.text}
        if self.version.since("1.0.55"):
            place["gitBranch"] = self.branch
        if self.agent_id and not self.version.since("2.1.81"):
            place["agentId"] = self.agent_id
        if self.version.since("2.0.55"):
            place["slug"] = self.slug
        return place

    # --- the conversation -----------------------------------------------------------------------------------------

    def prompt(self, content: Content, *, meta: bool = False, parent: str | None = None, **late: Any) -> str:
        """A person's prompt (or, with `meta`, text that the client injected); returns its uuid."""
        self.advance(self.rng.uniform(5, 60))
        if not meta:
            self.prompt_id = self.ids.uuid()
        body: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": content}}
        if meta:
            late["isMeta"] = True
        elif not self.agent_id:
            if self.version.between("2.0.55", "2.1.45"):
                late |= {"thinkingMetadata": {"level": "high", "disabled": False, "triggers": []}, "todos": []}
            if self.version.since("2.1.15"):
                late["permissionMode"] = "acceptEdits"
            if self.version.since("2.1.126"):
                late["origin"] = {"kind": "human"}
            if self.version.since("2.1.181"):
                late["promptSource"] = "typed"
        uuid = self.chained(body, parent=parent, **late)
        self._openings.add(uuid)
        self._add(uuid, content)
        return uuid

    def assistant(
        self,
        text: str = "",
        *,
        thinking: str | None = None,
        tools: Sequence[Tool] = (),
        results: Sequence[Result | str | None] = (),
        interleave: bool = False,
        blocks: Sequence[dict[str, Any]] = (),
        hidden_thinking_tokens: int = 0,
        model: str = "",
        split: bool = True,
        stop_reason: str = "",
        usage: dict[str, Any] | None = None,
        parent: str | None = None,
        message_id: str = "",
        **late: Any,
    ) -> Response:
        """One API response: thinking, text, other `blocks`, then tool calls, one record each; then their results.

        Args:
            thinking: None for none; "" for a thinking block whose text was withheld (signature only).
            results: one per tool; None leaves that call without a result.
            interleave: each result is written right after its call, between the blocks of the response.
            hidden_thinking_tokens: output tokens of thinking whose text is not in the file.
            split: one record per block (every real client since 1.0.17); False puts all blocks into one record.
            usage: recorded instead of the computed figures.
        """
        self.advance(self.rng.uniform(1, 12))
        content, calls = self._response_blocks(text, thinking, blocks, tools)
        output = sum(_tokens_of_block(block) for block in content) + hidden_thinking_tokens
        counts = self.ledger.respond(output)
        final = usage or usage_object(
            self.version, counts, output, hour_share=self.hour_share, thinking_tokens=hidden_thinking_tokens
        )
        self.last_usage = final
        reason = stop_reason or ("tool_use" if calls else "end_turn")
        response = Response(message_id or self.ids.message(), self.ids.request(), [], [c.id for c in calls], final)
        pending = dict(zip((call.id for call in calls), results, strict=False))
        groups = [[block] for block in content] if split else [content]
        for number, group in enumerate(groups):
            last = number == len(groups) - 1
            recorded, stop = self._as_recorded(final, reason, last)
            message = {
                "model": model or self.model,
                "id": response.message_id,
                "type": "message",
                "role": "assistant",
                "content": group,
                "stop_reason": stop,
                "stop_sequence": None,
                "usage": recorded,
            }
            uuid = self.chained(
                {"message": message, "requestId": response.request_id, "type": "assistant"},
                parent=parent if number == 0 else None,
                **({"effort": "high"} if self.version.since("2.1.215") else {}),
                **({"session_id": self.session_id} if self.version.since("2.1.220") else {}),
                **late,
            )
            if number == 0:
                self._openings.add(uuid)
            response.uuids.append(uuid)
            self.ledger.recent.append((uuid, sum(_tokens_of_block(block) for block in group)))
            for block in group:
                if block["type"] == "tool_use":
                    self.call_record[block["id"]] = uuid
                    self.call_name[block["id"]] = block["name"]
                    if interleave and (result := pending.pop(block["id"], None)) is not None:
                        self.result(block["id"], result)
        for call, result in pending.items():
            if result is not None:
                self.result(call, result)
        return response

    def result(self, call: str, result: Result | str, *, parent: str | None = None, **late: Any) -> str:
        """The tool_result of the tool_use `call`, hung on the record that made the call; returns its uuid."""
        result = Result(result) if isinstance(result, str) else result
        self.advance(self.rng.uniform(0.1, 4))
        block: dict[str, Any] = {"tool_use_id": call, "type": "tool_result", "content": result.content}
        if result.is_error is not None:
            block["is_error"] = result.is_error
        if result.shown is not None:
            late["toolUseResult"] = result.shown
        source = self.call_record.get(call, "")
        if source and self.version.since("2.1.1"):
            late["sourceToolAssistantUUID"] = source
        uuid = self.chained(
            {"type": "user", "message": {"role": "user", "content": [block]}},
            parent=parent if parent is not None else source or None,
            **late,
        )
        self.ledger.results[call] = self._add(uuid, result.content)
        return uuid

    def persisted_result(self, call: str, output: str, *, preview: int = 2000) -> str:
        """A result too big for the context: the output goes to tool-results/, a preview is sent; returns its uuid."""
        folder = self.cwd.replace("/", "-")
        path = f"/Users/ada/.claude/projects/{folder}/{self.session_id}/tool-results/{call}.txt"
        self.other_files[f"{self.name}/tool-results/{call}.txt"] = output.encode()
        size = f"{len(output.encode()) / 1024:.1f}KB"
        text = (
            f"<persisted-output>\nOutput too large ({size}). Full output saved to: {path}\n\n"
            f"Preview (first {preview // 1000}KB):\n{output[:preview]}\n...\n</persisted-output>"
        )
        shown = {
            "stdout": output[:preview],
            "stderr": "",
            "interrupted": False,
            "isImage": False,
            "persistedOutputPath": path,
            "persistedOutputSize": len(output.encode()),
        }
        return self.result(call, Result(text, shown=shown))

    def bookmark(self) -> Bookmark:
        """The place in the conversation where it stands now, to `rewind` to later."""
        return Bookmark(self.leaf, copy.deepcopy(self.ledger))

    def rewind(self, place: Bookmark) -> None:
        """Go on from an earlier place: the next record becomes a second child there, and the context is as it was."""
        self.leaf, self.ledger = place.leaf, copy.deepcopy(place.ledger)

    # --- compaction -----------------------------------------------------------------------------------------------

    def compact(
        self,
        summary: str = "Summary:\n1. Primary Request and Intent:\n   Keep the tide tables right.",
        *,
        trigger: str = "auto",
        preserve: int = 0,
        restore: Mapping[str, str] | None = None,
        parent_after: str = "summary",
    ) -> str:
        """A compaction: boundary, summary, re-attached files; returns the summary's uuid.

        Args:
            preserve: at least how many of the newest records stay in the context (versions from 2.1.217 record which);
                more where a response or a pair of call and result would be cut in two.
            restore: file path → text of files that the client attaches again (written from 2.1.92).
            parent_after: what the next record hangs on: "summary", or "tail" for the last preserved record, as in one
                of four such compactions (a walk by parents then goes straight past the boundary).
        """
        if not self.version.since("2.0.76"):
            return self.legacy_compact(summary)
        kept = self._whole_tail(preserve)
        kept_tokens = sum(tokens for _, tokens in kept) + tokens_of_text(SUMMARY_OPENING + summary)
        before, last, summary_id = self.ledger.estimate_now, self.leaf, self.ids.uuid()
        metadata: dict[str, Any] = {"trigger": trigger, "preTokens": before}
        if self.version.since("2.1.81"):
            metadata["preCompactDiscoveredTools"] = []
        if self.version.since("2.1.217"):
            self.ledger.dropped += before - kept_tokens
            metadata["durationMs"] = self.rng.randrange(68_000, 174_000)
            if kept:
                uuids = [uuid for uuid, _ in kept]
                metadata["preservedSegment"] = {
                    "headUuid": uuids[0],
                    "anchorUuid": summary_id,
                    "tailUuid": uuids[-1],
                }
                # The client also names records here that it never writes.
                named = [*uuids[:-1], self.ids.uuid(), uuids[-1]] if len(uuids) > 1 else uuids
                metadata["preservedMessages"] = {"anchorUuid": summary_id, "uuids": uuids, "allUuids": named}
            metadata["postTokens"] = kept_tokens
            metadata["cumulativeDroppedTokens"] = self.ledger.dropped
        self.chained(
            {
                "logicalParentUuid": last or None,
                "type": "system",
                "subtype": "compact_boundary",
                "content": "Conversation compacted",
                "isMeta": False,
                "level": "info",
                "compactMetadata": metadata,
            },
            parent="",
        )
        self.ledger.compact(kept_tokens)
        self._openings.clear()
        self._summary(summary, uuid=summary_id)
        if parent_after == "tail" and kept:
            self.leaf = kept[-1][0]
        if trigger == "manual":
            self._compact_echo()
        if self.version.since("2.1.92"):
            for path, text in (restore or {}).items():
                self.attachment("file", filename=path, content=_file_content(path, text), displayPath=path)
        return summary_id

    def legacy_compact(self, summary: str) -> str:
        """A compaction as before 2.0.76: no boundary; the summary starts a new root. Returns its uuid."""
        self.ledger.compact(tokens_of_text(SUMMARY_OPENING + summary))
        return self._summary(summary, parent="")

    def microcompact(self, *, keep: int = 5, marked: bool = True) -> list[str]:
        """The client clears all but the newest `keep` tool results; returns the ids of what went.

        Args:
            marked: write a microcompact_boundary (2.1.12–2.1.22 did); False is the silent kind, with no record.
        """
        ids = list(self.ledger.results)[: -keep or None]
        clearable = sum(self.ledger.results.values())
        freed = self.ledger.clear_results(ids)
        if marked:
            self.chained(
                {
                    "type": "system",
                    "subtype": "microcompact_boundary",
                    "content": "Context microcompacted",
                    "isMeta": False,
                    "level": "info",
                    "microcompactMetadata": {
                        "trigger": "auto",
                        "preTokens": clearable,
                        # The client's own figure is lower than the true drop (section 7).
                        "tokensSaved": round(freed * 0.82),
                        "compactedToolIds": ids,
                        "clearedAttachmentUUIDs": [],
                    },
                }
            )
        return ids

    def _whole_tail(self, records: int) -> list[tuple[str, int]]:
        recent = list(self.ledger.recent)
        start = max(0, len(recent) - records)
        while 0 < start < len(recent) and recent[start][0] not in self._openings:
            start -= 1
        return recent[start:]

    def _summary(self, summary: str, *, uuid: str = "", parent: str | None = None) -> str:
        late: dict[str, Any] = {"isCompactSummary": True}
        if self.version.since("2.0.76"):
            late = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
        text = SUMMARY_OPENING + summary
        return self.chained(
            {"type": "user", "message": {"role": "user", "content": text}}, parent=parent, uuid=uuid, **late
        )

    def _compact_echo(self) -> None:
        self.prompt(
            "<local-command-caveat>Caveat: The messages below were generated by the user while running local "
            "commands.</local-command-caveat>",
            meta=True,
        )
        for text in (
            "<command-name>/compact</command-name>\n            <command-message>compact</command-message>\n"
            "            <command-args></command-args>",
            "<local-command-stdout>Compacted </local-command-stdout>",
        ):
            uuid = self.chained({"type": "user", "message": {"role": "user", "content": text}})
            self._add(uuid, text)

    # --- everything else that stands in a transcript --------------------------------------------------------------

    def attachment(self, kind: str, *, sent: str | None = None, **fields: Any) -> str:
        """An attachment record (2.1.92+); `sent` is the text the model gets, by default the text in `content`."""
        uuid = self.chained({"attachment": {"type": kind, **fields}, "type": "attachment"})
        content = fields.get("content", "")
        self._add(uuid, sent if sent is not None else content if isinstance(content, str) else str(content))
        return uuid

    def system(self, subtype: str, **fields: Any) -> str:
        """A system record of the given subtype ("" for none)."""
        return self.chained({"type": "system", **({"subtype": subtype} if subtype else {}), **fields})

    def turn_duration(self, milliseconds: int) -> str:
        """The record that closes a turn since 2.1.1."""
        return self.system("turn_duration", durationMs=milliseconds, isMeta=False)

    def api_error(self, status: int = 529, *, attempt: int = 1) -> str:
        """A failed try of a request that the client repeats by itself."""
        return self.system(
            "api_error",
            level="error",
            error={"status": status, "headers": {}, "requestID": self.ids.request()},
            retryInMs=round(500 * 2**attempt * 1.07, 3),
            retryAttempt=attempt,
            maxRetries=10,
        )

    def api_error_message(self, text: str, *, status: int = 429) -> str:
        """The synthetic assistant message that shows an API error to the person; it was never sent by a model."""
        zero = {
            "input_tokens": 0,
            "output_tokens": 0,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        }
        message = {
            "id": self.ids.uuid(),
            "model": "<synthetic>",
            "role": "assistant",
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "type": "message",
            "usage": zero,
            "content": [{"type": "text", "text": text}],
        }
        late: dict[str, Any] = {"isApiErrorMessage": True}
        if self.version.since("2.1.220"):
            late |= {"error": "rate_limit", "apiErrorStatus": status, "apiErrorIsTransient": True}
        return self.chained({"type": "assistant", "message": message}, **late)

    def progress(self, kind: str, call: str, **data: Any) -> str:
        """A progress record (`bash_progress`, `hook_progress`, `agent_progress` …) of the tool_use `call`."""
        return self.chained(
            {"type": "progress", "data": {"type": kind, **data}, "parentToolUseID": call, "toolUseID": f"{kind}-0"}
        )

    def file_history_snapshot(self, message_id: str = "") -> None:
        """A snapshot of the files that the client tracks; not part of the chain."""
        message_id = message_id or self.ids.uuid()
        snapshot = {"messageId": message_id, "trackedFileBackups": {}, "timestamp": iso_timestamp(self.now)}
        self.record(
            {
                "type": "file-history-snapshot",
                "messageId": message_id,
                "snapshot": snapshot,
                "isSnapshotUpdate": False,
            }
        )

    def queue_operation(self, operation: str, content: str | None = None) -> None:
        """A prompt typed while the agent worked was queued or taken from the queue."""
        record = {
            "type": "queue-operation",
            "operation": operation,
            "timestamp": iso_timestamp(self.now),
            "sessionId": self.session_id,
        }
        self.record(record if content is None else record | {"content": content})

    def last_prompt(self, text: str) -> None:
        """The session's newest prompt and its leaf, rewritten at each flush (2.1.81+)."""
        record = {"type": "last-prompt", "lastPrompt": text}
        if self.version.since("2.1.126"):
            record["leafUuid"] = self.leaf
        self.record(record | {"sessionId": self.session_id})

    def title(self, text: str) -> None:
        """The session's title: `ai-title` since 2.1.81, before that a `summary` record."""
        if self.version.since("2.1.81"):
            self.record({"type": "ai-title", "aiTitle": text, "sessionId": self.session_id})
        else:
            self.record({"type": "summary", "summary": text, "leafUuid": self.leaf})

    # --- subagents ------------------------------------------------------------------------------------------------

    def subagent(self, call: str, prompt: str, *, kind: str = "Explore", description: str = "") -> SessionBuilder:
        """The conversation of the subagent that the tool_use `call` started, in the layout of this version.

        Write its records with the builder returned, then give it to `end_subagent`.
        """
        child = SessionBuilder(
            self.version.text, seed=self.rng.getrandbits(32), model=self.model, cwd=self.cwd, branch=self.branch
        )
        child.session_id, child.now, child.sidechain, child.slug = self.session_id, self.now, True, self.slug
        child.ledger = Ledger(system=9_000, context=9_000)
        layout = self.version.subagents
        if layout == "inline":
            child.lines = self.lines
        else:
            child.agent_id = self.ids.hexadecimal(
                17 if self.version.since("2.1.100") else 7 if layout == "nested" else 8
            )
            child.name = self._agent_file(child.agent_id)
            if layout == "nested" and self.version.since("2.1.114"):
                meta = {"agentType": kind, "description": description or prompt[:40], "spawnDepth": 1}
                self.other_files[child.name.removesuffix(".jsonl") + ".meta.json"] = encode(meta)
        child.prompt(prompt, parent="")
        if self.version.between("2.1.12", "2.1.81"):
            message = {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": prompt}]}}
            self.progress(
                "agent_progress", call, message=message, normalizedMessages=[], prompt=prompt, agentId=child.agent_id
            )
        return child

    def end_subagent(self, call: str, child: SessionBuilder, answer: str) -> str:
        """The subagent's last words come back as the result of the call; returns the result's uuid."""
        child.assistant(answer)
        self.now = max(self.now, child.now)
        if child.lines is not self.lines:
            self.other_files[child.name] = b"".join(line + b"\n" for line in child.lines)
        content = [{"type": "text", "text": answer}]
        shown = {
            "status": "completed",
            **({"agentId": child.agent_id} if child.agent_id else {}),
            "content": content,
            "totalTokens": child.ledger.context,
            "totalToolUseCount": len(child.call_record),
            "totalDurationMs": 41_250,
            "usage": child.last_usage,
        }
        sent = [*content, {"type": "text", "text": f"agentId: {child.agent_id}"}] if child.agent_id else content
        return self.result(call, Result(sent, shown=shown))

    def _agent_file(self, agent_id: str) -> str:
        if self.version.subagents == "nested":
            return f"{self.name}/subagents/agent-{agent_id}.jsonl"
        return f"agent-{agent_id}.jsonl"

    # --- output ---------------------------------------------------------------------------------------------------

    def to_bytes(self, *, final_newline: bool = True) -> bytes:
        """The main file."""
        data = b"\n".join(self.lines)
        return data + b"\n" if final_newline and self.lines else data

    def write(self, folder: Path) -> Path:
        """Write the main file and everything beside it into `folder`; returns the main file's path."""
        folder.mkdir(parents=True, exist_ok=True)
        main = folder / f"{self.name}.jsonl"
        main.write_bytes(self.to_bytes())
        self.write_other_files(folder)
        return main

    def write_other_files(self, folder: Path) -> None:
        """Write the subagents' files and the tool-results, and forget them."""
        for name, data in self.other_files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self.other_files.clear()

    # --- pieces ---------------------------------------------------------------------------------------------------

    def _response_blocks(
        self, text: str, thinking: str | None, blocks: Sequence[dict[str, Any]], tools: Sequence[Tool]
    ) -> tuple[list[dict[str, Any]], list[Tool]]:
        content: list[dict[str, Any]] = []
        if thinking is not None:
            content.append({"type": "thinking", "thinking": thinking, "signature": self.ids.hexadecimal(88)})
        if text:
            content.append({"type": "text", "text": text})
        content += blocks
        calls = [tool if tool.id else Tool(tool.name, tool.input, self.ids.tool_use()) for tool in tools]
        direct = {"caller": {"type": "direct"}} if self.version.since("2.1.100") else {}
        for call in calls:
            content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input, **direct})
        return content, calls

    def _as_recorded(self, final: dict[str, Any], reason: str, last: bool) -> tuple[dict[str, Any], str | None]:
        """Usage and stop_reason as this version writes them on a record: final, or the placeholder of section 5."""
        policy = self.version.stop_reasons
        if policy == "every" or (policy == "last" and last):
            return final, reason
        placeholder = self.rng.randrange(1, 9)
        recorded = final | {"output_tokens": min(placeholder, final["output_tokens"])}
        if "iterations" in recorded:
            recorded["iterations"] = [recorded["iterations"][0] | {"output_tokens": recorded["output_tokens"]}]
        return recorded, None

    def _add(self, uuid: str, content: Content) -> int:
        """Enter user content into the ledger; returns its tokens."""
        if isinstance(content, str):
            tokens, characters = tokens_of_text(content), len(content)
        else:
            tokens = sum(_tokens_of_block(block) for block in content)
            characters = sum(len(str(block.get("text", block.get("content", "")))) for block in content)
        self.ledger.add(uuid, tokens, characters)
        return tokens


def _tokens_of_block(block: dict[str, Any]) -> int:
    kind = block.get("type")
    if kind == "text":
        return tokens_of_text(block["text"])
    if kind == "thinking":
        return tokens_of_text(block["thinking"]) if block["thinking"] else 0
    if kind == "tool_use":
        return tokens_of_text(block["name"]) + tokens_of_text(encode(block["input"]).decode()) + BLOCK_OVERHEAD
    if kind in ("image", "document"):
        return IMAGE_TOKENS
    return tokens_of_text(encode(block).decode())


def _file_content(path: str, text: str) -> dict[str, Any]:
    lines = text.count("\n") + 1
    file = {"filePath": path, "content": text, "numLines": lines, "startLine": 1, "totalLines": lines}
    return {"type": "text", "file": file}
